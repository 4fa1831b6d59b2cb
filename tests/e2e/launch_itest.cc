// What `msactl run` promises for any program, MPI or not: placement, environment, streams, exit codes.
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include <fmt/ranges.h>

#include "shared_cluster.h"

namespace msa::e2e {
namespace {

class Launch : public SharedCluster {};

TEST_F(Launch, RunsTasksOnTheModuleAndNodesThatWereAsked) {
  const Outcome outcome =
      Run({"run", "-m", "booster", "-N", "2", "-n", "4", "sh", "-c", "echo $MSA_NODE $MSA_MODULE $MSA_RANK"});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(Sorted(Lines(outcome.out)),
              testing::ElementsAre("bn0 booster 0", "bn0 booster 1", "bn1 booster 2", "bn1 booster 3"));
  EXPECT_EQ(outcome.err, "");
}

TEST_F(Launch, DefaultsToOneTaskANodeOfTheFirstModule) {
  EXPECT_EQ(Run({"run", "sh", "-c", "echo $MSA_MODULE $MSA_WORLD_SIZE"}).out, "cluster 1\n");
  EXPECT_EQ(Lines(Run({"run", "-N", "2", "sh", "-c", "echo $MSA_NODE"}).out).size(), 2u);
}

TEST_F(Launch, AcceptsAModuleByNameKindOrId) {
  for (const char* module : {"booster", "1"})
    EXPECT_EQ(Run({"run", "-m", module, "sh", "-c", "echo $MSA_MODULE"}).out, "booster\n") << module;
}

TEST_F(Launch, HonoursNodeListsAndExclusions) {
  EXPECT_EQ(Run({"run", "-m", "booster", "-w", "bn1", "sh", "-c", "echo $MSA_NODE"}).out, "bn1\n");
  EXPECT_EQ(Run({"run", "-m", "booster", "-x", "bn0", "sh", "-c", "echo $MSA_NODE"}).out, "bn1\n");
}

TEST_F(Launch, GivesATaskItsWholeEnvironment) {
  const Outcome outcome = Run({"run", "-m", "cluster", "-n", "1", "true", ":", "-m", "booster", "-n", "2",
                               "sh", "-c", "[ $MSA_RANK = 2 ] && env | grep -E '^(MSA|PSP)_'"});
  std::map<std::string, std::string> env;
  for (const std::string& line : Lines(outcome.out))
    env[line.substr(0, line.find('='))] = line.substr(line.find('=') + 1);
  EXPECT_EQ(env["MSA_RANK"], "2");
  EXPECT_EQ(env["MSA_LOCAL_RANK"], "1");
  EXPECT_EQ(env["MSA_WORLD_SIZE"], "3");
  EXPECT_EQ(env["MSA_COMPONENT"], "1");
  EXPECT_EQ(env["MSA_MODULE"], "booster");
  EXPECT_EQ(env["MSA_MODULE_ID"], "1");
  EXPECT_EQ(env["MSA_MODULE_KIND"], "booster");
  EXPECT_EQ(env["PSP_MSA_MODULE_ID"], "1");
  EXPECT_EQ(env["MSA_STEP_ID"], "0");
  EXPECT_GT(std::atoi(env["MSA_JOB_ID"].c_str()), 0);
  EXPECT_THAT(env["MSA_NODELIST"], AllOf(HasSubstr("cn"), HasSubstr("bn")));
  EXPECT_TRUE(env["MSA_JOB_SOCKET"].starts_with(cluster_->dir())) << env["MSA_JOB_SOCKET"];
}

TEST_F(Launch, ExportsWhatTheUserAskedFor) {
  Command command = cluster_->Msactl({"run", "sh", "-c", "echo $MINE"});
  command.env["MINE"] = "kept";
  EXPECT_EQ(support::RunCommand(command).out, "kept\n");
  command.argv = cluster_->Msactl({"run", "--export", "NONE", "sh", "-c", "echo -$MINE-"}).argv;
  EXPECT_EQ(support::RunCommand(command).out, "--\n");
  command.argv = cluster_->Msactl({"run", "--export", "OTHER=1", "sh", "-c", "echo -$MINE-$OTHER"}).argv;
  EXPECT_EQ(support::RunCommand(command).out, "--1\n");
}

TEST_F(Launch, StartsTasksInTheDirectoryOfTheCallerOrOfChdir) {
  EXPECT_EQ(Run({"run", "pwd"}).out, cluster_->scratch().path() + "\n");
  EXPECT_EQ(Run({"run", "-D", "/usr", "pwd"}).out, "/usr\n");
}

TEST_F(Launch, HandsTasksTheLimitsOfTheCaller) {
  Command command = cluster_->Msactl({"run", ProgramPath("task"), "limit"});
  command.limits[RLIMIT_NOFILE] = 512;
  EXPECT_THAT(support::RunCommand(command).out, HasSubstr("nofile "));
}

TEST_F(Launch, ReturnsTheHighestCodeOfTheTasks) {
  const Outcome outcome = Run({"run", "-n", "3", "sh", "-c", "exit $((MSA_RANK * 20))"});
  EXPECT_EQ(outcome.code, 40) << outcome.Text();
  EXPECT_THAT(outcome.err, HasSubstr("40"));
}

TEST_F(Launch, ReportsADeathBySignalAs128PlusItsNumber) {
  const Outcome outcome = Run({"run", "-n", "2", "sh", "-c", "[ $MSA_RANK = 0 ] || kill -SEGV $$"});
  EXPECT_EQ(outcome.code, 128 + SIGSEGV) << outcome.Text();
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("cn0"), HasSubstr("task 1"), HasSubstr("Segmentation fault")));
}

