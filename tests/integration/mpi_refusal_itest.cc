// What libmsampi does for programs that may not spawn, or ought not to run at all.
#include <signal.h>

#include "mpi_library.h"

namespace msa::support {
namespace {

using MpiRefusal = MpiLibrary;

TEST_F(MpiRefusal, ReachesAllParentsWithItsClassAndItsReason) {
  struct Case {
    wire::SpawnRefusal kind;
    const char* name;
  };
  for (const Case& c : {Case{wire::SpawnRefusal::kSpawn, "MPI_ERR_SPAWN"},
                        Case{wire::SpawnRefusal::kInfoValue, "MPI_ERR_INFO_VALUE"}}) {
    Serve([&](const wire::SpawnAsk&) { return JobSocketDouble::Refuse(c.kind, "2 nodes asked, 1 is free"); });
    const Outcome outcome = Run(3, Plan({"--maxprocs", "2"}));
    ASSERT_EQ(outcome.code, 0) << outcome.Text();
    EXPECT_EQ(Count(outcome.out, std::string("failed class=") + c.name + " text=" + c.name +
                                     ": 2 nodes asked, 1 is free codes=MPI_ERR_SPAWN,MPI_ERR_SPAWN\n"),
              3)
        << outcome.out;
    EXPECT_EQ(outcome.err, "msa: MPI_Comm_spawn: 2 nodes asked, 1 is free\n");
  }
}

TEST_F(MpiRefusal, OfASpawnOfSeveralCommandsReachesAllParents) {
  Serve([](const wire::SpawnAsk&) { return JobSocketDouble::Refuse(wire::SpawnRefusal::kSpawn, "no"); });
  const Outcome outcome = Run(2, Plan({"--maxprocs", "2,1", "--root", "1"}));
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "text=MPI_ERR_SPAWN: no codes=MPI_ERR_SPAWN,MPI_ERR_SPAWN,MPI_ERR_SPAWN\n"), 2)
      << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr("MPI_Comm_spawn_multiple: no"));
}

TEST_F(MpiRefusal, AbortsAProgramThatHandlesNoErrors) {
  Serve(
      [](const wire::SpawnAsk&) { return JobSocketDouble::Refuse(wire::SpawnRefusal::kSpawn, "none free"); });
  const Outcome outcome = Run(3, Plan({"--maxprocs", "2", "--errors", "fatal"}));
  EXPECT_NE(outcome.code, 0) << outcome.Text();
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_EQ(Count(outcome.err, "msa: MPI_Comm_spawn: none free"), 1) << outcome.err;
  EXPECT_EQ(Count(outcome.out, "parent "), 0) << outcome.out;
}

TEST_F(MpiRefusal, GoesThroughTheProgramsOwnErrorHandler) {
  Serve(
      [](const wire::SpawnAsk&) { return JobSocketDouble::Refuse(wire::SpawnRefusal::kSpawn, "none free"); });
  const Outcome outcome = Run(2, Plan({"--maxprocs", "2", "--errors", "handler"}));
  EXPECT_EQ(Count(outcome.out, "handler MPI_ERR_SPAWN"), 2) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "failed class=MPI_ERR_SPAWN"), 2) << outcome.out;
}

TEST_F(MpiRefusal, ReachesFortranAndPython) {
  Serve(
      [](const wire::SpawnAsk&) { return JobSocketDouble::Refuse(wire::SpawnRefusal::kSpawn, "none free"); });
  const char* text = "MPI_ERR_SPAWN: none free";
  EXPECT_THAT(Run(2, {ProgramPath("mpi_spawn_mpifh")}).out, HasSubstr(text));
  EXPECT_THAT(Run(2, {ProgramPath("mpi_spawn_usempi")}).out, HasSubstr(text));
  EXPECT_THAT(Run(2, {ProgramPath("mpi_spawn_multiple_f08")}).out, HasSubstr(text));
  EXPECT_THAT(Run(2, {ProgramPath("spawn_soft_f")}).out, HasSubstr(text));
  EXPECT_THAT(Run(2, {"/usr/bin/python3", MSA_TEST_EXAMPLES "/spawn_soft.py"}).out, HasSubstr(text));
}

TEST_F(MpiRefusal, OfArgumentsThatOpenMpiWouldHangOnComesAtOnce) {
  JobSocketDouble& daemon = ServeAll();
  const Outcome outcome = Run(2, Plan({"--maxprocs", "-1"}));
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "failed class=MPI_ERR_ARG text=MPI_ERR_ARG: maxprocs of "), 2) << outcome.out;
  EXPECT_TRUE(daemon.record().asks.empty());
}

TEST_F(MpiRefusal, SaysThatTheJobDaemonCannotBeReached) {
  const Outcome gone = Run(2, Plan({}));
  EXPECT_EQ(gone.code, 0) << gone.Text();
  EXPECT_EQ(Count(gone.out, "failed class=MPI_ERR_SPAWN text=MPI_ERR_SPAWN: job daemon at"), 2) << gone.out;
  ServeAll().set_deaf(true);
  const Outcome deaf = Run(2, Plan({}));
  EXPECT_EQ(Count(deaf.out, "it closed the connection"), 2) << deaf.Text();
}

