#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/support/run_until.h"

#include "run/backoff.h"
#include "run/input_window.h"
#include "run/output_writer.h"
#include "run/token.h"

namespace msa::cli {
namespace {

wire::InputAck Ack(std::uint64_t offset, bool closed = false) {
  wire::InputAck ack;
  ack.offset = offset;
  ack.closed = closed;
  return ack;
}

std::string Drain(InputWindow& window, bool* eof = nullptr) {
  std::string out;
  wire::Input piece;
  while (window.Next(&piece)) {
    out += piece.data;
    if (eof != nullptr) *eof = piece.eof;
  }
  return out;
}

TEST(InputWindow, SendsNothingBeforeTheSessionIsOpen) {
  InputWindow window;
  window.Append("abc");
  EXPECT_EQ(Drain(window), "");
  window.OnAck(Ack(0));
  EXPECT_EQ(Drain(window), "abc");
  EXPECT_EQ(Drain(window), "");
}

TEST(InputWindow, GoesOnWhereTheOtherSideSays) {
  InputWindow window;
  window.OnAck(Ack(0));
  window.Append("abcdef");
  EXPECT_EQ(Drain(window), "abcdef");
  window.OnAck(Ack(2));
  window.BeginSession();
  window.Append("g");
  EXPECT_EQ(Drain(window), "");
  window.OnAck(Ack(4));
  wire::Input piece;
  ASSERT_TRUE(window.Next(&piece));
  EXPECT_EQ(piece.offset, 4u);
  EXPECT_EQ(piece.data, "efg");
}

TEST(InputWindow, SendsEofAfterTheLastByteAndAgainInANewSession) {
  InputWindow window;
  window.OnAck(Ack(0));
  window.Append("ab");
  window.MarkEof();
  bool eof = false;
  EXPECT_EQ(Drain(window, &eof), "ab");
  EXPECT_TRUE(eof);
  window.BeginSession();
  window.OnAck(Ack(2));
  eof = false;
  EXPECT_EQ(Drain(window, &eof), "");
  EXPECT_TRUE(eof);
}

TEST(InputWindow, SendsAnEmptyInputAsEofAlone) {
  InputWindow window;
  window.MarkEof();
  window.OnAck(Ack(0));
  wire::Input piece;
  ASSERT_TRUE(window.Next(&piece));
  EXPECT_TRUE(piece.eof);
  EXPECT_TRUE(piece.data.empty());
  EXPECT_FALSE(window.Next(&piece));
}

TEST(InputWindow, HoldsAtMostOneWindow) {
  InputWindow window;
  EXPECT_EQ(window.room(), wire::kStdioWindowBytes);
  window.Append(std::string(wire::kStdioWindowBytes, 'x'));
  EXPECT_EQ(window.room(), 0u);
  window.OnAck(Ack(0));
  EXPECT_EQ(Drain(window).size(), wire::kStdioWindowBytes);
  window.OnAck(Ack(1000));
  EXPECT_EQ(window.room(), 1000u);
}

TEST(InputWindow, IgnoresAcknowledgementsOfWhatWasNeverRead) {
  InputWindow window;
  window.OnAck(Ack(0));
  window.Append("abc");
  window.OnAck(Ack(100));
  EXPECT_EQ(Drain(window), "abc");
  window.OnAck(Ack(3));
  window.OnAck(Ack(1));
  EXPECT_EQ(Drain(window), "");
}

TEST(InputWindow, TakesNoMoreAfterRankZeroHasClosed) {
  InputWindow window;
  window.OnAck(Ack(0));
  window.Append("abc");
  window.OnAck(Ack(1, true));
  EXPECT_TRUE(window.closed());
  EXPECT_EQ(window.room(), 0u);
  EXPECT_EQ(Drain(window), "");
}

TEST(Backoff, DoublesUpToASecond) {
  Millis wait{0};
  std::vector<std::int64_t> waits;
  for (int i = 0; i < 7; ++i) waits.push_back((wait = NextBackoff(wait)).count());
  EXPECT_THAT(waits, ::testing::ElementsAre(50, 100, 200, 400, 800, 1000, 1000));
}

TEST(Token, IsRandom) {
  const auto a = MakeToken();
  const auto b = MakeToken();
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->size(), 32u);
  EXPECT_NE(*a, *b);
}

// A pipe and a writer to its end.
class OutputWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);
    loop_ = *EventLoop::Create();
    int fds[2];
    ASSERT_EQ(::pipe2(fds, O_CLOEXEC), 0);
    reader_ = UniqueFd(fds[0]);
    ASSERT_EQ(::fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
    write_end_ = UniqueFd(fds[1]);
    writer_ = std::make_unique<OutputWriter>(
        *loop_, write_end_.get(), write_end_.get(),
        OutputWriter::Handlers{[this](std::uint64_t seq) { written_ = seq; },
                               [this](OutputWriter::To, Status why, bool pipe) {
                                 failure_ = why;
                                 broken_pipe_ = pipe;
                               }});
  }
  bool Eventually(const std::function<bool()>& fact) {
    return support::RunUntil(*loop_, Millis(5'000), fact);
  }
  std::string ReadSome() {
    std::string out(1 << 20, '\0');
    const ssize_t n = ::read(reader_.get(), out.data(), out.size());
    out.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return out;
  }

  std::unique_ptr<EventLoop> loop_;
  UniqueFd reader_;
  UniqueFd write_end_;
  std::unique_ptr<OutputWriter> writer_;
  std::uint64_t written_ = 0;
  Status failure_;
  bool broken_pipe_ = false;
};

TEST_F(OutputWriterTest, WritesInOrderAndReportsTheLastNumber) {
  writer_->Write(OutputWriter::To::kOut, "a", 1);
  writer_->Write(OutputWriter::To::kErr, "b", 2);
  writer_->Write(OutputWriter::To::kOut, "c", 0);
  EXPECT_EQ(ReadSome(), "abc");
  EXPECT_EQ(written_, 2u);
  EXPECT_TRUE(writer_->idle());
}

TEST_F(OutputWriterTest, NeverBlocksOnAFullPipeAndGoesOnWhenItIsRead) {
  const std::string big(300'000, 'x');
  writer_->Write(OutputWriter::To::kOut, big, 1);
  EXPECT_FALSE(writer_->idle());
  EXPECT_EQ(written_, 0u);
  std::string got;
  EXPECT_TRUE(Eventually([&] {
    got += ReadSome();
    return got.size() == big.size();
  }));
  EXPECT_TRUE(Eventually([&] { return written_ == 1; }));
}

TEST_F(OutputWriterTest, TellsABrokenPipeFromAnError) {
  reader_.reset();
  writer_->Write(OutputWriter::To::kOut, "a", 1);
  EXPECT_TRUE(Eventually([&] { return !failure_.ok(); }));
  EXPECT_TRUE(broken_pipe_);
  EXPECT_TRUE(writer_->idle());
}

TEST(OutputWriter, ReportsAFullDisk) {
  const auto loop = *EventLoop::Create();
  UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full);
  Status failure;
  OutputWriter writer(*loop, full.get(), full.get(),
                      {[](std::uint64_t) {}, [&](OutputWriter::To, Status why, bool) { failure = why; }});
  writer.Write(OutputWriter::To::kOut, "a", 1);
  ASSERT_TRUE(loop->RunOnce(Millis(100)).ok());
  EXPECT_EQ(failure.code(), Code::kResourceExhausted);
}

}  // namespace
}  // namespace msa::cli