TEST_F(Launch, SaysThatAProgramIsNotThere) {
  const Outcome outcome = Run({"run", "-n", "2", "./no-such-program"});
  EXPECT_EQ(outcome.code, 127) << outcome.Text();
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("no-such-program"), HasSubstr("not found")));
}

TEST_F(Launch, TellsEachFailureOnceHoweverManyTasksMeetIt) {
  const std::vector<std::string> two_nodes = {"run", "-m", "cluster", "-N", "2", "-n", "4"};
  const auto errors = [&](const std::vector<std::string>& program, int code) {
    std::vector<std::string> arguments = two_nodes;
    arguments.insert(arguments.end(), program.begin(), program.end());
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.code, code) << outcome.Text();
    return Sorted(Lines(outcome.err));
  };
  // More than once: what is said by a notice, at the session's end and by the controller comes in any order.
  for (int i = 0; i < 5; ++i) {
    const auto missing = errors({"./no-such-program"}, 127);
    ASSERT_EQ(missing.size(), 1u) << testing::PrintToString(missing);
    EXPECT_THAT(missing[0], AllOf(HasSubstr("no-such-program"), HasSubstr("not found")));
    // Those of a moment share a line; on a busy machine they may be of several.
    std::multiset<std::string> told;
    for (const std::string& line : errors({"sh", "-c", "kill -SEGV $$"}, 128 + SIGSEGV)) {
      std::smatch match;
      ASSERT_TRUE(std::regex_match(
          line, match, std::regex("msactl: (cn[01]): tasks? ([0-3])(-([0-3]))?: Segmentation fault")))
          << line;
      for (int rank = std::stoi(match[2]); rank <= std::stoi(match[match[4].matched ? 4 : 2]); ++rank)
        told.insert(fmt::format("{} on {}", rank, match[1].str()));
    }
    EXPECT_THAT(told, testing::ElementsAre("0 on cn0", "1 on cn0", "2 on cn1", "3 on cn1"));
    EXPECT_THAT(errors({"sh", "-c", "[ $MSA_RANK != 2 ] || kill -SEGV $$"}, 128 + SIGSEGV),
                testing::ElementsAre("msactl: cn1: task 2: Segmentation fault"));
  }
}

TEST_F(Launch, SaysThatAProgramIsNotExecutable) {
  cluster_->scratch().Write("plain", "text", 0644);
  const Outcome outcome = Run({"run", "./plain"});
  EXPECT_EQ(outcome.code, 126) << outcome.Text();
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("plain"), HasSubstr("chmod")));
}

TEST_F(Launch, SaysThatADirectoryIsNotThere) {
  const Outcome outcome = Run({"run", "-D", "/no/such/dir", "true"});
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("/no/such/dir"));
}

