#include "msa/adapters/process/frame_channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/adapters/process/byte_stream.h"

#include "loop_support.h"

namespace msa {
namespace {

using test::RunUntil;
using test::SocketPair;

// A stream that takes one byte at a time and reports "try again" between: the worst that a socket may do.
class TricklingStream final : public ByteStream {
 public:
  explicit TricklingStream(std::unique_ptr<ByteStream> inner) : inner_(std::move(inner)) {}
  int fd() const override { return inner_->fd(); }
  IoResult Read(char* buffer, std::size_t) override {
    if (odd_read_ = !odd_read_; odd_read_) return {IoOutcome::kWantRead, 0};
    return inner_->Read(buffer, 1);
  }
  IoResult Write(const char* data, std::size_t) override {
    if (odd_write_ = !odd_write_; odd_write_) return {IoOutcome::kWantWrite, 0};
    return inner_->Write(data, 1);
  }
  const char* Error() const override { return inner_->Error(); }

 private:
  std::unique_ptr<ByteStream> inner_;
  bool odd_read_ = false;
  bool odd_write_ = false;
};

class FrameChannelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto loop = EventLoop::Create();
    ASSERT_TRUE(loop.ok());
    loop_ = std::move(*loop);
  }
  FrameChannel::Handlers Recording() {
    return {.on_frame = [this](wire::Frame frame) { frames_.push_back(std::move(frame)); },
            .on_closed = [this](Status why) { closed_.push_back(std::move(why)); },
            .on_drained = [this] { ++drained_; }};
  }
  std::unique_ptr<FrameChannel> Channel(UniqueFd fd, FrameChannel::Handlers handlers,
                                        std::size_t limit = wire::kMaxPayloadBytes) {
    auto channel = FrameChannel::Create(*loop_, MakePlainStream(std::move(fd)), std::move(handlers), limit);
    EXPECT_TRUE(channel.ok());
    return std::move(*channel);
  }
  bool Until(const std::function<bool()>& condition) { return RunUntil(*loop_, Millis(10'000), condition); }

  std::unique_ptr<EventLoop> loop_;
  std::vector<wire::Frame> frames_;
  std::vector<Status> closed_;
  int drained_ = 0;
};

TEST_F(FrameChannelTest, CarriesFramesInOrderWithTypeAndId) {
  auto [a, b] = SocketPair();
  const auto sender = Channel(std::move(a), Recording());
  const auto receiver = Channel(std::move(b), Recording());
  sender->Send(wire::Pack(7, 70, "seven"));
  sender->Send(wire::Pack(8, 80, ""));
  ASSERT_TRUE(Until([&] { return frames_.size() == 2; }));
  EXPECT_EQ(frames_[0].type, 7);
  EXPECT_EQ(frames_[0].id, 70U);
  EXPECT_EQ(frames_[0].payload, "seven");
  EXPECT_EQ(frames_[1].type, 8);
  EXPECT_EQ(frames_[1].payload, "");
}

TEST_F(FrameChannelTest, SurvivesStreamsThatMoveOneByteAtATime) {
  auto [a, b] = SocketPair();
  auto sender = FrameChannel::Create(*loop_, std::make_unique<TricklingStream>(MakePlainStream(std::move(a))),
                                     Recording());
  auto receiver = FrameChannel::Create(
      *loop_, std::make_unique<TricklingStream>(MakePlainStream(std::move(b))), Recording());
  ASSERT_TRUE(sender.ok() && receiver.ok());
  for (std::uint64_t i = 0; i < 20; ++i) (*sender)->Send(wire::Pack(1, i, std::string(i, 'x')));
  ASSERT_TRUE(Until([&] { return frames_.size() == 20; }));
  for (std::uint64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(frames_[i].id, i);
    EXPECT_EQ(frames_[i].payload.size(), i);
  }
}

TEST_F(FrameChannelTest, CarriesPayloadsLargerThanTheSocketsBuffer) {
  auto [a, b] = SocketPair();
  const auto sender = Channel(std::move(a), Recording());
  const auto receiver = Channel(std::move(b), Recording());
  const std::string large(std::size_t{8} << 20, 'p');
  sender->Send(wire::Pack(1, 1, large));
  sender->Send(wire::Pack(2, 2, "behind"));
  ASSERT_TRUE(Until([&] { return frames_.size() == 2; }));
  EXPECT_EQ(frames_[0].payload, large);
  EXPECT_EQ(frames_[1].payload, "behind");
}

TEST_F(FrameChannelTest, TellsWhenACongestedQueueHasDrained) {
  auto [a, b] = SocketPair();
  const auto sender = Channel(std::move(a), Recording());
  const auto receiver =
      Channel(std::move(b), {.on_frame = [this](wire::Frame f) { frames_.push_back(std::move(f)); }});
  receiver->PauseReading();
  for (int i = 0; i < 32; ++i) sender->Send(wire::Pack(1, 0, std::string(64 * 1024, 'x')));
  EXPECT_GT(sender->queued(), FrameChannel::kHighWater);
  EXPECT_EQ(drained_, 0);
  receiver->ResumeReading();
  ASSERT_TRUE(Until([&] { return frames_.size() == 32; }));
  EXPECT_EQ(drained_, 1);
  EXPECT_EQ(sender->queued(), 0U);
}

TEST_F(FrameChannelTest, DeliversNothingWhilePausedAndEverythingAfterwards) {
  auto [a, b] = SocketPair();
  const auto sender = Channel(std::move(a), Recording());
  std::unique_ptr<FrameChannel> receiver;
  receiver = Channel(std::move(b), {.on_frame = [&](wire::Frame f) {
                       frames_.push_back(std::move(f));
                       receiver->PauseReading();
                     }});
  for (int i = 0; i < 3; ++i) sender->Send(wire::Pack(1, 0, "x"));
  ASSERT_TRUE(Until([&] { return frames_.size() == 1; }));
  bool later = false;
  loop_->After(Millis(20), [&] { later = true; });
  ASSERT_TRUE(Until([&] { return later; }));
  EXPECT_EQ(frames_.size(), 1U);
  receiver->ResumeReading();
  ASSERT_TRUE(Until([&] { return frames_.size() == 2; }));
  receiver->ResumeReading();
  ASSERT_TRUE(Until([&] { return frames_.size() == 3; }));
}

TEST_F(FrameChannelTest, TellsThatThePeerClosed) {
  auto [a, b] = SocketPair();
  const auto receiver = Channel(std::move(b), Recording());
  a.reset();
  ASSERT_TRUE(Until([&] { return !closed_.empty(); }));
  EXPECT_EQ(closed_[0].code(), Code::kUnavailable);
  EXPECT_EQ(closed_[0].message(), "peer closed the connection");
  EXPECT_TRUE(receiver->closed());
}

TEST_F(FrameChannelTest, DeliversWhatThePeerSentBeforeItClosed) {
  auto [a, b] = SocketPair();
  const std::string bytes = wire::Pack(5, 0, "last words");
  ASSERT_EQ(::write(a.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  a.reset();
  const auto receiver = Channel(std::move(b), Recording());
  ASSERT_TRUE(Until([&] { return !closed_.empty(); }));
  ASSERT_EQ(frames_.size(), 1U);
  EXPECT_EQ(frames_[0].payload, "last words");
}

TEST_F(FrameChannelTest, ClosesOnAHeaderThatAnnouncesMoreThanTheLimit) {
  auto [a, b] = SocketPair();
  const auto receiver = Channel(std::move(b), Recording(), 1024);
  const std::string bytes = wire::Pack(1, 0, std::string(1025, 'x'));
  ASSERT_EQ(::write(a.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  ASSERT_TRUE(Until([&] { return !closed_.empty(); }));
  EXPECT_EQ(closed_[0].code(), Code::kInvalidArgument);
  EXPECT_THAT(closed_[0].message(), ::testing::HasSubstr("1025"));
  EXPECT_TRUE(frames_.empty());
}

TEST_F(FrameChannelTest, LetsAHandlerDestroyTheChannelAtAFrameAndAtItsEnd) {
  auto [a, b] = SocketPair();
  const auto sender = Channel(std::move(a), {.on_frame = [](wire::Frame) {}});
  std::unique_ptr<FrameChannel> receiver;
  receiver = Channel(std::move(b), {.on_frame = [&](wire::Frame f) {
                       frames_.push_back(std::move(f));
                       receiver.reset();
                     }});
  sender->Send(wire::Pack(1, 0, "one"));
  sender->Send(wire::Pack(1, 0, "two"));
  ASSERT_TRUE(Until([&] { return sender->closed(); }));
  EXPECT_EQ(frames_.size(), 1U);

  auto [c, d] = SocketPair();
  std::unique_ptr<FrameChannel> ending;
  ending =
      Channel(std::move(d), {.on_frame = [](wire::Frame) {}, .on_closed = [&](Status) { ending.reset(); }});
  c.reset();
  ASSERT_TRUE(Until([&] { return ending == nullptr; }));
}

TEST_F(FrameChannelTest, WritesItsQueueBeforeItClosesWhenAskedTo) {
  auto [a, b] = SocketPair();
  auto sender = Channel(std::move(a), Recording());
  const auto receiver = Channel(std::move(b), Recording());
  for (int i = 0; i < 40; ++i) sender->Send(wire::Pack(1, 0, std::string(64 * 1024, 'x')));
  sender->CloseWhenDrained(Millis(10'000));
  sender->Send(wire::Pack(1, 0, "too late"));
  ASSERT_TRUE(Until([&] { return !closed_.empty(); }));
  EXPECT_EQ(frames_.size(), 40U);
  EXPECT_TRUE(sender->closed());
}

TEST_F(FrameChannelTest, SeesTheEndOfAPeerWhileReadingIsPaused) {
  auto [a, b] = SocketPair();
  const auto receiver = Channel(std::move(b), Recording());
  receiver->PauseReading();
  a.reset();
  EXPECT_TRUE(Until([&] { return !closed_.empty(); }));
}

}  // namespace
}  // namespace msa
