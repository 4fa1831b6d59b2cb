#include "msa/adapters/process/unix_socket.h"

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loop_support.h"

namespace msa {
namespace {

using test::ScratchDirectory;
using ::testing::HasSubstr;

TEST(UnixSocket, AcceptsTheLongestPathThatTheKernelTakesAndNamesTheLimitBeyond) {
  const ScratchDirectory dir;
  const std::string longest = dir / std::string(kMaxSocketPath - dir.path().size() - 1, 'l');
  ASSERT_EQ(longest.size(), kMaxSocketPath);
  EXPECT_TRUE(ListenUnix(longest).ok());
  const Status too_long = ListenUnix(longest + "l").status();
  EXPECT_EQ(too_long.code(), Code::kInvalidArgument);
  EXPECT_THAT(too_long.message(),
              HasSubstr("has 108 bytes, the kernel allows 107; choose a shorter directory"));
}

TEST(UnixSocket, ReplacesAStaleSocketButNotALivingOne) {
  const ScratchDirectory dir;
  { ASSERT_TRUE(ListenUnix(dir / "s").ok()); }
  const auto second = ListenUnix(dir / "s");
  ASSERT_TRUE(second.ok());
  const Status third = ListenUnix(dir / "s").status();
  EXPECT_EQ(third.code(), Code::kAlreadyExists);
  EXPECT_THAT(third.message(), HasSubstr(dir / "s"));
}

TEST(UnixSocket, GivesTheSocketTheModeAskedFor) {
  const ScratchDirectory dir;
  const auto listener = ListenUnix(dir / "s", 0600);
  ASSERT_TRUE(listener.ok());
  struct stat st {};
  ASSERT_EQ(::stat((dir / "s").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600U);
}

TEST(UnixSocket, TellsThatNobodyListens) {
  const ScratchDirectory dir;
  EXPECT_EQ(ConnectUnix(dir / "none").status().code(), Code::kUnavailable);
  { ASSERT_TRUE(ListenUnix(dir / "stale").ok()); }
  EXPECT_EQ(ConnectUnix(dir / "stale").status().code(), Code::kUnavailable);
}

TEST(UnixSocket, KnowsThePeerByTheKernel) {
  const ScratchDirectory dir;
  const auto listener = ListenUnix(dir / "s");
  ASSERT_TRUE(listener.ok());
  const auto empty = AcceptUnix(listener->get());
  ASSERT_TRUE(empty.ok());
  EXPECT_FALSE(*empty);
  const auto client = ConnectUnix(dir / "s");
  ASSERT_TRUE(client.ok());
  const auto server = AcceptUnix(listener->get());
  ASSERT_TRUE(server.ok() && *server);
  const auto peer = GetPeerCredentials(server->get());
  ASSERT_TRUE(peer.ok());
  EXPECT_EQ(peer->pid, ::getpid());
  EXPECT_EQ(peer->user.uid, ::geteuid());
}

}  // namespace
}  // namespace msa
