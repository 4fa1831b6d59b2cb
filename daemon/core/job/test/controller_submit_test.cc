#include "harness.h"

namespace msa {
namespace {

using namespace job_test;

TEST(ControllerSubmit, QueuesFirstAndPlacesInALaterPass) {
  Harness h;
  h.RegisterAll();
  h.Clear();
  h.auto_pass = false;
  const JobId id = h.MustSubmit(Harness::Spec("cluster", 2));
  EXPECT_EQ(h.State(id), JobState::kPending);
  EXPECT_EQ(h.Sent<effect::PutJob>().size(), 1u);
  EXPECT_EQ(h.Sent<effect::NeedSchedulePass>().size(), 1u);
  EXPECT_TRUE(h.Sent<effect::SendStartJob>().empty());
  h.On(event::SchedulePass{});
  EXPECT_EQ(h.State(id), JobState::kStarting);
  EXPECT_EQ(h.Sent<effect::SendStartJob>().size(), 1u);
}

TEST(ControllerSubmit, TheSameTokenOfAUserSubmitsOnce) {
  Harness h;
  event::Submit request = Harness::Request(Harness::Spec("cluster", 1));
  const JobId first = *h.Submit(request);
  EXPECT_EQ(*h.Submit(request), first);
  request.user = kBob;
  EXPECT_NE(*h.Submit(request), first);
}

TEST(ControllerSubmit, TheTokenHoldsOverARestart) {
  Harness h;
  event::Submit request = Harness::Request(Harness::Spec("cluster", 1));
  const JobId first = *h.Submit(request);
  h.Restart();
  EXPECT_EQ(*h.Submit(request), first);
}

TEST(ControllerSubmit, ARefusalChangesNothing) {
  Harness h;
  const auto id = h.Submit(Harness::Request(Harness::Spec("boster", 1)));
  ASSERT_FALSE(id.ok());
  EXPECT_NE(id.status().message().find("did you mean 'booster'?"), std::string::npos);
  EXPECT_EQ(h.store().jobs(), 0u);
  EXPECT_EQ(h.MustSubmit(Harness::Spec("cluster", 1)), JobId(1));
}

TEST(ControllerSubmit, AFullQueueIsRefused) {
  Harness h({.max_queued = 2});
  h.MustSubmit(Harness::Spec("cluster", 1));
  h.MustSubmit(Harness::Spec("cluster", 1));
  EXPECT_EQ(h.Submit(Harness::Request(Harness::Spec("cluster", 1))).status().code(),
            Code::kResourceExhausted);
}

TEST(ControllerSubmit, AnUncommittedSubmitIsForgotten) {
  Harness h;
  h.auto_pass = false;
  event::Submit request = Harness::Request(Harness::Spec("cluster", 1));
  const JobId id = *h.Submit(request);
  h.controller().ForgetJob(id);
  EXPECT_TRUE(h.controller().CheckInvariants().ok());
  EXPECT_EQ(h.controller().GetJob(id).status().code(), Code::kNotFound);
  EXPECT_NE(*h.Submit(request), id) << "an id is never given twice";
}

TEST(ControllerSubmit, ADetachedJobWritesToAFileInItsDirectory) {
  Harness h;
  const JobId detached = h.MustSubmit(Harness::Spec("cluster", 1));
  EXPECT_EQ(h.Record(detached).stdout_path, "/home/ada/msa-1.out");
  EXPECT_EQ(h.Record(h.MustSubmit(Harness::Spec("cluster", 1), true)).stdout_path, "");
  JobSpec spec = Harness::Spec("cluster", 1);
  spec.stdio.out = "/tmp/%u-%j.%t";
  EXPECT_EQ(h.Record(h.MustSubmit(spec)).stdout_path, "");
}

TEST(ControllerSubmit, WhoWaitsIsToldWhy) {
  Harness h;
  const JobId id = h.MustSubmit(Harness::Spec("booster", 1));
  EXPECT_NE(h.Reason(id).find("nodes down or drained"), std::string::npos) << h.Reason(id);
  h.RegisterAll();
  const JobId big = h.MustSubmit(Harness::Spec("booster", 16));
  EXPECT_NE(h.Reason(big).find("resources: module 'booster'"), std::string::npos) << h.Reason(big);
}

TEST(ControllerSubmit, ImmediateGivesUpWhenItsTimeIsOver) {
  Harness h;
  JobSpec spec = Harness::Spec("booster", 1);
  spec.immediate_s = 2;
  const JobId id = h.MustSubmit(spec);
  h.Sleep(Millis(1999));
  EXPECT_EQ(h.State(id), JobState::kPending);
  h.Sleep(Millis(1));
  EXPECT_EQ(h.State(id), JobState::kCancelled);
  EXPECT_EQ(h.Record(id).end_code, Code::kDeadlineExceeded);
}

TEST(ControllerSubmit, EndedJobsArePrunedOldestFirst) {
  Harness h({.keep_ended = 2});
  h.RegisterAll();
  for (int i = 0; i < 4; ++i) h.End(h.MustRun(Harness::Spec("cluster", 1)));
  EXPECT_EQ(h.store().jobs(), 2u);
  EXPECT_FALSE(h.controller().GetJob(JobId(2)).ok());
  EXPECT_TRUE(h.controller().GetJob(JobId(3)).ok());
  h.Restart();
  h.RegisterAll();
  EXPECT_EQ(h.MustSubmit(Harness::Spec("cluster", 1)), JobId(5)) << "ids are never reused";
}

}  // namespace
}  // namespace msa
