// What libmsampi does for programs that are allowed to spawn.
#include <sys/resource.h>

#include "mpi_library.h"

namespace msa::support {
namespace {

using MpiSpawn = MpiLibrary;

TEST_F(MpiSpawn, TellsTheJobDaemonWhatTheProgramWroteIntoItsInfo) {
  JobSocketDouble& daemon = ServeAll();
  const Outcome outcome =
      Run(2, Plan({"--maxprocs", "2", "--info", "arch=booster", "--info", "soft=1:2", "--info", "wdir=/usr",
                   "--info", "msa_nodes=1", "--info", "msa_ppn=4", "--info", "msa_wait=5m", "--info",
                   "msa_colour=red", "--info", "env=MPI_SPAWN_TAG=here"}));
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "child rank="), 2) << outcome.out;
  EXPECT_EQ(Count(outcome.out, "tag=here"), 2) << "the program's own env was lost\n" << outcome.out;
  EXPECT_EQ(Count(outcome.out, "ok remote=2 inter=1 codes=0,0"), 2) << outcome.out;
  const auto record = daemon.record();
  ASSERT_EQ(record.asks.size(), 1u) << "the root alone asks, once";
  EXPECT_FALSE(record.asks[0].cwd.empty());
  EXPECT_FALSE(record.asks[0].search_path.empty());
  ASSERT_EQ(record.asks[0].commands.size(), 1u);
  const wire::SpawnCommand& command = record.asks[0].commands[0];
  EXPECT_EQ(command.program, ProgramPath("mpi_spawn_plan"));
  EXPECT_EQ(command.maxprocs, 2u);
  EXPECT_EQ(command.arch, "booster");
  EXPECT_EQ(command.soft, "1:2");
  EXPECT_EQ(command.wdir, "/usr");
  EXPECT_EQ(command.host, "");
  EXPECT_EQ(command.msa_nodes, "1");
  EXPECT_EQ(command.msa_ppn, "4");
  EXPECT_EQ(command.msa_wait, "5m");
  EXPECT_THAT(command.unknown, ElementsAre("msa_colour"));
  ASSERT_EQ(record.hellos.size(), 1u);
  EXPECT_NE(record.hellos[0].nspace, "");
  EXPECT_EQ(record.hellos[0].rank.value, 0u);
  EXPECT_TRUE(record.withdrawn.empty());
}

TEST_F(MpiSpawn, StartsAsManyAsTheVerdictSaysAndTheCodesTellWhich) {
  Serve([](const wire::SpawnAsk& ask) { return JobSocketDouble::Grant(ask, {2}); });
  const Outcome outcome = Run(2, Plan({"--maxprocs", "5", "--info", "soft=0:5", "--root", "1"}));
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "child rank="), 2) << outcome.out;
  EXPECT_EQ(Count(outcome.out, "ok remote=2 inter=1 codes=0,0,MPI_ERR_SPAWN,MPI_ERR_SPAWN,MPI_ERR_SPAWN\n"),
            2)
      << outcome.out;
  EXPECT_EQ(job_daemon_->record().hellos.at(0).rank.value, 1u) << "rank 1 was the root";
}

TEST_F(MpiSpawn, LeavesOutCommandsOfAMultipleSpawnThatGetNoProcesses) {
  Serve([](const wire::SpawnAsk& ask) { return JobSocketDouble::Grant(ask, {1, 0, 2}); });
  const Outcome outcome = Run(2, Plan({"--maxprocs", "2,1,0,2"}));
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "size=3"), 3) << outcome.out;
  EXPECT_EQ(Count(outcome.out, "ok remote=3 inter=1 codes=0,MPI_ERR_SPAWN,MPI_ERR_SPAWN,0,0\n"), 2)
      << outcome.out;
  EXPECT_EQ(job_daemon_->record().asks.at(0).commands.size(), 3u) << "a maxprocs of 0 needs no asking";
}

