#include "node_link.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/base/slurm_messages.h"

namespace msa::spank {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

struct Pair {
  UniqueFd near, far;
  Pair() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    near.reset(fds[0]);
    far.reset(fds[1]);
  }
};

TEST(SpankNodeLink, AnAnswerInPiecesIsReadAndOtherFramesArePassedOver) {
  Pair pair;
  NodeLink link(std::move(pair.near));
  wire::SlurmStepVerdict verdict;
  verdict.accepted = true;
  verdict.job_socket = "/run/x";
  const std::string bytes = wire::Pack(wire::SlurmTaskEnd{}) + wire::Pack(verdict);
  std::thread sender([&] {
    for (const char c : bytes) ASSERT_EQ(write(pair.far.get(), &c, 1), 1);
  });
  const auto got = link.Receive<wire::SlurmStepVerdict>(In(10s));
  sender.join();
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_TRUE(got->accepted);
  EXPECT_EQ(got->job_socket, "/run/x");
}

TEST(SpankNodeLink, ASilentDaemonEndsTheWaitAndAGoneOneEndsItAtOnce) {
  Pair pair;
  NodeLink link(std::move(pair.near));
  EXPECT_EQ(link.Receive<wire::SlurmStepVerdict>(In(20ms)).status().code(), Code::kDeadlineExceeded);
  pair.far.reset();
  EXPECT_EQ(link.Receive<wire::SlurmStepVerdict>(In(10s)).status().code(), Code::kUnavailable);
}

TEST(SpankNodeLink, AnAnswerThatClaimsToBeHugeIsNoAnswer) {
  Pair pair;
  NodeLink link(std::move(pair.near));
  const std::string header("\xff\xff\xff\x7f\x02\x0b\0\0\0\0\0\0\0\0\0\0", 16);
  ASSERT_EQ(write(pair.far.get(), header.data(), header.size()), 16);
  EXPECT_EQ(link.Receive<wire::SlurmStepVerdict>(In(10s)).status().code(), Code::kInvalidArgument);
}

TEST(SpankNodeLink, ADaemonThatDoesNotReadDoesNotHoldAStepUp) {
  Pair pair;
  NodeLink link(std::move(pair.near));
  wire::SlurmTaskJoin join;
  join.argv.assign(64, std::string(60'000, 'x'));
  EXPECT_EQ(link.Send(join, In(50ms)).code(), Code::kDeadlineExceeded);
}

TEST(SpankNodeLink, DescriptorsGoWithAMessageAndComeWithTheAnswer) {
  Pair pair;
  NodeLink link(std::move(pair.near));
  int pipe_fds[2];
  ASSERT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
  UniqueFd reading(pipe_fds[0]), writing(pipe_fds[1]);
  ASSERT_TRUE(link.SendWith(wire::SlurmTaskJoin{}, {writing.get(), writing.get()}, In(10s)).ok());
  NodeLink peer(std::move(pair.far));
  UniqueFd received;
  ASSERT_TRUE(peer.Receive<wire::SlurmTaskJoin>(In(10s), &received).ok());
  ASSERT_TRUE(received);
  ASSERT_EQ(write(received.get(), "x", 1), 1);
  char c = 0;
  EXPECT_EQ(read(reading.get(), &c, 1), 1);
}

TEST(SpankNodeLink, WhereNobodyListensTheTextNamesThePath) {
  EXPECT_THAT(NodeLink::Connect("/nowhere/plugin.sock").status().message(),
              HasSubstr("/nowhere/plugin.sock"));
  EXPECT_EQ(NodeLink::Connect("/nowhere/plugin.sock").status().code(), Code::kUnavailable);
  EXPECT_EQ(NodeLink::Connect("/" + std::string(200, 'x')).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace msa::spank
