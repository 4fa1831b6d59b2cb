// Grants and spawned namespaces as msactl shows and releases them, with real daemons and real Open MPI.
#include "shared_cluster.h"

namespace msa::e2e {
namespace {

// cn[0-1] of 4 cores (module cluster), bn[0-1] of 8 (booster), dn0 of 4 (dam).
class Grants : public SharedCluster {
 protected:
  // Parents on the cluster, children on the booster that stay until they are told to go.
  static Command Family(std::vector<std::string> options, std::vector<std::string> spawn) {
    options.insert(options.begin(), {"run", "-m", "cluster", "-n", "1"});
    options.push_back(ProgramPath("mpi_spawn_plan"));
    spawn.insert(spawn.begin(), {"--maxprocs", "2", "--info", "arch=booster", "--stay", StopFile()});
    options.insert(options.end(), spawn.begin(), spawn.end());
    return cluster_->Msactl(options);
  }
  static std::string StopFile() { return cluster_->scratch().path() + "/go"; }
  static void Go() { cluster_->scratch().Write("go", ""); }
  static std::vector<Json> List(std::vector<std::string> arguments) {
    return cluster_->Query(std::move(arguments))["items"].list();
  }
  static std::vector<Json> Allocs() { return List({"alloc", "list"}); }
  // One, in this state.
  static bool OneIs(const std::string& state) {
    const std::vector<Json> allocs = Allocs();
    return allocs.size() == 1 && allocs[0]["state"].text() == state;
  }
  static bool Held() { return OneIs("HELD"); }
  // Until the spawned namespace runs, too.
  static bool Runs() { return Held() && List({"spawn", "list"}).size() == 1; }

  void TearDown() override {
    if (cluster_ != nullptr) Go();
    SharedCluster::TearDown();
    if (cluster_ != nullptr) ::unlink(StopFile().c_str());
  }
};

TEST_F(Grants, AreListedShownAndDrawnWhileChildrenRun) {
  Process family(Family({"-J", "family"}, {}));
  ASSERT_TRUE(Eventually(60s, "the children run", [] { return Runs(); })) << family.err();
  const Json grant = Allocs()[0];
  EXPECT_EQ(grant["slots"].text(), "2");
  EXPECT_EQ(grant["module"].text(), "booster");
  const std::string job = grant["job"].text();
  const Json spawn = List({"spawn", "list", job})[0];
  EXPECT_EQ(spawn["parent"].text(), "msa." + job + ".1.0");
  EXPECT_EQ(spawn["name"].text(), "msa." + job + ".1.0.1");
  EXPECT_EQ(spawn["state"].text(), "RUNNING");
  EXPECT_EQ(spawn["size"].text(), "2");
  EXPECT_EQ(spawn["modules"].list().at(0).text(), "booster");
  EXPECT_EQ(spawn["grants"].list().at(0).text(), grant["id"].text());
  EXPECT_EQ(grant["namespaces"].list().at(0).text(), spawn["name"].text());
  const Outcome shown = Run({"alloc", "show", grant["id"].text()});
  EXPECT_EQ(shown.code, 0) << shown.Text();
  EXPECT_THAT(shown.out, AllOf(HasSubstr("state:      HELD"), HasSubstr("bn0 (booster)  cores 0-1"),
                               HasSubstr(spawn["name"].text())));
  // The tree of the job.
  EXPECT_THAT(Run({"job", "show", job}).out,
              AllOf(HasSubstr("namespaces:  msa." + job + ".1.0  "),
                    HasSubstr("               msa." + job + ".1.0.1  "),
                    HasSubstr("2 tasks on bn0  running, grant " + grant["id"].text())));
  Go();
  EXPECT_EQ(family.Wait().code, 0);
  EXPECT_TRUE(Eventually(30s, "the job has given all back", [] { return Allocs().empty(); }));
  const auto ended = List({"spawn", "list", job});
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0]["state"].text(), "ENDED");
  EXPECT_EQ(ended[0]["exit_code"].text(), "0");
  EXPECT_TRUE(List({"spawn", "list"}).empty());
}