TEST_F(MpiSpawn, CarriesTheNumbersOfManyCommandsToAllParents) {
  ServeAll();
  std::string counts = "1";
  std::string codes = "0";
  for (int i = 1; i < 40; ++i) counts += i % 20 == 0 ? ",1" : ",0";
  codes += ",0";
  const Outcome outcome = Run(2, Plan({"--maxprocs", counts}));
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "ok remote=2 inter=1 codes=" + codes + "\n"), 2) << outcome.out;
}

TEST_F(MpiSpawn, GivesAnEmptyRemoteGroupWhenNoneCanBeStarted) {
  Serve([](const wire::SpawnAsk& ask) { return JobSocketDouble::Grant(ask, {0}); });
  const std::string expected = "ok remote=0 inter=1 codes=MPI_ERR_SPAWN,MPI_ERR_SPAWN\n";
  for (const char* part : {"disconnect", "free", "dup"}) {
    const Outcome outcome = Run(2, Plan({"--maxprocs", "2", "--info", "soft=0:2", "--part", part}));
    ASSERT_EQ(outcome.code, 0) << outcome.Text();
    EXPECT_EQ(Count(outcome.out, expected), 2) << outcome.out;
  }
  EXPECT_EQ(Count(Run(1, Plan({"--maxprocs", "2"})).out, expected), 1) << "one parent is no exception";
}

TEST_F(MpiSpawn, ReportsTheEndOfTheTieToBothSidesJobDaemons) {
  JobSocketDouble& daemon = ServeAll();
  const Outcome outcome = Run(2, Plan({"--maxprocs", "2"}), {{"MSA_PARENT_NAMESPACE", "parents"}});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_TRUE(
      Eventually(30s, "both sides have reported", [&] { return daemon.record().disconnected.size() == 2; }));
  EXPECT_THAT(daemon.record().disconnected, testing::UnorderedElementsAre("parents", "children"));
}

TEST_F(MpiSpawn, ReportsTheEndOfTheTieWithTheLastCopyOfTheIntercommunicator) {
  JobSocketDouble& daemon = ServeAll();
  const Outcome outcome =
      Run(1, Plan({"--maxprocs", "1", "--part", "dup"}), {{"MSA_PARENT_NAMESPACE", "parents"}});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(daemon.record().disconnected, testing::UnorderedElementsAre("parents", "children"));
}

TEST_F(MpiSpawn, KeepsTheTieOfAnIntercommunicatorThatWasOnlyFreed) {
  JobSocketDouble& daemon = ServeAll();
  const Outcome outcome =
      Run(1, Plan({"--maxprocs", "1", "--part", "free"}), {{"MSA_PARENT_NAMESPACE", "parents"}});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(daemon.record().disconnected, ElementsAre());
}

TEST_F(MpiSpawn, SpawnsFromSpawnedProcesses) {
  JobSocketDouble& daemon = ServeAll();
  const Outcome outcome = Run(1, Plan({"--maxprocs", "1", "--depth", "3"}));
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  for (const char* depth : {"depth=2", "depth=1", "depth=0"})
    EXPECT_EQ(Count(outcome.out, depth), 1) << outcome.out;
  EXPECT_EQ(daemon.record().asks.size(), 3u);
}

TEST_F(MpiSpawn, KeepsOneConnectionForManySpawns) {
  JobSocketDouble& daemon = ServeAll();
  const Outcome outcome = Run(1, Plan({"--maxprocs", "1", "--times", "5"}));
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(daemon.record().asks.size(), 5u);
  EXPECT_EQ(daemon.record().hellos.size(), 1u);
  EXPECT_TRUE(Eventually(30s, "it is closed", [&] { return daemon.record().connections == 0; }));
}

