#include "msa/topology/host_list.h"

#include <gtest/gtest.h>

namespace msa {
namespace {

using Names = std::vector<std::string>;

TEST(HostList, ExpandsRangesInOrder) {
  EXPECT_EQ(*ExpandHostList("cn[0-3,7]"), (Names{"cn0", "cn1", "cn2", "cn3", "cn7"}));
  EXPECT_EQ(*ExpandHostList("dn0,bn[1,0]"), (Names{"dn0", "bn1", "bn0"}));
  EXPECT_EQ(*ExpandHostList(""), Names{});
}

TEST(HostList, KeepsLeadingZerosAndMultipliesGroups) {
  EXPECT_EQ(*ExpandHostList("n[08-10]"), (Names{"n08", "n09", "n10"}));
  EXPECT_EQ(*ExpandHostList("r[0-1]n[0-1]x"), (Names{"r0n0x", "r0n1x", "r1n0x", "r1n1x"}));
}

TEST(HostList, RefusesWhatIsMalformedWithTheExpression) {
  for (const char* bad :
       {"cn[", "cn]", "cn[]", "cn[a]", "cn[3-1]", "cn[1-]", ",cn0", "cn0,", "cn0,,cn1", "cn[[0]]",
        "cn[0-99999]", "a[0-999]b[0-999]", "cn[1-99999999999999999999]", "cn[-1]"}) {
    const auto names = ExpandHostList(bad);
    ASSERT_FALSE(names.ok()) << bad;
    EXPECT_EQ(names.status().code(), Code::kInvalidArgument);
    EXPECT_NE(names.status().message().find(bad), std::string::npos);
  }
}

TEST(HostList, RefusesLongNamesBeforeTheyFillTheMemory) {
  const auto names = ExpandHostList(std::string(200'000, 'n') + "[0-65535]");
  ASSERT_FALSE(names.ok());
  EXPECT_EQ(names.status().code(), Code::kInvalidArgument);
  EXPECT_NE(names.status().message().find("more than 255 bytes"), std::string::npos);
}

TEST(HostList, CompressesToTheShortestForm) {
  EXPECT_EQ(CompressHostList({"bn0", "bn1", "cn3"}), "bn[0-1],cn3");
  EXPECT_EQ(CompressHostList({"cn7", "cn0", "cn1", "cn0"}), "cn[0-1,7]");
  EXPECT_EQ(CompressHostList({"n08", "n09", "n10"}), "n[08-09],n10");
  EXPECT_EQ(CompressHostList({"login", "login"}), "login");
  EXPECT_EQ(CompressHostList({}), "");
  const std::string odd("n\0", 2);
  EXPECT_EQ(CompressHostList({"n", odd + "5"}), "n," + odd + "5");
}

TEST(HostList, CompressionIsUndoneByExpansion) {
  const Names names = {"a0", "a1", "a2", "a9", "b01", "b02", "x"};
  EXPECT_EQ(*ExpandHostList(CompressHostList(names)), names);
}

}  // namespace
}  // namespace msa
