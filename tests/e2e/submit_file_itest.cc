// Many jobs from one file: `msactl submit --from`.
#include <set>

#include "shared_cluster.h"

namespace msa::e2e {
namespace {

class SubmitFile : public SharedCluster {
 protected:
  static std::string InputFile(const std::string& text) {
    return cluster_->scratch().Write("jobs.txt", text);
  }
  static std::string Output(const std::string& name) {
    return support::ReadFile(cluster_->scratch().path() + "/" + name);
  }
  static bool Ended(const std::string& id) { return Run({"job", "wait", id}).code == 0; }
  static std::size_t Known() {
    return cluster_->Query({"job", "list", "-a", "-n", "10000"})["items"].list().size();
  }
  static Outcome Submit(const std::string& text, std::vector<std::string> options = {}) {
    options.insert(options.begin(), {"submit", "--from", InputFile(text)});
    return Run(std::move(options));
  }
};

TEST_F(SubmitFile, EachLineIsAJobWithItsOptionsAndWords) {
  const Outcome outcome = Submit(
      "# the first jobs\n"
      "\n"
      "-n 2 -m booster -l -J two -- sh -c 'echo \"$MSA_RANK of $MSA_WORLD_SIZE\"'\n");
  EXPECT_EQ(outcome.code, 2) << "a label needs a msactl that prints it\n" << outcome.Text();
  const Outcome submitted = Submit(
      "# the first jobs\n"
      "\n"
      "-n 2 -m booster -J two -- sh -c 'echo \"$MSA_RANK of $MSA_WORLD_SIZE\"'  # a comment\n"
      "-o 'named-%j.out' echo it\\'s \"a  b\" '' '#'\n"
      "-m cluster -n 1 -o both-%j.out sh -c 'echo a$MSA_MODULE' : -m dam sh -c 'echo b$MSA_MODULE'");
  ASSERT_EQ(submitted.code, 0) << submitted.Text();
  const auto begin = submitted.out.find("(ids ");
  ASSERT_THAT(submitted.out, HasSubstr("submitted 3 jobs (ids "));
  const int first = std::stoi(submitted.out.substr(begin + 5));
  EXPECT_THAT(submitted.out, HasSubstr(std::to_string(first) + "-" + std::to_string(first + 2)));
  for (int id = first; id < first + 3; ++id) EXPECT_TRUE(Ended(std::to_string(id))) << id;
  EXPECT_EQ(Sorted(Lines(Output("msa-" + std::to_string(first) + ".out"))),
            (std::vector<std::string>{"0 of 2", "1 of 2"}));
  EXPECT_EQ(Output("named-" + std::to_string(first + 1) + ".out"), "it's a  b  #\n");
  EXPECT_EQ(Sorted(Lines(Output("both-" + std::to_string(first + 2) + ".out"))),
            (std::vector<std::string>{"acluster", "bdam"}));
  EXPECT_EQ(Job(std::to_string(first))["name"].text(), "two");
}

TEST_F(SubmitFile, ReadsStandardInputAndPrintsIdsAloneInTheOrderOfTheLines) {
  Command command = cluster_->Msactl({"submit", "--from", "-", "--parsable"});
  for (int i = 0; i < 50; ++i) command.input += "-o none -J n" + std::to_string(i) + " true\n";
  const Outcome outcome = support::RunCommand(std::move(command));
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  const auto ids = Lines(outcome.out);
  ASSERT_EQ(ids.size(), 50u);
  for (const int i : {0, 17, 49}) EXPECT_EQ(Job(ids[i])["name"].text(), "n" + std::to_string(i));
  for (const std::string& id : ids) EXPECT_TRUE(Ended(id));
}

TEST_F(SubmitFile, ALineThatIsWrongIsNamedBeforeAnythingIsSent) {
  const std::size_t before = Known();
  struct Case {
    const char* line;
    const char* text;
  };
  for (const Case& c :
       {Case{"-n zero ./a", "--ntasks"}, Case{"-n 1 ./a 'x", "not closed"}, Case{"-n 1", "no program"},
        Case{"./a > out", "'>'"}, Case{"--dir /tmp/else ./a", "--dir /tmp/else"},
        Case{"-I ./a", "--immediate"}, Case{"--job 3 ./a", "--job is for a step"},
        Case{"--overlap ./a", "--overlap is for"}, Case{"--het-group 0 ./a", "--het-group is for"}}) {
    const Outcome outcome = Submit("-o none true\n# comment\n" + std::string(c.line) + "\n-o none true\n");
    EXPECT_EQ(outcome.code, 2) << outcome.Text();
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr("jobs.txt:3: "), HasSubstr(c.text), HasSubstr("nothing was submitted")));
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_EQ(Submit("# nothing\n\n").code, 2);
  EXPECT_EQ(Run({"submit"}).code, 2);
  const Outcome missing = Run({"submit", "--from", "/nowhere/jobs.txt"});
  EXPECT_EQ(missing.code, 3) << missing.Text();
  EXPECT_THAT(missing.err, HasSubstr("/nowhere/jobs.txt"));
  EXPECT_EQ(Known(), before);
}

TEST_F(SubmitFile, ALineThatTheControllerRefusesIsNamedWithHowManyWereSubmitted) {
  const Outcome outcome = Submit("-o none true\n-m boster -o none true\n", {"--parsable"});
  EXPECT_EQ(outcome.code, 9) << outcome.Text();
  EXPECT_THAT(
      outcome.err,
      AllOf(HasSubstr("jobs.txt:2: "), HasSubstr("'booster'"),
            HasSubstr("1 of 2 jobs were submitted, 1 of them from lines before it; not submitted: line 2")));
  const auto ids = Lines(outcome.out);
  ASSERT_EQ(ids.size(), 1u);
  EXPECT_TRUE(Ended(ids[0]));
  const Outcome none = Submit("-m booster -N 12 -n 12 true\n");
  EXPECT_EQ(none.code, 5) << none.Text();
  EXPECT_THAT(none.err, AllOf(HasSubstr("jobs.txt:1: "), HasSubstr("12"), HasSubstr("0 of 1 jobs")));
}

TEST(SubmitFileFaults, EachJobIsQueuedOnceThoughTheControllerDiesAmongThem) {
  // Each controller dies when it has written its second group of jobs, before it answers for them.
  auto started = MiniCluster::Start({.env = {{"MSA_FAULT", "controller.submit.after_commit=kill@2"}}});
  ASSERT_TRUE(started.ok()) << started.status().message();
  const auto cluster = *std::move(started);
  // How many a group holds is chance, and each death costs up to 5 s until the next start.
  constexpr std::size_t kJobs = 80;
  std::string text;
  for (std::size_t i = 0; i < kJobs; ++i) text += "-o none -J j" + std::to_string(i) + " true\n";
  const std::string file = cluster->scratch().Write("jobs.txt", text);
  const Outcome outcome = cluster->Run({"submit", "--from", file, "--parsable"}, 240s);
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  const auto ids = Lines(outcome.out);
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), kJobs);
  const auto all = [&] { return cluster->Query({"job", "list", "-a", "-n", "10000"}); };
  EXPECT_EQ(all()["items"].list().size(), kJobs) << "a job was queued twice, or lost";
  EXPECT_TRUE(Eventually(120s, "all have run", [&] {
    const Json jobs = all();
    return std::all_of(jobs["items"].list().begin(), jobs["items"].list().end(),
                       [](const Json& job) { return job["state"].text() == "COMPLETED"; });
  }));
}

}  // namespace
}  // namespace msa::e2e
