#include "harness.h"

namespace msa {
namespace {

using namespace job_test;

class ControllerFault : public ::testing::Test {
 protected:
  ControllerFault() {
    h.RegisterAll();
    h.Clear();
  }
  NodeState StateOf(const std::string& node) { return (*h.controller().ListNodes("", {node}))[0].state; }
  void Lose(const std::string& node) {
    h.On(event::NodeLost{node, h.sessions[node]});
    h.sessions.erase(node);
  }
  static JobdInfo Jobd(JobId id, std::uint32_t member, bool head) {
    return {id, Incarnation(1), member, head, false};
  }
  Harness h;
};

TEST_F(ControllerFault, ABrokenSessionCostsNothingWhenTheNodeComesBack) {
  const JobId id = h.MustRun(Harness::Spec("dam", 1));
  Lose("dn0");
  h.Live(Millis(5000));
  EXPECT_EQ(StateOf("dn0"), NodeState::kUp);
  EXPECT_EQ(h.State(h.MustSubmit(Harness::Spec("dam", 1))), JobState::kPending)
      << "nothing starts on it meanwhile";
  h.Register("dn0", {Jobd(id, 0, true)});
  h.Live(Millis(20000));
  EXPECT_EQ(h.State(id), JobState::kRunning);
}

TEST_F(ControllerFault, ANodeThatStaysAwayIsDownWithTheReasonAndItsJobsEnd) {
  const JobId id = h.MustRun(Harness::Spec("booster", 2, 2));
  Lose("bn0");
  h.Clear();
  h.Live(Millis(11000));
  EXPECT_EQ(StateOf("bn0"), NodeState::kDown);
  EXPECT_EQ(h.State(id), JobState::kNodeFail);
  EXPECT_EQ(h.Reason(id), "node bn0 is down: msa-noded went away and did not come back for 10 s");
  EXPECT_EQ(h.QuitNodes().front(), "bn0");
  EXPECT_EQ(h.CoresUsed(), 0u);
}

TEST_F(ControllerFault, ASilentNodeIsDownAndItsSessionClosed) {
  h.sessions.erase("dn0");
  h.Clear();
  h.Live(Millis(11000));
  EXPECT_EQ(StateOf("dn0"), NodeState::kDown);
  EXPECT_EQ(StateOf("cn0"), NodeState::kUp);
  EXPECT_EQ(h.Sent<effect::CloseSession>().size(), 1u);
  h.Register("dn0");
  EXPECT_EQ(StateOf("dn0"), NodeState::kUp);
}

TEST_F(ControllerFault, LosingAMemberBesidesTheHeadEndsTheJobThroughTheHead) {
  const JobId id = h.MustRun(Harness::Spec("booster", 2, 2));
  Lose("bn1");
  h.Clear();
  h.Live(Millis(11000));
  EXPECT_EQ(h.State(id), JobState::kEnding);
  ASSERT_EQ(h.ToJobd<wire::CancelJob>("bn0").size(), 1u);
  EXPECT_EQ(h.ToJobd<wire::CancelJob>("bn0")[0].final_state, JobState::kNodeFail);
  const auto changed = h.ToJobd<wire::MembersChanged>("bn0");
  ASSERT_FALSE(changed.empty());
  EXPECT_EQ(changed[0].members.size(), 1u);
  EXPECT_NE(changed[0].reason.find("bn1"), std::string::npos);
  h.End(id, JobState::kNodeFail, 137);
  EXPECT_EQ(h.State(id), JobState::kNodeFail);
}

TEST_F(ControllerFault, TheDeathOfTheHeadsJobDaemonEndsItsJobAndNothingElse) {
  const JobId id = h.MustRun(Harness::Spec("booster", 2, 2));
  const JobId other = h.MustRun(Harness::Spec("booster", 2, 2));
  h.Clear();
  h.On(event::JobdGone{"bn0", id, Incarnation(1),
                       "job daemon of job 1 on bn0 was killed by signal 9 (Killed)", false});
  EXPECT_TRUE(IsFinal(h.State(id)));
  EXPECT_NE(h.State(id), JobState::kCompleted);
  EXPECT_EQ(h.Reason(id), "job daemon of job 1 on bn0 was killed by signal 9 (Killed)");
  EXPECT_NE(h.QuitNodes(), std::vector<std::string>{});
  EXPECT_EQ(h.State(other), JobState::kRunning);
}

TEST_F(ControllerFault, AJobDaemonThatLeavesInOrderCostsNothing) {
  const JobId id = h.MustRun(Harness::Spec("cluster", 1));
  h.End(id);
  h.On(event::JobdGone{"cn0", id, Incarnation(1), "", true});
  EXPECT_EQ(h.State(id), JobState::kCompleted);
}

TEST_F(ControllerFault, AMemberThatCannotGoOnEndsTheJobWithItsReason) {
  const JobId id = h.MustSubmit(Harness::Spec("booster", 2, 2));
  h.On(event::FromJobd{"bn1", id, Incarnation(1), wire::MemberFailed{1, "cannot reach the head"}});
  EXPECT_EQ(h.State(id), JobState::kEnding);
  EXPECT_EQ(h.Reason(id), "cannot reach the head");
}

TEST_F(ControllerFault, ALaunchThatWasNotDeliveredIsSentAgain) {
  const JobId id = h.MustSubmit(Harness::Spec("dam", 1));
  Lose("dn0");
  h.Clear();
  h.Register("dn0");
  h.Live(Millis(3000));
  ASSERT_EQ(h.Sent<effect::SendStartJob>().size(), 1u);
  EXPECT_TRUE(h.Sent<effect::SendStartJob>()[0].launch->has_step);
  EXPECT_EQ(h.State(id), JobState::kStarting);
}

TEST_F(ControllerFault, ALaunchThatANodeLostIsSentAgainToThatNodeAloneAndAsOftenAsItTakes) {
  const JobId id = h.MustSubmit(Harness::Spec("booster", 2, 2));
  for (int life = 0; life < 3; ++life) {
    Lose("bn1");
    h.Clear();
    h.Register("bn1");
    h.Live(Millis(3000));
    const auto starts = h.Sent<effect::SendStartJob>();
    ASSERT_EQ(starts.size(), 1u);
    EXPECT_EQ(std::tuple(starts[0].node, starts[0].job, starts[0].self_index, starts[0].launch->incarnation),
              std::tuple("bn1", id, 1u, Incarnation(1)));
  }
  h.Register("bn1", {Jobd(id, 1, false)});
  h.Clear();
  h.Live(Millis(5000));
  EXPECT_TRUE(h.Sent<effect::SendStartJob>().empty()) << "it is there now";
  EXPECT_EQ(h.State(id), JobState::kStarting);
}

TEST_F(ControllerFault, ALaunchThatCannotBeSentAgainBecauseTheNodeIsGoneOnceMoreFollowsWhenItIsBack) {
  const JobId id = h.MustSubmit(Harness::Spec("dam", 1));
  Lose("dn0");
  h.Register("dn0");
  Lose("dn0");
  h.Live(Millis(3000));
  h.Clear();
  h.Register("dn0");
  h.Live(Millis(3000));
  EXPECT_EQ(h.Sent<effect::SendStartJob>().size(), 1u);
  EXPECT_EQ(h.State(id), JobState::kStarting);
}

TEST_F(ControllerFault, AJobThatEndsWhileItsLaunchIsLostIsNotLaunchedAgain) {
  const JobId id = h.MustSubmit(Harness::Spec("dam", 1));
  Lose("dn0");
  h.On(event::Cancel{.caller = kAda, .job = id, .reason = "", .now = false, .reply = 1});
  h.Clear();
  h.Register("dn0");
  h.Live(Millis(3000));
  EXPECT_TRUE(h.Sent<effect::SendStartJob>().empty());
  EXPECT_EQ(h.State(id), JobState::kCancelled);
  EXPECT_EQ(h.CoresUsed(), 0u);
}

TEST_F(ControllerFault, ARunningJobThatANodeBesidesTheHeadsDoesNotReportEndsAsNodeFailWithTheReason) {
  const JobId id = h.MustRun(Harness::Spec("booster", 2, 2));
  Lose("bn1");
  h.Register("bn1");
  h.Clear();
  h.Live(Millis(3000));
  EXPECT_EQ(h.State(id), JobState::kEnding);
  ASSERT_EQ(h.ToJobd<wire::CancelJob>("bn0").size(), 1u);
  EXPECT_TRUE(h.Sent<effect::SendStartJob>().empty()) << "its tasks have died with their job daemon";
  // Its head says nothing more: it ends all the same.
  h.Live(Millis(20000));
  EXPECT_EQ(h.State(id), JobState::kNodeFail);
  EXPECT_NE(h.Reason(id).find("job daemon of job 1 on bn1 is gone"), std::string::npos) << h.Reason(id);
  EXPECT_EQ(h.CoresUsed(), 0u);
}

TEST_F(ControllerFault, ARunningJobsDaemonThatIsMissingIsGivenAMomentAndThenJudged) {
  const JobId id = h.MustRun(Harness::Spec("dam", 1));
  Lose("dn0");
  h.Register("dn0");
  EXPECT_EQ(h.State(id), JobState::kRunning) << "its exit record may follow";
  h.Live(Millis(3000));
  EXPECT_EQ(h.State(id), JobState::kNodeFail);
  EXPECT_EQ(h.Reason(id), "job daemon of job 1 on dn0 is gone");
}

TEST_F(ControllerFault, TheExitRecordOfADeadJobDaemonCountsWhenItComesInTime) {
  const JobId id = h.MustRun(Harness::Spec("dam", 1));
  Lose("dn0");
  h.Register("dn0");
  h.End(id, JobState::kCompleted);
  h.Live(Millis(3000));
  EXPECT_EQ(h.State(id), JobState::kCompleted);
}

TEST_F(ControllerFault, JobDaemonsOfUnknownJobsAreNotKept) {
  const JobId id = h.MustRun(Harness::Spec("dam", 1));
  h.Clear();
  h.Register("dn0", {Jobd(id, 0, true), Jobd(JobId(77), 0, true), {id, Incarnation(9), 0, true, false}});
  const auto answers = h.Sent<effect::Registered>();
  ASSERT_EQ(answers.size(), 1u);
  ASSERT_EQ(answers[0].keep.size(), 1u);
  EXPECT_EQ(answers[0].keep[0].job, id);
}

TEST_F(ControllerFault, AJobDaemonOfAGrantGivenBackIsNotTakenForThatOfTheNext) {
  const JobId id = h.MustRun(Harness::Spec("cluster", 1));
  h.FromHead(id, wire::GrantAsk{1, 4, {"dn0"}, "", 0});
  Lose("dn0");
  h.FromHead(id, wire::GrantRelease{GrantId(1)});
  h.Clear();
  h.Live(Millis(3000));
  h.FromHead(id, wire::GrantAsk{2, 4, {"dn0"}, "", 60000});
  h.Register("dn0", {Jobd(id, 1, false)});
  EXPECT_TRUE(h.Sent<effect::Registered>()[0].keep.empty()) << "the quit of before did not arrive";
}

TEST_F(ControllerFault, AnOlderSessionSaysNothingAboutTheNewOne) {
  const SessionId old = h.sessions["dn0"];
  h.Register("dn0");
  h.On(event::NodeLost{"dn0", old});
  h.On(event::NodeHeartbeat{.node = "dn0", .session = old, .load = 99});
  EXPECT_EQ(h.State(h.MustSubmit(Harness::Spec("dam", 1))), JobState::kStarting);
  EXPECT_EQ((*h.controller().ListNodes("", {"dn0"}))[0].load, 0);
}

TEST_F(ControllerFault, MessagesOfAnOlderLifeOfAJobAreIgnored) {
  const JobId id = h.MustRun(Harness::Spec("dam", 1));
  h.On(event::FromJobd{"dn0", id, Incarnation(2), wire::MemberFailed{0, "x"}});
  h.On(event::JobdGone{"dn0", id, Incarnation(2), "x", false});
  EXPECT_EQ(h.State(id), JobState::kRunning);
}

TEST(ControllerMeasure, CoresThatTheTopologyLeavesOpenAreThoseMeasured) {
  SystemTopology topology = Small();
  for (NodeSpec& node : topology.nodes) node.cores = 0;
  Controller controller(topology, {});
  event::NodeRegistered e;
  e.node = "dn0";
  e.session = 1;
  e.facts.cores = 48;
  controller.On(e, Instant(Millis(1)));
  EXPECT_EQ(controller.System().cores, 48u);
  auto effects = controller.On(Harness::Request(Harness::Spec("dam", 48)), Instant(Millis(2)));
  controller.On(event::SchedulePass{}, Instant(Millis(3)));
  EXPECT_EQ(controller.System().cores_used, 48u);
}

}  // namespace
}  // namespace msa
