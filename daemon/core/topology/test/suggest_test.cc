#include "msa/topology/suggest.h"

#include <gtest/gtest.h>

namespace msa {
namespace {

TEST(Suggest, FindsTheNearestOfTypingErrors) {
  const std::vector<std::string> names = {"cluster", "booster", "dam"};
  EXPECT_EQ(NearestName("boster", names), "booster");
  EXPECT_EQ(NearestName("BOOSTER", names), "booster");
  EXPECT_EQ(NearestName("clutser", names), "cluster");
  EXPECT_EQ(NearestName("dma", names), "dam");
}

TEST(Suggest, StaysSilentWhenNothingIsNear) {
  EXPECT_EQ(NearestName("quantum", {"cluster", "dam"}), "");
  EXPECT_EQ(NearestName("", {"a"}), "");
  EXPECT_EQ(NearestName(std::string(100000, 'x'), {"a"}), "");
  EXPECT_EQ(DidYouMean("quantum", {"cluster"}), "");
}

TEST(Suggest, CutsLongLists) {
  EXPECT_EQ(ListNames({"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(ListNames({"a", "b", "c"}, 2), "a, b and 1 more");
}

}  // namespace
}  // namespace msa