TEST_F(MpiSpawn, ThreadsAskAtOnceAndEachGetsItsOwnAnswer) {
  // One of the two is refused: mpirun itself now and then loses a child when two launches come at once.
  JobSocketDouble& daemon = Serve([](const wire::SpawnAsk&) { return std::nullopt; });
  Process process(Tasks(2, {ProgramPath("mpi_spawn_threads"), "1"}));
  ASSERT_TRUE(Eventually(60s, "both have asked", [&] { return daemon.record().asks.size() == 2; }));
  EXPECT_EQ(daemon.record().connections, 2u);
  for (const wire::SpawnAsk& ask : daemon.record().asks)
    daemon.Answer(ask.commands.at(0).maxprocs == 2
                      ? JobSocketDouble::Grant(ask)
                      : JobSocketDouble::Refuse(wire::SpawnRefusal::kSpawn, "not for thread 0"));
  const Outcome outcome = process.Wait();
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.out, HasSubstr("thread 0 rank 0: MPI_ERR_SPAWN: not for thread 0"));
  EXPECT_THAT(outcome.out, HasSubstr("thread 0 rank 1: MPI_ERR_SPAWN: not for thread 0"));
  EXPECT_THAT(outcome.out, HasSubstr("thread 1: 2 children in 1 rounds"));
}

TEST_F(MpiSpawn, WaitsForAVerdictWithoutUsingTheProcessor) {
  JobSocketDouble& daemon = Serve([](const wire::SpawnAsk&) { return std::nullopt; });
  const auto used = [] {
    rusage usage{};
    ::getrusage(RUSAGE_CHILDREN, &usage);
    return 1e3 * static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-3 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  // The same twice, but for how long the verdict takes.
  double cost[2];
  for (int turn = 0; turn < 2; ++turn) {
    const double before = used();
    const auto asks = daemon.record().asks.size();
    Process process(Tasks(3, Plan({"--maxprocs", "1"})));
    ASSERT_TRUE(Eventually(60s, "the root has asked", [&] { return daemon.record().asks.size() > asks; }));
    if (turn == 1) process.ReadUntil([] { return false; }, 4s);
    daemon.Answer(JobSocketDouble::Refuse(wire::SpawnRefusal::kSpawn, "enough waited"));
    const Outcome outcome = process.Wait();
    EXPECT_EQ(Count(outcome.out, "enough waited"), 3) << outcome.Text();
    cost[turn] = used() - before;
  }
  // Three parents that spin on two cores would use 8 s, and half of it beside others.
  EXPECT_LT(cost[1] - cost[0], 2500.0) << cost[0] << " and " << cost[1] << " ms";
}

// ------------------------------------------------------------------------------------ other languages

TEST_F(MpiSpawn, FortranProgramsSpawnThroughEachOfTheirBindings) {
  JobSocketDouble& daemon = Serve([](const wire::SpawnAsk& ask) { return JobSocketDouble::Grant(ask, {2}); });
  for (const char* name : {"mpi_spawn_mpifh", "mpi_spawn_usempi"}) {
    const Outcome outcome = Run(2, {ProgramPath(name)});
    ASSERT_EQ(outcome.code, 0) << outcome.Text();
    EXPECT_THAT(outcome.out, HasSubstr("fortran: 2 of 3, remote 2, text -")) << name;
    const wire::SpawnCommand command = daemon.record().asks.back().commands.at(0);
    EXPECT_EQ(command.program, ProgramPath(name));
    EXPECT_EQ(command.soft, "0:2");
    EXPECT_EQ(command.arch, "booster");
  }
  const Outcome f08 = Run(2, {ProgramPath("spawn_soft_f")});
  ASSERT_EQ(f08.code, 0) << f08.Text();
  EXPECT_THAT(f08.out, HasSubstr("2 of 8 children started, their ranks add up to 1"));
  EXPECT_EQ(daemon.record().asks.size(), 3u);
}

TEST_F(MpiSpawn, FortranProgramsSpawnSeveralCommands) {
  Serve([](const wire::SpawnAsk& ask) { return JobSocketDouble::Grant(ask, {1, 1}); });
  const Outcome outcome = Run(2, {ProgramPath("mpi_spawn_multiple_f08")});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.out, HasSubstr("f08: remote 2, codes 0 "));
}

