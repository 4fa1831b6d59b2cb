// Batch scripts as users submit them: what runs, where its output goes, who waits for whom.
#include <unistd.h>

#include <chrono>

#include "shared_cluster.h"

namespace msa::e2e {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::EndsWith;
using testing::StartsWith;

class Batch : public SharedCluster {
 protected:
  void SetUp() override {
    SharedCluster::SetUp();
    if (cluster_ != nullptr) ::unlink(Path("go").c_str());
  }
  void TearDown() override {
    if (cluster_ != nullptr) Go();
    SharedCluster::TearDown();
  }
  static std::string Path(const std::string& name) { return cluster_->scratch().path() + "/" + name; }
  static std::string Script(const std::string& name, const std::string& text) {
    return cluster_->scratch().Write(name, "#!/bin/sh\n" + text, 0644);
  }
  // The id of a submitted job.
  static std::string Submit(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"submit", "--parsable"});
    const Outcome outcome = Run(std::move(arguments));
    EXPECT_EQ(outcome.code, 0) << outcome.Text();
    const auto lines = Lines(outcome.out);
    return lines.size() == 1 ? lines[0] : "";
  }
  static int Wait(const std::string& id) { return Run({"job", "wait", "-q", id}).code; }
  static std::string Output(const std::string& name) { return support::ReadFile(Path(name)); }
  // A script that ends when Go() is called.
  static std::string Holder(const std::string& more = "") {
    return Script("hold.sh", "while [ ! -e " + Path("go") + " ]; do sleep 0.02; done\n" + more);
  }
  static void Go() { cluster_->scratch().Write("go", ""); }
};

TEST_F(Batch, AScriptRunsWithItsArgumentsAndItsCodeIsTheJobs) {
  const std::string script = Script("seven.sh", "echo \"$# $1|$2\"; echo oops >&2; exit 7\n");
  const Outcome outcome = Run({"submit", "--wait", script, "a b", "-n"});
  EXPECT_EQ(outcome.code, 7) << outcome.Text();
  EXPECT_THAT(outcome.out, StartsWith("submitted job "));
  const std::string id = Lines(outcome.out)[0].substr(14);
  EXPECT_EQ(Output("msa-" + id + ".out"), "2 a b|-n\noops\n");
  const Json job = Job(id);
  EXPECT_EQ(job["state"].text(), "FAILED");
  EXPECT_EQ(job["exit_code"].text(), "7");
  EXPECT_EQ(job["mode"].text(), "batch");
  EXPECT_EQ(job["name"].text(), "seven.sh");
  EXPECT_EQ(job["stdout_path"].text(), Path("msa-" + id + ".out"));
  EXPECT_EQ(Run({"job", "logs", id}).out, "2 a b|-n\noops\n");
}

TEST_F(Batch, TheScriptIsTheOneOfTheSubmission) {
  const std::string script = Script("copied.sh", "echo first\n");
  const std::string id = Submit({"--begin", "now+1", script});
  Script("copied.sh", "echo second\n");
  EXPECT_EQ(Wait(id), 0);
  EXPECT_EQ(Output("msa-" + id + ".out"), "first\n");
}

TEST_F(Batch, AScriptComesFromStandardInputOrFromWrap) {
  Command command = cluster_->Msactl({"submit", "--wait", "-", "x"});
  command.input = "#!/bin/sh\n#MSA -J typed -o typed.%j\necho \"from stdin: $1\"\n";
  const Outcome outcome = support::RunCommand(command);
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  const std::string id = Lines(outcome.out)[0].substr(14);
  EXPECT_EQ(Output("typed." + id), "from stdin: x\n");
  const std::string wrapped = Submit({"--wrap", "echo $MSA_JOB_ID", "-o", "wrapped"});
  EXPECT_EQ(Wait(wrapped), 0);
  EXPECT_EQ(Output("wrapped"), wrapped + "\n");
}

TEST_F(Batch, OptionsOfTheScriptHoldUnlessTheCommandLineHasThemToo) {
  const std::string script = Script("options.sh",
                                    "#SBATCH --job-name=x1 -o %x-%u-%j.out -e %x-%4j.err --time=10\n"
                                    "#SBATCH -p booster -n 2 --account=deep\n"
                                    "echo $MSA_NODE; echo bad >&2\n");
  const Outcome outcome = Run({"submit", "--wait", "-J", "x2", script});
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("options.sh:3: --account is ignored"), Not(HasSubstr(":2:"))));
  const std::string id = Lines(outcome.out)[0].substr(14);
  const Json job = Job(id);
  EXPECT_EQ(job["time_limit_seconds"].text(), "600");
  EXPECT_EQ(job["tasks"].text(), "2");
  EXPECT_THAT(Output("x2-" + job["user"].text() + "-" + id + ".out"), StartsWith("bn"));
  EXPECT_EQ(Output("x2-" + std::string(4 - std::min<std::size_t>(4, id.size()), '0') + id + ".err"), "bad\n");
}

