// Debian's Open MPI and MPICH, unmodified: worlds over modules, dynamic processes, and what goes wrong with
// them.
#include <signal.h>

#include <tuple>

#include "shared_cluster.h"

namespace msa::e2e {
namespace {

class Mpi : public SharedCluster {
 protected:
  static int Count(const std::string& text, const std::string& what) {
    int count = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
    return count;
  }
  static Outcome Spawn(std::vector<std::string> place, std::vector<std::string> options,
                       std::chrono::milliseconds timeout = 120s) {
    std::vector<std::string> arguments = {"run"};
    arguments.insert(arguments.end(), place.begin(), place.end());
    arguments.push_back(ProgramPath("mpi_spawn"));
    arguments.insert(arguments.end(), options.begin(), options.end());
    return Run(arguments, timeout);
  }
};

TEST_F(Mpi, OneWorldSpansComponentsOnDifferentModules) {
  const std::string hello = ProgramPath("mpi_hello");
  const Outcome outcome = Run({"run", "-m", "cluster", "-n", "2", hello, "a", ":", "-m", "booster", "-N", "2",
                               "-n", "4", hello, "b"});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "size=6"), 6) << outcome.out;
  EXPECT_EQ(Count(outcome.out, "module=cluster component=0"), 2) << outcome.out;
  EXPECT_EQ(Count(outcome.out, "node=bn0 module=booster component=1"), 2) << outcome.out;
  EXPECT_EQ(Count(outcome.out, "node=bn1 module=booster component=1"), 2) << outcome.out;
  EXPECT_EQ(Count(outcome.out, "arg=b"), 4);
  EXPECT_EQ(outcome.err, "");
}

TEST_F(Mpi, CarriesDataBetweenAllNodesUndamaged) {
  const std::string ring = ProgramPath("mpi_ring");
  const Outcome outcome =
      Run({"run", "-m", "cluster", "-N", "2", "-n", "2", ring, ":", "-m", "booster", "-n", "2", ring});
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(outcome.out, "ring ok size=4\n");
}

TEST_F(Mpi, SpawnsIntoFreeSlotsOfTheJob) {
  // cn0 and cn1 are the job's; it has 8 slots and runs 2 ranks.
  const Outcome outcome = Spawn({"-m", "cluster", "-N", "2", "-n", "2", "--exclusive"}, {"--children", "3"});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "child rank="), 3);
  EXPECT_EQ(Count(outcome.out, "module=cluster"), 3) << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("spawned 3"));
}

TEST_F(Mpi, SpawnsOntoFreeNodesWhenTheJobIsFull) {
  const Outcome outcome = Spawn({"-m", "cluster", "-n", "1"}, {"--children", "2"});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "child rank="), 2) << outcome.out;
}

TEST_F(Mpi, SpawnsAHundredTimesInOneJob) {
  const Outcome outcome = Spawn({"-m", "cluster", "-n", "1"}, {"--children", "1", "--times", "100"}, 180s);
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "spawned 1"), 100);
}

TEST_F(Mpi, SpawnsFromSpawnedProcesses) {
  const Outcome outcome = Spawn({"-m", "booster", "-n", "1"}, {"--children", "1", "--depth", "3"});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  for (const char* depth : {"depth=2", "depth=1", "depth=0"})
    EXPECT_EQ(Count(outcome.out, depth), 1) << outcome.out;
}

TEST_F(Mpi, SpawnMultipleStartsEachCommandWithItsArgumentsAndInfo) {
  const Outcome outcome = Run({"run", "-m", "booster", "-n", "1", ProgramPath("mpi_spawn_multiple")});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.out, HasSubstr("child rank=0 size=3 appnum=0 arg=first tag=one"));
  EXPECT_THAT(outcome.out, HasSubstr("child rank=1 size=3 appnum=1 arg=second tag=two"));
  EXPECT_THAT(outcome.out, HasSubstr("child rank=2 size=3 appnum=1 arg=second tag=two"));
  EXPECT_THAT(outcome.out, HasSubstr("spawned 3, sum 3"));
}

