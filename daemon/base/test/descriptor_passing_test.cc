#include "msa/base/descriptor_passing.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include <gtest/gtest.h>

namespace msa {
namespace {

class DescriptorPassing : public ::testing::Test {
 protected:
  DescriptorPassing() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    near_.reset(ends[0]);
    far_.reset(ends[1]);
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
    reader_.reset(ends[0]);
    writer_.reset(ends[1]);
  }
  ReceivedBytes Receive() { return ReceiveWithDescriptors(far_.get(), buffer_); }
  // What is in the pipe; -1: nothing, and somebody may still write.
  ssize_t Read() {
    char byte = 0;
    return ::read(reader_.get(), &byte, 1);
  }

  UniqueFd near_, far_;
  UniqueFd reader_, writer_;  // of a pipe
  std::array<char, 64> buffer_{};
};

TEST_F(DescriptorPassing, DescriptorsComeInOrderWithTheBytesAndCloseOnExec) {
  const std::array<int, 2> sent{reader_.get(), writer_.get()};
  const SentBytes out = SendWithDescriptors(near_.get(), "bytes", sent);
  EXPECT_EQ(out.bytes, 5u);
  EXPECT_EQ(out.error, 0);
  const ReceivedBytes in = Receive();
  EXPECT_EQ(in.error, 0);
  EXPECT_EQ(std::string(buffer_.data(), in.bytes), "bytes");
  ASSERT_EQ(in.descriptors.size(), 2u);
  for (const UniqueFd& one : in.descriptors) EXPECT_EQ(::fcntl(one.get(), F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(::write(in.descriptors[1].get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(in.descriptors[0].get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
}

TEST_F(DescriptorPassing, BytesGoAloneToo) {
  EXPECT_EQ(SendWithDescriptors(near_.get(), "bytes", {}).bytes, 5u);
  const ReceivedBytes in = Receive();
  EXPECT_EQ(in.bytes, 5u);
  EXPECT_TRUE(in.descriptors.empty());
}

TEST_F(DescriptorPassing, WhatDoesNotFitIsClosed) {
  const std::vector<int> sent(kMostDescriptorsReceived + 5, writer_.get());
  ASSERT_EQ(SendWithDescriptors(near_.get(), "x", sent).bytes, 1u);
  writer_.reset();
  ReceivedBytes in = Receive();
  EXPECT_EQ(in.descriptors.size(), kMostDescriptorsReceived);
  EXPECT_EQ(Read(), -1);
  in.descriptors.clear();
  EXPECT_EQ(Read(), 0) << "a writer is open that nobody was given";
}

TEST_F(DescriptorPassing, MoreThanOneMessageTakesAreRefused) {
  const std::vector<int> most(kMostDescriptorsSent, writer_.get());
  EXPECT_EQ(SendWithDescriptors(near_.get(), "x", most).error, 0) << "the kernel's limit is lower";
  const std::vector<int> more(kMostDescriptorsSent + 1, writer_.get());
  const SentBytes out = SendWithDescriptors(near_.get(), "x", more);
  EXPECT_EQ(out.bytes, 0u);
  EXPECT_EQ(out.error, EINVAL);
}

TEST_F(DescriptorPassing, NothingWaits) {
  EXPECT_EQ(Receive().error, EAGAIN);
  const std::string much(65536, 'x');
  SentBytes out;
  while (out.error == 0) out = SendWithDescriptors(near_.get(), much, {});
  EXPECT_EQ(out.error, EAGAIN);
}

TEST_F(DescriptorPassing, APeerThatIsGoneIsTold) {
  far_.reset();
  EXPECT_EQ(SendWithDescriptors(near_.get(), "x", {}).error, EPIPE);
  const ReceivedBytes in = ReceiveWithDescriptors(near_.get(), buffer_);
  EXPECT_EQ(in.bytes, 0u);
  EXPECT_EQ(in.error, 0);
}

}  // namespace
}  // namespace msa
