#include "msa/job/nam_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace msa {
namespace {

using ::testing::HasSubstr;

TEST(NamOptions, SizesOfComponentsAddUp) {
  EXPECT_EQ(*ParseNamOfComponents("4G"), Bytes(std::uint64_t{4} << 30));
  EXPECT_EQ(*ParseNamOfComponents("0:1G,1:2G"), Bytes(std::uint64_t{3} << 30));
  EXPECT_EQ(*ParseNamOfComponents(""), Bytes());
}

TEST(NamOptions, WhatIsNoSizeIsRefusedByValue) {
  for (const char* text : {"x", "0:", ":1G", "0:1G,", "0:1G,2G", "a:1G", "1G,2G", "0:8000000T,1:8000000T"}) {
    const auto size = ParseNamOfComponents(text);
    EXPECT_FALSE(size.ok()) << text;
  }
  EXPECT_THAT(ParseNamOfComponents("0:1G,2G").status().message(), HasSubstr("'2G'"));
}

TEST(NamOptions, GatewaysOfComponentsAddUp) {
  EXPECT_EQ(*ParseGatewaysOfComponents("2"), 2u);
  EXPECT_EQ(*ParseGatewaysOfComponents("0:1,1:0,3:2"), 3u);
  EXPECT_EQ(*ParseGatewaysOfComponents(""), 0u);
  for (const char* text : {"two", "-1", "0:", "0:1,0:1", "0:1,2", "70000", "0:65536,1:1", "1,1"})
    EXPECT_FALSE(ParseGatewaysOfComponents(text).ok()) << text;
  EXPECT_THAT(ParseGatewaysOfComponents("0:1,0:2").status().message(),
              HasSubstr("component 0 is there twice"));
}

TEST(NamOptions, RegionsAreSeparatedByCommas) {
  const auto regions = ParseNamRegions("field:ro,mesh");
  ASSERT_TRUE(regions.ok());
  ASSERT_EQ(regions->size(), 2u);
  EXPECT_EQ((*regions)[0].region, "field");
  EXPECT_EQ((*regions)[0].rights, NamRights::kRead);
  EXPECT_EQ((*regions)[1].rights, NamRights::kRead | NamRights::kWrite);
  EXPECT_TRUE(ParseNamRegions("")->empty());
  for (const char* text : {"field,", ",field", "field:rx", "a,a", "-x"})
    EXPECT_FALSE(ParseNamRegions(text).ok()) << text;
}

}  // namespace
}  // namespace msa
