#include "harness.h"

namespace msa {
namespace {

using namespace job_test;

class ControllerGrant : public ::testing::Test {
 protected:
  ControllerGrant() {
    h.RegisterAll();
    id = h.MustRun(Harness::Spec("cluster", 1));
    h.Clear();
  }
  void Ask(std::uint64_t request, std::uint32_t slots, const std::string& module = "booster",
           std::int64_t wait = 0) {
    h.FromHead(id, wire::GrantAsk{request, slots, {}, module, wait});
  }
  wire::GrantAnswer Answer() {
    const auto answers = h.ToJobd<wire::GrantAnswer>();
    EXPECT_EQ(answers.size(), 1u);
    return answers.empty() ? wire::GrantAnswer{} : answers[0];
  }
  Harness h;
  JobId id;
};

TEST_F(ControllerGrant, LendsFreeNodesAndTellsOldAndNewMembers) {
  Ask(1, 8);
  const wire::GrantAnswer answer = Answer();
  EXPECT_EQ(answer.grant, GrantId(1));
  EXPECT_EQ(answer.members, std::vector<std::uint32_t>{1});
  const auto starts = h.Sent<effect::SendStartJob>();
  ASSERT_EQ(starts.size(), 1u);
  EXPECT_EQ(starts[0].node, "bn0");
  EXPECT_FALSE(starts[0].launch->has_step);
  const auto changed = h.ToJobd<wire::MembersChanged>("cn0");
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].epoch, answer.epoch);
  EXPECT_EQ(changed[0].members[1].address, "unix:/d/n/bn0/j1.1");
  EXPECT_EQ(h.CoresUsed(), 9u);
  EXPECT_EQ(h.store().grants(), 1u);
  // The membership goes out before the answer that needs it.
  std::vector<std::uint16_t> order;
  for (const auto& e : h.Sent<effect::SendToJobd>()) order.push_back(e.type);
  EXPECT_EQ(order.back(), wire::GrantAnswer::kType);
}

TEST_F(ControllerGrant, ARepeatedAskGetsTheSameGrant) {
  Ask(1, 8);
  const GrantId first = Answer().grant;
  h.Clear();
  Ask(1, 8);
  EXPECT_EQ(Answer().grant, first);
  EXPECT_EQ(h.CoresUsed(), 9u);
}

TEST_F(ControllerGrant, ARefusalSaysWhatIsFreeAndAsked) {
  h.MustRun(Harness::Spec("booster", 12));
  h.Clear();
  Ask(1, 8);
  EXPECT_EQ(Answer().grant, GrantId(0));
  EXPECT_NE(Answer().reason.find("8 slots asked in module 'booster'"), std::string::npos) << Answer().reason;
}

TEST_F(ControllerGrant, ReleaseFreesTheNodesAtOnceForOthers) {
  Ask(1, 16);
  const JobId waits = h.MustSubmit(Harness::Spec("booster", 16));
  EXPECT_EQ(h.State(waits), JobState::kPending);
  h.Clear();
  h.FromHead(id, wire::GrantRelease{GrantId(1)});
  EXPECT_EQ(h.QuitNodes(), (std::vector<std::string>{"bn0", "bn1"}));
  EXPECT_EQ(h.State(waits), JobState::kStarting);
  h.Clear();
  h.FromHead(id, wire::GrantRelease{GrantId(1)});
  EXPECT_TRUE(h.Sent<effect::PutGrant>().empty()) << "idempotent";
}

TEST_F(ControllerGrant, AnAskWithoutWaitGetsTheNodesThatItsOwnJobIsJustLeaving) {
  Ask(1, 16);
  h.FromHead(id, wire::GrantRelease{GrantId(1)});
  h.Clear();
  Ask(2, 16);
  EXPECT_TRUE(h.ToJobd<wire::GrantAnswer>().empty()) << "the old job daemons are still there";
  h.On(event::JobdGone{"bn0", id, Incarnation(1), "", true});
  h.On(event::JobdGone{"bn1", id, Incarnation(1), "", true});
  EXPECT_EQ(Answer().grant, GrantId(2));
}

TEST_F(ControllerGrant, AJobDaemonThatLeavesWithoutAWordKeepsItsNodeForAMomentOnly) {
  Ask(1, 16);
  h.FromHead(id, wire::GrantRelease{GrantId(1)});
  h.Clear();
  Ask(2, 16);
  h.Live(Millis(3000));
  EXPECT_EQ(Answer().grant, GrantId(2));
}

