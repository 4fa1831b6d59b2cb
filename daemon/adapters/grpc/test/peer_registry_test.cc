#include "msa/adapters/grpc/peer_registry.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace msa {
namespace {

const Peer kAlice{{.pid = 11, .user = {.uid = 1001, .gid = 100}}, {}};
const Peer kBob{{.pid = 12, .user = {.uid = 1002, .gid = 100}}, {}};

std::array<UniqueFd, 2> SocketPair() {
  int fds[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

std::string PeerOf(const UniqueFd& fd) { return "fd:" + std::to_string(fd.get()); }

TEST(PeerRegistry, FindsTheKernelsUserOfAnAdmittedConnection) {
  PeerRegistry peers;
  auto [mine, other] = SocketPair();
  auto admitted = peers.Admit(std::move(mine));
  ASSERT_TRUE(admitted.ok()) << admitted.status().ToString();
  const auto user = peers.Find(PeerOf(*admitted));
  ASSERT_TRUE(user.ok());
  EXPECT_EQ(user->uid, ::geteuid());
}

TEST(PeerRegistry, MovesAReusedNumberToAnotherWhenTheUserDiffers) {
  PeerRegistry peers;
  auto [first, first_peer] = SocketPair();
  auto alices = peers.Claim(std::move(first), kAlice);
  ASSERT_TRUE(alices.ok());
  const std::string alices_name = PeerOf(*alices);
  alices->reset();  // as gRPC does when the connection ends

  auto [second, second_peer] = SocketPair();
  UniqueFd reused(::fcntl(second.get(), F_DUPFD_CLOEXEC, 0));
  auto bobs = peers.Claim(std::move(reused), kBob);
  ASSERT_TRUE(bobs.ok());
  EXPECT_NE(PeerOf(*bobs), alices_name);
  EXPECT_EQ(*peers.Find(alices_name), kAlice.user);  // a late call of hers stays hers
  EXPECT_EQ(*peers.Find(PeerOf(*bobs)), kBob.user);
}

TEST(PeerRegistry, TakesAMemberOfAnotherHostForNobodyElse) {
  PeerRegistry peers;
  auto [first, first_peer] = SocketPair();
  auto local = peers.Claim(std::move(first), kAlice);
  const std::string name = PeerOf(*local);
  local->reset();
  auto [second, second_peer] = SocketPair();
  UniqueFd reused(::fcntl(second.get(), F_DUPFD_CLOEXEC, 0));
  Peer remote = kAlice;
  remote.member = "msa://0000000000000001/user//1001/100";
  auto far = peers.Claim(std::move(reused), remote);
  ASSERT_TRUE(far.ok());
  EXPECT_NE(PeerOf(*far), name);
  EXPECT_EQ(peers.FindProcess(PeerOf(*far))->member, remote.member);
  EXPECT_EQ(peers.FindProcess(name)->member, "");
}

TEST(PeerRegistry, KeepsAReusedNumberForTheSameUser) {
  PeerRegistry peers;
  auto [first, first_peer] = SocketPair();
  auto connection = peers.Claim(std::move(first), kAlice);
  ASSERT_TRUE(connection.ok());
  const int number = connection->get();
  auto again = peers.Claim(std::move(*connection), kAlice);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->get(), number);
}

TEST(PeerRegistry, TellsTheProcessThatOpenedTheConnectionLast) {
  PeerRegistry peers;
  auto [first, first_peer] = SocketPair();
  auto connection = peers.Claim(std::move(first), kAlice);
  ASSERT_TRUE(connection.ok());
  EXPECT_EQ(peers.FindProcess(PeerOf(*connection))->pid, 11);
  auto again = peers.Claim(std::move(*connection), Peer{{.pid = 13, .user = kAlice.user}, {}});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(peers.FindProcess(PeerOf(*again))->pid, 13);
}

TEST(PeerRegistry, RefusesPeersThatWereNotAdmitted) {
  PeerRegistry peers;
  for (const char* peer :
       {"", "fd:", "fd:7", "fd:7x", "unix:", "ipv4:127.0.0.1:80", "fd:-1", "fd:99999999999999"}) {
    EXPECT_EQ(peers.Find(peer).status().code(), Code::kUnauthenticated) << peer;
  }
}

}  // namespace
}  // namespace msa