TEST_F(Grants, ASpawnThatWaitsIsListedWithItsReason) {
  const std::string holder = Detach({"-m", "booster", "-N", "2", "-n", "2", "--exclusive", "sleep", "600"});
  ASSERT_TRUE(Eventually(30s, "the booster is taken", [&] { return JobIsIn(holder, "RUNNING"); }));
  Process family(Family({"-J", "waiter"}, {"--info", "msa_wait=5m"}));
  ASSERT_TRUE(Eventually(60s, "it waits", [] { return OneIs("WAITING"); })) << family.err();
  const Json waiting = Allocs()[0];
  EXPECT_TRUE(waiting["id"].is_null());
  EXPECT_FALSE(waiting["until"].is_null());
  EXPECT_THAT(waiting["reason"].text(), HasSubstr("2 slots asked in module 'booster'"));
  EXPECT_THAT(Run({"alloc", "list"}).out, AllOf(HasSubstr("WAITING"), HasSubstr("2 slots asked")));
  EXPECT_EQ(Run({"job", "cancel", holder}).code, 0);
  ASSERT_TRUE(Eventually(60s, "it is lent", [] { return Held(); }));
  Go();
  EXPECT_EQ(family.Wait().code, 0);
}

TEST_F(Grants, ForceEndsTheChildrenAndGivesTheNodesBack) {
  Process family(Family({"-J", "forced", "--on-child-failure=event"}, {"--parent-waits"}));
  ASSERT_TRUE(Eventually(60s, "the children run", [] { return Runs(); })) << family.err();
  ASSERT_TRUE(family.ReadUntilText("parent 0: ok", 60s)) << "they have connected\n" << family.err();
  const Json grant = Allocs()[0];
  const std::string id = grant["id"].text();
  const Outcome refused = Run({"alloc", "release", id});
  EXPECT_EQ(refused.code, 7) << refused.Text();
  EXPECT_THAT(refused.err, AllOf(HasSubstr("in use by msa."), HasSubstr("--force")));
  EXPECT_TRUE(Held());
  const Outcome released = Run({"alloc", "release", "--force", id});
  EXPECT_EQ(released.code, 0) << released.Text();
  EXPECT_THAT(released.out, HasSubstr("grant " + id + " of job " + grant["job"].text()));
  ASSERT_TRUE(Eventually(30s, "the children are gone", [] { return List({"spawn", "list"}).empty(); }));
  ASSERT_TRUE(Eventually(30s, "the nodes are back", [] { return Allocs().empty(); }));
  EXPECT_EQ(cluster_->SlotsUsed(), 1) << "the parent's";
  const auto all = List({"alloc", "list", "-a"});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0]["state"].text(), "RELEASED");
  EXPECT_EQ(Run({"alloc", "release", id}).code, 7);
  EXPECT_TRUE(JobIsIn(grant["job"].text(), "RUNNING")) << "its parent was told by an event";
  Go();
  const Outcome outcome = family.Wait();
  EXPECT_THAT(outcome.err, HasSubstr("grant " + id + " is released by "));
}

TEST_F(Grants, WithoutEventsAForcedReleaseEndsTheParentToo) {
  Process family(Family({"-J", "family"}, {"--parent-waits"}));
  ASSERT_TRUE(Eventually(60s, "the children run", [] { return Runs(); })) << family.err();
  ASSERT_TRUE(family.ReadUntilText("parent 0: ok", 60s)) << "they have connected\n" << family.err();
  EXPECT_EQ(Run({"alloc", "release", "--force", Allocs()[0]["id"].text()}).code, 0);
  const Outcome outcome = family.Wait();
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("step 0 is ended: spawn 1, which it is connected to, failed"));
}

TEST_F(Grants, BadIdsAreRefusedWithAText) {
  for (const char* verb : {"show", "release"}) {
    const Outcome outcome = Run({"alloc", verb, "99999"});
    EXPECT_EQ(outcome.code, 3) << outcome.Text();
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("grant 99999"), HasSubstr("msactl alloc list")));
    EXPECT_EQ(Run({"alloc", verb, "x7"}).code, 2);
    EXPECT_EQ(Run({"alloc", verb}).code, 2);
  }
  for (const char* noun : {"alloc", "spawn"}) {
    const Outcome outcome = Run({noun, "list", "99999"});
    EXPECT_EQ(outcome.code, 3) << outcome.Text();
    EXPECT_THAT(outcome.err, HasSubstr("job 99999"));
  }
  EXPECT_EQ(Run({"alloc", "list"}).out, "no grants\n");
  EXPECT_EQ(Run({"spawn", "list"}).out, "no spawned processes\n");
}

}  // namespace
}  // namespace msa::e2e
