#include "msa/base/ids.h"

#include <type_traits>
#include <unordered_set>

#include <gtest/gtest.h>

#include "msa/base/clock.h"

namespace msa {
namespace {

TEST(Ids, OfDifferentKindsDoNotMix) {
  static_assert(!std::is_convertible_v<JobId, StepId>);
  static_assert(!std::is_convertible_v<std::uint64_t, JobId>);
  static_assert(!std::is_convertible_v<JobId, std::uint64_t>);
  EXPECT_EQ(JobId().value, 0u);
}

TEST(Ids, OrderAndHashByTheirNumber) {
  EXPECT_LT(JobId(2), JobId(10));
  const std::unordered_set<JobId> ids = {JobId(1), JobId(2), JobId(1)};
  EXPECT_EQ(ids.size(), 2u);
}

TEST(Ids, FormatAsTheirNumberWithItsOptions) {
  EXPECT_EQ(fmt::format("job {} rank {:>4}", JobId(42), Rank(7)), "job 42 rank    7");
}

TEST(Clock, UnixMillisSurviveARoundTrip) {
  EXPECT_EQ(ToUnixMillis(FromUnixMillis(1'700'000'000'123)), 1'700'000'000'123);
  EXPECT_GT(ToUnixMillis(Now()), 1'600'000'000'000);
}

}  // namespace
}  // namespace msa