TEST_F(MpiRefusal, SaysThatTheAnswerMakesNoSense) {
  std::vector<std::vector<std::uint32_t>> counts = {{1, 1}, {3}, {1u << 31}};
  for (const auto& wrong : counts) {
    Serve([&](const wire::SpawnAsk& ask) { return JobSocketDouble::Grant(ask, wrong); });
    const Outcome outcome = Run(2, Plan({"--maxprocs", "2"}));
    EXPECT_EQ(Count(outcome.out, "answer does not fit the question"), 2) << outcome.Text();
  }
}

TEST_F(MpiRefusal, OfMoreThanTheJobDaemonReadsSaysSo) {
  JobSocketDouble& daemon = ServeAll();
  const Outcome outcome = Run(2, Plan({}), {{"PATH", "/usr/bin:/bin:" + std::string(70'000, 'x')}});
  EXPECT_EQ(Count(outcome.out, "the limit is 65536; spawn in parts"), 2) << outcome.Text();
  EXPECT_TRUE(daemon.record().asks.empty());
}

TEST_F(MpiRefusal, GivesBackAPermissionThatFindsNoRoomInTheInfo) {
  JobSocketDouble& daemon = ServeAll();
  const std::string env = "env=MPI_SPAWN_TAG=" + std::string(220, 'y');
  // `ompi_param` takes the ticket where `env` is full.
  const Outcome fits = Run(2, Plan({"--info", env}));
  EXPECT_EQ(Count(fits.out, "ok remote=1"), 2) << fits.Text();
  const Outcome full = Run(2, Plan({"--info", env, "--info", "ompi_param=OMPI_MCA_mpi_show_handle_leaks=0"}));
  EXPECT_EQ(Count(full.out, "failed class=MPI_ERR_INFO_VALUE"), 2) << full.Text();
  EXPECT_TRUE(Eventually(30s, "withdrawn", [&] { return daemon.record().withdrawn.size() == 1; }));
}

TEST_F(MpiRefusal, FailsAllParentsOfChildrenThatCouldNotBeStarted) {
  // The launch fails after the permission: Open MPI 4.1 lets all parents but the root wait for ever.
  JobSocketDouble& daemon = ServeAll();
  for (const char* maxprocs : {"2", "2,1"}) {
    const auto before = daemon.record().withdrawn.size();
    Command command = Tasks(3, Plan({"--maxprocs", maxprocs, "--times", "2"}));
    command.env["LD_PRELOAD"] += ":" + ProgramPath("pmix_spawn_fails.so");
    const Outcome outcome = RunCommand(command);
    EXPECT_EQ(outcome.code, 0) << outcome.Text();
    EXPECT_EQ(Count(outcome.out, "failed class=MPI_ERR_SPAWN text=MPI_ERR_SPAWN: permitted, but"), 6)
        << outcome.Text();
    EXPECT_TRUE(Eventually(30s, "withdrawn", [&] { return daemon.record().withdrawn.size() == before + 2; }));
  }
}

TEST_F(MpiRefusal, WithdrawsAQuestionByTheEndOfItsProcess) {
  JobSocketDouble& daemon = Serve([](const wire::SpawnAsk&) { return std::nullopt; });
  Process process(Tasks(2, Plan({"--maxprocs", "1"})));
  ASSERT_TRUE(Eventually(60s, "the root has asked", [&] { return daemon.record().asks.size() == 1; }));
  EXPECT_EQ(daemon.record().connections, 1u);
  process.Signal(SIGTERM);
  process.Wait();
  EXPECT_TRUE(Eventually(30s, "its connection ends", [&] { return daemon.record().connections == 0; }));
}

// ------------------------------------------------------------------------------------------ MPI_Init

TEST_F(MpiRefusal, ASingletonIsNotTakenForAStep) {
  ServeAll();
  Command command = Tasks(1, {});
  command.argv = {ProgramPath("mpi_hello")};
  command.env["MSA_WORLD_SIZE"] = "4";
  const Outcome outcome = RunCommand(command);
  EXPECT_NE(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.err, HasSubstr("1 process where the step has 4"));
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(Run(2, {ProgramPath("mpi_hello")}, {{"MSA_WORLD_SIZE", "2"}}).code, 0);
}

// --------------------------------------------------------------------------------------------- MPICH

class MpichLibrary : public MpiLibrary {
 protected:
  Outcome RunMpich(std::vector<std::string> arguments) {
    Command command = Tasks(1, {});
    command.argv = {"mpiexec.hydra", "-n", "2", ProgramPath("mpich_spawn_plan")};
    command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
    command.timeout = 30s;
    return RunCommand(command);
  }
};

TEST_F(MpichLibrary, SpawnIsRefusedWithTheReasonOnAllParents) {
  ServeAll();
  const Outcome outcome = RunMpich({"--maxprocs", "2"});
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "failed class=MPI_ERR_SPAWN text=MPI_ERR_SPAWN: MPICH cannot spawn"), 2)
      << outcome.Text();
  EXPECT_EQ(Count(outcome.err, "get_local_upids"), 1) << outcome.err;
}

TEST_F(MpichLibrary, SpawnOfSeveralCommandsIsRefusedAndAborts) {
  ServeAll();
  const Outcome outcome = RunMpich({"--maxprocs", "2,1", "--errors", "fatal"});
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_NE(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.err, HasSubstr("MPI_Comm_spawn_multiple: MPICH cannot spawn"));
}

}  // namespace
}  // namespace msa::support
