#include "harness.h"

namespace msa {
namespace {

using namespace job_test;

JobdInfo HeadOf(JobId id) { return {id, Incarnation(1), 0, true, false}; }

TEST(ControllerRestore, EveryFieldThatMattersComesBack) {
  Harness h;
  h.RegisterAll();
  JobSpec spec = Harness::Spec("booster", 2, 2);
  spec.time_limit_s = 60;
  const JobId id = h.MustRun(spec);
  const std::string before = wire::Encode(h.Record(id));
  h.Restart();
  EXPECT_EQ(wire::Encode(h.Record(id)), before);
}

TEST(ControllerRestore, RunningJobsAreAdoptedAndQueuedOnesStart) {
  Harness h;
  h.RegisterAll();
  const JobId running = h.MustRun(Harness::Spec("dam", 4));
  const JobId queued = h.MustSubmit(Harness::Spec("dam", 4));
  h.Restart();
  EXPECT_EQ(h.State(queued), JobState::kPending);
  h.Register("dn0", {HeadOf(running)});
  EXPECT_EQ(h.State(running), JobState::kRunning);
  EXPECT_EQ(h.State(queued), JobState::kPending);
  h.End(running);
  EXPECT_EQ(h.State(queued), JobState::kStarting);
}

TEST(ControllerRestore, NothingStartsOnANodeThatHasNotReported) {
  Harness h;
  const JobId id = h.MustSubmit(Harness::Spec("dam", 1));
  h.Restart();
  EXPECT_EQ(h.State(id), JobState::kPending);
  h.Register("dn0");
  EXPECT_EQ(h.State(id), JobState::kStarting);
}

TEST(ControllerRestore, APlacedJobWhoseLaunchWasLostIsLaunchedWithItsMembersAddresses) {
  Harness h;
  h.RegisterAll();
  const JobId id = h.MustSubmit(Harness::Spec("booster", 2, 2));
  h.Restart();
  h.Clear();
  h.Register("bn0");
  h.Sleep(Millis(2500));
  const auto starts = h.Sent<effect::SendStartJob>();
  ASSERT_EQ(starts.size(), 1u);
  EXPECT_EQ(starts[0].job, id);
  EXPECT_EQ(starts[0].launch->members[1].address, "unix:/d/n/bn1/j1.1") << "bn1 has not registered again yet";
}

TEST(ControllerRestore, AJobWhoseNodeDoesNotComeBackEnds) {
  Harness h;
  h.RegisterAll();
  const JobId id = h.MustRun(Harness::Spec("dam", 1));
  h.Restart();
  h.Sleep(Millis(9000));
  EXPECT_EQ(h.State(id), JobState::kRunning);
  h.Sleep(Millis(2000));
  EXPECT_EQ(h.State(id), JobState::kNodeFail);
}

TEST(ControllerRestore, AnOwnerHasAGraceToComeBack) {
  Harness h;
  h.RegisterAll();
  const JobId back = h.MustRun(Harness::Spec("dam", 1), true);
  const JobId away = h.MustRun(Harness::Spec("dam", 1), true);
  h.Restart();
  h.RegisterAll();
  h.Register("dn0", {HeadOf(back), HeadOf(away)});
  h.On(event::OwnerAttached{back});
  h.Live(Millis(9000));
  EXPECT_EQ(h.State(away), JobState::kRunning);
  h.Live(Millis(2000));
  EXPECT_EQ(h.State(away), JobState::kEnding);
  EXPECT_EQ(h.State(back), JobState::kRunning);
}

TEST(ControllerRestore, AnEndUnderWayGoesOn) {
  Harness h;
  h.RegisterAll();
  const JobId id = h.MustRun(Harness::Spec("dam", 1));
  h.On(event::Cancel{.caller = kAda, .job = id, .reason = "", .now = false, .reply = 1});
  h.Restart();
  h.Clear();
  h.Register("dn0", {HeadOf(id)});
  EXPECT_EQ(h.ToJobd<wire::CancelJob>("dn0").size(), 1u) << "the first may not have arrived";
  h.Live(Millis(40000));
  EXPECT_EQ(h.State(id), JobState::kCancelled);
}

TEST(ControllerRestore, TheTimeLimitGoesOnCounting) {
  Harness h;
  h.RegisterAll();
  JobSpec spec = Harness::Spec("dam", 1);
  spec.time_limit_s = 30;
  const JobId id = h.MustRun(spec);
  h.Live(Millis(20000));
  h.Restart();
  h.Register("dn0", {HeadOf(id)});
  h.Live(Millis(9000));
  EXPECT_EQ(h.State(id), JobState::kRunning);
  h.Live(Millis(2000));
  EXPECT_EQ(h.State(id), JobState::kEnding);
}

TEST(ControllerRestore, DrainsAreKept) {
  Harness h;
  h.RegisterAll();
  h.On(event::Drain{.caller = kRoot, .nodes = {"dn0"}, .reason = "fan", .reply = 1});
  h.Restart();
  h.RegisterAll();
  EXPECT_TRUE((*h.controller().ListNodes("", {"dn0"}))[0].drained);
}

TEST(ControllerRestore, AnExitThatWasCommittedButNotAcknowledgedIsAcknowledgedAgain) {
  Harness h;
  h.RegisterAll();
  const JobId id = h.MustRun(Harness::Spec("dam", 1));
  h.End(id);
  h.Restart();
  h.Clear();
  JobdInfo ended = HeadOf(id);
  ended.ended = true;
  h.Register("dn0", {ended});
  EXPECT_EQ(h.ToJobd<wire::ExitAck>("dn0").size(), 1u);
}

TEST(ControllerRestore, RecordsThatContradictEachOtherAreRefused) {
  Harness h;
  h.RegisterAll();
  h.MustRun(Harness::Spec("dam", 1));
  StoredState state = h.store().Load();
  JobRecord twin = state.jobs[0];
  twin.id = JobId(2);
  state.jobs.push_back(twin);
  Controller controller(Small(), {});
  EXPECT_EQ(controller.Restore(std::move(state), h.now).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace msa
