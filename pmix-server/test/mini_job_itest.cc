// Jobs of several servers with real PMIx clients and real Open MPI programs.

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/support/scratch_directory.h"

namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Outcome {
  int code = -1;
  std::string output;
};

// timeout(1): a hang ends the job and fails the test, leaving nothing behind.
Outcome RunJob(const std::string& arguments) {
  const msa::support::ScratchDirectory directory;
  const msa::support::ScratchDirectory shm("/dev/shm");
  const std::string command =
      fmt::format("timeout -k 5 50 {} --report --topology {} --directory {} --shm {} {} 2>&1",
                  MSA_TEST_MINI_JOB, MSA_TEST_TOPOLOGY, directory.path(), shm.path(), arguments);
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer{};
  while (const std::size_t n = fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.output.append(buffer.data(), n);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  return outcome;
}

class MiniJob : public ::testing::TestWithParam<int> {
 protected:
  Outcome Client(const std::string& action, int ranks = 4) {
    return RunJob(fmt::format("--nodes {} -n {} {} {}", GetParam(), ranks, MSA_TEST_CLIENT, action));
  }
  Outcome Mpi(const std::string& program, int ranks = 2) {
    return RunJob(fmt::format("--nodes {} -n {} {}/{}", GetParam(), ranks, MSA_TEST_PROGRAMS, program));
  }
};

TEST_P(MiniJob, FenceBringsEveryRanksDataToEveryRank) {
  const Outcome outcome = Client("fence");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("step connected=4 finalized=4"));
}

TEST_P(MiniJob, DirectModexFetchesTheDataOfOneRank) {
  const Outcome outcome = Client("modex");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

TEST_P(MiniJob, PublishedDataIsFoundReadOnceWaitedForAndWithdrawn) {
  const Outcome outcome = Client("store");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

TEST_P(MiniJob, ConnectAndDisconnectReturnWhenAllHaveCalled) {
  const Outcome outcome = Client("connect");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

TEST_P(MiniJob, AQueryNamesTheNamespaces) {
  const Outcome outcome = Client("query");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

TEST_P(MiniJob, RanksKnowTheirPlaces) {
  const Outcome outcome = Client("job");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("rank 0 on mini0 local 0 node 0"));
  EXPECT_THAT(outcome.output,
              HasSubstr(GetParam() == 1 ? "rank 3 on mini0 local 3" : "rank 3 on mini1 local 1"));
}

TEST_P(MiniJob, ASpawnedProgramPublishesForItsParent) {
  const Outcome outcome = Client("spawn");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("spawned spawn1, it says: hello"));
}

TEST_P(MiniJob, AbortEndsTheNamespaceWithItsCode) {
  const Outcome outcome = Client("abort");
  EXPECT_EQ(outcome.code, 9) << outcome.output;
}

TEST_P(MiniJob, ARankThatIsKilledInAFenceEndsTheJob) {
  const Outcome outcome = Client("killed");
  EXPECT_EQ(outcome.code, 128 + 9) << outcome.output;
}

TEST_P(MiniJob, OpenMpiHelloIsOneWorld) {
  const Outcome outcome = Mpi("mpi_hello");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("rank 0/2 sum 1"));
  EXPECT_THAT(outcome.output, HasSubstr("rank 1/2 sum 1"));
  EXPECT_THAT(outcome.output, HasSubstr("step connected=2 finalized=2"));
}

TEST_P(MiniJob, OpenMpiSpawnsAgainAndAgain) {
  const Outcome outcome = Mpi("mpi_spawn 2 4");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  for (int round = 0; round < 4; ++round)
    EXPECT_THAT(outcome.output, HasSubstr(fmt::format("round {}: 4 parents and children", round)));
  EXPECT_THAT(outcome.output, HasSubstr("left_entries=0 waiting=0"));
  EXPECT_THAT(outcome.output, HasSubstr("unknown=[]"));
}

TEST_P(MiniJob, AnAbortOfOpenMpisChildrenKeepsTheirCode) {
  const Outcome outcome = Mpi("mpi_spawn 2 1 abort");
  EXPECT_EQ(outcome.code, 42) << outcome.output;
}

TEST_P(MiniJob, ChildrenThatDieBeforeTheyConnectFailTheSpawn) {
  const Outcome outcome = Mpi("mpi_spawn 2 1 die", 1);
  EXPECT_EQ(outcome.code, 7) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("spawn failed"));
}

INSTANTIATE_TEST_SUITE_P(Nodes, MiniJob, ::testing::Values(1, 2),
                         [](const auto& info) { return fmt::format("On{}", info.param); });

TEST(MiniJobOnTwo, AFencesTimeLimitEndsItOnTheOtherNodeToo) {
  const Outcome outcome = RunJob(fmt::format("--nodes 2 -n 2 {} timeout", MSA_TEST_CLIENT));
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

TEST(MiniJobOnTwo, AProgramThatIsNotThereEndsTheJobWith127) {
  const Outcome outcome = RunJob("--nodes 2 -n 2 /no/such/program");
  EXPECT_EQ(outcome.code, 127) << outcome.output;
}

TEST(MiniJobOnFour, SixteenRanksExchangeTheirData) {
  const Outcome outcome = RunJob(fmt::format("--nodes 4 -n 16 {} fence", MSA_TEST_CLIENT));
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("step connected=16 finalized=16"));
}

}  // namespace
