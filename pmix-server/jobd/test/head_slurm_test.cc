// Worlds of tasks that Slurm starts, at the head.
#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "head_double.h"

namespace msa::jobd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class HeadSlurm : public HeadDouble {
 protected:
  HeadSlurm() {
    launch.job = JobId(7);
    launch.incarnation = Incarnation(1);
    launch.epoch = Epoch(1);
    launch.mode = wire::JobMode::kAlloc;
    launch.slurms = true;
    launch.members = {Node(0, "cn0", 2), Node(1, "bn0", 4)};
    launch.step.step = wire::kBatchStep;
    launch.step.nspace = "msa.7.1.batch";
    launch.step.cwd = "/";
    head = std::make_unique<Head>(launch, *this);
    head->Start();
    said.clear();
  }
  void Join(std::uint32_t member, std::uint32_t step, std::uint32_t ntasks,
            const std::vector<std::uint32_t>& ranks, const std::string& on_child_failure = "") {
    SlurmJoined joined;
    joined.on_child_failure = on_child_failure;
    joined.step = StepId(step);
    joined.ntasks = ntasks;
    joined.commands = {{{"./prog"}, "/home/ada"}};
    for (const std::uint32_t rank : ranks)
      joined.tasks.push_back({Rank(rank), 0, JobId(7), 1, static_cast<std::int32_t>(100 + rank), 0});
    From(member, joined);
  }
  // A running world of two tasks, one on each member.
  void Run(std::uint32_t step, const std::string& on_child_failure = "") {
    const std::string nspace = fmt::format("msa.7.1.{}", step);
    Join(0, step, 2, {0}, on_child_failure);
    Join(1, step, 2, {1}, on_child_failure);
    Ready(nspace);
    Started(nspace, {0, 1});
    said.clear();
  }
  // The number-th spawn of the job.
  void Spawn(const std::string& parent, std::uint32_t n, std::uint32_t number = 1) {
    SpawnRequest request;
    request.proc = {parent, 0};
    request.apps = {{{"./child"}, {}, "", n, {}, {}}};
    From(0, request, 11);
    Ready(fmt::format("{}.{}", parent, number));
  }
  // One of a single task that runs and is connected.
  void ChildFails(const std::string& child) {
    Started(child, {1});
    From(1, NamespaceConnected{child});
    From(1, TaskEnded{child, {Rank(0), 0, "bn0", 0, SIGKILL, false}, true, false, false, {}});
  }
  // The steps whose tasks were asked to leave.
  std::set<std::string> Ended() {
    std::set<std::string> out;
    for (const NamespaceSignal& signal : Told<NamespaceSignal>(0))
      if (signal.signal == SIGTERM) out.insert(signal.nspace);
    return out;
  }
};

TEST_F(HeadSlurm, AWorldIsRegisteredOnceAllOfItsTasksAreKnown) {
  Join(1, 0, 4, {1, 3});
  EXPECT_THAT(said, IsEmpty());
  Join(0, 0, 4, {0});
  EXPECT_EQ(head->namespaces(), 0u);
  Join(0, 0, 4, {2});
  const auto told = Told<NamespaceRegister>(1);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].spec.nspace, "msa.7.1.0");
  EXPECT_EQ(told[0].spec.step, StepId(0));
  EXPECT_THAT(told[0].spec.rank_member, ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(told[0].nodes, ElementsAre("cn0", "bn0"));
  EXPECT_EQ(told[0].universe, 6u);
  EXPECT_EQ(told[0].spec.cwd, "/home/ada");
  EXPECT_FALSE(told[0].spec.bind);
  Ready("msa.7.1.0");
  ASSERT_THAT(Told<NamespaceStart>(0), SizeIs(1));
  EXPECT_THAT(Told<NamespaceStart>(0)[0].tasks, SizeIs(2));
  EXPECT_FALSE(Told<NamespaceStart>(0)[0].want_stdin);
  EXPECT_EQ(head->slots().free(), 2u);
}

TEST_F(HeadSlurm, AStepThatIsOverAtOnceIsReportedOnceAndAnotherWhenItBeganToo) {
  Run(0);
  End(0, 0, 0, "msa.7.1.0");
  End(1, 1, 0, "msa.7.1.0");
  Advance(Millis(200));
  ASSERT_THAT(ToldController<wire::NamespaceReport>(), SizeIs(1));
  EXPECT_TRUE(ToldController<wire::NamespaceReport>()[0].ended);
  Run(1);
  Advance(Millis(90));
  EXPECT_THAT(ToldController<wire::NamespaceReport>(), SizeIs(1));
  Advance(Millis(20));
  ASSERT_THAT(ToldController<wire::NamespaceReport>(), SizeIs(2));
  EXPECT_FALSE(ToldController<wire::NamespaceReport>()[1].ended);
}

