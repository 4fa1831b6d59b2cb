#include "size_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace msa::companion {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

wire::CompanionAsk Ask(std::uint32_t slots, std::vector<std::uint32_t> alternatives = {}) {
  wire::CompanionAsk ask;
  ask.parent = JobId(1);
  ask.partition = "booster";
  ask.slots = slots;
  ask.alternatives = std::move(alternatives);
  return ask;
}

wire::SlurmNodeCores Node(std::string name, std::uint16_t cores) {
  wire::SlurmNodeCores node{.node = std::move(name), .cores = {}};
  for (std::uint16_t i = 0; i < cores; ++i) node.cores.push_back(i);
  return node;
}

TEST(SizeChoice, AsksForCoresWhereNothingIsSaidOfNodes) {
  EXPECT_EQ(ExactRequest(Ask(10)), (SizeRequest{.min_nodes = 1, .tasks = 10}));
}

TEST(SizeChoice, AsksForAsManyNodesAsHoldTheSlots) {
  auto ask = Ask(5);
  ask.slots_per_node = 2;
  EXPECT_EQ(ExactRequest(ask),
            (SizeRequest{.min_nodes = 3, .max_nodes = 3, .tasks = 5, .tasks_per_node = 2}));
  ask.nodes_exactly = 4;
  EXPECT_EQ(ExactRequest(ask),
            (SizeRequest{.min_nodes = 4, .max_nodes = 4, .tasks = 5, .tasks_per_node = 2}));
  ask.exclusive = true;
  EXPECT_TRUE(ExactRequest(ask).whole_nodes);
}

TEST(SizeChoice, ASetIsARangeOfNodes) {
  auto ask = Ask(8, {6, 3});
  ask.slots_per_node = 2;
  EXPECT_EQ(RangeRequest(ask, {}), (SizeRequest{.min_nodes = 2, .max_nodes = 4, .tasks_per_node = 2}));
}

TEST(SizeChoice, ASetWithoutNodesIsForAllCoresOfItsNodes) {
  auto ask = Ask(20, {9});
  const std::vector<NodeFacts> nodes{{"bn0", 8}, {"bn1", 16}};
  EXPECT_EQ(RangeRequest(ask, nodes), (SizeRequest{.min_nodes = 2, .max_nodes = 3, .tasks_per_node = 8}));
  ask.nodes = {"bn1"};
  EXPECT_EQ(RangeRequest(ask, nodes), (SizeRequest{.min_nodes = 1, .max_nodes = 2, .tasks_per_node = 16}));
  EXPECT_EQ(RangeRequest(ask, {}).max_nodes, 20U) << "of nodes that are not known";
  EXPECT_EQ(RangeRequest(ask, {{"odd", 0}}).max_nodes, 20U);
}

TEST(SizeChoice, OnlyAnExclusiveSetIsForExclusiveNodesAndKeepsThem) {
  auto ask = Ask(20, {7});
  EXPECT_TRUE(MayShrink(ask));
  ask.exclusive = true;
  EXPECT_FALSE(MayShrink(ask));
  EXPECT_EQ(RangeRequest(ask, {{"bn0", 8}, {"bn1", 16}}),
            (SizeRequest{.min_nodes = 1, .max_nodes = 3, .tasks = 7, .whole_nodes = true}));
}

TEST(SizeChoice, ASetOnANumberOfNodesKeepsThem) {
  auto ask = Ask(8, {4, 1});
  ask.nodes_exactly = 2;
  EXPECT_EQ(RangeRequest(ask, {}),
            (SizeRequest{.min_nodes = 2, .max_nodes = 2, .tasks = 2, .whole_nodes = true}));
}

TEST(SizeChoice, TakesTheLargestMemberThatFits) {
  const auto fit = ChooseFit(Ask(20, {16, 12, 7, 1}), {Node("bn0", 8), Node("bn1", 4)});
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->slots, 12U);
  EXPECT_THAT(fit->keep, ElementsAre("bn0", "bn1"));
}

TEST(SizeChoice, GivesBackTheNodesThatItDoesNotNeed) {
  const auto fit = ChooseFit(Ask(20, {9}), {Node("a", 2), Node("b", 8), Node("c", 1), Node("d", 2)});
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->slots, 9U);
  EXPECT_THAT(fit->keep, ElementsAre("a", "b")) << "the fullest first, told in Slurm's order";
}

TEST(SizeChoice, CountsNoMoreOfANodeThanWasAsked) {
  auto ask = Ask(4, {2});
  ask.slots_per_node = 1;
  const auto fit = ChooseFit(ask, {Node("a", 8), Node("b", 8)});
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->slots, 2U);
  EXPECT_THAT(fit->keep, ElementsAre("a", "b"));
}

TEST(SizeChoice, KeepsAllOfAnExactNumberOfNodes) {
  auto ask = Ask(2);
  ask.nodes_exactly = 2;
  EXPECT_THAT(ChooseFit(ask, {Node("a", 8), Node("b", 8)})->keep, ElementsAre("a", "b"));
}

TEST(SizeChoice, FindsNothingInTooLittle) {
  EXPECT_FALSE(ChooseFit(Ask(3, {2}), {Node("a", 1)}));
  EXPECT_FALSE(ChooseFit(Ask(1), {}));
  EXPECT_FALSE(ChooseFit(Ask(3, {0}), {Node("a", 1)})) << "no process at all needs no job";
}

TEST(SizeChoice, LeavesOutTheNodesThatWereNotNamed) {
  auto ask = Ask(1);
  const std::vector<NodeFacts> nodes{{"a", 1}, {"b", 1}, {"c", 1}};
  EXPECT_TRUE(ExcludedNodes(ask, nodes)->empty());
  ask.nodes = {"b"};
  EXPECT_THAT(*ExcludedNodes(ask, nodes), ElementsAre("a", "c"));
  ask.nodes = {"b", "x"};
  EXPECT_THAT(ExcludedNodes(ask, nodes).status().message(), HasSubstr("no node x in partition 'booster'"));
}

TEST(SizeChoice, RefusesAsksThatMakeNoSense) {
  EXPECT_TRUE(CheckAsk(Ask(4, {3, 0})).ok());
  const auto refused = [](auto change, const std::string& part) {
    auto ask = Ask(4, {3});
    change(ask);
    const Status status = CheckAsk(ask);
    EXPECT_FALSE(status.ok()) << part;
    EXPECT_THAT(status.message(), HasSubstr(part));
  };
  refused([](auto& ask) { ask.version = 9; }, "version 9");
  refused([](auto& ask) { ask.parent = JobId(0); }, "parent job 0");
  refused([](auto& ask) { ask.parent = JobId(std::uint64_t{1} << 32); }, "parent job");
  refused([](auto& ask) { ask.slots = 0; }, "0 slots");
  refused([](auto& ask) { ask.slots = UINT32_MAX; }, "expected 1 to");
  refused([](auto& ask) { ask.alternatives = {3, 3}; }, "alternative 3 follows 3");
  refused([](auto& ask) { ask.alternatives = {4}; }, "alternative 4 follows 4");
  refused([](auto& ask) { ask.nodes_exactly = 5; }, "each node needs one");
  refused([](auto& ask) { ask.nodes_exactly = 2, ask.slots_per_node = 1; }, "do not fit");
  refused([](auto& ask) { ask.wait_ms = -1; }, "negative");
  refused([](auto& ask) { ask.partition = "a\nb"; }, "control character");
  refused([](auto& ask) { ask.features = std::string(5000, 'x'); }, "5000 bytes");
}

}  // namespace
}  // namespace msa::companion
