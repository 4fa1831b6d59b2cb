#include <arpa/inet.h>
#include <netinet/in.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/adapters/enrol/member_dialer.h"
#include "msa/adapters/tls/tcp_socket.h"

namespace msa {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

TEST(Addresses, AreThoseOfANameOrTheNumberItself) {
  EXPECT_THAT(*AddressesOf("localhost"), Contains("127.0.0.1"));
  EXPECT_THAT(*AddressesOf("10.77.0.20"), ElementsAre("10.77.0.20"));
  EXPECT_EQ(AddressesOf("no such host").status().code(), Code::kUnavailable);
}

TEST(Addresses, OfIPv4AreNeverWrittenAsIPv6) {
  sockaddr_in6 mapped{};
  mapped.sin6_family = AF_INET6;
  ASSERT_EQ(::inet_pton(AF_INET6, "::ffff:10.77.0.20", &mapped.sin6_addr), 1);
  EXPECT_EQ(NumberOf(reinterpret_cast<const sockaddr*>(&mapped), sizeof mapped), "10.77.0.20");
  ASSERT_EQ(::inet_pton(AF_INET6, "fd00::20", &mapped.sin6_addr), 1);
  EXPECT_EQ(NumberOf(reinterpret_cast<const sockaddr*>(&mapped), sizeof mapped), "fd00::20");
}

TEST(ControllerAddress, HasItsEnrolmentAtTheNextPort) {
  const auto address = ParseControllerAddress("tls:ctl:7701");
  ASSERT_TRUE(address.ok());
  EXPECT_EQ(address->tls, "ctl:7701");
  EXPECT_EQ(address->enrol, "ctl:7702");
  EXPECT_EQ(ParseControllerAddress("tls:[fd00::1]:1")->enrol, "[fd00::1]:2");
  for (const char* bad : {"", "ctl:7701", "tls:", "tls:ctl", "tls::7701", "tls:ctl:", "tls:ctl:0",
                          "tls:ctl:65535", "tls:ctl:7701x", "tls:ctl:-1"})
    EXPECT_EQ(ParseControllerAddress(bad).status().code(), Code::kInvalidArgument) << bad;
}

}  // namespace
}  // namespace msa
