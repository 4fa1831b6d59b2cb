#include "plugin_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace msa::spank {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(SpankOptions, ASizeIsTakenForAllComponentsOrByComponent) {
  for (const char* value : {"4G", "512", "512M", "0:1G,1:2G", "1:64K"}) {
    Options options;
    const Status set = SetOption(options, Option::kNam, value);
    EXPECT_TRUE(set.ok()) << value << ": " << set.message();
    EXPECT_EQ(options.step.nam, value);
  }
}

TEST(SpankOptions, WhatIsNoSizeIsRefusedWithTheValueAndARemedy) {
  for (const char* value : {"", "much", "4X", "-1", "0:1G,2G", "x:1G", "0:", "1G,2G", "99999999999T"}) {
    Options options;
    const Status set = SetOption(options, Option::kNam, value);
    ASSERT_FALSE(set.ok()) << value;
    EXPECT_THAT(set.message(), AllOf(HasSubstr("--nam"), HasSubstr(value)));
    EXPECT_EQ(options.step.nam, "");
  }
}

TEST(SpankOptions, RegionsGatewaysAndChildFailureAreJudgedBeforeAnythingStarts) {
  Options options;
  EXPECT_TRUE(SetOption(options, Option::kNamRegion, "data:ro,msa-nam:out").ok() ==
              false);  // no such mode: "out"
  EXPECT_TRUE(SetOption(options, Option::kNamRegion, "data:ro,out:rw,more").ok());
  EXPECT_FALSE(SetOption(options, Option::kNamRegion, "data:rx").ok());
  EXPECT_FALSE(SetOption(options, Option::kNamRegion, ",data").ok());
  EXPECT_TRUE(SetOption(options, Option::kGateways, "2").ok());
  EXPECT_TRUE(SetOption(options, Option::kGateways, "0:1,1:0").ok());
  EXPECT_THAT(SetOption(options, Option::kGateways, "two").message(), HasSubstr("--gateways=two"));
  EXPECT_TRUE(SetOption(options, Option::kOnChildFailure, "event").ok());
  EXPECT_THAT(SetOption(options, Option::kOnChildFailure, "ignore").message(),
              AllOf(HasSubstr("kill"), HasSubstr("event")));
  EXPECT_TRUE(SetOption(options, Option::kMsa, "no").ok());
  EXPECT_EQ(options.use, Use::kNo);
  EXPECT_THAT(SetOption(options, Option::kMsa, "maybe").message(), HasSubstr("--msa=maybe"));
}

TEST(SpankOptions, ComponentsThatDifferAreRefusedWithTheWayToWriteThem) {
  Options first, second;
  ASSERT_TRUE(SetOption(first, Option::kNam, "1G").ok());
  ASSERT_TRUE(SetOption(second, Option::kNam, "2G").ok());
  ComponentCheck check;
  EXPECT_TRUE(check.Add(first).ok());
  EXPECT_TRUE(check.Add(first).ok());
  EXPECT_THAT(check.Add(second).message(), HasSubstr("--nam=0:1G,1:2G"));
}

TEST(SpankOptions, TheLineInPlugstackConfNamesSocketAndDefault) {
  const auto arguments = ParseArguments({"socket=/run/x/p.sock", "default=no"});
  ASSERT_TRUE(arguments.ok());
  EXPECT_EQ(arguments->socket, "/run/x/p.sock");
  EXPECT_EQ(arguments->use, Use::kNo);
  EXPECT_EQ(ParseArguments({})->use, Use::kAuto);
  EXPECT_THAT(ParseArguments({"sockt=/x"}).status().message(),
              AllOf(HasSubstr("sockt=/x"), HasSubstr("socket=")));
  EXPECT_FALSE(ParseArguments({"socket=relative"}).ok());
}

}  // namespace
}  // namespace msa::spank
