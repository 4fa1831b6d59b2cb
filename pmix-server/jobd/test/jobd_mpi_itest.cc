// Debian's Open MPI, unmodified, under real job daemons: worlds over nodes, spawn in all its forms, aborts.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/support/entries_below.h"

#include "jobd_harness.h"

namespace msa::jobd {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

wire::App Mpi(std::vector<std::string> args, std::uint32_t ntasks) {
  wire::App app;
  app.argv = {MSA_TEST_MPI_JOB};
  app.argv.insert(app.argv.end(), args.begin(), args.end());
  app.ntasks = ntasks;
  return app;
}

std::size_t Descriptors(pid_t pid) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/fd", pid))) ++count;
  return count;
}

std::size_t ResidentKib(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  std::string word;
  while (status >> word)
    if (word == "VmRSS:") {
      std::size_t kib = 0;
      status >> kib;
      return kib;
    }
  return 0;
}

// Until the program tells of that round. On a loaded machine a round takes seconds, most of them in MPI_Init
// of three processes that spin: each one has its limit, not all together.
bool UntilRound(JobdHarness& job, int last) {
  for (int round = 0; round <= last; ++round)
    if (!job.Until([&] { return job.Out(0).find(fmt::format("round {}:", round)) != std::string::npos; },
                   std::chrono::seconds(60)))
      return false;
  return true;
}

TEST(JobdMpi, OneWorldOverTwoModules) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}});
  job.Run({.apps = {Mpi({"hello"}, 2), Mpi({"hello"}, 2)}, .rank_node = {"cn0", "cn0", "bn0", "bn0"}});
  EXPECT_EQ(job.exit->exit_code, 0) << job.Notices() << job.AllOut();
  EXPECT_EQ(job.Out(0), "rank 0 of 4 on cn0\n");
  EXPECT_EQ(job.Out(3), "rank 3 of 4 on bn0\n");
}

TEST(JobdMpi, MessagesCrossNodes) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}, {"bn1", "booster", 1}});
  job.Run({.apps = {Mpi({"ring", "1000000"}, 3)}, .rank_node = {"cn0", "bn0", "bn1"}});
  EXPECT_EQ(job.exit->exit_code, 0) << job.Notices();
  EXPECT_EQ(job.Out(0), "ring done\n");
}

TEST(JobdMpi, AbortGivesItsCode) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}});
  job.Run({.apps = {Mpi({"abort", "1", "3"}, 2)}, .rank_node = {"cn0", "bn0"}});
  EXPECT_EQ(job.exit->exit_code, 3);
  EXPECT_EQ(job.exit->state, wire::JobState::kFailed);
  EXPECT_THAT(job.Notices(), HasSubstr("aborted by task 1 with code 3"));
}

TEST(JobdMpi, ATaskThatLeavesWithoutFinalizeEndsTheStep) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}});
  job.Run({.apps = {Mpi({"leave", "1", "6"}, 2)}, .rank_node = {"cn0", "bn0"}});
  EXPECT_EQ(job.exit->exit_code, 6);
  EXPECT_THAT(job.Notices(), HasSubstr("bn0: task 1 of step 0 ended without MPI_Finalize"));
}

TEST(JobdMpi, ACrashOfOneRankEndsTheStep) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}});
  job.Run({.apps = {Mpi({"crash", "0"}, 2)}, .rank_node = {"cn0", "bn0"}});
  EXPECT_EQ(job.exit->exit_code, 139);
  EXPECT_THAT(job.Notices(), HasSubstr("cn0: task 0: Segmentation fault"));
}

TEST(JobdMpi, SpawnUsesTheFreeSlotsOfTheJob) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}});
  job.Run({.apps = {Mpi({"spawn", "3", "2"}, 2)}, .rank_node = {"cn0", "bn0"}});
  EXPECT_EQ(job.exit->exit_code, 0) << job.Notices() << job.AllOut();
  EXPECT_EQ(job.Out(0), "round 0: 5 together\nround 1: 5 together\n");
  EXPECT_TRUE(job.asks.empty());
}

TEST(JobdMpi, SpawnMultipleMakesOneWorldOfTwoCommands) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}});
  job.Run({.apps = {Mpi({"multiple", "1", "2"}, 1)}});
  EXPECT_EQ(job.exit->exit_code, 0) << job.Notices();
  EXPECT_EQ(job.Out(0), "multiple: 4 together\n");
  EXPECT_THAT(job.Out(1, 1), HasSubstr("child 1 of 3 on cn0"));
}

TEST(JobdMpi, HostKeyRestrictsTheChildren) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}});
  job.Run({.apps = {Mpi({"spawn", "2", "1", "bn0:2"}, 1)}});
  EXPECT_EQ(job.exit->exit_code, 0) << job.Notices();
  EXPECT_EQ(job.Out(0, 1), "child 0 of 2 on bn0\n");
  EXPECT_EQ(job.Out(1, 1), "child 1 of 2 on bn0\n");
}

TEST(JobdMpi, UnknownHostRefusesTheSpawnWithAText) {
  JobdHarness job({{"cn0"}});
  job.Run({.apps = {Mpi({"spawn", "1", "1", "xn9"}, 1)}});
  EXPECT_EQ(job.exit->exit_code, 7);
  EXPECT_THAT(job.Notices(), HasSubstr("on node xn9"));
}

