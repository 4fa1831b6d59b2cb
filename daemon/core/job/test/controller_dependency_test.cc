#include <gmock/gmock.h>

#include "harness.h"

namespace msa {
namespace {

using namespace job_test;
using ::testing::AllOf;
using ::testing::HasSubstr;

JobSpec After(std::vector<Dependency> dependencies) {
  JobSpec spec = Harness::Spec("dam", 1);
  spec.dependencies = std::move(dependencies);
  return spec;
}
Dependency On(DependencyKind kind, JobId job, std::uint32_t delay_s = 0) { return {kind, job, delay_s}; }
constexpr auto kOk = DependencyKind::kAfterOk;
constexpr auto kAny = DependencyKind::kAfterAny;

class Dependencies : public testing::Test {
 protected:
  void SetUp() override { h.RegisterAll(); }
  Harness h;
};

TEST_F(Dependencies, AChainRunsInOrder) {
  const JobId first = h.MustRun(Harness::Spec("dam", 1));
  const JobId second = h.MustSubmit(After({On(kOk, first)}));
  const JobId third = h.MustSubmit(After({On(kAny, second)}));
  EXPECT_EQ(h.State(second), JobState::kPending);
  EXPECT_EQ(h.Reason(second), "Dependency: waits for afterok:1");
  h.End(first);
  EXPECT_EQ(h.State(second), JobState::kStarting);
  EXPECT_EQ(h.State(third), JobState::kPending);
  h.End(second, JobState::kFailed, 3);
  EXPECT_EQ(h.State(third), JobState::kStarting) << "afterany does not ask how it ended";
}

TEST_F(Dependencies, AnEndedJobCountsAtOnce) {
  const JobId first = h.MustRun(Harness::Spec("dam", 1));
  h.End(first);
  EXPECT_EQ(h.State(h.MustSubmit(After({On(kOk, first)}))), JobState::kStarting);
  EXPECT_EQ(h.State(h.MustSubmit(After({On(DependencyKind::kAfter, first)}))), JobState::kStarting);
}

TEST_F(Dependencies, WhatCanNeverBeMetSaysWhichJobAndWhy) {
  const JobId first = h.MustRun(Harness::Spec("dam", 1));
  const JobId id = h.MustSubmit(After({On(kOk, first)}));
  h.End(first, JobState::kFailed, 2);
  EXPECT_EQ(h.State(id), JobState::kPending);
  EXPECT_EQ(h.Reason(id), "DependencyNeverSatisfied: afterok:1: job 1 ended as FAILED with code 2");
  h.Restart();
  EXPECT_THAT(h.Reason(id), HasSubstr("job 1 ended as FAILED with code 2")) << "kept through a restart";
}

TEST_F(Dependencies, KillOnInvalidDependencyCancelsAndSoOnDownTheChain) {
  const JobId first = h.MustRun(Harness::Spec("dam", 1));
  JobSpec spec = After({On(kOk, first)});
  spec.kill_on_invalid_dep = true;
  const JobId second = h.MustSubmit(spec);
  spec = After({On(kOk, second)});
  spec.kill_on_invalid_dep = true;
  const JobId third = h.MustSubmit(spec);
  const JobId rescue = h.MustSubmit(After({On(DependencyKind::kAfterNotOk, third)}));
  h.End(first, JobState::kTimeout, 1);
  EXPECT_EQ(h.State(second), JobState::kCancelled);
  EXPECT_THAT(h.Reason(second), AllOf(HasSubstr("DependencyNeverSatisfied"), HasSubstr("TIMEOUT")));
  EXPECT_EQ(h.State(third), JobState::kCancelled);
  EXPECT_EQ(h.State(rescue), JobState::kStarting);
}

TEST_F(Dependencies, AJobThatCannotStartIsKilledOnlyOnceItsSubmissionIsOnDisk) {
  const JobId first = h.MustRun(Harness::Spec("dam", 1));
  h.End(first, JobState::kFailed, 1);
  h.auto_pass = false;
  JobSpec spec = After({On(kOk, first)});
  spec.kill_on_invalid_dep = true;
  const JobId id = h.MustSubmit(spec);
  EXPECT_EQ(h.State(id), JobState::kPending);
  h.On(event::SchedulePass{});
  EXPECT_EQ(h.State(id), JobState::kCancelled);
}

TEST_F(Dependencies, AllMustBeMetUnlessAnyIsEnough) {
  const JobId a = h.MustRun(Harness::Spec("dam", 1));
  const JobId b = h.MustRun(Harness::Spec("dam", 1));
  const JobId all = h.MustSubmit(After({On(kOk, a), On(kOk, b)}));
  JobSpec spec = After({On(kOk, a), On(kOk, b)});
  spec.dependency_any = true;
  const JobId any = h.MustSubmit(spec);
  EXPECT_EQ(h.Reason(any), "Dependency: waits for one of afterok:1; afterok:2");
  h.End(a, JobState::kFailed, 1);
  EXPECT_THAT(h.Reason(all), HasSubstr("DependencyNeverSatisfied"));
  EXPECT_EQ(h.State(any), JobState::kPending);
  h.End(b);
  EXPECT_EQ(h.State(any), JobState::kStarting);
  EXPECT_EQ(h.State(all), JobState::kPending);
}

TEST_F(Dependencies, AfterCountsFromTheStartAndWaitsItsDelay) {
  const JobId first = h.MustSubmit(Harness::Spec("dam", 1));
  const JobId soon = h.MustSubmit(After({On(DependencyKind::kAfter, first)}));
  const JobId late = h.MustSubmit(After({On(DependencyKind::kAfter, first, 300)}));
  EXPECT_EQ(h.Reason(late), "Dependency: waits for after:1+5");
  EXPECT_EQ(h.State(soon), JobState::kPending) << "placed, its tasks do not run yet";
  h.FromHead(first, wire::JobStarted{ToUnixMillis(h.now)});
  EXPECT_EQ(h.State(soon), JobState::kStarting);
  h.Live(Millis(299'000));
  EXPECT_EQ(h.State(late), JobState::kPending);
  h.Live(Millis(1000));
  EXPECT_EQ(h.State(late), JobState::kStarting);
}

TEST_F(Dependencies, AfterOfAJobCancelledInTheQueueCountsFromThen) {
  const JobId holder = h.MustRun(Harness::Spec("dam", 4));
  const JobId first = h.MustSubmit(Harness::Spec("dam", 4));
  const JobId id = h.MustSubmit(After({On(DependencyKind::kAfter, first, 60)}));
  h.On(event::Cancel{.caller = kAda, .job = first});
  h.End(holder);
  EXPECT_EQ(h.State(id), JobState::kPending);
  h.Live(Millis(60'000));
  EXPECT_EQ(h.State(id), JobState::kStarting);
}

TEST_F(Dependencies, SingletonWaitsForEarlierJobsOfTheNameAndUserOnly) {
  JobSpec spec = After({{DependencyKind::kSingleton}});
  spec.name = "daily";
  const JobId first = h.MustSubmit(spec);
  const JobId second = h.MustSubmit(spec);
  const JobId third = h.MustSubmit(spec);
  event::Submit of_bob = Harness::Request(spec);
  of_bob.user = kBob;
  const JobId bobs = *h.Submit(of_bob);
  EXPECT_EQ(h.State(first), JobState::kStarting);
  EXPECT_EQ(h.State(bobs), JobState::kStarting);
  EXPECT_EQ(h.Reason(second), "Dependency: waits for singleton");
  h.End(first, JobState::kFailed, 1);
  EXPECT_EQ(h.State(second), JobState::kStarting);
  EXPECT_EQ(h.State(third), JobState::kPending);
  h.On(event::Cancel{.caller = kAda, .job = second, .now = true});
  h.End(second, JobState::kCancelled);
  EXPECT_EQ(h.State(third), JobState::kStarting);
}

TEST_F(Dependencies, AJobNeverSubmittedIsRefused) {
  const auto id = h.Submit(Harness::Request(After({On(kOk, JobId(99))})));
  EXPECT_EQ(id.status().code(), Code::kNotFound);
  EXPECT_THAT(id.status().message(), AllOf(HasSubstr("afterok:99"), HasSubstr("no job 99")));
  EXPECT_EQ(h.store().jobs(), 0u);
}

TEST_F(Dependencies, AJobOutsideTheHistoryHasEndedNobodyKnowsHow) {
  Harness small({.keep_ended = 1});
  small.RegisterAll();
  const JobId old = small.MustRun(Harness::Spec("dam", 1));
  small.End(old);
  small.End(small.MustRun(Harness::Spec("dam", 1)));
  ASSERT_FALSE(small.controller().GetJob(old).ok());
  EXPECT_EQ(small.State(small.MustSubmit(After({On(kAny, old)}))), JobState::kStarting);
  const JobId id = small.MustSubmit(After({On(kOk, old)}));
  EXPECT_EQ(
      small.Reason(id),
      "DependencyNeverSatisfied: afterok:1: job 1 is no longer in the history, how it ended is not known");
}

TEST_F(Dependencies, WhatWasMetStaysMetWhenTheOtherJobIsPruned) {
  Harness small({.keep_ended = 0});
  small.RegisterAll();
  const JobId a = small.MustRun(Harness::Spec("dam", 1));
  const JobId b = small.MustRun(Harness::Spec("dam", 1));
  const JobId id = small.MustSubmit(After({On(kOk, a), On(kOk, b)}));
  small.End(a);
  ASSERT_FALSE(small.controller().GetJob(a).ok());
  small.Restart();
  small.Register("dn0", {{b, Incarnation(1), 0, true, false}});
  small.End(b);
  EXPECT_EQ(small.State(id), JobState::kStarting);
}

TEST_F(Dependencies, BeginHoldsAJobUntilItsTimeAlsoOverARestart) {
  JobSpec spec = Harness::Spec("dam", 1);
  spec.begin_at_ms = ToUnixMillis(h.now) + 90'000;
  const JobId id = h.MustSubmit(spec);
  EXPECT_THAT(h.Reason(id), HasSubstr("BeginTime"));
  EXPECT_EQ(ToUnixMillis(h.controller().GetJob(id)->expected_start), spec.begin_at_ms);
  h.Live(Millis(60'000));
  EXPECT_EQ(h.State(id), JobState::kPending);
  h.Restart();
  h.RegisterAll();
  EXPECT_THAT(h.Reason(id), HasSubstr("BeginTime"));
  h.Live(Millis(29'000));
  EXPECT_EQ(h.State(id), JobState::kPending);
  h.Live(Millis(1'000));
  EXPECT_EQ(h.State(id), JobState::kStarting);
}

TEST_F(Dependencies, AHeldJobTakesNobodysPlaceInTheQueue) {
  const JobId holder = h.MustRun(Harness::Spec("dam", 4));
  JobSpec wide = Harness::Spec("dam", 4);
  wide.dependencies = {On(kOk, holder)};
  wide.begin_at_ms = ToUnixMillis(h.now) + 3'600'000;
  const JobId held = h.MustSubmit(wide);
  const JobId other = h.MustSubmit(Harness::Spec("dam", 1));
  h.End(holder);
  EXPECT_EQ(h.State(held), JobState::kPending);
  EXPECT_EQ(h.State(other), JobState::kStarting);
}

TEST_F(Dependencies, OnesThatMakeNoSenseAreRefused) {
  const auto error = [&](JobSpec spec) {
    const auto id = h.Submit(Harness::Request(std::move(spec)));
    EXPECT_EQ(id.status().code(), Code::kInvalidArgument);
    return id.status().message();
  };
  EXPECT_THAT(error(After({On(kOk, JobId(0))})), HasSubstr("job's id"));
  EXPECT_THAT(error(After({On(DependencyKind::kSingleton, JobId(1))})), HasSubstr("singleton"));
  EXPECT_THAT(error(After({On(kAny, JobId(1), 60)})), HasSubstr("delay"));
  EXPECT_THAT(error(After(std::vector<Dependency>(257, On(kAny, JobId(1))))), HasSubstr("256"));
  JobSpec spec = Harness::Spec("dam", 1);
  spec.begin_at_ms = -1;
  EXPECT_THAT(error(spec), HasSubstr("begin"));
}

TEST_F(Dependencies, AnUncommittedSubmitLeavesNothingBehind) {
  const JobId first = h.MustRun(Harness::Spec("dam", 1));
  h.auto_pass = false;
  const JobId id = h.MustSubmit(After({On(kOk, first)}));
  h.controller().ForgetJob(id);
  EXPECT_TRUE(h.controller().CheckInvariants().ok());
  h.auto_pass = true;
  h.End(first);
}

}  // namespace
}  // namespace msa