TEST_F(Mpi, SpawnObeysHostWdirAndEnv) {
  const Outcome outcome = Spawn(
      {"-m", "cluster", "-N", "2", "-n", "2", "--exclusive"},
      {"--children", "1", "--info", "host=cn1", "--info", "wdir=/usr", "--info", "env=MPI_SPAWN_TAG=here"});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.out, HasSubstr("node=cn1 module=cluster cwd=/usr tag=here"));
}

TEST_F(Mpi, GivesSpawnedNodesBackWhenTheirProcessesHaveEnded) {
  // 4 slots a cluster node: 1 rank and 9 children want more than cn0 and cn1 have; afterwards all of them are
  // free again, which TearDown checks, and a second round of the same size fits.
  const Outcome outcome = Spawn({"-m", "cluster", "-n", "1"}, {"--children", "6", "--times", "3"}, 120s);
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "spawned 6"), 3);
}

TEST_F(Mpi, RefusesASpawnThatCanNeverFitWithAReason) {
  const Outcome outcome = Spawn({"-m", "cluster", "-n", "1"}, {"--children", "500", "--errors-return"});
  EXPECT_EQ(outcome.code, 6) << outcome.Text();
  EXPECT_THAT(outcome.out, HasSubstr("spawn failed: MPI_ERR_SPAWN"));
  EXPECT_THAT(outcome.err, HasSubstr("500"));
}

TEST_F(Mpi, RefusesASpawnOfAProgramThatIsNotThere) {
  const Outcome outcome = Spawn({"-m", "cluster", "-n", "1"},
                                {"--children", "1", "--info", "wdir=/no/such/dir", "--errors-return"});
  EXPECT_EQ(outcome.code, 6) << outcome.Text();
  EXPECT_THAT(outcome.err, HasSubstr("/no/such/dir"));
}

TEST_F(Mpi, ShowsStepsAndSpawnedNamespacesOfAJob) {
  const Outcome outcome = Spawn({"-m", "cluster", "-n", "1", "-J", "tree"}, {"--children", "2"});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  const Json job = Job(cluster_->Query({"job", "list", "-a", "-n", "1"})["items"].list().at(0)["id"].text());
  ASSERT_EQ(job["namespaces"].list().size(), 2u);
  EXPECT_EQ(job["namespaces"].list()[0]["size"].number(), 1);
  EXPECT_EQ(job["namespaces"].list()[1]["size"].number(), 2);
  EXPECT_EQ(job["namespaces"].list()[1]["parent"].text(), job["namespaces"].list()[0]["name"].text());
  EXPECT_EQ(job["namespaces"].list()[1]["ended"].text(), "true");
}

TEST_F(Mpi, FailsAnMpiProgramWhoseRanksNeverFoundTheServer) {
  // env -i takes away all that leads to the PMIx server: each rank would be a world of its own.
  const Outcome outcome =
      Run({"run", "-n", "2", "env", "-i", "PATH=/usr/bin:/bin", ProgramPath("mpi_hello")});
  EXPECT_NE(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("libmpi"), HasSubstr("PMIx")));
}

TEST_F(Mpi, MpichIsOneWorldOverComponentsOnDifferentModules) {
  const std::string hello = ProgramPath("mpich_hello");
  const Outcome outcome = Run({"run", "-m", "cluster", "-n", "2", hello, "a", ":", "-m", "booster", "-N", "2",
                               "-n", "4", hello, "b"});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "size=6"), 6) << outcome.out;
  EXPECT_EQ(Count(outcome.out, "module=cluster component=0"), 2) << outcome.out;
  EXPECT_EQ(Count(outcome.out, "node=bn1 module=booster component=1"), 2) << outcome.out;
  EXPECT_EQ(outcome.err, "");
}

TEST_F(Mpi, MpichCarriesDataBetweenAllNodesUndamaged) {
  const std::string ring = ProgramPath("mpich_ring");
  const Outcome outcome =
      Run({"run", "-m", "cluster", "-N", "2", "-n", "2", ring, ":", "-m", "booster", "-n", "4", ring});
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(outcome.out, "ring ok size=6\n");
}

TEST_F(Mpi, AnAbortOfMpichEndsAllRanksWithItsCode) {
  const std::string fault = ProgramPath("mpich_fault");
  const Outcome outcome = Run({"run", "-m", "cluster", "-n", "2", fault, "abort", "3", "17", ":", "-m",
                               "booster", "-n", "2", fault, "abort", "3", "17"});
  EXPECT_EQ(outcome.code, 17) << outcome.Text();
  EXPECT_THAT(outcome.err, HasSubstr("aborted by task 3 with code 17"));
}

