#include "harness.h"

namespace msa {
namespace {

using namespace job_test;

class ControllerRun : public ::testing::Test {
 protected:
  ControllerRun() {
    h.RegisterAll();
    h.Clear();
  }
  Status Cancel(JobId id, UserIdentity who, bool now = false) {
    h.On(event::Cancel{.caller = who, .job = id, .reason = "", .now = now, .reply = 1});
    return h.TakeReply().status;
  }
  Harness h;
};

TEST_F(ControllerRun, LaunchTellsEveryMemberTheSame) {
  JobSpec spec = Harness::Spec("cluster", 2);
  spec.components.push_back(Harness::Spec("booster", 4, 2).components[0]);
  const JobId id = h.MustSubmit(spec);
  const auto starts = h.Sent<effect::SendStartJob>();
  ASSERT_EQ(starts.size(), 3u);
  EXPECT_EQ(starts[0].node, "cn0");
  EXPECT_EQ(starts[2].self_index, 2u);
  const wire::LaunchJob& launch = *starts[0].launch;
  EXPECT_EQ(launch.members.size(), 3u);
  EXPECT_EQ(launch.members[1].address, "unix:/d/n/bn0/j1.1");
  EXPECT_EQ(launch.head_index, 0u);
  EXPECT_EQ(launch.step.nspace, "msa.1.1.0");
  EXPECT_EQ(launch.step.rank_member, (std::vector<std::uint32_t>{0, 0, 1, 1, 2, 2}));
  ASSERT_EQ(launch.step.apps.size(), 2u);
  EXPECT_EQ(launch.step.apps[1].ntasks, 4u);
  EXPECT_EQ(launch.secret, "5ec7e7");
  EXPECT_EQ(h.controller().GetJob(id)->attach_address, "unix:/d/n/cn0/noded.sock");
}

TEST_F(ControllerRun, TwoComponentsOnOneNodeAreOneMember) {
  JobSpec spec = Harness::Spec("dam", 1);
  spec.components.push_back(Harness::Spec("dam", 3).components[0]);
  const JobId id = h.MustSubmit(spec);
  EXPECT_EQ(h.Record(id).members.size(), 1u);
  EXPECT_EQ(h.Record(id).members[0].cores.size(), 4u);
  EXPECT_EQ(h.Record(id).allocations.size(), 2u);
}

TEST_F(ControllerRun, AnExitIsCommittedThenAcknowledgedAndTheOthersQuit) {
  const JobId id = h.MustRun(Harness::Spec("booster", 2, 2));
  h.Clear();
  h.End(id, JobState::kFailed, 3);
  EXPECT_EQ(h.State(id), JobState::kFailed);
  EXPECT_EQ(h.Record(id).exit_code, 3);
  EXPECT_EQ(h.Sent<effect::PutJob>().size(), 1u);
  EXPECT_EQ(h.ToJobd<wire::ExitAck>("bn0").size(), 1u);
  EXPECT_EQ(h.QuitNodes(), std::vector<std::string>{"bn1"});
  EXPECT_EQ(h.CoresUsed(), 0u);
}

TEST_F(ControllerRun, ARepeatedExitIsOnlyAcknowledgedAgain) {
  const JobId id = h.MustRun(Harness::Spec("cluster", 1));
  h.End(id);
  h.Clear();
  h.On(event::FromJobd{"cn0", id, Incarnation(1), Harness::ExitOf(id, JobState::kFailed, 9)});
  EXPECT_EQ(h.ToJobd<wire::ExitAck>("cn0").size(), 1u);
  EXPECT_TRUE(h.Sent<effect::PutJob>().empty());
  EXPECT_EQ(h.State(id), JobState::kCompleted);
}

TEST_F(ControllerRun, TheEndOfOneJobStartsTheNext) {
  const JobId first = h.MustRun(Harness::Spec("dam", 4));
  const JobId second = h.MustSubmit(Harness::Spec("dam", 4));
  EXPECT_EQ(h.State(second), JobState::kPending);
  h.End(first);
  EXPECT_EQ(h.State(second), JobState::kStarting);
}

TEST_F(ControllerRun, AWaitingJobIsCancelledAtOnce) {
  h.MustRun(Harness::Spec("dam", 4));
  const JobId id = h.MustSubmit(Harness::Spec("dam", 4));
  EXPECT_TRUE(Cancel(id, kAda).ok());
  EXPECT_EQ(h.State(id), JobState::kCancelled);
  EXPECT_EQ(Cancel(id, kAda).code(), Code::kFailedPrecondition);
}

TEST_F(ControllerRun, ARunningJobIsToldAndThenEndsByItsExit) {
  const JobId id = h.MustRun(Harness::Spec("booster", 2, 2));
  h.Clear();
  EXPECT_TRUE(Cancel(id, kAda).ok());
  EXPECT_EQ(h.State(id), JobState::kEnding);
  const auto told = h.ToJobd<wire::CancelJob>();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(h.ToJobd<wire::CancelJob>("bn0").size(), 1u);
  EXPECT_EQ(told[0].grace_ms, 5000u);
  EXPECT_EQ(told[0].final_state, JobState::kCancelled);
  h.End(id, JobState::kCancelled, 143);
  EXPECT_EQ(h.State(id), JobState::kCancelled);
  EXPECT_EQ(h.Reason(id), "cancelled by ada");
}

TEST_F(ControllerRun, ASecondCancelWithoutGraceShortensTheFirst) {
  const JobId id = h.MustRun(Harness::Spec("cluster", 1));
  EXPECT_TRUE(Cancel(id, kAda).ok());
  h.Clear();
  EXPECT_TRUE(Cancel(id, kAda, true).ok());
  ASSERT_EQ(h.ToJobd<wire::CancelJob>().size(), 1u);
  EXPECT_EQ(h.ToJobd<wire::CancelJob>()[0].grace_ms, 0u);
}

TEST_F(ControllerRun, AJobThatDoesNotAnswerIsEndedFromHere) {
  const JobId id = h.MustRun(Harness::Spec("booster", 2, 2));
  EXPECT_TRUE(Cancel(id, kAda).ok());
  h.Clear();
  h.Live(Millis(14000));
  EXPECT_EQ(h.State(id), JobState::kEnding);
  h.Live(Millis(2000));
  EXPECT_EQ(h.State(id), JobState::kCancelled);
  EXPECT_EQ(h.QuitNodes(), (std::vector<std::string>{"bn0", "bn1"}));
}

TEST_F(ControllerRun, OnlyOwnerRootAndOperatorMayTouchAJob) {
  const JobId id = h.MustRun(Harness::Spec("cluster", 1));
  EXPECT_EQ(Cancel(id, kBob).code(), Code::kPermissionDenied);
  EXPECT_EQ(Cancel(JobId(99), kAda).code(), Code::kNotFound);
  EXPECT_TRUE(Cancel(id, kRoot).ok());
  h.On(event::SignalJob{.caller = kBob, .job = id, .signal = 10, .reply = 1});
  EXPECT_EQ(h.TakeReply().status.code(), Code::kPermissionDenied);
  EXPECT_TRUE(h.controller().CheckAccess(id, {kOperator, 0}).ok());
}

TEST_F(ControllerRun, SignalsGoToTheHeadOfARunningJob) {
  const JobId id = h.MustRun(Harness::Spec("booster", 2, 2));
  h.Clear();
  h.On(event::SignalJob{.caller = kAda, .job = id, .signal = 10, .reply = 1});
  EXPECT_TRUE(h.TakeReply().status.ok());
  ASSERT_EQ(h.ToJobd<wire::SignalJob>("bn0").size(), 1u);
  h.On(event::SignalJob{.caller = kAda, .job = id, .signal = 1000, .reply = 1});
  EXPECT_EQ(h.TakeReply().status.code(), Code::kInvalidArgument);
  h.End(id);
  h.On(event::SignalJob{.caller = kAda, .job = id, .signal = 10, .reply = 1});
  EXPECT_EQ(h.TakeReply().status.code(), Code::kFailedPrecondition);
}

TEST_F(ControllerRun, TheTimeLimitEndsAJobWithItsOwnState) {
  JobSpec spec = Harness::Spec("cluster", 1);
  spec.time_limit_s = 30;
  const JobId id = h.MustRun(spec);
  h.Live(Millis(29000));
  EXPECT_EQ(h.State(id), JobState::kRunning);
  h.Clear();
  h.Live(Millis(2000));
  EXPECT_EQ(h.State(id), JobState::kEnding);
  ASSERT_EQ(h.ToJobd<wire::CancelJob>().size(), 1u);
  EXPECT_EQ(h.ToJobd<wire::CancelJob>()[0].final_state, JobState::kTimeout);
  EXPECT_EQ(h.Reason(id), "time limit of 30 s reached");
}

TEST_F(ControllerRun, AJobWhoseOwnerWentAwayIsCancelled) {
  const JobId id = h.MustRun(Harness::Spec("cluster", 1), true);
  const JobId detached = h.MustRun(Harness::Spec("cluster", 1));
  h.On(event::OwnerAttached{id});
  h.On(event::OwnerLost{id});
  h.On(event::OwnerLost{detached});
  EXPECT_EQ(h.State(id), JobState::kEnding);
  EXPECT_EQ(h.State(detached), JobState::kRunning);
}

TEST_F(ControllerRun, TheHeadIsToldThatNobodyWillReadTheRest) {
  const JobId lost = h.MustRun(Harness::Spec("cluster", 1), true);
  h.On(event::OwnerAttached{lost});
  h.Clear();
  h.On(event::OwnerLost{lost});
  ASSERT_EQ(h.ToJobd<wire::CancelJob>().size(), 1u);
  EXPECT_TRUE(h.ToJobd<wire::CancelJob>()[0].owner_gone);

  // By order of somebody else, while the owner looks on; then the owner goes, too.
  const JobId cancelled = h.MustRun(Harness::Spec("booster", 1), true);
  h.On(event::OwnerAttached{cancelled});
  h.Clear();
  h.On(event::Cancel{.caller = kRoot, .job = cancelled, .now = true, .reply = 1});
  EXPECT_TRUE(h.TakeReply().status.ok());
  ASSERT_EQ(h.ToJobd<wire::CancelJob>().size(), 1u);
  EXPECT_FALSE(h.ToJobd<wire::CancelJob>()[0].owner_gone);
  h.Clear();
  h.On(event::OwnerLost{cancelled});
  ASSERT_EQ(h.ToJobd<wire::CancelJob>().size(), 1u);
  EXPECT_TRUE(h.ToJobd<wire::CancelJob>()[0].owner_gone);
}

TEST_F(ControllerRun, ADrainedNodeKeepsItsJobsAndGetsNoNewOnes) {
  const JobId on_it = h.MustRun(Harness::Spec("dam", 1));
  h.On(event::Drain{.caller = kRoot, .nodes = {"dn0"}, .reason = "fan", .reply = 1});
  EXPECT_TRUE(h.TakeReply().status.ok());
  const JobId waits = h.MustSubmit(Harness::Spec("dam", 1));
  EXPECT_EQ(h.State(on_it), JobState::kRunning);
  EXPECT_EQ(h.State(waits), JobState::kPending);
  EXPECT_EQ((*h.controller().ListNodes("dam", {}))[0].reason, "fan");
  h.On(event::Resume{.caller = kRoot, .nodes = {"dn0"}, .reply = 1});
  EXPECT_EQ(h.State(waits), JobState::kStarting);
}

TEST_F(ControllerRun, OnlyTheOperatorDrainsAndMustSayWhy) {
  const auto drain = [&](UserIdentity who, std::string node, std::string why) {
    h.On(event::Drain{.caller = who, .nodes = {std::move(node)}, .reason = std::move(why), .reply = 1});
    return h.TakeReply().status.code();
  };
  EXPECT_EQ(drain(kAda, "dn0", "x"), Code::kPermissionDenied);
  EXPECT_EQ(drain(kRoot, "dn9", "x"), Code::kNotFound);
  EXPECT_EQ(drain(kRoot, "dn0", ""), Code::kInvalidArgument);
  EXPECT_EQ(drain(kRoot, "dn0", std::string(256, 'x')), Code::kInvalidArgument);
  EXPECT_EQ(drain({kOperator, 0}, "dn0", "x"), Code::kOk);
}

TEST_F(ControllerRun, ListingsAddUp) {
  const JobId id = h.MustRun(Harness::Spec("booster", 3));
  const SystemView system = h.controller().System();
  EXPECT_EQ(std::tuple(system.nodes, system.nodes_up, system.cores, system.cores_used, system.jobs_running),
            std::tuple(5u, 5u, 28u, 3u, 1u));
  const auto modules = h.controller().ListModules();
  EXPECT_EQ(modules[1].cores_free, 13u);
  const auto nodes = h.controller().ListNodes("booster", {});
  ASSERT_EQ(nodes->size(), 2u);
  EXPECT_EQ((*nodes)[0].jobs, std::vector<JobId>{id});
  EXPECT_EQ(h.controller().ListNodes("", {"bn9"}).status().code(), Code::kNotFound);
  h.End(id);
  EXPECT_TRUE(h.controller().ListJobs({}).empty());
  EXPECT_EQ(h.controller().ListJobs({.ended = true}).size(), 1u);
  EXPECT_EQ(h.controller().ListJobs({.ids = {id}}).size(), 1u);
  EXPECT_TRUE(h.controller().ListJobs({.ended = true, .user = "bob"}).empty());
}

}  // namespace
}  // namespace msa
