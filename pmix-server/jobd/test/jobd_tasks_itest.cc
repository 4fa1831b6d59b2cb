// Programs without MPI under real job daemons: codes, signals, streams, files.
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jobd_harness.h"

namespace msa::jobd {
namespace {

using ::testing::HasSubstr;

wire::App Sh(const std::string& script, std::uint32_t ntasks = 1) {
  wire::App app;
  app.argv = {"/bin/sh", "-c", script};
  app.ntasks = ntasks;
  return app;
}

std::string ReadAll(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(JobdTasks, TrueOnTwoNodesEndsWithCodeZeroAndLeavesNothing) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}});
  wire::App app;
  app.argv = {"true"};
  app.ntasks = 2;
  job.Run({.apps = {app}, .rank_node = {"cn0", "bn0"}});
  ASSERT_TRUE(job.exit.has_value());
  EXPECT_EQ(job.exit->state, wire::JobState::kCompleted) << job.exit->message;
  EXPECT_EQ(job.exit->exit_code, 0);
  EXPECT_EQ(job.exit->tasks_total, 2u);
  EXPECT_TRUE(job.started);
  const auto launch = std::chrono::duration_cast<std::chrono::microseconds>(job.started_at - job.launched_at);
  RecordProperty("launch_to_started_us", static_cast<int>(launch.count()));
  ASSERT_TRUE(job.end.has_value());
  EXPECT_EQ(job.end->exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(job.RunDirectory("cn0")));
  EXPECT_FALSE(std::filesystem::exists(job.RunDirectory("bn0")));
  EXPECT_FALSE(std::filesystem::exists(job.ShmDirectory() + "/cn0/7.1"));
  EXPECT_FALSE(std::filesystem::exists(job.directory() + "/bn0.j"));
}

TEST(JobdTasks, HighestExitCodeIsTheJobsAndTheEndsAreTold) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}});
  job.Run({.apps = {Sh("exit $((MSA_RANK > 0 ? 3 : 0))", 4)}, .rank_node = {"cn0", "bn0", "bn0", "bn0"}});
  EXPECT_EQ(job.exit->exit_code, 3);
  EXPECT_EQ(job.exit->state, wire::JobState::kFailed);
  EXPECT_EQ(job.exit->tasks_failed, 3u);
  ASSERT_EQ(job.exit->failed.size(), 3u);
  EXPECT_EQ(job.exit->failed[0].rank, Rank(1));
  EXPECT_THAT(job.Notices(), ::testing::ContainsRegex("bn0: tasks? [1-3].*: exited with exit code 3\n"));
}

TEST(JobdTasks, DeathBySignalIsReportedAsSrunDoes) {
  JobdHarness job({{"cn0"}});
  job.Run({.apps = {Sh("kill -SEGV $$")}});
  EXPECT_EQ(job.exit->exit_code, 128 + SIGSEGV);
  EXPECT_THAT(job.Notices(), HasSubstr("cn0: task 0: Segmentation fault"));
}

TEST(JobdTasks, EnvironmentNamesTheTasksPlace) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}});
  job.Run({.apps = {Sh("echo $MSA_JOB_ID $MSA_STEP_ID $MSA_NODE $MSA_MODULE $MSA_MODULE_ID $MSA_MODULE_KIND "
                       "$MSA_COMPONENT "
                       "$MSA_RANK $MSA_LOCAL_RANK $MSA_WORLD_SIZE $MSA_NODELIST $PSP_MSA_MODULE_ID $SLURM_X; "
                       "test -S $MSA_JOB_SOCKET && echo socket"),
                    Sh("echo $MSA_NODE $MSA_COMPONENT $MSA_RANK $MSA_LOCAL_RANK; echo oops >&2", 2)},
           .rank_node = {"cn0", "bn0", "bn0"},
           .env = {"SLURM_X=kept", "MSA_RANK=99", "MSA_JOB_SOCKET=/outer"}});
  EXPECT_EQ(job.Out(0), "7 0 cn0 cluster 0 cluster 0 0 0 3 cn0,bn0 0 kept\nsocket\n");
  EXPECT_EQ(job.Out(1), "bn0 1 1 0\n");
  EXPECT_EQ(job.Out(2), "bn0 1 2 1\n");
  EXPECT_EQ(job.Err(2), "oops\n");
}

TEST(JobdTasks, ProgramThatIsNotThereEndsWith127AndItsName) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}});
  wire::App app;
  app.argv = {"./no-such-program"};
  app.ntasks = 2;
  job.Run({.apps = {app}, .rank_node = {"cn0", "bn0"}});
  EXPECT_EQ(job.exit->exit_code, 127);
  EXPECT_EQ(job.exit->state, wire::JobState::kFailed);
  EXPECT_THAT(job.Notices(), HasSubstr("no-such-program"));
  EXPECT_THAT(job.exit->message, HasSubstr("no-such-program"));
}