TEST_F(Mpi, ARankOfMpichKilledByASignalEndsTheStepWithItsSignal) {
  const Outcome outcome = Run({"run", "-N", "2", "-n", "4", ProgramPath("mpich_fault"), "kill", "2"});
  EXPECT_EQ(outcome.code, 128 + SIGKILL) << outcome.Text();
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("task 2: Killed"), HasSubstr("MPI_Finalize")));
}

TEST_F(Mpi, ASpawnOfMpichFailsAtOnce) {
  // In MPICH itself, which asks nobody: ch4:ucx has no get_local_upids.
  const Outcome returned = Run({"run", "-N", "2", "-n", "2", ProgramPath("mpich_spawn"), "--errors-return"});
  EXPECT_EQ(returned.code, 6) << returned.Text();
  EXPECT_THAT(returned.out, HasSubstr("spawn failed"));
  const Outcome fatal = Run({"run", "-N", "2", "-n", "2", ProgramPath("mpich_spawn")});
  EXPECT_FALSE(fatal.timed_out);
  EXPECT_NE(fatal.code, 0) << fatal.Text();
  EXPECT_THAT(fatal.err, HasSubstr("Error in spawn call"));
}

TEST_F(Mpi, AbortEndsAllRanksWithItsCode) {
  const Outcome outcome =
      Run({"run", "-m", "cluster", "-n", "2", ProgramPath("mpi_fault"), "abort", "3", "17", ":", "-m",
           "booster", "-n", "2", ProgramPath("mpi_fault"), "abort", "3", "17"});
  EXPECT_EQ(outcome.code, 17) << outcome.Text();
  EXPECT_THAT(outcome.err, HasSubstr("abort"));
}

TEST_F(Mpi, ARankKilledByASignalEndsTheStepWithItsSignal) {
  const std::tuple<const char*, int, const char*> cases[] = {{"segv", SIGSEGV, "Segmentation fault"},
                                                             {"kill", SIGKILL, "Killed"}};
  for (const auto& [kind, signal, text] : cases) {
    const Outcome outcome = Run({"run", "-N", "2", "-n", "4", ProgramPath("mpi_fault"), kind, "2"});
    EXPECT_EQ(outcome.code, 128 + signal) << outcome.Text();
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(std::string("task 2: ") + text), HasSubstr("MPI_Finalize")));
  }
}

TEST_F(Mpi, ARankThatLeavesWithoutFinalizeEndsTheStep) {
  const Outcome outcome = Run({"run", "-n", "2", ProgramPath("mpi_fault"), "exit", "1", "9"});
  EXPECT_EQ(outcome.code, 9) << outcome.Text();
  EXPECT_FALSE(outcome.timed_out);
  const Outcome zero = Run({"run", "-n", "2", ProgramPath("mpi_fault"), "exit", "1", "0"});
  EXPECT_NE(zero.code, 0) << "a rank that left before MPI_Finalize is no success\n" << zero.Text();
}

TEST_F(Mpi, ACodeReturnedAfterFinalizeIsTheJobsCode) {
  EXPECT_EQ(Run({"run", "-n", "2", ProgramPath("mpi_fault"), "return", "1", "9"}).code, 9);
}

TEST_F(Mpi, GivesInputToRankZero) {
  Command command = cluster_->Msactl({"run", "-n", "2", ProgramPath("mpi_stdin")});
  command.input = std::string(200'000, 'y');
  const Outcome outcome = support::RunCommand(command);
  EXPECT_THAT(outcome.out, HasSubstr("stdin bytes=200000 sum="));
  EXPECT_THAT(outcome.out, HasSubstr("rank 1 stdin bytes=200000 own=0"));
}

TEST_F(Mpi, RunsMoreRanksThanTheMachineHasCores) {
  const Outcome outcome =
      Run({"run", "-m", "booster", "-N", "2", "-n", "16", ProgramPath("mpi_ring"), "1024"}, 120s);
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(outcome.out, "ring ok size=16\n");
}

}  // namespace
}  // namespace msa::e2e
