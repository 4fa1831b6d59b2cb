#include "slot_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace msa::jobd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

wire::Member Node(std::uint32_t index, const std::string& name, const std::string& module,
                  std::uint16_t cores) {
  wire::Member member;
  member.index = index;
  member.node = name;
  member.module_name = member.module_kind = module;
  for (std::uint16_t i = 0; i < cores; ++i) member.cores.push_back(i);
  return member;
}

SlotMap TwoNodes() {
  SlotMap slots;
  slots.SetMembers({Node(0, "cn0", "cluster", 2), Node(1, "bn0", "booster", 4)});
  return slots;
}

TEST(SlotMap, TakesTheLowestCoresAndTakesThemBack) {
  SlotMap slots = TwoNodes();
  const auto first = slots.Take(1, 2);
  EXPECT_THAT(first, ElementsAre(0, 1));
  EXPECT_EQ(slots.free(1), 2u);
  slots.Give(1, first);
  EXPECT_EQ(slots.free(), slots.total());
}

TEST(SlotMap, TakesAllOrNothing) {
  SlotMap slots = TwoNodes();
  EXPECT_THAT(slots.Take(0, 3), IsEmpty());
  EXPECT_EQ(slots.free(0), 2u);
}

TEST(SlotMap, KeepsWhatIsTakenWhenTheMembershipChanges) {
  SlotMap slots = TwoNodes();
  (void)slots.Take(1, 3);
  slots.SetMembers({Node(1, "bn0", "booster", 6), Node(2, "bn1", "booster", 1)});
  EXPECT_EQ(slots.free(1), 3u);
  EXPECT_EQ(slots.total(), 7u);
  EXPECT_EQ(slots.member(0), nullptr);
}

TEST(PlaceSpawn, FillsMembersInOrder) {
  SlotMap slots = TwoNodes();
  const auto decision = PlaceSpawn({{3, {}, {}}}, slots);
  ASSERT_TRUE(decision.ok() && decision->fits);
  EXPECT_THAT(decision->place.rank_member, ElementsAre(0, 0, 1));
  EXPECT_EQ(slots.free(), 3u);
}

TEST(PlaceSpawn, HostWithCountLimitsTheTasksThere) {
  SlotMap slots = TwoNodes();
  const auto decision = PlaceSpawn({{2, {"bn0:1", "cn0"}, {}}}, slots);
  ASSERT_TRUE(decision.ok() && decision->fits);
  EXPECT_THAT(decision->place.rank_member, ElementsAre(0, 0));
  const auto more = PlaceSpawn({{2, {"bn0:1"}, {}}}, slots);
  ASSERT_TRUE(more.ok());
  EXPECT_FALSE(more->fits);
  EXPECT_EQ(more->shortage.missing, 1u);
  EXPECT_THAT(more->shortage.nodes, ElementsAre("bn0"));
}

TEST(PlaceSpawn, ShortageTakesNothingAndNamesTheCommand) {
  SlotMap slots = TwoNodes();
  const auto decision = PlaceSpawn({{4, {}, {}}, {4, {}, {}}}, slots);
  ASSERT_TRUE(decision.ok());
  EXPECT_FALSE(decision->fits);
  EXPECT_EQ(decision->shortage.command, 1u);
  EXPECT_EQ(decision->shortage.missing, 2u);
  EXPECT_EQ(slots.free(), 6u);
}

TEST(PlaceSpawn, ModuleRestrictsByNameOrKind) {
  SlotMap slots = TwoNodes();
  const auto decision = PlaceSpawn({{1, {}, "booster"}}, slots);
  ASSERT_TRUE(decision.ok() && decision->fits);
  EXPECT_THAT(decision->place.rank_member, ElementsAre(1));
}

TEST(PlaceSpawn, MalformedHostIsRefusedWithItsText) {
  SlotMap slots = TwoNodes();
  for (const char* host : {"bn0:", "bn0:0", "bn0:x", ":2", ""}) {
    const auto decision = PlaceSpawn({{1, {host}, {}}}, slots);
    ASSERT_FALSE(decision.ok()) << host;
    EXPECT_NE(decision.status().message().find(std::string("'") + host + "'"), std::string::npos);
  }
}

}  // namespace
}  // namespace msa::jobd
