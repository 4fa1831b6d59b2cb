// MPI_Comm_spawn with arch, soft and the keys of msa, through libmsampi, real daemons and real Open MPI.
#include <signal.h>

#include "shared_cluster.h"

namespace msa::e2e {
namespace {

// cn[0-1] of 4 cores (module cluster), bn[0-1] of 8 (booster), dn0 of 4 (dam).
class Spawn : public SharedCluster {
 protected:
  static int Count(const std::string& text, const std::string& what) {
    int count = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
    return count;
  }
  // mpi_spawn: children say where they run, both sides exchange data.
  static Outcome Whole(std::vector<std::string> place, std::vector<std::string> options) {
    return Start(std::move(place), ProgramPath("mpi_spawn"), std::move(options));
  }
  // mpi_spawn_plan: parents say what came of it.
  static Outcome Plan(std::vector<std::string> place, std::vector<std::string> options) {
    return Start(std::move(place), ProgramPath("mpi_spawn_plan"), std::move(options));
  }
  static std::vector<std::string> Line(std::vector<std::string> place, const std::string& program,
                                       std::vector<std::string> options) {
    place.insert(place.begin(), "run");
    place.push_back(program);
    place.insert(place.end(), options.begin(), options.end());
    return place;
  }
  static Outcome Start(std::vector<std::string> place, const std::string& program,
                       std::vector<std::string> options) {
    return Run(Line(std::move(place), program, std::move(options)), 90s);
  }
  // A field of the active job of that name; empty: there is none.
  static std::string FieldOf(const std::string& name, const char* field) {
    const Json jobs = cluster_->Query({"job", "list"});
    for (const Json& job : jobs["items"].list())
      if (job["name"].text() == name) return job[field].text();
    return "";
  }
  static bool IsRunning(const std::string& name) { return FieldOf(name, "state") == "RUNNING"; }

  // Takes the whole booster until it goes.
  class BoosterHolder {
   public:
    BoosterHolder() : id_(Detach({"-m", "booster", "-N", "2", "-n", "2", "--exclusive", "sleep", "600"})) {
      EXPECT_TRUE(Eventually(30s, "the booster is taken", [&] { return JobIsIn(id_, "RUNNING"); }));
    }
    ~BoosterHolder() { Free(); }
    void Free() {
      if (id_.empty()) return;
      EXPECT_EQ(Run({"job", "cancel", id_}).code, 0);
      id_.clear();
    }

   private:
    std::string id_;
  };

  const std::vector<std::string> two_ = {"-m", "cluster", "-n", "2"};
};

TEST_F(Spawn, ArchNamesTheModuleThatTheChildrenRunOn) {
  for (const char* module : {"booster", "dam", "cluster"}) {
    const Outcome outcome = Whole(two_, {"--children", "2", "--info", std::string("arch=") + module});
    ASSERT_EQ(outcome.code, 0) << outcome.Text();
    EXPECT_EQ(Count(outcome.out, std::string("module=") + module), 2) << outcome.out;
  }
  const Outcome back = Whole({"-m", "booster", "-n", "2"}, {"--children", "2", "--info", "arch=cluster"});
  ASSERT_EQ(back.code, 0) << back.Text();
  EXPECT_EQ(Count(back.out, "module=cluster"), 2) << back.out;
}

TEST_F(Spawn, SoftStartsTheLargestMemberThatFits) {
  // The booster has 16 cores: of 4, 12 and 20 it is 12.
  const Outcome outcome = Plan(two_, {"--maxprocs", "20", "--info", "arch=booster", "--info", "soft=4:20:8"});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "child rank="), 12) << outcome.out;
  EXPECT_EQ(Count(outcome.out, "ok remote=12 inter=1"), 2) << outcome.out;
  EXPECT_EQ(Count(outcome.out, "MPI_ERR_SPAWN"), 2 * 8) << outcome.out;
}

TEST_F(Spawn, SoftWithZeroGivesAnEmptyRemoteGroup) {
  const Outcome outcome = Plan(two_, {"--maxprocs", "40", "--info", "arch=booster", "--info", "soft=0,40"});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "ok remote=0 inter=1"), 2) << outcome.out;
}

TEST_F(Spawn, SpreadsOverTheNodesThatWereAskedFor) {
  const Outcome outcome = Whole(
      two_, {"--children", "4", "--info", "arch=booster", "--info", "msa_nodes=2", "--info", "msa_ppn=2"});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "node=bn0"), 2) << outcome.out;
  EXPECT_EQ(Count(outcome.out, "node=bn1"), 2) << outcome.out;
}

TEST_F(Spawn, RefusesWhatCannotBeStartedOnAllParents) {
  const Outcome outcome = Plan(two_, {"--maxprocs", "40", "--info", "arch=booster"});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "failed class=MPI_ERR_SPAWN text=MPI_ERR_SPAWN: "), 2) << outcome.out;
  EXPECT_EQ(Count(outcome.err, "msa: MPI_Comm_spawn: "), 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("40"));
}

TEST_F(Spawn, RefusesBadInfoValuesOnAllParents) {
  for (const char* bad : {"soft=1:2:0", "soft=abc", "soft=1:", "soft=-3:-1", "msa_wait=soon", "msa_nodes=x",
                          "msa_ppn=0", "arch=bosster"}) {
    const Outcome outcome = Plan(two_, {"--maxprocs", "2", "--info", bad});
    ASSERT_EQ(outcome.code, 0) << bad << outcome.Text();
    EXPECT_EQ(Count(outcome.out, "failed class=MPI_ERR_"), 2) << bad << outcome.out;
    EXPECT_EQ(Count(outcome.out, "child rank="), 0) << bad << outcome.out;
  }
}

