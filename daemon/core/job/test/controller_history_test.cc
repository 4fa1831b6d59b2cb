// What is remembered of jobs: when they ended, and which of them are listed.
#include "harness.h"

namespace msa {
namespace {

using namespace job_test;

class ControllerHistory : public ::testing::Test {
 protected:
  ControllerHistory() { h.RegisterAll(); }

  JobId Run(const std::string& name, Millis span, JobState state = JobState::kCompleted) {
    JobSpec spec = Harness::Spec("dam", 1);
    spec.name = name;
    const JobId id = h.MustRun(std::move(spec));
    h.Live(span);
    h.End(id, state, state == JobState::kCompleted ? 0 : 1);
    return id;
  }
  std::vector<JobId> List(const JobFilter& filter) const {
    std::vector<JobId> ids;
    for (const JobView& job : const_cast<Harness&>(h).controller().ListJobs(filter))
      ids.push_back(job.record->id);
    return ids;
  }
  using Ids = std::vector<JobId>;

  Harness h;
};

TEST_F(ControllerHistory, AnEndThatIsToldLateKeepsItsTime) {
  const JobId id = h.MustRun(Harness::Spec("dam", 1));
  h.Live(Millis(3000));
  const Instant end = h.now;
  h.Live(Millis(60000));  // the disk was full, or the node daemon away
  wire::JobExit exit = Harness::ExitOf(id);
  exit.ended_at_ms = ToUnixMillis(end);
  h.FromHead(id, exit);
  EXPECT_EQ(h.Record(id).ended_at, end);
}

TEST_F(ControllerHistory, AnEndBeforeTheStartOrInTheFutureIsStampedHere) {
  for (const Millis off : {Millis(-3'600'000), Millis(5000)}) {
    const JobId id = h.MustRun(Harness::Spec("dam", 1));
    h.Live(Millis(2000));
    wire::JobExit exit = Harness::ExitOf(id);
    exit.ended_at_ms = ToUnixMillis(h.now + off);
    h.FromHead(id, exit);
    EXPECT_EQ(h.Record(id).ended_at, h.now) << off.count();
  }
}

TEST_F(ControllerHistory, TheEndIsTheOneThatIsStored) {
  const JobId id = h.MustRun(Harness::Spec("dam", 1));
  h.Live(Millis(1000));
  wire::JobExit exit = Harness::ExitOf(id);
  exit.ended_at_ms = ToUnixMillis(h.now - Millis(10));
  h.FromHead(id, exit);
  const Instant end = h.Record(id).ended_at;
  h.Restart();
  EXPECT_EQ(h.Record(id).ended_at, end);
  EXPECT_NE(end, h.now);
}

TEST_F(ControllerHistory, EndedJobsAreListedByTime) {
  const Instant begin = h.now;
  const JobId first = Run("a", Millis(2000));
  const Instant between = h.now;
  h.Live(Millis(1000));
  const JobId second = Run("b", Millis(2000));
  EXPECT_EQ(List({.ended = true}), (Ids{first, second}));
  EXPECT_EQ(List({.ended = true, .since = between}), (Ids{first, second})) << "the end is part of it";
  EXPECT_EQ(List({.ended = true, .since = between + Millis(1)}), Ids{second});
  EXPECT_EQ(List({.ended = true, .until = between}), Ids{first});
  EXPECT_EQ(List({.ended = true, .until = begin}), Ids{});
  EXPECT_EQ(List({.ended = true, .since = begin, .until = h.now}), (Ids{first, second}));
}

TEST_F(ControllerHistory, WaitingAndRunningJobsAreListedWhateverTheTime) {
  const JobId running = h.MustRun(Harness::Spec("dam", 4));
  const JobId waiting = h.MustSubmit(Harness::Spec("dam", 4));
  EXPECT_EQ(List({.since = h.now + Millis(1000), .until = Instant()}), (Ids{running, waiting}));
}

TEST_F(ControllerHistory, JobsAreListedByStateAndName) {
  const JobId good = Run("a", Millis(1000));
  const JobId bad = Run("a", Millis(1000), JobState::kFailed);
  const JobId other = Run("b", Millis(1000), JobState::kFailed);
  const JobId running = h.MustRun(Harness::Spec("dam", 1));
  EXPECT_EQ(List({.ended = true, .states = {JobState::kFailed}}), (Ids{bad, other}));
  EXPECT_EQ(List({.ended = true, .states = {JobState::kFailed, JobState::kRunning}}),
            (Ids{bad, other, running}));
  EXPECT_EQ(List({.ended = true, .name = "a"}), (Ids{good, bad}));
  EXPECT_EQ(List({.ended = true, .states = {JobState::kFailed}, .name = "a"}), Ids{bad});
  EXPECT_EQ(List({.ids = {good, bad}, .states = {JobState::kCompleted}}), Ids{good});
}

TEST_F(ControllerHistory, TheLimitCountsWhatIsShown) {
  const JobId old = Run("a", Millis(1000));
  for (int i = 0; i < 3; ++i) (void)Run("b", Millis(1000));
  const JobId newest = Run("b", Millis(1000));
  EXPECT_EQ(List({.ended = true, .limit = 1, .name = "a"}), Ids{old});
  EXPECT_EQ(List({.ended = true, .limit = 1}), Ids{newest});
}

TEST_F(ControllerHistory, JobsOfOneEnvironmentHoldItOnce) {
  h.auto_pass = false;
  const JobId first = h.MustSubmit(Harness::Spec("dam", 1));
  const JobId second = h.MustSubmit(Harness::Spec("dam", 1));
  EXPECT_TRUE(h.Record(first).spec.env.SharesWith(h.Record(second).spec.env));
  h.Restart();
  EXPECT_TRUE(h.Record(first).spec.env.SharesWith(h.Record(second).spec.env));
  EXPECT_EQ(h.Record(second).spec.env.list(), std::vector<std::string>{"PATH=/bin"});
}

TEST_F(ControllerHistory, ARecordWithoutCountsIsTakenUpWithTheLeast) {
  h.auto_pass = false;
  const JobId id = h.MustSubmit(Harness::Spec("dam", 1));
  StoredState state = h.store().Load();
  ComponentRequest& ask = state.jobs[0].spec.components[0].resources;
  ask.cpus_per_task = 0;
  ask.min_nodes = 0;
  ask.max_nodes = 0;
  Controller controller(Small(), {});
  const auto effects = controller.Restore(std::move(state), h.now);
  ASSERT_TRUE(effects.ok()) << effects.status().ToString();
  const JobRecord& record = *controller.GetJob(id)->record;
  EXPECT_EQ(record.state, JobState::kPending);
  EXPECT_EQ(record.spec.components[0].resources.cpus_per_task, 1u);
  EXPECT_EQ(record.spec.components[0].resources.max_nodes, 1u);
}

}  // namespace
}  // namespace msa
