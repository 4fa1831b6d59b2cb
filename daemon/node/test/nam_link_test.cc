#include "nam_link.h"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/base/nam_daemon.h"

#include "loop_fixture.h"

namespace msa::node {
namespace {

class NamLinkTest : public test::LoopTest {
 protected:
  void Listen(NamLink::Options options = {}) {
    options.node = "nam0";
    options.path = dir_ / "nam-link.sock";
    NamLink::Handlers handlers;
    handlers.on_frame = [this](const wire::Frame& frame) { got_.push_back(frame.type); };
    handlers.on_gone = [this](const std::string& reason) { gone_.push_back(reason); };
    link_ = std::make_unique<NamLink>(*loop_, options, std::move(handlers));
    ASSERT_TRUE(link_->Listen().ok());
  }
  void Connect() {
    closed_ = false;
    FrameChannel::Handlers handlers;
    handlers.on_frame = [](const wire::Frame&) {};
    handlers.on_closed = [this](const Status&) { closed_ = true; };
    namd_ = ConnectTo("nam-link.sock", std::move(handlers));
  }

  bool closed_ = false;
  std::vector<std::uint16_t> got_;
  std::vector<std::string> gone_;
  std::unique_ptr<NamLink> link_;
  std::unique_ptr<FrameChannel> namd_;
};

TEST_F(NamLinkTest, IsForItsUserAlone) {
  Listen();
  struct stat info {};
  ASSERT_EQ(::stat((dir_ / "nam-link.sock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(NamLinkTest, WhoSaysNoHelloIsLetGo) {
  Listen({.hello_timeout = Millis(20)});
  Connect();
  EXPECT_TRUE(Until([&] { return closed_; }));
  EXPECT_TRUE(gone_.empty());
}

TEST_F(NamLinkTest, AResetTellsNobodyAndTheNextHelloCounts) {
  Listen();
  for (int i = 0; i < 2; ++i) {
    Connect();
    namd_->SendMessage(wire::NamdHello{});
    ASSERT_TRUE(Until([&] { return got_.size() == static_cast<std::size_t>(i) + 1; }));
    link_->Reset();
    EXPECT_TRUE(Until([&] { return closed_; }));
  }
  EXPECT_TRUE(gone_.empty());
}

TEST_F(NamLinkTest, ANamdThatDoesNotReadIsGivenUp) {
  Listen({.max_queued = std::size_t{1} << 20});
  Connect();
  namd_->SendMessage(wire::NamdHello{});
  ASSERT_TRUE(Until([&] { return !got_.empty(); }));
  namd_->PauseReading();
  const wire::Frame frame{wire::NamToLocal::kType, 0, 0, std::string(256 << 10, 'x')};
  for (int i = 0; i < 64; ++i) link_->Send(frame);
  ASSERT_TRUE(Until([&] { return !gone_.empty(); }));
  EXPECT_THAT(gone_, ::testing::ElementsAre("it does not read what it is told"));
}

TEST_F(NamLinkTest, AMessageBeyondTheLimitEndsTheConnection) {
  Listen();
  Connect();
  namd_->SendMessage(wire::NamdHello{});
  ASSERT_TRUE(Until([&] { return !got_.empty(); }));
  // The longest request of a process fits.
  wire::NamFromLocal ask;
  ask.payload.assign(wire::kMaxNamPayload, 'x');
  namd_->SendMessage(ask);
  ASSERT_TRUE(Until([&] { return got_.size() == 2; }));
  ask.payload.assign(2 * wire::kMaxNamPayload, 'x');
  namd_->SendMessage(ask);
  EXPECT_TRUE(Until([&] { return closed_ && gone_.size() == 1; }));
  EXPECT_EQ(got_.size(), 2u);
}

}  // namespace
}  // namespace msa::node