TEST_F(Launch, StartsNoTaskOfAnyComponentThatRunsIfOneProgramIsMissing) {
  const Outcome outcome =
      Run({"run", "-m", "cluster", "sleep", "60", ":", "-m", "booster", "/no/such/program"});
  EXPECT_EQ(outcome.code, 127) << outcome.Text();
  EXPECT_LT(outcome.wall, 45s) << "the other component was run";
}

// Lines of `text` are those of the program "task lines COUNT 100" of ranks 0 to 3, whole, each rank's in
// order.
void ExpectWholeLines(const std::string& text, int count, bool labelled) {
  int next[4] = {0, 0, 0, 0};
  for (const std::string& line : Lines(text)) {
    const std::string rank = line.substr(line.starts_with("end ") ? 4 : 0, 1);
    const std::string label = labelled ? rank + ": " : "";
    if (line == label + "end " + rank) continue;
    const std::size_t index = std::strtoul(rank.c_str(), nullptr, 10);
    ASSERT_LT(index, 4u) << line;
    ASSERT_EQ(line, fmt::format("{}{}:{}:{}", label, rank, next[index]++, std::string(100, 'x')));
  }
  for (const int lines : next) EXPECT_EQ(lines, count);
}

TEST_F(Launch, CarriesAFloodOfOutputInWholeLinesAndInOrderPerTask) {
  constexpr int kLines = 20'000;
  for (const bool labelled : {false, true}) {
    const std::vector<std::string> flood = {ProgramPath("task"), "lines", std::to_string(kLines), "100"};
    std::vector<std::string> arguments = {"run", "-m", "cluster", "-n", "2"};
    if (labelled) arguments.insert(arguments.begin() + 1, "-l");
    arguments.insert(arguments.end(), flood.begin(), flood.end());
    arguments.insert(arguments.end(), {":", "-m", "booster", "-n", "2"});
    arguments.insert(arguments.end(), flood.begin(), flood.end());
    const Outcome outcome = Run(arguments);
    ASSERT_EQ(outcome.code, 0) << outcome.Text();
    ExpectWholeLines(outcome.out, kLines, labelled);
    ExpectWholeLines(outcome.err, kLines, labelled);
    for (const char* end : {"end 0\n", "end 1\n", "end 2\n", "end 3\n"})
      EXPECT_THAT(outcome.out, HasSubstr(end));
  }
}

TEST_F(Launch, KeepsOutputWithoutAFinalNewlineAndBytesThatAreNoText) {
  const Outcome outcome = Run({"run", "printf", "a\\000b\\377no newline"});
  EXPECT_EQ(outcome.out, std::string("a\0b\377no newline", 14));
}

TEST_F(Launch, LabelsLinesWithTheirRank) {
  const Outcome outcome = Run({"run", "-n", "2", "-l", "echo", "hi"});
  EXPECT_THAT(Sorted(Lines(outcome.out)), testing::ElementsAre("0: hi", "1: hi"));
}

TEST_F(Launch, GivesItsInputToRankZeroAlone) {
  Command command = cluster_->Msactl({"run", "-n", "2", "sh", "-c", "echo $MSA_RANK:$(wc -c)"});
  command.input = std::string(3'000'000, 'x');
  EXPECT_THAT(Sorted(Lines(support::RunCommand(command).out)), testing::ElementsAre("0:3000000", "1:0"));
}

TEST_F(Launch, ReadsInputFromAFile) {
  cluster_->scratch().Write("input", "from a file\n");
  EXPECT_EQ(Run({"run", "-i", "input", "cat"}).out, "from a file\n");
}

TEST_F(Launch, AnswersATaskThatTalksWithItsUser) {
  Command command =
      cluster_->Msactl({"run", "sh", "-c", "echo ready; read a; echo got $a; read b; echo then $b"});
  command.keep_input_open = true;
  Process process(command);
  ASSERT_TRUE(process.ReadUntilText("ready"));
  process.Write("one\n");
  ASSERT_TRUE(process.ReadUntilText("got one")) << process.out() << process.err();
  process.Write("two\n");
  ASSERT_TRUE(process.ReadUntilText("then two"));
  process.CloseInput();
  EXPECT_EQ(process.Wait().code, 0);
}

