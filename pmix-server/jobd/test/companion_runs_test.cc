#include "companion_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/support/run_until.h"

namespace msa::jobd {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class CompanionRunsTest : public ::testing::Test {
 protected:
  CompanionRunsTest() : loop(*EventLoop::Create()), runs(Make(MSA_TEST_COMPANION)) {}
  std::unique_ptr<CompanionRuns> Make(const std::string& program) {
    return std::make_unique<CompanionRuns>(
        *loop, program, [this](const wire::CompanionReport& report) { reports.push_back(report); });
  }
  void Ask(std::uint64_t request, const std::string& partition = "booster") {
    wire::CompanionAsk ask;
    ask.request = request;
    ask.partition = partition;
    runs->On(wire::CompanionOrder::Of(request, ask));
  }
  // Until so many reports have come.
  void Await(std::size_t count) {
    (void)support::RunUntil(*loop, Millis(20'000), [&] { return reports.size() >= count; });
    ASSERT_THAT(reports, SizeIs(count));
  }
  void AwaitEnd() {
    EXPECT_TRUE(support::RunUntil(*loop, Millis(20'000), [&] { return runs->running() == 0; }));
  }

  std::unique_ptr<EventLoop> loop;
  std::vector<wire::CompanionReport> reports;
  std::unique_ptr<CompanionRuns> runs;
};

TEST_F(CompanionRunsTest, FramesGoBothWays) {
  Ask(5);
  Await(1);
  EXPECT_EQ(reports[0].request, 5u);
  ASSERT_EQ(reports[0].type, wire::CompanionGranted::kType);
  EXPECT_EQ(wire::Decode<wire::CompanionGranted>(reports[0].payload)->job, JobId(5));
  runs->On(wire::CompanionOrder::Of(5, wire::CompanionRelease()));
  Await(2);
  EXPECT_EQ(reports[1].type, wire::CompanionEnded::kType);
  AwaitEnd();
}

TEST_F(CompanionRunsTest, ARepeatedAskRepeatsTheAnswerAndStartsNothing) {
  Ask(5);
  Await(1);
  Ask(5);
  Await(2);
  EXPECT_EQ(reports[1].type, wire::CompanionGranted::kType);
  EXPECT_EQ(runs->running(), 1u);
  runs->On(wire::CompanionOrder::Of(5, wire::CompanionRelease()));
  Await(3);
  AwaitEnd();
  Ask(5);
  Await(4);
  EXPECT_EQ(reports[3].type, wire::CompanionEnded::kType);
  EXPECT_EQ(runs->running(), 0u);
}

TEST_F(CompanionRunsTest, OneThatDiesIsToldAndGoesOnWithItsJobWhenAskedAgain) {
  Ask(5, "");
  Await(1);
  EXPECT_EQ(reports[0].type, 0u);
  EXPECT_THAT(reports[0].payload, HasSubstr("code 3"));
  Ask(5, "");
  Await(2);
  EXPECT_EQ(reports[1].type, wire::CompanionGranted::kType);
}

TEST_F(CompanionRunsTest, AProgramThatIsNotThereIsNamed) {
  runs = Make("/nonexistent/msa-companion");
  Ask(5);
  Await(1);
  EXPECT_EQ(reports[0].type, 0u);
  EXPECT_THAT(reports[0].payload, HasSubstr("/nonexistent/msa-companion"));
}

TEST_F(CompanionRunsTest, ClosedTheyEnd) {
  Ask(5);
  Ask(6);
  Await(2);
  bool closed = false;
  runs->Close([&] { closed = runs->running() == 0; });
  const SteadyTime limit = SteadyNow() + Millis(20'000);
  while (!closed && SteadyNow() < limit) (void)loop->RunOnce(Millis(100));
  EXPECT_TRUE(closed);
  EXPECT_THAT(reports, SizeIs(2)) << "nothing more is told of them";
}

TEST_F(CompanionRunsTest, WhereNoneRunsTheyAreClosedSoon) {
  bool closed = false;
  runs->Close([&] { closed = true; });
  EXPECT_FALSE(closed) << "never inside the call";
  (void)loop->RunOnce(Millis(100));
  EXPECT_TRUE(closed);
}

}  // namespace
}  // namespace msa::jobd
