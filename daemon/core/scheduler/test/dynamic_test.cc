#include <gtest/gtest.h>

#include "fixture.h"

namespace msa {
namespace {

using scheduler_test::Ask;
using scheduler_test::kNow;
using scheduler_test::Small;
using scheduler_test::ViewOf;

class LendingTest : public ::testing::Test {
 protected:
  LendingTest() {
    // Job 1 asks: it holds cn0.
    Running(1, 0, 4, kNever);
    request_.job = JobId(1);
    request_.avoid = {0};
  }
  void Running(std::uint64_t id, std::uint32_t node, std::uint16_t cores, Instant end) {
    NodeShare share{0, node, {}, cores, Bytes(), 0};
    for (std::uint16_t c = 0; c < cores; ++c) share.cores.push_back(c);
    view_.running.push_back({JobId(id), end, {share}});
  }
  PendingJob Job(std::uint64_t id, ComponentRequest c, std::optional<Millis> limit = {}) {
    PendingJob job{JobId(id), {{std::move(c)}, limit, false}};
    EXPECT_TRUE(FillDefaults(job.request, topology_).ok());
    return job;
  }
  DynamicAnswer Find(std::vector<PendingJob> pending = {}) {
    return FindDynamic(view_, pending, request_, kNow);
  }

  SystemTopology topology_ = Small();
  ClusterView view_ = ViewOf(topology_);
  DynamicRequest request_;
};

TEST_F(LendingTest, PrefersTheModulesOfTheAskingJob) {
  request_.slots = 2;
  const DynamicAnswer answer = Find();
  ASSERT_TRUE(answer.lent) << answer.reason;
  ASSERT_EQ(answer.lent->size(), 1u);
  EXPECT_EQ((*answer.lent)[0].node, 1u);
  EXPECT_EQ((*answer.lent)[0].cores.size(), 2u);
}

TEST_F(LendingTest, TakesAnotherModuleWhenTheFirstDoesNotSuffice) {
  request_.slots = 6;
  const DynamicAnswer answer = Find();
  ASSERT_TRUE(answer.lent) << answer.reason;
  ASSERT_EQ(answer.lent->size(), 1u);
  EXPECT_EQ((*answer.lent)[0].node, 2u);
}

TEST_F(LendingTest, ObeysModuleAndNodes) {
  request_.slots = 1;
  request_.module = "dam";
  EXPECT_EQ((*Find().lent)[0].node, 4u);
  request_.module.clear();
  request_.nodes = {"bn1"};
  EXPECT_EQ((*Find().lent)[0].node, 3u);
}

TEST_F(LendingTest, ARefusalSaysWhatIsFreeWhatIsAskedAndWhenItCouldStart) {
  Running(2, 2, 8, kNow + Millis(90000));
  request_.slots = 12;
  request_.module = "booster";
  const DynamicAnswer answer = Find();
  ASSERT_FALSE(answer.lent);
  EXPECT_TRUE(answer.possible_later);
  EXPECT_EQ(answer.reason,
            "12 slots asked in module 'booster' beyond those of the job, 8 free on 1 node; it could start "
            "in about 90 s");
}

TEST_F(LendingTest, WhatNeverExistsIsRefusedForGood) {
  request_.slots = 100;
  request_.module = "booster";
  const DynamicAnswer answer = Find();
  EXPECT_FALSE(answer.lent);
  EXPECT_FALSE(answer.possible_later);
  EXPECT_NE(answer.reason.find("only 16 exist"), std::string::npos) << answer.reason;
  request_.module = "boster";
  EXPECT_NE(Find().reason.find("did you mean 'booster'?"), std::string::npos);
}

TEST_F(LendingTest, WorsensNoPlannedStart) {
  Running(2, 2, 8, kNow + Millis(60000));
  const PendingJob waiting = Job(3, Ask("booster", 16, 2), Millis(1000));
  request_.slots = 8;
  request_.module = "booster";
  const DynamicAnswer refused = Find({waiting});
  EXPECT_FALSE(refused.lent);
  EXPECT_NE(refused.reason.find("8 of them planned for waiting jobs"), std::string::npos) << refused.reason;
  // A job that ends before the planned start may have them.
  request_.until = kNow + Millis(60000);
  EXPECT_TRUE(Find({waiting}).lent);
}

TEST_F(LendingTest, LendsNoNodeThatIsAwayOrToBeAvoided) {
  request_.slots = 1;
  request_.module = "cluster";
  view_.usable[1] = false;
  EXPECT_FALSE(Find().lent);
  view_.usable[1] = true;
  request_.avoid = {0, 1};
  EXPECT_FALSE(Find().lent);
}

TEST_F(LendingTest, FreeCoresOfTheJobsOwnNodesComeFirst) {
  Running(2, 2, 3, kNever);
  request_.avoid = {};
  request_.own = {0, 2};
  request_.slots = 6;
  request_.module = "booster";
  const DynamicAnswer answer = Find();
  ASSERT_TRUE(answer.lent) << answer.reason;
  ASSERT_EQ(answer.lent->size(), 2u);
  EXPECT_EQ((*answer.lent)[0].node, 2u);
  EXPECT_EQ((*answer.lent)[0].cores, (std::vector<std::uint16_t>{3, 4, 5, 6, 7}));
  EXPECT_EQ((*answer.lent)[1].cores.size(), 1u);
}

TEST_F(LendingTest, SpreadsEvenlyOverExactlyTheNodesAsked) {
  request_.slots = 5;
  request_.module = "booster";
  request_.nodes_exactly = 2;
  const DynamicAnswer answer = Find();
  ASSERT_TRUE(answer.lent) << answer.reason;
  ASSERT_EQ(answer.lent->size(), 2u);
  EXPECT_EQ((*answer.lent)[0].cores.size() + (*answer.lent)[1].cores.size(), 5u);
  request_.nodes_exactly = 3;
  EXPECT_FALSE(Find().lent);
  EXPECT_FALSE(Find().possible_later);
}

}  // namespace
}  // namespace msa
