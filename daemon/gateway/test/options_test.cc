#include "options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace msa::gateway {
namespace {

using ::testing::HasSubstr;

TEST(GatewayOptions, ReadDelays) {
  EXPECT_EQ(ParseDelay("50us")->count(), 50'000);
  EXPECT_EQ(ParseDelay("1.5ms")->count(), 1'500'000);
  EXPECT_EQ(ParseDelay("0")->count(), 0);
  EXPECT_EQ(ParseDelay("10s")->count(), 10'000'000'000);
  for (const char* bad :
       {"", "5", "ms", "-1ms", "1e3ms", "11s", "nan s", "1 ms", "infs", "99999999999999999999s"})
    EXPECT_THAT(ParseDelay(bad).status().message(), HasSubstr("is not a delay")) << bad;
}

TEST(GatewayOptions, ReadRatesInBits) {
  EXPECT_EQ(*ParseRate("10gbit"), 10'000'000'000U);
  EXPECT_EQ(*ParseRate("2.5G"), 2'500'000'000U);
  EXPECT_EQ(*ParseRate("64k"), 64'000U);
  EXPECT_EQ(*ParseRate("1000bit"), 1000U);
  for (const char* bad : {"", "10", "0G", "-1G", "2tbit", "G", "1e3k"})
    EXPECT_THAT(ParseRate(bad).status().message(), HasSubstr("is not a rate")) << bad;
}

}  // namespace
}  // namespace msa::gateway