TEST_F(HeadSlurm, ItsSlotsAreFreeAfterItsEndAndALateTaskIsRefused) {
  Run(0);
  End(0, 0, 0, "msa.7.1.0");
  End(1, 1, 3, "msa.7.1.0");
  EXPECT_EQ(head->namespaces(), 0u);
  EXPECT_EQ(head->slots().free(), 6u);
  EXPECT_THAT(Told<NamespaceDeregister>(1), SizeIs(1));
  // How a task ended srun says.
  EXPECT_THAT(Told<SlurmNotice>(0), IsEmpty());
  said.clear();
  Join(1, 0, 2, {1});
  ASSERT_THAT(Told<SlurmRefused>(1), SizeIs(1));
  EXPECT_EQ(Told<SlurmRefused>(1)[0].text, "step 0 has ended");
  EXPECT_THAT(Told<SlurmRefused>(1)[0].ranks, ElementsAre(Rank(1)));
  EXPECT_FALSE(over) << "the job lasts until Slurm ends it";
}

TEST_F(HeadSlurm, ATaskThatFitsNoWorldIsRefusedAndTheOthersGoOn) {
  Join(0, 0, 2, {0});
  Join(1, 0, 3, {1});
  Join(1, 0, 2, {2});
  Join(1, 0, 2, {0});
  const auto refused = Told<SlurmRefused>(1);
  ASSERT_THAT(refused, SizeIs(3));
  EXPECT_THAT(refused[0].text, HasSubstr("counts 3 tasks; expected 2"));
  EXPECT_THAT(refused[1].text, HasSubstr("no task 2"));
  EXPECT_THAT(refused[2].text, HasSubstr("has a task 0 already"));
  Join(1, 0, 2, {1});
  EXPECT_EQ(head->namespaces(), 1u);
  // All of it is there.
  said.clear();
  Join(1, 0, 2, {1});
  ASSERT_THAT(Told<SlurmRefused>(1), SizeIs(1));
  EXPECT_THAT(Told<SlurmRefused>(1)[0].text, HasSubstr("step 0 has all of its tasks already"));
}

TEST_F(HeadSlurm, AStepThatLosesTasksBeforeItIsCompleteIsDroppedOnEveryNode) {
  Join(0, 0, 3, {0, 1});
  From(1, SlurmLost{StepId(0), "bn0: slurmstepd of step 0 is gone"});
  for (const std::uint32_t member : {0u, 1u}) {
    ASSERT_THAT(Told<SlurmRefused>(member), SizeIs(1));
    EXPECT_THAT(Told<SlurmRefused>(member)[0].ranks, IsEmpty());
    EXPECT_EQ(Told<SlurmRefused>(member)[0].text, "step 0 does not start: bn0: slurmstepd of step 0 is gone");
  }
  said.clear();
  Join(1, 0, 3, {2});
  EXPECT_THAT(Told<SlurmRefused>(1), SizeIs(1));
  EXPECT_EQ(head->namespaces(), 0u);
}

TEST_F(HeadSlurm, AStepMayBeLostBeforeItsFirstTaskComes) {
  From(1, SlurmLost{StepId(5), "bn0: slurmstepd of step 5 is gone"});
  EXPECT_THAT(said, IsEmpty());
  Join(0, 5, 2, {0});
  EXPECT_THAT(Told<SlurmRefused>(0), SizeIs(1));
}

TEST_F(HeadSlurm, TheEndOfAStepOnANodeIsNothingToAWorldThatRuns) {
  Run(0);
  End(1, 1, 0, "msa.7.1.0");
  From(1, SlurmLost{StepId(0), "bn0: slurmstepd of step 0 is gone"});
  EXPECT_THAT(Told<SlurmRefused>(0), IsEmpty());
  EXPECT_EQ(head->namespaces(), 1u);
}

TEST_F(HeadSlurm, AMemberThatIsLostTakesTheStepsThatWaitWithIt) {
  Join(1, 0, 2, {1});
  Join(0, 1, 2, {0});
  head->OnMemberLost(1, "bn0 is down");
  Check();
  ASSERT_THAT(Told<SlurmRefused>(0), SizeIs(1));
  EXPECT_EQ(Told<SlurmRefused>(0)[0].step, StepId(0));
  EXPECT_EQ(Told<SlurmRefused>(0)[0].text, "step 0 does not start: bn0 is down");
}

