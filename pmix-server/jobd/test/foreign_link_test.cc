#include "foreign_link.h"

#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/support/run_until.h"
#include "msa/support/scratch_directory.h"

namespace msa::jobd {
namespace {

using ::testing::HasSubstr;

constexpr char kSecret[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
constexpr char kOther[] = "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

struct Side {
  std::unique_ptr<ForeignLinks> links;
  std::vector<std::uint64_t> up;
  std::vector<std::pair<std::uint64_t, wire::Frame>> frames;
  std::map<std::uint64_t, std::string> lost;
  std::string trouble;
};

class ForeignLinksTest : public ::testing::TestWithParam<const char*> {
 protected:
  ForeignLinksTest() {
    ::signal(SIGPIPE, SIG_IGN);
    for (Side* side : {&server_, &client_}) Begin(*side);
  }
  ~ForeignLinksTest() override {
    server_.links.reset();
    client_.links.reset();
    (void)loop_->RunOnce(Millis(0));
  }
  void Begin(Side& side, Millis unused = Millis(30'000)) {
    ForeignLinks::Handlers handlers;
    handlers.on_up = [&side](std::uint64_t link) { side.up.push_back(link); };
    handlers.on_frame = [&side](std::uint64_t link, const wire::Frame& frame) {
      side.frames.emplace_back(link, frame);
    };
    handlers.on_lost = [&side](std::uint64_t link, const std::string& why) { side.lost[link] = why; };
    handlers.on_trouble = [&side](const std::string& text) { side.trouble += text + "\n"; };
    ForeignLinkOptions options;
    options.directory = directory_.path();
    options.address = std::string(GetParam()) == "tcp" ? "tcp:127.0.0.1:0" : "unix:" + directory_ / "j1.1";
    options.unused = unused;
    options.connect_limit = Millis(1'000);
    side.links = std::make_unique<ForeignLinks>(*loop_, options, std::move(handlers));
  }
  static LinkTicket Ticket(std::uint64_t request = 1, const char* secret = kSecret) {
    return {JobId(2), Incarnation(1), request, secret};
  }
  bool Until(const std::function<bool()>& done, Millis limit = Millis(10'000)) {
    return support::RunUntil(*loop_, limit, done);
  }

  support::ScratchDirectory directory_;
  std::unique_ptr<EventLoop> loop_ = std::move(*EventLoop::Create());
  Side server_;
  Side client_;
};

TEST_P(ForeignLinksTest, CarriesFramesBothWaysInOrder) {
  const auto address = server_.links->Listen(7, Ticket());
  ASSERT_TRUE(address.ok()) << address.status().message();
  ASSERT_TRUE(client_.links->Connect(3, Ticket(), *address).ok());
  for (std::uint64_t i = 1; i <= 50; ++i) client_.links->Send(3, 0x0560, i, "before it stands");
  ASSERT_TRUE(Until([&] { return server_.frames.size() == 50; }));
  server_.links->Send(7, 0x0561, 9, "back");
  ASSERT_TRUE(Until([&] { return client_.frames.size() == 1; }));
  EXPECT_EQ(server_.up, std::vector<std::uint64_t>{7});
  for (std::uint64_t i = 1; i <= 50; ++i) EXPECT_EQ(server_.frames[i - 1].second.id, i);
  EXPECT_EQ(client_.frames[0].first, 3u);
}

TEST_P(ForeignLinksTest, TheEndOfOneSideIsALossForTheOther) {
  const auto address = server_.links->Listen(7, Ticket());
  ASSERT_TRUE(client_.links->Connect(3, Ticket(), *address).ok());
  ASSERT_TRUE(Until([&] { return !server_.up.empty() && !client_.up.empty(); }));
  client_.links->Close(3);
  ASSERT_TRUE(Until([&] { return server_.lost.contains(7); }));
  EXPECT_TRUE(client_.lost.empty());
  EXPECT_EQ(server_.links->size(), 0u);
}

TEST_P(ForeignLinksTest, AForgedTicketDoesNotGetIn) {
  const auto address = server_.links->Listen(7, Ticket());
  ASSERT_TRUE(client_.links->Connect(3, Ticket(1, kOther), *address).ok());
  ASSERT_TRUE(Until([&] { return client_.lost.contains(3); }));
  EXPECT_TRUE(server_.up.empty());
  EXPECT_THAT(server_.trouble, HasSubstr("secret"));
  EXPECT_EQ(server_.links->size(), 1u) << "the ticket's owner may still come";
}

TEST_P(ForeignLinksTest, ATicketServesOnce) {
  const auto address = server_.links->Listen(7, Ticket());
  ASSERT_TRUE(client_.links->Connect(3, Ticket(), *address).ok());
  ASSERT_TRUE(Until([&] { return !server_.up.empty(); }));
  ASSERT_TRUE(client_.links->Connect(4, Ticket(), *address).ok());
  ASSERT_TRUE(Until([&] { return client_.lost.contains(4); }));
  EXPECT_EQ(server_.up.size(), 1u);
  EXPECT_FALSE(client_.lost.contains(3));
}

TEST_P(ForeignLinksTest, ATicketThatNobodyUsesIsVoid) {
  Begin(server_, Millis(50));
  const auto address = server_.links->Listen(7, Ticket());
  ASSERT_TRUE(Until([&] { return server_.lost.contains(7); }));
  EXPECT_EQ(server_.links->size(), 0u);
  ASSERT_TRUE(Until([&] { return true; }));
  (void)loop_->RunOnce(Millis(0));
  ASSERT_TRUE(client_.links->Connect(3, Ticket(), *address).ok());
  ASSERT_TRUE(Until([&] { return client_.lost.contains(3); }));
}

INSTANTIATE_TEST_SUITE_P(Sockets, ForeignLinksTest, ::testing::Values("unix", "tcp"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace msa::jobd