TEST_F(Batch, AHetScriptHoldsNodesOfBothModules) {
  const std::string script = Script("het.sh",
                                    "#SBATCH -p cluster -n 2\n#SBATCH hetjob\n#SBATCH -p booster -N 2 -n 4\n"
                                    "while [ ! -e " +
                                        Path("go") + " ]; do sleep 0.02; done\n");
  const std::string id = Submit({script});
  ASSERT_TRUE(Eventually(30s, "it runs", [&] { return JobIsIn(id, "RUNNING"); })) << Job(id)["reason"].text();
  EXPECT_EQ(cluster_->SlotsUsed(), 6) << "the script itself holds none";
  std::vector<std::string> nodes;
  const Json job = Job(id);
  for (const Json& share : job["allocations"].list()) nodes.push_back(share["node"].text());
  EXPECT_THAT(nodes, ElementsAre("cn0", "bn0", "bn1"));
  Go();
  EXPECT_EQ(Wait(id), 0);
}

TEST_F(Batch, AChainOfThreeJobsRunsInOrder) {
  const std::string script = Script("link.sh", "echo $1 >> " + Path("chain") + "\n");
  const std::string first = Submit({Holder("echo 1 >> " + Path("chain") + "\n")});
  const std::string second = Submit({"-d", "afterok:" + first, script, "2"});
  const std::string third = Submit({"-d", "afterok:" + first + ":" + second, script, "3"});
  ASSERT_TRUE(Eventually(30s, "it runs", [&] { return JobIsIn(first, "RUNNING"); }));
  EXPECT_EQ(Job(second)["state"].text(), "PENDING");
  EXPECT_EQ(Job(second)["reason"].text(), "Dependency: waits for afterok:" + first);
  EXPECT_THAT(Run({"job", "show", third}).out,
              HasSubstr("dependencies: afterok:" + first + " (open), afterok:" + second + " (open)"));
  Go();
  EXPECT_EQ(Wait(third), 0);
  EXPECT_EQ(Output("chain"), "1\n2\n3\n");
}

TEST_F(Batch, AChainGoesOnOverADeathOfTheController) {
  const std::string first = Submit({Holder()});
  const std::string second = Submit({"-d", "afterany:" + first, "--wrap", "echo after", "-o", "after"});
  ASSERT_TRUE(Eventually(30s, "it runs", [&] { return JobIsIn(first, "RUNNING"); }));
  ASSERT_TRUE(cluster_->KillDaemon("controller").ok());
  ASSERT_TRUE(Eventually(30s, "the controller is back", [&] { return JobIsIn(second, "PENDING"); }));
  EXPECT_EQ(Job(second)["reason"].text(), "Dependency: waits for afterany:" + first);
  Go();
  EXPECT_EQ(Wait(second), 0);
  EXPECT_EQ(Output("after"), "after\n");
}

TEST_F(Batch, WhatCanNeverBeMetSaysSoOrIsCancelled) {
  const std::string first = Submit({"--wrap", "exit 4"});
  const std::string waits = Submit({"-d", "afterok:" + first, "--wrap", "true"});
  const std::string killed =
      Submit({"-d", "afterok:" + first, "--kill-on-invalid-dep=yes", "--wrap", "true"});
  const std::string rescue = Submit({"-d", "afternotok:" + first, "--wrap", "true"});
  EXPECT_EQ(Wait(first), 4);
  EXPECT_EQ(Wait(rescue), 0);
  EXPECT_NE(Wait(killed), 0);
  EXPECT_EQ(Job(killed)["state"].text(), "CANCELLED");
  EXPECT_EQ(Job(waits)["state"].text(), "PENDING");
  EXPECT_EQ(Job(waits)["reason"].text(),
            "DependencyNeverSatisfied: afterok:" + first + ": job " + first + " ended as FAILED with code 4");
  EXPECT_EQ(Run({"job", "cancel", waits}).code, 0);
}