TEST_F(Launch, WritesOutputToFilesByPattern) {
  const Outcome outcome = Run({"run", "-n", "2", "-o", "out.%j.%t", "-e", "err.%j", "sh", "-c",
                               "echo o$MSA_RANK; echo e$MSA_RANK >&2"});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(outcome.out + outcome.err, "");
  const std::string id = cluster_->Query({"job", "list", "-a", "-n", "1"})["items"].list().at(0)["id"].text();
  const std::string at = cluster_->scratch().path() + "/";
  EXPECT_EQ(support::ReadFile(at + "out." + id + ".0"), "o0\n");
  EXPECT_EQ(support::ReadFile(at + "out." + id + ".1"), "o1\n");
  EXPECT_THAT(Sorted(Lines(support::ReadFile(at + "err." + id))), testing::ElementsAre("e0", "e1"));
}

TEST_F(Launch, EndsAJobAtItsTimeLimitAndSaysSo) {
  const Outcome outcome = Run({"run", "-t", "0:01", ProgramPath("task"), "stubborn"}, 30s);
  EXPECT_NE(outcome.code, 0);
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_THAT(outcome.err, HasSubstr("time limit"));
}

TEST_F(Launch, KillOnBadExitEndsTheOthersWithTheFirstFailure) {
  const Outcome outcome =
      Run({"run", "-K", "-n", "2", "sh", "-c", "[ $MSA_RANK = 1 ] && exit 3; sleep 60"}, 30s);
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("3"));
}

TEST_F(Launch, WithoutItATaskThatFailsLeavesTheOthersToGoOn) {
  const Outcome outcome =
      Run({"run", "-n", "2", "sh", "-c", "[ $MSA_RANK = 1 ] && exit 3; sleep 0.3; echo done"}, 30s);
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.out, "done\n");
}

TEST_F(Launch, LeavesNoProcessOfATaskBehind) {
  // The orphan has a session of its own and holds no pipe; its parent ends at once.
  const Outcome outcome = Run({"run", ProgramPath("task"), "orphan"});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  const pid_t orphan = std::atoi(outcome.out.c_str() + 3);
  ASSERT_GT(orphan, 1);
  EXPECT_TRUE(Eventually(30s, "the orphan is gone", [&] { return ::kill(orphan, 0) != 0; }));
}

TEST_F(Launch, DetachedJobsRunAndKeepTheirOutputInAFile) {
  const std::string id = Detach({"-n", "2", "sh", "-c", "echo rank $MSA_RANK; exit 4"});
  EXPECT_EQ(Run({"job", "wait", id}).code, 4);
  EXPECT_THAT(Run({"job", "logs", id}).out,
              AllOf(HasSubstr("rank 0\n"), HasSubstr("rank 1\n"), HasSubstr("exit code 4")));
  EXPECT_EQ(Job(id)["state"].text(), "FAILED");
}

TEST_F(Launch, SaysThatTheOutputOfAnEndedRunIsNotKeptAndHowToKeepTheNext) {
  ASSERT_EQ(Run({"run", "echo", "gone"}).code, 0);
  const std::string id = cluster_->Query({"job", "list", "-a", "-n", "1"})["items"].list().at(0)["id"].text();
  const Outcome outcome = Run({"job", "logs", id});
  EXPECT_EQ(outcome.code, 3) << outcome.Text();
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("job " + id + " has ended"), HasSubstr("--output FILE"),
                                 HasSubstr("--detach"), Not(HasSubstr("attach"))));
}

TEST_F(Launch, ShowsAnAttachedUserWhatAJobPrintsFromThenOn) {
  const std::string id =
      Detach({"-o", "att.out", "sh", "-c", "while [ ! -e go ]; do echo tick; sleep 0.05; done; echo late"});
  ASSERT_TRUE(Eventually(30s, "it runs", [&] { return JobIsIn(id, "RUNNING"); }));
  Process attach(cluster_->Msactl({"job", "attach", id}));
  ASSERT_TRUE(attach.ReadUntilText("tick")) << attach.err();
  cluster_->scratch().Write("go", "");
  const Outcome outcome = attach.Wait();
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.out, testing::EndsWith("tick\nlate\n"));
  EXPECT_THAT(support::ReadFile(cluster_->scratch().path() + "/att.out"), testing::EndsWith("tick\nlate\n"));
  ::unlink((cluster_->scratch().path() + "/go").c_str());
}