TEST_F(ControllerGrant, AHundredGrantsInOneJobLeaveNothingBehind) {
  for (std::uint64_t n = 1; n <= 100; ++n) {
    h.Clear();
    Ask(n, 16);
    ASSERT_EQ(Answer().grant, GrantId(n));
    h.FromHead(id, wire::GrantRelease{GrantId(n)});
    h.On(event::JobdGone{"bn0", id, Incarnation(1), "", true});
    h.On(event::JobdGone{"bn1", id, Incarnation(1), "", true});
  }
  EXPECT_EQ(h.CoresUsed(), 1u);
  h.End(id);
  EXPECT_EQ(h.store().grants(), 0u);
}

TEST_F(ControllerGrant, AnAskThatMayWaitIsServedWhenNodesComeFree) {
  const JobId other = h.MustRun(Harness::Spec("booster", 16));
  h.Clear();
  Ask(1, 8, "booster", 60000);
  EXPECT_TRUE(h.ToJobd<wire::GrantAnswer>().empty());
  h.End(other);
  EXPECT_EQ(Answer().grant, GrantId(1));
}

TEST_F(ControllerGrant, AnAskThatWaitsIsRefusedWhenItsTimeIsOver) {
  h.MustRun(Harness::Spec("booster", 16));
  h.Clear();
  Ask(1, 8, "booster", 5000);
  h.Live(Millis(4000));
  EXPECT_TRUE(h.ToJobd<wire::GrantAnswer>().empty());
  h.Live(Millis(2000));
  EXPECT_EQ(Answer().grant, GrantId(0));
  EXPECT_FALSE(Answer().reason.empty());
}

TEST_F(ControllerGrant, WhatNeverExistsIsRefusedAtOnceHoweverLongItMayWait) {
  Ask(1, 99, "booster", 60000);
  EXPECT_EQ(Answer().grant, GrantId(0));
  h.Clear();
  Ask(2, 1, "boster", 60000);
  EXPECT_NE(Answer().reason.find("did you mean 'booster'?"), std::string::npos);
  h.Clear();
  Ask(3, 0);
  EXPECT_EQ(Answer().grant, GrantId(0));
}

TEST_F(ControllerGrant, AWaitingJobsPlannedStartIsNotWorsened) {
  JobSpec busy = Harness::Spec("booster", 8, 1);
  busy.time_limit_s = 60;
  h.MustRun(busy);
  h.MustSubmit(Harness::Spec("booster", 16));
  h.Clear();
  Ask(1, 8);
  EXPECT_EQ(Answer().grant, GrantId(0));
  EXPECT_NE(Answer().reason.find("planned for waiting jobs"), std::string::npos) << Answer().reason;
}

TEST_F(ControllerGrant, ALostGrantNodeTakesOnlyTheGrant) {
  Ask(1, 8);
  h.Clear();
  h.On(event::JobdGone{"bn0", id, Incarnation(1), "job daemon of job 1 on bn0 was killed", false});
  EXPECT_EQ(h.State(id), JobState::kRunning);
  const auto changed = h.ToJobd<wire::MembersChanged>("cn0");
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].members.size(), 1u);
  EXPECT_EQ(changed[0].reason, "job daemon of job 1 on bn0 was killed");
  EXPECT_EQ(h.CoresUsed(), 1u);
}

TEST_F(ControllerGrant, TheEndOfTheJobEndsItsGrants) {
  Ask(1, 8);
  h.Clear();
  h.End(id);
  EXPECT_EQ(h.QuitNodes(), std::vector<std::string>{"bn0"});
  EXPECT_EQ(h.store().grants(), 0u);
  EXPECT_EQ(h.CoresUsed(), 0u);
}

TEST_F(ControllerGrant, GrantsOutliveTheController) {
  Ask(1, 8);
  h.Restart();
  h.Register("cn0", {{id, Incarnation(1), 0, true, false}});
  h.Register("bn0", {{id, Incarnation(1), 1, false, false}});
  h.Clear();
  Ask(1, 8);
  EXPECT_EQ(Answer().grant, GrantId(1));
  h.FromHead(id, wire::GrantRelease{GrantId(1)});
  EXPECT_EQ(h.CoresUsed(), 1u);
}

