#include "fabric_start.h"

#include <netinet/in.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/support/scratch_directory.h"

namespace msa::namd {
namespace {

using ::testing::ElementsAre;

std::string AddressOf(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  return {reinterpret_cast<const char*>(&address), sizeof address};
}

class Bound : public nam::FabricServer {
 public:
  explicit Bound(std::uint16_t port) : address_(AddressOf(port)) {}
  const std::string& provider() const override { return provider_; }
  const std::string& address() const override { return address_; }
  Result<nam::FabricKey> Register(void*, Bytes, Access) override { return nam::FabricKey{}; }
  void Unregister(std::uint64_t) override {}

 private:
  std::string provider_ = "double";
  std::string address_;
};

class FabricStart : public ::testing::Test {
 protected:
  Result<std::unique_ptr<nam::FabricServer>> Start(const FabricChoice& choice) {
    return StartFabric(choice, *store_, [this](const nam::FabricServerOptions& options) {
      tried_.push_back(options.port);
      using Made = Result<std::unique_ptr<nam::FabricServer>>;
      if (nothing_) return Made(Status(Code::kUnavailable, "no provider"));
      if (options.port == taken_) return Made(Status(Code::kUnavailable, "port is taken"));
      return Made(std::make_unique<Bound>(options.port == 0 ? any_ : options.port));
    });
  }

  support::ScratchDirectory directory_;
  std::unique_ptr<ExtentStore> store_ = std::move(*ExtentStore::Open(directory_.path()));
  std::vector<int> tried_;
  std::uint16_t any_ = 40'000;
  int taken_ = -1;
  bool nothing_ = false;
};

TEST_F(FabricStart, TriesThePortOfTheLastTimeFirst) {
  ASSERT_TRUE(Start({}).ok());
  any_ = 50'000;
  const auto again = Start({});
  EXPECT_EQ(PortOf((*again)->address()), 40'000);
  EXPECT_THAT(tried_, ElementsAre(0, 40'000));
}

TEST_F(FabricStart, TakesAnyPortWhenThatOneIsTakenAndRemembersIt) {
  ASSERT_TRUE(Start({}).ok());
  any_ = 50'000;
  taken_ = 40'000;
  ASSERT_TRUE(Start({}).ok());
  ASSERT_TRUE(Start({}).ok());
  EXPECT_THAT(tried_, ElementsAre(0, 40'000, 0, 50'000));
}

TEST_F(FabricStart, TakesThePortThatWasAskedForAndNoOther) {
  taken_ = 1234;
  EXPECT_EQ(Start({.provider = "tcp", .port = 1234}).status().code(), Code::kUnavailable);
  EXPECT_THAT(tried_, ElementsAre(1234));
}

TEST_F(FabricStart, GoesOnWithoutWhenNoneIsThereAndNoneWasNamed) {
  nothing_ = true;
  const auto none = Start({});
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->get(), nullptr);
  EXPECT_EQ(Start({.provider = "verbs"}).status().code(), Code::kUnavailable);
}

TEST_F(FabricStart, StartsNoneWhenNoneIsWanted) {
  const auto none = Start({.provider = "none"});
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->get(), nullptr);
  EXPECT_TRUE(tried_.empty());
}

TEST(FabricPort, IsReadFromASocketAddressAlone) {
  EXPECT_EQ(PortOf(AddressOf(4711)), 4711);
  EXPECT_EQ(PortOf(AddressOf(4711).substr(0, 8)), 0);
  EXPECT_EQ(PortOf("fi_addr_cxi://0x1"), 0);
  EXPECT_EQ(PortOf(""), 0);
}

}  // namespace
}  // namespace msa::namd