TEST(JobdTasks, TasksOfAPartlyFailedStartAreEnded) {
  JobdHarness job({{"cn0"}});
  wire::App missing;
  missing.argv = {"/no/such"};
  job.Run({.apps = {Sh("exec sleep 600"), missing}});
  EXPECT_EQ(job.exit->exit_code, 127);
}

TEST(JobdTasks, LargeOutputArrivesWholeAndInOrder) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}});
  job.Run({.apps = {Sh("seq 1 200000", 2)}, .rank_node = {"cn0", "bn0"}});
  std::string expected;
  for (int i = 1; i <= 200000; ++i) expected += std::to_string(i) + "\n";
  EXPECT_TRUE(job.Out(0) == expected) << job.Out(0).size();
  EXPECT_TRUE(job.Out(1) == expected) << job.Out(1).size();
}

TEST(JobdTasks, AnOwnerThatDoesNotReadBlocksTheTasksNotTheMemory) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}});
  job.ack_output = false;
  job.WarmUp();
  job.Launch({.apps = {Sh("seq 1 4000000", 1)}, .rank_node = {"bn0"}});
  std::size_t before = 1;
  std::size_t now = 0;
  // Still once nothing has come for three seconds.
  auto quiet_since = std::chrono::steady_clock::now();
  ASSERT_TRUE(job.Until([&] {
    now = job.records.size();
    if (now != before) quiet_since = std::chrono::steady_clock::now();
    before = now;
    return std::chrono::steady_clock::now() - quiet_since > std::chrono::seconds(3);
  }));
  std::size_t bytes = job.AllOut().size();
  EXPECT_GE(bytes, wire::kStdioWindowBytes - (1u << 20));
  EXPECT_LE(bytes, wire::kStdioWindowBytes + (1u << 20));
  EXPECT_FALSE(job.exit.has_value());
  job.ack_output = true;
  job.ToSession(1, wire::OutputAck{job.last_seq});
  ASSERT_TRUE(job.UntilOver());
  EXPECT_EQ(job.exit->exit_code, 0);
  EXPECT_TRUE(job.Out(0).ends_with("\n4000000\n"));
}

TEST(JobdTasks, StdinGoesToRankZeroAlone) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}});
  job.WarmUp();
  job.Launch({.apps = {Sh("cat; echo done", 2)}, .rank_node = {"bn0", "cn0"}, .wants_stdin = true});
  job.ToSession(1, wire::Input{0, "hello ", false});
  job.ToSession(1, wire::Input{0, "hello ", false});  // repeated: taken once
  job.ToSession(1, wire::Input{6, "world\n", true});
  ASSERT_TRUE(job.UntilOver());
  EXPECT_EQ(job.Out(0), "hello world\ndone\n");
  EXPECT_EQ(job.Out(1), "done\n");
  ASSERT_FALSE(job.input_acks.empty());
}

TEST(JobdTasks, StdinOfManyWindowsIsTakenInTheTasksTime) {
  JobdHarness job({{"cn0"}});
  job.WarmUp();
  job.Launch({.apps = {Sh("wc -c")}, .wants_stdin = true});
  constexpr std::uint64_t kTotal = 20u << 20;
  std::uint64_t sent = 0;
  ASSERT_TRUE(job.Until([&] {
    const std::uint64_t taken = job.input_acks.empty() ? 0 : job.input_acks.back().offset;
    while (sent < kTotal && sent - taken < wire::kStdioWindowBytes) {
      const std::uint64_t n = std::min<std::uint64_t>(65536, kTotal - sent);
      job.ToSession(1, wire::Input{sent, std::string(n, 'x'), sent + n == kTotal});
      sent += n;
    }
    return job.exit.has_value();
  }));
  EXPECT_EQ(job.Out(0), std::to_string(kTotal) + "\n");
  EXPECT_TRUE(job.UntilOver());
}

TEST(JobdTasks, FilesTakeTheOutputOfABatchJob) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}});
  RunSpec spec{.apps = {Sh("echo out $MSA_RANK; echo err $MSA_RANK >&2; exit $MSA_RANK", 2)},
               .rank_node = {"cn0", "bn0"}};
  spec.interactive = false;
  spec.attach = false;
  spec.stdio.out = "msa-%j.out";
  job.Run(spec);
  const std::string text = ReadAll(job.directory() + "/msa-7.out");
  for (const char* line :
       {"out 0\n", "out 1\n", "err 0\n", "err 1\n", "msa: bn0: task 1: exited with exit code 1\n"})
    EXPECT_THAT(text, HasSubstr(line));
}

TEST(JobdTasks, FilesPerTaskAreOpenedWhereTheTaskRuns) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}});
  RunSpec spec{.apps = {Sh("echo $MSA_RANK; echo bad >&2", 3)}, .rank_node = {"cn0", "bn0", "bn0"}};
  spec.stdio.out = "o-%t-%N";
  spec.stdio.err = "e-%N";
  job.Run(spec);
  EXPECT_EQ(ReadAll(job.directory() + "/o-0-cn0"), "0\n");
  EXPECT_EQ(ReadAll(job.directory() + "/o-2-bn0"), "2\n");
  EXPECT_EQ(ReadAll(job.directory() + "/e-bn0"), "bad\nbad\n");
  EXPECT_EQ(job.AllOut(), "");
}