TEST_F(ControllerGrant, ASmallerAlternativeIsLentWhenTheNumberAskedIsNotFree) {
  h.MustRun(Harness::Spec("booster", 12));
  h.Clear();
  wire::GrantAsk ask{1, 8, {}, "booster", 0};
  ask.alternatives = {6, 4, 2};
  h.FromHead(id, ask);
  const wire::GrantAnswer answer = Answer();
  EXPECT_NE(answer.grant, GrantId(0));
  EXPECT_EQ(answer.slots, 4u) << "16 exist, 12 are taken";
}

TEST_F(ControllerGrant, AlternativesAreTakenWhenTheWaitIsOverOnly) {
  h.MustRun(Harness::Spec("booster", 12));
  h.Clear();
  wire::GrantAsk ask{1, 8, {}, "booster", 5000};
  ask.alternatives = {4};
  h.FromHead(id, ask);
  EXPECT_TRUE(h.ToJobd<wire::GrantAnswer>().empty());
  h.Live(Millis(5500));
  EXPECT_EQ(Answer().slots, 4u);
}

TEST_F(ControllerGrant, AWithdrawnAskIsNotAnsweredAndItsLoanIsTakenBack) {
  Ask(1, 8);
  EXPECT_EQ(h.CoresUsed(), 9u);
  h.Clear();
  h.FromHead(id, wire::GrantWithdraw{1});
  EXPECT_EQ(h.CoresUsed(), 1u);
  const JobId other = h.MustRun(Harness::Spec("booster", 16));
  h.Clear();
  Ask(2, 8, "booster", 60'000);
  h.FromHead(id, wire::GrantWithdraw{2});
  h.End(other);
  EXPECT_TRUE(h.ToJobd<wire::GrantAnswer>().empty());
  EXPECT_EQ(h.CoresUsed(), 1u);
}

TEST_F(ControllerGrant, SlotsAreSpreadOverExactlyTheNodesAsked) {
  wire::GrantAsk ask{1, 4, {}, "booster", 0};
  ask.nodes_exactly = 2;
  ask.slots_per_node = 2;
  h.FromHead(id, ask);
  EXPECT_EQ(Answer().members.size(), 2u);
  EXPECT_EQ(h.CoresUsed(), 5u);
}

TEST_F(ControllerGrant, FreeCoresOfTheJobsOwnNodeAreLentAndGivenBack) {
  Ask(1, 2, "cluster");
  wire::GrantAnswer answer = Answer();
  EXPECT_EQ(answer.members, std::vector<std::uint32_t>{0});
  ASSERT_EQ(answer.shares.size(), 1u);
  EXPECT_EQ(answer.shares[0].cores, (std::vector<std::uint16_t>{1, 2}));
  EXPECT_TRUE(h.Sent<effect::SendStartJob>().empty()) << "its job daemon is there already";
  EXPECT_EQ(h.CoresUsed(), 3u);
  EXPECT_EQ(h.ToJobd<wire::MembersChanged>("cn0").at(0).members.at(0).cores.size(), 3u);
  h.Clear();
  h.FromHead(id, wire::GrantRelease{answer.grant});
  EXPECT_TRUE(h.Sent<effect::SendQuitJob>().empty());
  EXPECT_EQ(h.CoresUsed(), 1u);
  EXPECT_EQ(h.State(id), JobState::kRunning);
}

TEST_F(ControllerGrant, ANodeLentTwiceStaysUntilItsLastGrantEnds) {
  Ask(1, 2, "booster");
  const GrantId first = Answer().grant;
  h.Clear();
  Ask(2, 3, "booster");
  const wire::GrantAnswer second = Answer();
  EXPECT_EQ(second.members, std::vector<std::uint32_t>{1}) << "the node that the job has already";
  h.Clear();
  h.FromHead(id, wire::GrantRelease{first});
  EXPECT_TRUE(h.Sent<effect::SendQuitJob>().empty());
  EXPECT_EQ(h.CoresUsed(), 4u);
  h.FromHead(id, wire::GrantRelease{second.grant});
  EXPECT_EQ(h.Sent<effect::SendQuitJob>().size(), 1u);
  EXPECT_EQ(h.CoresUsed(), 1u);
}

}  // namespace
}  // namespace msa
