#include "step_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace msa::jobd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// cluster: cn0, cn1 of 4 cores each, 4 tasks (2 a node); booster: bn0 of 8 cores, 8 tasks.
struct StepPlanTest : ::testing::Test {
  StepPlanTest() {
    Add(0, "cn0", "cluster", 4);
    Add(1, "cn1", "cluster", 4);
    Add(2, "bn0", "booster", 8);
    slots.SetMembers(members);
    components = {{"cluster", 4, 0, 1, {{0, members[0].cores, 2}, {1, members[1].cores, 2}}},
                  {"booster", 8, 0, 1, {{2, members[2].cores, 8}}}};
  }
  void Add(std::uint32_t index, const std::string& name, const std::string& module, std::uint16_t cores) {
    wire::Member member;
    member.index = index;
    member.node = name;
    member.module_name = module;
    member.module_kind = module == "booster" ? "gpu" : module;
    for (std::uint16_t i = 0; i < cores; ++i) member.cores.push_back(i);
    members.push_back(member);
  }
  static wire::StepComponent Ask() {
    wire::StepComponent ask;
    ask.argv = {"./a"};
    return ask;
  }
  StepDecision Place(std::vector<wire::StepComponent> asks, bool overlap = false) {
    wire::StepOpen step;
    step.components = std::move(asks);
    step.overlap = overlap;
    return PlaceStep(step, components, slots);
  }
  std::vector<std::uint32_t> RanksOf(const StepDecision& decision) {
    EXPECT_TRUE(decision.place.has_value()) << decision.reason << decision.refusal.message();
    return decision.place ? decision.place->rank_member : std::vector<std::uint32_t>();
  }
  std::vector<wire::Member> members;
  SlotMap slots;
  std::vector<wire::PlacedComponent> components;
};

TEST_F(StepPlanTest, WithoutCountsItTakesTheFirstComponentAsItWasPlaced) {
  EXPECT_THAT(RanksOf(Place({Ask()})), ElementsAre(0, 0, 1, 1));
  EXPECT_EQ(slots.free(0), 2u);
  EXPECT_EQ(slots.free(2), 8u);
}

TEST_F(StepPlanTest, AModuleOrItsKindNamesTheComponent) {
  auto ask = Ask();
  ask.module = "gpu";
  ask.ntasks = 3;
  EXPECT_THAT(RanksOf(Place({ask})), ElementsAre(2, 2, 2));
}

TEST_F(StepPlanTest, TasksFillFewNodesAndANodeCountSpreadsThem) {
  auto ask = Ask();
  ask.ntasks = 3;
  EXPECT_THAT(RanksOf(Place({ask})), ElementsAre(0, 0, 0));
  slots.SetMembers({});
  slots.SetMembers(members);
  ask.min_nodes = ask.max_nodes = 2;
  EXPECT_THAT(RanksOf(Place({ask})), ElementsAre(0, 0, 1));
}

TEST_F(StepPlanTest, ANodeCountAloneIsATaskOnEach) {
  auto ask = Ask();
  ask.min_nodes = ask.max_nodes = 2;
  EXPECT_THAT(RanksOf(Place({ask})), ElementsAre(0, 1));
}

TEST_F(StepPlanTest, ANodeListIsExactlyTheseNodes) {
  auto ask = Ask();
  ask.nodelist = {"cn1"};
  EXPECT_THAT(RanksOf(Place({ask})), ElementsAre(1, 1));
  ask.nodelist = {"bn0"};
  ask.ntasks = 1;
  EXPECT_THAT(RanksOf(Place({ask})), ElementsAre(2));
}

TEST_F(StepPlanTest, CoresOfATaskAreOnOneNode) {
  auto ask = Ask();
  ask.ntasks = 2;
  ask.cpus_per_task = 3;
  const auto decision = Place({ask});
  EXPECT_THAT(RanksOf(decision), ElementsAre(0, 1));
  EXPECT_THAT(decision.place->rank_cores[1], ElementsAre(0, 1, 2));
}

TEST_F(StepPlanTest, ComponentsAreOneStepAllOrNothing) {
  auto a = Ask();
  a.ntasks = 2;
  auto b = Ask();
  b.component = 1;
  b.ntasks = 2;
  const auto decision = Place({a, b});
  EXPECT_THAT(RanksOf(decision), ElementsAre(0, 0, 2, 2));
  EXPECT_THAT(decision.components, ElementsAre(0, 1));
  b.ntasks = 7;
  const auto second = Place({a, b});
  EXPECT_FALSE(second.place);
  EXPECT_EQ(slots.free(0), 2u);  // nothing of it was taken
  EXPECT_EQ(second.reason,
            "7 tasks wait for slots of module 'booster' that other steps of the job use: 6 of 8 are free");
}

TEST_F(StepPlanTest, AnOverlappingStepHoldsNothingAndWaitsForNobody) {
  auto ask = Ask();
  ask.ntasks = 8;
  EXPECT_TRUE(Place({ask}).place);
  EXPECT_FALSE(Place({ask}).place);
  const auto decision = Place({ask}, true);
  ASSERT_TRUE(decision.place);
  EXPECT_THAT(decision.place->rank_cores[0], ElementsAre());
  EXPECT_EQ(slots.free(0), 0u);
}

TEST_F(StepPlanTest, WhatNeverFitsIsRefusedWithNumbers) {
  auto ask = Ask();
  ask.ntasks = 9;
  auto decision = Place({ask});
  EXPECT_EQ(decision.refusal.code(), Code::kOutOfRange);
  EXPECT_THAT(decision.refusal.message(),
              HasSubstr("9 tasks do not fit into component 0 of the job, which has 8 "
                        "slots on 2 nodes of module 'cluster'"));
  ask.ntasks = 3;
  ask.min_nodes = ask.max_nodes = 3;
  EXPECT_EQ(Place({ask}).refusal.code(), Code::kOutOfRange);
  ask.ntasks = 1;
  ask.min_nodes = ask.max_nodes = 2;
  EXPECT_EQ(Place({ask}).refusal.code(), Code::kInvalidArgument);
}

TEST_F(StepPlanTest, UnknownNamesAreRefusedWithTheNearest) {
  auto ask = Ask();
  ask.module = "boster";
  EXPECT_EQ(Place({ask}).refusal.code(), Code::kNotFound);
  EXPECT_THAT(Place({ask}).refusal.message(), HasSubstr("did you mean 'booster'?"));
  ask = Ask();
  ask.component = 5;
  EXPECT_THAT(Place({ask}).refusal.message(), HasSubstr("component 5 does not exist"));
  ask = Ask();
  ask.nodelist = {"cn7"};
  EXPECT_THAT(Place({ask}).refusal.message(), HasSubstr("node 'cn7' is not among"));
}

TEST_F(StepPlanTest, TasksBeyondTheCoresOfAnOversubscribedJobHoldNone) {
  components[0] = {"cluster", 6, 0, 1, {{0, {0, 1, 2, 3}, 6}}};
  const auto decision = Place({Ask()});
  EXPECT_THAT(RanksOf(decision), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_EQ(decision.place->rank_cores[5].size(), 0u);
  EXPECT_EQ(slots.free(0), 0u);
}

TEST_F(StepPlanTest, ANodeThatIsGoneCountsNoMore) {
  slots.Remove(1);
  auto ask = Ask();
  ask.ntasks = 5;
  EXPECT_EQ(Place({ask}).refusal.code(), Code::kOutOfRange);
  EXPECT_THAT(RanksOf(Place({Ask()})), ElementsAre(0, 0));
}

}  // namespace
}  // namespace msa::jobd