TEST_F(Launch, SendsSignalsToTasks) {
  const std::string id = Detach({"-o", "sig.out", ProgramPath("task"), "signals"});
  const std::string path = cluster_->scratch().path() + "/sig.out";
  ASSERT_TRUE(Eventually(30s, "it is up", [&] { return support::ReadFile(path) == "up\n"; }));
  EXPECT_EQ(Run({"job", "signal", "USR1", id}).code, 0);
  ASSERT_TRUE(
      Eventually(30s, "it got SIGUSR1", [&] { return support::ReadFile(path) == "up\nsignal 10\n"; }));
  EXPECT_EQ(Run({"job", "cancel", id}).code, 0);
  ASSERT_TRUE(Eventually(30s, "it ended", [&] { return JobIsIn(id, "CANCELLED"); }));
}

// A local system of one real node: this machine as it is, so that nothing is oversubscribed and tasks are
// bound.
class Binding : public testing::Test {
 protected:
  void SetUp() override {
    // As root, in CI, deploy/test fails on a skip.
    if (std::thread::hardware_concurrency() < 2)
      GTEST_SKIP() << "this machine has one core: tasks of two are not bound to their own";
    auto started = MiniCluster::Start(
        {.topology = "[[module]]\nname = \"pair\"\nid = 0\n[[module.node]]\nnames = \"p0\"\nreal = true\n"});
    ASSERT_TRUE(started.ok()) << started.status().message();
    cluster_ = *std::move(started);
  }
  // CPUs that each task may use, in the order of the output.
  std::vector<std::set<int>> CpusOf(std::vector<std::string> options) {
    options.insert(options.begin(), "run");
    options.insert(options.end(), {ProgramPath("task"), "cpus"});
    const Outcome outcome = cluster_->Run(std::move(options));
    EXPECT_EQ(outcome.code, 0) << outcome.Text();
    std::vector<std::set<int>> result;
    for (const std::string& line : Lines(outcome.out)) {
      std::istringstream words(line.substr(line.find(' ') + 1));
      result.emplace_back(std::istream_iterator<int>(words), std::istream_iterator<int>());
    }
    return result;
  }
  std::unique_ptr<MiniCluster> cluster_;
};

TEST_F(Binding, EachTaskOfAJobHasItsOwnCore) {
  const auto cpus = CpusOf({"-n", "2"});
  ASSERT_EQ(cpus.size(), 2U);
  EXPECT_FALSE(cpus[0].empty());
  EXPECT_EQ(cpus[0].size(), cpus[1].size());
  for (const int cpu : cpus[0]) EXPECT_FALSE(cpus[1].contains(cpu)) << "CPU " << cpu << " is both tasks'";
}

TEST_F(Binding, ATaskOfTwoCoresHasBothOfThem) {
  const auto own = CpusOf({"-n", "2"});
  ASSERT_EQ(own.size(), 2U);
  std::set<int> both = own[0];
  both.insert(own[1].begin(), own[1].end());
  EXPECT_THAT(CpusOf({"-n", "1", "-c", "2"}), testing::ElementsAre(both));
}

TEST_F(Binding, JobsThatRunAtTheSameTimeHaveDifferentCores) {
  const std::string script = ProgramPath("task") + " cpus; while [ ! -e go ]; do sleep 0.02; done";
  Process first(cluster_->Msactl({"run", "-n", "1", "sh", "-c", script}));
  ASSERT_TRUE(first.ReadUntil([&] { return Lines(first.out()).size() == 1; })) << first.err();
  const auto second = CpusOf({"-n", "1"});
  ASSERT_EQ(second.size(), 1U);
  EXPECT_NE(first.out(), fmt::format("cpus {}\n", fmt::join(second[0], " ")));
  cluster_->scratch().Write("go", "");
  EXPECT_EQ(first.Wait().code, 0);
}

TEST_F(Binding, WithoutBindingATaskMayUseWhatTheDaemonsMay) {
  cpu_set_t own;
  ASSERT_EQ(::sched_getaffinity(0, sizeof own, &own), 0);
  const auto cpus = CpusOf({"-n", "2", "--no-bind"});
  ASSERT_EQ(cpus.size(), 2U);
  for (const auto& set : cpus) EXPECT_EQ(static_cast<int>(set.size()), CPU_COUNT(&own));
}

}  // namespace
}  // namespace msa::e2e