TEST_F(Spawn, RefusesPathsThatAreNotThereBeforeAnythingStarts) {
  const Outcome outcome = Plan(two_, {"--maxprocs", "2", "--info", "wdir=/no/such/dir"});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "failed class=MPI_ERR_SPAWN"), 2) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr("/no/such/dir"));
}

TEST_F(Spawn, NamesUnknownKeysOnce) {
  const Outcome outcome = Plan(two_, {"--maxprocs", "1", "--times", "2", "--info", "msa_colour=red"});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "ok remote=1"), 4) << outcome.out;
  EXPECT_EQ(Count(outcome.err, "msa_colour"), 1) << outcome.err;
}

TEST_F(Spawn, SeveralCommandsStartTogetherOrNotAtAll) {
  const Outcome some = Plan(two_, {"--maxprocs", "2,1", "--info", "arch=booster"});
  ASSERT_EQ(some.code, 0) << some.Text();
  EXPECT_EQ(Count(some.out, "ok remote=3 inter=1 codes=0,0,0"), 2) << some.out;
  const Outcome none = Plan(two_, {"--maxprocs", "2,40", "--info", "arch=booster"});
  EXPECT_EQ(Count(none.out, "failed class=MPI_ERR_SPAWN"), 2) << none.Text();
  EXPECT_EQ(Count(none.out, "child rank="), 0) << none.out;
}

TEST_F(Spawn, AChildThatDiesBeforeItConnectsFailsAllParents) {
  const Outcome outcome = Plan({"-m", "cluster", "-n", "3"}, {"--maxprocs", "2", "--child-dies"});
  EXPECT_FALSE(outcome.timed_out) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "failed class=MPI_ERR_SPAWN"), 3) << outcome.Text();
}

TEST_F(Spawn, WaitsForNodesAndTakesThemWhenTheyCome) {
  BoosterHolder holder;
  Process process(
      cluster_->Msactl(Line({"-J", "waiter", "-m", "cluster", "-n", "2"}, ProgramPath("mpi_spawn_plan"),
                            {"--maxprocs", "2", "--info", "arch=booster", "--info", "msa_wait=60"})));
  ASSERT_TRUE(Eventually(30s, "it runs", [&] { return IsRunning("waiter"); }));
  EXPECT_FALSE(process.ReadUntilText("parent", 2s)) << process.out();
  holder.Free();
  const Outcome outcome = process.Wait();
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "ok remote=2"), 2) << outcome.Text();
}

TEST_F(Spawn, RefusesWhenTheWaitIsOver) {
  BoosterHolder holder;
  const Outcome outcome = Plan(two_, {"--maxprocs", "2", "--info", "arch=booster", "--info", "msa_wait=1"});
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "failed class=MPI_ERR_SPAWN"), 2) << outcome.Text();
  EXPECT_GE(outcome.wall, 1s);
}

TEST_F(Spawn, ACancelledJobStopsWaiting) {
  BoosterHolder holder;
  Process process(
      cluster_->Msactl(Line({"-J", "waiter", "-m", "cluster", "-n", "2"}, ProgramPath("mpi_spawn_plan"),
                            {"--maxprocs", "2", "--info", "arch=booster", "--info", "msa_wait=10m"})));
  ASSERT_TRUE(Eventually(30s, "it runs", [&] { return IsRunning("waiter"); }));
  EXPECT_EQ(Run({"job", "cancel", FieldOf("waiter", "id")}).code, 0);
  EXPECT_NE(process.Wait().code, 0);
}

TEST_F(Spawn, WorksFromFortranAndPython) {
  const char* expected = "8 of 8 children started, their ranks add up to 28";
  EXPECT_THAT(Start(two_, ProgramPath("spawn_soft"), {}).out, HasSubstr(expected));
  EXPECT_THAT(Start(two_, ProgramPath("spawn_soft_f"), {}).out, HasSubstr(expected));
  const Outcome python = Start(two_, "/usr/bin/python3", {MSA_EXAMPLES "/spawn_soft.py"});
  EXPECT_THAT(python.out, HasSubstr(expected)) << python.Text();
  EXPECT_EQ(Count(python.out, "runs on module booster"), 8) << python.out;
  EXPECT_THAT(Start(two_, ProgramPath("mpi_spawn_mpifh"), {}).out, HasSubstr("fortran: 2 of 3, remote 2"));
}

TEST_F(Spawn, TwoThreadsSpawnAtOnce) {
  const Outcome outcome = Start(two_, ProgramPath("mpi_spawn_threads"), {"2"});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("thread 0: 2 children"), HasSubstr("thread 1: 4 children")));
}

TEST_F(Spawn, SpawnsFromSpawnedProcessesOnAnotherModule) {
  const Outcome outcome =
      Whole({"-m", "booster", "-n", "1"}, {"--children", "1", "--depth", "3", "--info", "arch=cluster"});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  for (const char* depth : {"depth=2", "depth=1", "depth=0"})
    EXPECT_EQ(Count(outcome.out, depth), 1) << outcome.out;
}

TEST_F(Spawn, WithoutTheLibrarySpawnsAreOpenMpisOwn) {
  const Outcome outcome =
      Plan({"--no-mpi-library", "-m", "cluster", "-n", "1"}, {"--maxprocs", "1", "--info", "arch=booster"});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(Count(outcome.out, "ok remote=1"), 1) << outcome.out;
}

}  // namespace
}  // namespace msa::e2e
