#include "pool_policy.h"

#include <gtest/gtest.h>

namespace msa::node {
namespace {

const SteadyTime kStart = SteadyTime{} + Millis(100'000);

TEST(PoolPolicy, ALaunchAloneHasItsRefillWaitAndChangesNoTarget) {
  PoolPolicy policy({.least = 2, .most = 8});
  EXPECT_EQ(policy.Target(kStart), 2U);
  EXPECT_LE(policy.RefillAfter(0), kStart);
  policy.OnAssigned(kStart);
  EXPECT_EQ(policy.Target(kStart), 2U);
  EXPECT_EQ(policy.RefillAfter(1), kStart + Millis(30));
}

TEST(PoolPolicy, LaunchesASecondApartAreNoBurst) {
  PoolPolicy policy({.least = 2, .most = 8});
  for (int i = 0; i < 5; ++i) policy.OnAssigned(kStart + Millis(1'000 * i));
  EXPECT_EQ(policy.Target(kStart + Millis(4'000)), 2U);
  EXPECT_EQ(policy.RefillAfter(1), kStart + Millis(4'030));
}

TEST(PoolPolicy, ABurstRaisesTheTargetToItsRateUpToTheMost) {
  PoolPolicy policy({.least = 2, .most = 8});
  SteadyTime now = kStart;
  for (std::uint32_t launches = 1; launches <= 30; ++launches, now += Millis(10)) {
    policy.OnAssigned(now);
    EXPECT_EQ(policy.Target(now), std::clamp(launches, 2U, 8U));
  }
}

TEST(PoolPolicy, InABurstThePoolIsKeptFromRunningDryAtOnceAndGrowsInThePauses) {
  PoolPolicy policy({.least = 2, .most = 8});
  SteadyTime now = kStart;
  for (int i = 0; i < 5; ++i) policy.OnAssigned(now += Millis(10));
  EXPECT_LE(policy.RefillAfter(0), now);
  EXPECT_LE(policy.RefillAfter(1), now);
  EXPECT_EQ(policy.RefillAfter(2), now + Millis(30));
}

TEST(PoolPolicy, TheTargetFallsBackAfterTheIdleTime) {
  PoolPolicy policy({.least = 2, .most = 8});
  SteadyTime now = kStart;
  for (int i = 0; i < 6; ++i) policy.OnAssigned(now += Millis(10));
  EXPECT_EQ(policy.ShrinkAt(), now + Millis(10'000));
  EXPECT_EQ(policy.Target(now + Millis(9'999)), 6U);
  EXPECT_EQ(policy.Target(now + Millis(10'000)), 2U);
  policy.OnAssigned(now + Millis(20'000));
  EXPECT_EQ(policy.Target(now + Millis(20'000)), 2U);
}

TEST(PoolPolicy, NoPoolStaysNoPool) {
  PoolPolicy policy({.least = 0, .most = 8});
  SteadyTime now = kStart;
  for (int i = 0; i < 20; ++i) policy.OnAssigned(now += Millis(10));
  EXPECT_EQ(policy.Target(now), 0U);
}

TEST(PoolPolicy, APoolLargerThanTheMostIsKept) {
  PoolPolicy policy({.least = 20, .most = 8});
  SteadyTime now = kStart;
  for (int i = 0; i < 30; ++i) policy.OnAssigned(now += Millis(10));
  EXPECT_EQ(policy.Target(now), 20U);
}

}  // namespace
}  // namespace msa::node