TEST(JobdTasks, InputFileFeedsRankZero) {
  JobdHarness job({{"cn0"}});
  std::ofstream(job.directory() + "/in.txt") << "from a file\n";
  RunSpec spec{.apps = {Sh("cat", 2)}};
  spec.stdio.in = "in.txt";
  job.Run(spec);
  EXPECT_EQ(job.Out(0), "from a file\n");
  EXPECT_EQ(job.Out(1), "");
}

TEST(JobdTasks, FullDiskEndsTheJobNamingTheFile) {
  JobdHarness job({{"cn0"}});
  RunSpec spec{.apps = {Sh("while :; do echo x; done")}};
  spec.stdio.out = "/dev/full";
  job.Run(spec);
  EXPECT_EQ(job.exit->state, wire::JobState::kFailed);
  EXPECT_NE(job.exit->exit_code, 0);
  EXPECT_THAT(job.Notices(), HasSubstr("/dev/full"));
  EXPECT_THAT(job.exit->message, HasSubstr("/dev/full"));
}

TEST(JobdTasks, OutputFileThatCannotBeOpenedEndsTheJobWith125) {
  JobdHarness job({{"cn0"}});
  RunSpec spec{.apps = {Sh("echo never")}};
  spec.stdio.out = "/no/such/dir/file";
  job.Run(spec);
  EXPECT_EQ(job.exit->exit_code, 125);
  EXPECT_THAT(job.exit->message, HasSubstr("/no/such/dir"));
}

TEST(JobdTasks, SignalReachesEveryTask) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}});
  job.WarmUp();
  job.Launch({.apps = {Sh("trap 'echo got; exit 4' USR1; echo ready; while :; do sleep 0.05; done", 2)},
              .rank_node = {"cn0", "bn0"}});
  ASSERT_TRUE(job.Until([&] { return job.Out(0) == "ready\n" && job.Out(1) == "ready\n"; }));
  job.ToSession(1, wire::ClientSignal{SIGUSR1});
  ASSERT_TRUE(job.UntilOver());
  EXPECT_EQ(job.Out(0), "ready\ngot\n");
  EXPECT_EQ(job.Out(1), "ready\ngot\n");
  EXPECT_EQ(job.exit->exit_code, 4);
}

TEST(JobdTasks, CancelTermsThenKills) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}});
  job.WarmUp();
  job.Launch({.apps = {Sh("trap '' TERM; echo ready; while :; do sleep 0.05; done", 2)},
              .rank_node = {"cn0", "bn0"}});
  ASSERT_TRUE(job.Until([&] { return job.Out(0) == "ready\n" && job.Out(1) == "ready\n"; }));
  job.ToHead(wire::CancelJob{wire::JobState::kTimeout, 200, "time limit of 1 s reached"});
  ASSERT_TRUE(job.UntilOver());
  EXPECT_EQ(job.exit->state, wire::JobState::kTimeout);
  EXPECT_EQ(job.exit->exit_code, 128 + SIGKILL);
  EXPECT_EQ(job.exit->message, "time limit of 1 s reached");
}

TEST(JobdTasks, KillOnBadExitEndsTheOthers) {
  JobdHarness job({{"cn0"}});
  RunSpec spec{.apps = {Sh("if [ $MSA_RANK = 1 ]; then exit 5; fi; exec sleep 600", 2)}};
  spec.kill_policy = wire::KillPolicy::kAlways;
  job.Run(spec);
  EXPECT_EQ(job.exit->exit_code, 5);
}

TEST(JobdTasks, LeftoversOfATaskAreKilledWithTheJob) {
  JobdHarness job({{"cn0"}});
  job.Run({.apps = {Sh("setsid sleep 987654 >/dev/null 2>&1 </dev/null & echo $!")}});
  const int pid = std::stoi(job.Out(0));
  EXPECT_TRUE(job.Until([&] { return ::kill(pid, 0) != 0; }));
}

TEST(JobdTasks, AViewerSeesWhatComesNextAndNeverBlocks) {
  JobdHarness job({{"cn0"}});
  RunSpec spec{.apps = {Sh("read line; echo late; cat >/dev/null")}};
  job.WarmUp();
  spec.wants_stdin = true;
  job.Launch(spec);
  const std::uint64_t viewer = job.Attach({false, 0, false});
  job.ToSession(1, wire::Input{0, "go\n", true});
  ASSERT_TRUE(job.UntilOver());
  EXPECT_EQ(job.Out(0), "late\nlate\n");  // owner and viewer
  EXPECT_FALSE(job.ended_sessions.contains(viewer));
}

}  // namespace
}  // namespace msa::jobd
