#include "msa/job/port_range.h"

#include <gtest/gtest.h>

namespace msa {
namespace {

TEST(PortRange, GivesEachJobAndIncarnationAPortOfTheRange) {
  const auto port = [](std::uint64_t job, std::uint32_t incarnation) {
    return WithPortOf("tcp:10.0.0.1:%P20000-20006", JobId(job), Incarnation(incarnation));
  };
  EXPECT_EQ(port(1, 1), "tcp:10.0.0.1:20004");
  EXPECT_EQ(port(1, 2), "tcp:10.0.0.1:20005");
  EXPECT_EQ(port(2, 1), "tcp:10.0.0.1:20000");
  EXPECT_EQ(port(1, 1), port(1, 1));
}

TEST(PortRange, LeavesAddressesWithoutARangeAlone) {
  for (const char* address : {"unix:/d/n/cn0/j1.1", "tcp:10.0.0.1:7", "tcp:h:%P", "tcp:h:%P9", "tcp:h:%P9-",
                              "tcp:h:%P9-8", "tcp:h:%Px-9", ""})
    EXPECT_EQ(WithPortOf(address, JobId(1), Incarnation(1)), address);
}

TEST(PortRange, TakesARangeOfOnePort) {
  EXPECT_EQ(WithPortOf("tcp:[::1]:%P7-7", JobId(12), Incarnation(3)), "tcp:[::1]:7");
}

}  // namespace
}  // namespace msa