TEST(JobdMpi, WdirAndEnvReachTheChild) {
  JobdHarness job({{"cn0"}});
  job.Run({.apps = {Mpi({"where", "/usr"}, 1)}});
  EXPECT_EQ(job.exit->exit_code, 0) << job.Notices();
  EXPECT_EQ(job.Out(0, 1), "cwd /usr word hello\n");
}

TEST(JobdMpi, NestedSpawns) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}});
  job.Run({.apps = {Mpi({"nested", "3"}, 1)}});
  EXPECT_EQ(job.exit->exit_code, 0) << job.Notices() << job.AllOut();
  EXPECT_EQ(job.Out(0, 3), "depth 1\n");
}

TEST(JobdMpi, AFreeNodeIsLentAndReleased) {
  JobdHarness job({{"cn0", "cluster", 0, 2}, {"bn0", "booster", 1, 4, true}});
  job.Run({.apps = {Mpi({"spawn", "3", "1"}, 1)}});
  EXPECT_EQ(job.exit->exit_code, 0) << job.Notices() << job.AllOut();
  EXPECT_EQ(job.Out(0), "round 0: 4 together\n");
  ASSERT_EQ(job.asks.size(), 1u);
  EXPECT_EQ(job.asks[0].slots, 2u);
}

TEST(JobdMpi, MoreThanThereIsIsRefusedWithNumbers) {
  JobdHarness job({{"cn0", "cluster", 0, 2}});
  job.Run({.apps = {Mpi({"spawn", "8", "1"}, 1)}});
  EXPECT_EQ(job.exit->exit_code, 7);
  EXPECT_THAT(job.Out(0), HasSubstr("spawn failed"));
  EXPECT_THAT(job.Notices(), HasSubstr("spawn of 8 processes of"));
  EXPECT_THAT(job.Notices(),
              HasSubstr("refused: 1 slot free in the job, 7 more needed: no free node has 7 slots"));
}

TEST(JobdMpi, AChildThatIsNotThereFailsTheSpawn) {
  JobdHarness job({{"cn0"}});
  job.Run({.apps = {Mpi({"missing"}, 1)}});
  EXPECT_EQ(job.exit->exit_code, 7);
  EXPECT_THAT(job.Notices(), HasSubstr("/nonexistent/program"));
}

TEST(JobdMpi, ChildrenThatDieBeforeTheyConnectFailTheSpawnAtOnce) {
  JobdHarness job({{"cn0"}});
  const auto before = std::chrono::steady_clock::now();
  job.Run({.apps = {Mpi({"dying", "2"}, 1)}});
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(20));
  EXPECT_EQ(job.exit->exit_code, 7) << job.Notices();
  EXPECT_EQ(job.Out(0), "spawn failed\n");
  EXPECT_THAT(job.Notices(), HasSubstr("of spawn 1"));
}

TEST(JobdMpi, AbortOfAConnectedChildEndsTheJob) {
  JobdHarness job({{"cn0"}});
  job.Run({.apps = {Mpi({"childabort"}, 1)}});
  EXPECT_NE(job.exit->exit_code, 0);
  EXPECT_THAT(job.Notices(), HasSubstr("spawn 1 is aborted by task 0 with code 9"));
}

TEST(JobdMpi, HundredSpawnsInOneJobLeaveNoDescriptorAndNoFile) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}});
  job.WarmUp();
  job.Launch({.apps = {Mpi({"spawn", "2", "100"}, 1)}});
  ASSERT_TRUE(UntilRound(job, 5));
  const std::size_t early = Descriptors(job.JobdPid("cn0"));
  const std::size_t early_kib = ResidentKib(job.JobdPid("cn0"));
  ASSERT_TRUE(UntilRound(job, 95));
  EXPECT_LE(Descriptors(job.JobdPid("cn0")), early + 8);
  const std::size_t late_kib = ResidentKib(job.JobdPid("cn0"));
  RecordProperty("resident_kib_after_5", static_cast<int>(early_kib));
  RecordProperty("resident_kib_after_95", static_cast<int>(late_kib));
  // 90 spawns. libpmix 4.2.2 itself loses about 14 KiB a spawn here (valgrind: pmix_server_get,
  // pmix_server_fence); of ours nothing grows but the few hundred bytes that the store remembers of each.
  EXPECT_LE(late_kib, early_kib + MSA_TEST_GROWTH_KIB);
  EXPECT_LE(support::EntriesBelow(job.RunDirectory("cn0")).size(), 40u);
  ASSERT_TRUE(job.UntilOver(std::chrono::seconds(300)));
  EXPECT_EQ(job.exit->exit_code, 0) << job.Notices();
}

TEST(JobdMpi, AnEmptiedEnvironmentFailsLoudly) {
  JobdHarness job({{"cn0"}});
  wire::App app;
  app.argv = {"/usr/bin/env", "-i", "PATH=/usr/bin:/bin", "MSA_NODE=x", MSA_TEST_MPI_JOB, "hello"};
  app.ntasks = 2;
  job.Run({.apps = {app}});
  EXPECT_EQ(job.exit->exit_code, 125) << job.Notices() << job.AllOut();
}

}  // namespace
}  // namespace msa::jobd