TEST_F(Batch, ADependencyOnAJobThatNeverWasIsRefused) {
  const Outcome outcome = Run({"submit", "-d", "afterok:987654", "--wrap", "true"});
  EXPECT_EQ(outcome.code, 3) << outcome.Text();
  EXPECT_THAT(outcome.err, HasSubstr("no job 987654"));
}

TEST_F(Batch, BeginKeepsAJobWaitingUntilItsTime) {
  const auto since = std::chrono::steady_clock::now();
  const std::string id = Submit({"--begin", "now+2", "--wrap", "true"});
  EXPECT_THAT(Job(id)["reason"].text(), HasSubstr("BeginTime"));
  EXPECT_EQ(Wait(id), 0);
  EXPECT_GE(std::chrono::steady_clock::now() - since, 2s);
}

TEST_F(Batch, CancelEndsTheScriptWithATermAndThenTheJob) {
  const std::string script =
      Script("trap.sh", "trap 'echo term; exit 0' TERM\necho ready\nwhile :; do sleep 0.05; done\n");
  const std::string id = Submit({"-o", "trap.out", script});
  ASSERT_TRUE(Eventually(30s, "it is ready", [&] { return Output("trap.out") == "ready\n"; }));
  EXPECT_EQ(Run({"job", "cancel", id}).code, 0);
  EXPECT_NE(Wait(id), 0);
  EXPECT_EQ(Job(id)["state"].text(), "CANCELLED");
  // The shell may say that its sleep was terminated, too.
  EXPECT_THAT(Output("trap.out"), AllOf(StartsWith("ready\n"), EndsWith("term\n")));
}

TEST_F(Batch, TheTimeLimitEndsAScriptAsTimeout) {
  const std::string id = Submit({"-t", "0:01", "--wrap", "sleep 600", "-o", "none"});
  EXPECT_NE(Wait(id), 0);
  EXPECT_EQ(Job(id)["state"].text(), "TIMEOUT");
}

TEST_F(Batch, WhatIsNotUnderstoodIsNamedWithItsLine) {
  const auto refused = [](const std::string& text, const std::string& part) {
    const Outcome outcome = Run({"submit", Script("bad.sh", text)});
    EXPECT_EQ(outcome.code, 2) << outcome.Text();
    EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_EQ(outcome.out, "");
  };
  refused("#SBATCH --ntaks=2\n", "bad.sh:2: ");
  refused("#SBATCH --array=1-3\n", "submit a job for each index");
  refused("#MSA -t soon\n", "'soon' is not a time limit");
  const Outcome windows = Run({"submit", cluster_->scratch().Write("dos.sh", "#!/bin/sh\r\n")});
  EXPECT_EQ(windows.code, 2);
  EXPECT_THAT(windows.err, HasSubstr("DOS line breaks"));
  EXPECT_EQ(Run({"submit", Path("no-such.sh")}).code, 3);
  const Outcome module = Run({"submit", "-p", "boster", "--wrap", "true"});
  EXPECT_EQ(module.code, 3) << module.Text();
  EXPECT_THAT(module.err, HasSubstr("did you mean 'booster'?"));
}

TEST_F(Batch, HistoryListsWhatHasEnded) {
  const std::string good = Submit({"-J", "history", "--wrap", "true"});
  const std::string bad = Submit({"-J", "history", "--wrap", "exit 9"});
  const std::string running = Submit({Holder()});
  EXPECT_EQ(Wait(good), 0);
  EXPECT_EQ(Wait(bad), 9);
  std::vector<std::string> ids;
  const Json history = cluster_->Query({"job", "history", "--since", "now-1hour"});
  for (const Json& job : history["items"].list())
    if (job["name"].text() == "history") ids.push_back(job["id"].text() + " " + job["exit_code"].text());
  EXPECT_THAT(ids, ElementsAre(good + " 0", bad + " 9"));
  const Outcome table = Run({"job", "history"});
  EXPECT_EQ(table.code, 0) << table.Text();
  EXPECT_THAT(table.out, AllOf(HasSubstr("ENDED"), ContainsRegex("history +[^ ]+ +FAILED +9 +cluster")));
  EXPECT_THAT(Run({"job", "history", "-f", "name"}).out, Not(HasSubstr("\n" + running + "\n")));
  EXPECT_EQ(Run({"job", "history", "--state", "RUNNING"}).code, 2);
  Go();
  EXPECT_EQ(Wait(running), 0);
}

}  // namespace
}  // namespace msa::e2e