TEST_F(MpiSpawn, PythonProgramsSpawn) {
  JobSocketDouble& daemon = Serve([](const wire::SpawnAsk& ask) { return JobSocketDouble::Grant(ask, {4}); });
  // Debian's own interpreter: mpi4py belongs to it.
  const Outcome outcome = Run(2, {"/usr/bin/python3", MSA_TEST_EXAMPLES "/spawn_soft.py"});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.out, HasSubstr("4 of 8 children started, their ranks add up to 6"));
  EXPECT_EQ(daemon.record().asks.at(0).commands.at(0).soft, "0:8:2");
}

TEST_F(MpiSpawn, TheExampleSpawns) {
  Serve([](const wire::SpawnAsk& ask) { return JobSocketDouble::Grant(ask, {4}); });
  const Outcome outcome = Run(2, {ProgramPath("spawn_soft")});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.out, HasSubstr("4 of 8 children started, their ranks add up to 6"));
}

TEST_F(MpiSpawn, BoosterAllocStartsTheSameProgramOnTheBooster) {
  JobSocketDouble& daemon = ServeAll();
  const std::string preload = MSA_TEST_PRELOAD;
  const Outcome outcome = Run(2, Plan({"--booster", "2,1", "--maxprocs", "2"}, "mpi_booster"),
                              {{"LD_LIBRARY_PATH", preload.substr(0, preload.rfind('/'))}});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "child rank="), 2) << outcome.out;
  const wire::SpawnCommand command = daemon.record().asks.at(0).commands.at(0);
  EXPECT_EQ(command.program, ProgramPath("mpi_booster"));
  EXPECT_EQ(command.arch, "booster");
  EXPECT_EQ(command.maxprocs, 2u);
  EXPECT_EQ(command.msa_nodes, "2");
  EXPECT_EQ(command.msa_ppn, "1");
}

// --------------------------------------------------------------------------- programs that are not of msa

TEST_F(MpiSpawn, PassesThroughWhereThereIsNoJobDaemon) {
  const Outcome outcome = RunCommand(
      Plain(2, Plan({"--maxprocs", "2", "--info", "arch=booster"}), {{"LD_PRELOAD", MSA_TEST_PRELOAD}}));
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "ok remote=2 inter=1"), 2) << outcome.out;
  EXPECT_EQ(outcome.err, "");
}

TEST_F(MpiSpawn, LeavesProcessesOfAnotherLauncherInsideAJobToIt) {
  JobSocketDouble& daemon = ServeAll();
  daemon.set_world_size(0);
  const Outcome outcome = Run(2, Plan({"--maxprocs", "2"}));
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "ok remote=2 inter=1"), 2) << outcome.out;
  EXPECT_TRUE(daemon.record().asks.empty());
}

TEST_F(MpiSpawn, AProfilingToolKeepsItsPlace) {
  JobSocketDouble& daemon = ServeAll();
  Command command = Tasks(2, Plan({"--maxprocs", "1"}));
  command.env["LD_PRELOAD"] += ":" + ProgramPath("spawn_tool.so");
  const Outcome outcome = RunCommand(command);
  EXPECT_EQ(Count(outcome.out, "ok remote=1"), 2) << outcome.Text();
  EXPECT_EQ(Count(outcome.err, "tool: MPI_Comm_spawn\n"), 2) << outcome.err;
  EXPECT_EQ(daemon.record().asks.size(), 1u);
}

TEST_F(MpiSpawn, AProgramWithoutMpiIsLeftAlone) {
  Command command;
  command.argv = {"echo", "here"};
  command.env = {{"LD_PRELOAD", MSA_TEST_PRELOAD}, {"MSA_JOB_SOCKET", "/nowhere"}};
  const Outcome outcome = RunCommand(command);
  EXPECT_EQ(outcome.out, "here\n");
  EXPECT_EQ(outcome.err, "");
}

}  // namespace
}  // namespace msa::support
