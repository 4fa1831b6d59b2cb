#include "msa/job/resource_limits.h"

#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace msa {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(ResourceLimits, AreFoundBySrunsNames) {
  EXPECT_EQ(FindLimit("NOFILE"), RLIMIT_NOFILE);
  EXPECT_EQ(FindLimit("rlimit_core"), RLIMIT_CORE);
  EXPECT_EQ(FindLimit("NOFILES"), std::nullopt);
  EXPECT_EQ(FindLimit(""), std::nullopt);
  EXPECT_EQ(kUnlimited, RLIM_INFINITY);
  EXPECT_EQ(kResources, static_cast<int>(RLIM_NLIMITS));
  for (const NamedLimit& limit : kNamedLimits) {
    EXPECT_EQ(FindLimit(limit.name), limit.resource);
    EXPECT_EQ(LimitName(limit.resource), limit.name);
  }
  EXPECT_EQ(LimitName(RLIMIT_NICE), "number 13");
}

TEST(ResourceLimits, RefuseNumbersThatAreNoneAndSoftLimitsAboveHardOnes) {
  EXPECT_TRUE(CheckLimits({}).ok());
  EXPECT_TRUE(CheckLimits({{RLIMIT_NOFILE, 10, 10}, {RLIMIT_CORE, 0, RLIM_INFINITY}}).ok());
  for (const std::int32_t number : {-1, 16, 1000}) {
    const Status status = CheckLimits({{number, 1, 1}});
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << number;
    EXPECT_THAT(status.message(), HasSubstr(std::to_string(number)));
  }
  EXPECT_EQ(CheckLimits({{RLIMIT_NOFILE, 11, 10}}).message(),
            "resource limit NOFILE: the soft limit 11 is above the hard limit 10; lower it");
  EXPECT_THAT(CheckLimits({{RLIMIT_STACK, RLIM_INFINITY, 10}}).message(), HasSubstr("unlimited"));
  EXPECT_THAT(CheckLimits({{RLIMIT_CORE, 1, 1}, {RLIMIT_CORE, 1, 1}}).message(), HasSubstr("twice"));
}

TEST(ResourceLimits, OnlySoftLimitsAboveTheHardOneHereAreLowered) {
  const std::vector<wire::ResourceLimit> own = {{RLIMIT_NOFILE, 256, 1024}, {RLIMIT_CORE, 0, RLIM_INFINITY}};
  EXPECT_THAT(LoweredLimits({{RLIMIT_NOFILE, 1024, 4096}, {RLIMIT_CORE, RLIM_INFINITY, RLIM_INFINITY}}, own),
              SizeIs(0));
  const auto lowered = LoweredLimits({{RLIMIT_NOFILE, 2048, 4096}, {RLIMIT_STACK, 1, 1}}, own);
  ASSERT_THAT(lowered, SizeIs(1));
  EXPECT_THAT(lowered[0], HasSubstr("limit NOFILE: 2048 asked, lowered to 1024"));
  EXPECT_THAT(LoweredLimits({{RLIMIT_NOFILE, RLIM_INFINITY, RLIM_INFINITY}}, own).at(0),
              HasSubstr("unlimited asked"));
}

}  // namespace
}  // namespace msa
