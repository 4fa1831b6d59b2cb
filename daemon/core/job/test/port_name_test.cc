#include "msa/job/port_name.h"

#include <gtest/gtest.h>

namespace msa {
namespace {

// Ports that Open MPI 4.1.4 opened in these namespaces.
TEST(PortName, NumbersNamespacesAsOpenMpiDoes) {
  EXPECT_EQ(PortOwnerOf("msa.2.1.0"), 4270859165u);
  EXPECT_EQ(PortOwnerOf("msa.3.1.0"), 865167138u);
  EXPECT_EQ(PortOwnerOf("msa.4.1.0"), 2878495619u);
}

TEST(PortName, TakesKeysOfAConnectionApart) {
  const std::string key = "4270859165.0:197350388:nextcid:send:0";
  const auto parsed = ParsePortKey(key);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->owner, 4270859165u);
  EXPECT_EQ(parsed->port, "4270859165.0:197350388");
  EXPECT_EQ(parsed->use, "nextcid:send:0");
}

TEST(PortName, LeavesOtherKeysAlone) {
  for (const char* key : {"", "ocean", "1.0:2", "1.0:2:", "1:2:connect", "x1.0:2:connect", "1.0.2:connect",
                          "-1.0:2:connect", "99999999999.0:2:connect", "1.:2:accept", ".0:2:accept"})
    EXPECT_FALSE(ParsePortKey(key)) << key;
}

}  // namespace
}  // namespace msa