TEST_F(HeadSlurm, TasksThatNeverComeAreNamed) {
  Join(0, 0, 4, {0, 2});
  Advance(Millis(49'000));
  EXPECT_THAT(said, IsEmpty());
  Advance(Millis(1'000));
  ASSERT_THAT(Told<SlurmRefused>(0), SizeIs(1));
  EXPECT_THAT(Told<SlurmRefused>(0)[0].text, HasSubstr("within 50 s 2 of 4 tasks have come; missing: 1,3"));
}

TEST_F(HeadSlurm, AnAbortEndsOneOfTwoStepsAndTellsItsRankZero) {
  Run(0);
  Run(1);
  From(1, AbortRequest{{"msa.7.1.1", 1}, 3, {}, {}});
  const auto notices = Told<SlurmNotice>(0);
  ASSERT_THAT(notices, SizeIs(1));
  EXPECT_EQ(notices[0].nspace, "msa.7.1.1");
  EXPECT_EQ(notices[0].text, "step 1 is aborted by task 1 with code 3");
  EXPECT_THAT(Told<SlurmNotice>(1), IsEmpty());
  const auto signals = Told<NamespaceSignal>(1);
  ASSERT_FALSE(signals.empty());
  for (const auto& signal : signals) EXPECT_EQ(signal.nspace, "msa.7.1.1");
  EXPECT_EQ(signals[0].signal, SIGTERM);
  EXPECT_EQ(signals[0].exit_code, 3) << "its tasks are to leave with it";
  End(0, 0, 0, "msa.7.1.1");
  End(1, 1, 3, "msa.7.1.1");
  EXPECT_EQ(head->namespaces(), 1u);
}

TEST_F(HeadSlurm, AnAbortWithCodeZeroIsAFailureAllTheSame) {
  Run(0);
  From(1, AbortRequest{{"msa.7.1.0", 1}, 0, {}, {}});
  EXPECT_EQ(Told<NamespaceSignal>(0).at(0).exit_code, 1);
}

TEST_F(HeadSlurm, TheOthersLeaveWithTheCodeOfTheTaskThatFailed) {
  Run(0);
  From(1, TaskEnded{"msa.7.1.0", {Rank(1), 0, "bn0", 17, 0, false}, true, false, false, {}});
  EXPECT_EQ(Told<NamespaceSignal>(0).at(0).exit_code, 17);
  Run(1);
  said.clear();
  From(1, TaskEnded{"msa.7.1.1", {Rank(1), 0, "bn0", 0, SIGSEGV, false}, true, false, false, {}});
  EXPECT_EQ(Told<NamespaceSignal>(0).at(0).exit_code, 139);
  Run(2);
  said.clear();
  From(1, TaskEnded{"msa.7.1.2", {Rank(1), 0, "bn0", 0, 0, false}, true, false, false, {}});
  EXPECT_EQ(Told<NamespaceSignal>(0).at(0).exit_code, 1) << "it left its world with 0";
}

TEST_F(HeadSlurm, ACancelledJobsTasksAreOrderedNoCode) {
  Run(0);
  head->Cancel({wire::JobState::kCancelled, 1000, "cancelled by ada"});
  EXPECT_EQ(Told<NamespaceSignal>(0).at(0).signal, SIGTERM);
  EXPECT_EQ(Told<NamespaceSignal>(0).at(0).exit_code, 0);
}

TEST_F(HeadSlurm, ANodeThatIsLostOrdersNoCode) {
  Run(0);
  head->OnMemberLost(1, "bn0 is down");
  EXPECT_EQ(Told<NamespaceSignal>(0).at(0).exit_code, 0);
}

TEST_F(HeadSlurm, CancelRefusesWhatWaits) {
  Join(0, 0, 2, {0});
  head->Cancel({wire::JobState::kCancelled, 0, "cancelled by ada"});
  ASSERT_THAT(Told<SlurmRefused>(0), SizeIs(1));
  EXPECT_THAT(Told<SlurmRefused>(0)[0].text, HasSubstr("cancelled by ada"));
  said.clear();
  Join(1, 0, 2, {1});
  EXPECT_THAT(Told<SlurmRefused>(1)[0].text, HasSubstr("job 7 is ending"));
}

// ---- children

TEST_F(HeadSlurm, ChildrenInAPlainJobAreItsOwnOneSrun) {
  Run(0);
  Spawn("msa.7.1.0", 3);
  const auto orders = Told<SrunStart>(0);
  ASSERT_THAT(orders, SizeIs(1));
  EXPECT_EQ(orders[0].job, JobId(7));
  EXPECT_EQ(orders[0].het_group, -1);
  EXPECT_THAT(orders[0].hosts, ElementsAre("cn0", "bn0", "bn0"));
  EXPECT_EQ(orders[0].streams, "msa.7.1.0");
}

TEST_F(HeadSlurm, AChildsFailureIsLeftToItsParentInTheStepsThatWantSo) {
  Run(0, "kill");
  Run(1, "event");
  Spawn("msa.7.1.0", 1);
  Spawn("msa.7.1.1", 1, 2);
  ChildFails("msa.7.1.0.1");
  ChildFails("msa.7.1.1.2");
  std::set<std::string> told;
  for (const NamespaceEvent& event : Told<NamespaceEvent>(0))
    told.insert(event.targets.begin(), event.targets.end());
  EXPECT_TRUE(told.contains("msa.7.1.0") && told.contains("msa.7.1.1")) << "both parents are told";
  Advance(Millis(60'000));
  EXPECT_EQ(Ended(), (std::set<std::string>{"msa.7.1.0"}));
}

TEST_F(HeadSlurm, AStepOfAPluginThatDoesNotSayHasTheJobsWayWithAChildsFailure) {
  launch.step.on_child_failure = wire::OnChildFailure::kEvent;
  timers.clear();  // of the head that goes
  head = std::make_unique<Head>(launch, *this);
  head->Start();
  Run(0);
  Run(1, "kill");
  Spawn("msa.7.1.0", 1);
  Spawn("msa.7.1.1", 1, 2);
  ChildFails("msa.7.1.0.1");
  ChildFails("msa.7.1.1.2");
  Advance(Millis(60'000));
  EXPECT_EQ(Ended(), (std::set<std::string>{"msa.7.1.1"}));
}

TEST_F(HeadSlurm, ChildrenOfAHeterogeneousJobAreOfTheLeadersComponents) {
  SlurmJoined joined{StepId(0), 2, {{{"./prog"}, "/"}}, {{Rank(0), 0, JobId(7), 1, 100, 0}}};
  From(0, joined);
  joined.tasks = {{Rank(1), 0, JobId(8), 1, 101, 0}};
  From(1, joined);
  Ready("msa.7.1.0");
  Started("msa.7.1.0", {0, 1});
  said.clear();
  Spawn("msa.7.1.0", 4);
  const auto orders = Told<SrunStart>(0);
  ASSERT_THAT(orders, SizeIs(2));
  EXPECT_EQ(orders[0].job, JobId(7));
  EXPECT_EQ(orders[0].het_group, 0);
  EXPECT_THAT(orders[0].hosts, ElementsAre("cn0"));
  EXPECT_EQ(orders[1].job, JobId(7));
  EXPECT_EQ(orders[1].het_group, 1);
  EXPECT_THAT(orders[1].hosts, ElementsAre("bn0", "bn0", "bn0"));
}

TEST_F(HeadSlurm, ASpawnThatFailsInOnePartEndsTheSrunsOfAll) {
  SlurmJoined joined{StepId(0), 2, {{{"./prog"}, "/"}}, {{Rank(0), 0, JobId(7), 1, 100, 0}}};
  From(0, joined);
  joined.tasks = {{Rank(1), 0, JobId(8), 1, 101, 0}};
  From(1, joined);
  Ready("msa.7.1.0");
  Started("msa.7.1.0", {0, 1});
  Spawn("msa.7.1.0", 2);
  ASSERT_THAT(Told<SrunStart>(0), SizeIs(2));
  said.clear();
  // The end of one srun is for its part.
  From(0, SrunEnded{"msa.7.1.0.1", 1, 1, "no"});
  ASSERT_THAT(Told<SlurmNoMore>(0), SizeIs(1));
  EXPECT_EQ(Told<SlurmNoMore>(0)[0].part, 1u);
  said.clear();
  From(1, TasksStarted{"msa.7.1.0.1", 0, {{Rank(1), 125, "no"}}, {}});
  EXPECT_THAT(Told<SlurmNoMore>(0), SizeIs(2));
}

TEST_F(HeadSlurm, OfTwoComponentsOnANodeTheCoresSayWhoseChildrenTheyAre) {
  FromController(wire::MembersChanged{Epoch(2), {Node(0, "cn0", 4), Node(1, "bn0", 4)}, {}});
  wire::GrantAnswer own;
  own.slurm_job = JobId(7);
  own.shares = {{0, {0, 1}}, {1, {0, 1, 2, 3}}};
  FromController(own);
  own.slurm_job = JobId(8);
  own.shares = {{0, {2, 3}}};
  FromController(own);
  // The last that is heard of is of the other component.
  From(0, SlurmJoined{StepId(0), 1, {{{"./prog"}, "/"}}, {{Rank(0), 0, JobId(8), 1, 100, 0}}});
  Ready("msa.7.1.0");
  Started("msa.7.1.0", {0});
  said.clear();
  Spawn("msa.7.1.0", 3);
  const auto orders = Told<SrunStart>(0);
  ASSERT_THAT(orders, SizeIs(2));
  EXPECT_EQ(orders[0].het_group, 0);
  EXPECT_THAT(orders[0].hosts, ElementsAre("cn0"));
  EXPECT_EQ(orders[1].het_group, 1);
  EXPECT_THAT(orders[1].hosts, ElementsAre("cn0", "cn0"));
}

TEST_F(HeadSlurm, AnEnvironmentTellsOfComponentsThatHaveNoStep) {
  SlurmTask task{Rank(0), 0, JobId(7), 1, 100, 0};
  task.het = true;
  From(0, SlurmJoined{StepId(0), 1, {{{"./prog"}, "/"}}, {task}});
  Ready("msa.7.1.0");
  Started("msa.7.1.0", {0});
  said.clear();
  Spawn("msa.7.1.0", 1);
  ASSERT_THAT(Told<SrunStart>(0), SizeIs(1));
  EXPECT_EQ(Told<SrunStart>(0)[0].het_group, 0);
}

TEST_F(HeadSlurm, NodesOfAnotherComponentThatTheControllerHasFoundAreUsed) {
  Run(0);
  SpawnRequest request;
  request.proc = {"msa.7.1.0", 0};
  request.apps = {{{"./child"}, {}, "", 6, {}, {}}};
  From(0, request, 11);
  const auto asks = ToldController<wire::GrantAsk>();
  ASSERT_THAT(asks, SizeIs(1));
  joined.insert(2);
  FromController(
      wire::MembersChanged{Epoch(2), {Node(0, "cn0", 2), Node(1, "bn0", 4), Node(2, "dn0", 2)}, {}});
  wire::GrantAnswer found;
  found.slurm_job = JobId(8);
  found.shares = {{2, {0, 1}}};
  FromController(found);
  wire::GrantAnswer again;
  again.request = asks[0].request;
  FromController(again);
  ASSERT_THAT(Told<NamespaceRegister>(2), SizeIs(1));
  EXPECT_THAT(ToldController<wire::GrantAsk>(), SizeIs(1));
  From(2, NamespaceReady{"msa.7.1.0.1", {}});
  Ready("msa.7.1.0.1");
  const auto orders = Told<SrunStart>(0);
  ASSERT_THAT(orders, SizeIs(2));
  EXPECT_EQ(orders[1].het_group, 1);
  EXPECT_THAT(orders[1].hosts, ElementsAre("dn0", "dn0"));
}

TEST_F(HeadSlurm, WhatIsStillShortOfTheJobsOwnNodesIsAskedForAgain) {
  Run(0);
  SpawnRequest request;
  request.proc = {"msa.7.1.0", 0};
  request.apps = {{{"./child"}, {}, "", 6, {}, {}}};
  From(0, request, 11);
  wire::GrantAnswer again;
  again.request = ToldController<wire::GrantAsk>().at(0).request;
  FromController(again);
  const auto asks = ToldController<wire::GrantAsk>();
  ASSERT_THAT(asks, SizeIs(2));
  EXPECT_EQ(asks[1].request, asks[0].request);
  FromController(wire::GrantAnswer{asks[1].request, GrantId(0), Epoch(1), {}, "Slurm says no"});
  EXPECT_THAT(Told<SpawnReply>(0), SizeIs(1));
}

TEST_F(HeadSlurm, MsactlStartsNoStepInAJobOfSlurm) {
  wire::StepOpen open;
  open.token = "t";
  FromClient(1, open);
  const auto ends = ToldClient<wire::SessionEnd>(1);
  ASSERT_THAT(ends, SizeIs(1));
  EXPECT_THAT(ends[0].message, HasSubstr("use srun --jobid=7"));
}

TEST(HeadWithoutSlurm, TasksOfSlurmHaveNoPlaceInAJobOfMsas) {
  class Plain : public HeadDouble {
    void TestBody() override {}
  } plain;
  plain.Begin({0, 1});
  SlurmJoined joined{StepId(0), 1, {{{"./prog"}, "/"}}, {{Rank(0), 0, JobId(7), 1, 5, 0}}};
  plain.From(1, joined);
  ASSERT_THAT(plain.Told<SlurmRefused>(1), SizeIs(1));
  EXPECT_THAT(plain.Told<SlurmRefused>(1)[0].text, HasSubstr("job 7 is not Slurm's"));
}

}  // namespace
}  // namespace msa::jobd
