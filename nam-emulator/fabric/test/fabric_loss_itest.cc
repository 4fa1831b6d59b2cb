// Servers and clients that die.

#include <atomic>
#include <thread>

#include "fabric_fixture.h"

namespace msa::nam {
namespace {

TEST(FabricLoss, EveryCallEndsWhenTheServerIsKilledAndANewOneIsReached) {
  const SharedMemory memory(32 << 20);
  ServerProcess first(memory);
  const auto client = OpenClient();
  const auto peer = Connect(*client, first.address());
  ASSERT_TRUE(peer->Call(kEcho, "x", In(10s)).ok());
  std::atomic<int> ended{0}, late{0}, working{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::string data = Noise(4 << 20, static_cast<unsigned>(t));
      for (;;) {
        const SteadyTime deadline = In(10s);
        const std::uint64_t offset = static_cast<std::uint64_t>(t) << 22;
        const FabricPiece piece{offset, data.data(), data.size()};
        Status status;
        if (t == 0) status = peer->Call(kEcho, data, deadline).status();
        if (t == 1) status = peer->WriteNow(first.key(), piece, deadline);
        if (t == 2) status = peer->ReadNow(first.key(), piece, deadline);
        if (t == 3) {
          Result<std::unique_ptr<FabricTransfer>> transfer = peer->Write(first.key(), {&piece, 1});
          status = transfer.ok() ? (*transfer)->Wait(deadline) : transfer.status();
        }
        if (SteadyNow() > deadline) ++late;
        ++working;
        if (status.ok()) continue;
        EXPECT_EQ(status.code(), Code::kUnavailable) << status.ToString();
        ++ended;
        return;
      }
    });
  }
  EXPECT_TRUE(Eventually(30s, "all are at work", [&] { return working > 20; }));
  first.child().Kill();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended, 4);
  EXPECT_EQ(late, 0);
  EXPECT_TRUE(peer->broken());
  EXPECT_EQ(peer->Call(kEcho, "x", In(30s)).status().code(), Code::kUnavailable);

  ServerProcess second(memory);
  const auto again = Connect(*client, second.address());
  EXPECT_TRUE(again->Call(kEcho, "x", In(10s)).ok());
  std::string data = Noise(4 << 20, 7);
  EXPECT_TRUE(again->WriteNow(second.key(), {0, data.data(), data.size()}, In(10s)).ok());
  EXPECT_EQ(std::memcmp(memory.begin(), data.data(), data.size()), 0);
}

TEST(FabricLoss, AnIdlePeerNoticesAtItsNextCall) {
  const SharedMemory memory(4096);
  ServerProcess server(memory);
  const auto client = OpenClient();
  const auto peer = Connect(*client, server.address());
  ASSERT_TRUE(peer->Call(kEcho, "x", In(10s)).ok());
  server.child().Kill();
  char byte = 0;
  const Status put = peer->WriteNow(server.key(), {0, &byte, 1}, In(10s));
  EXPECT_EQ(put.code(), Code::kUnavailable) << put.ToString();
  EXPECT_TRUE(peer->broken());
}

TEST(FabricLoss, NobodyAtTheAddressIsToldBeforeTheDeadline) {
  const SharedMemory memory(4096);
  ServerProcess server(memory);
  server.child().Kill();
  const auto client = OpenClient();
  const auto peer = Connect(*client, server.address());
  const Status status = peer->Call(kEcho, "x", In(60s)).status();
  EXPECT_EQ(status.code(), Code::kUnavailable) << status.ToString();
}

TEST(FabricLoss, ACallThatWaitsForAnAnswerIsToldWhenTheServerDies) {
  const SharedMemory memory(4096);
  ServerProcess server(memory);
  const auto client = OpenClient();
  const auto peer = Connect(*client, server.address());
  ASSERT_TRUE(peer->Call(kEcho, "x", In(10s)).ok());
  server.child().Stop();
  std::thread killer([&] {
    // The request is in the stopped server's socket; there is no fact to wait for but time.
    const SteadyTime until = In(100ms);
    while (SteadyNow() < until) std::this_thread::yield();
    server.child().Kill();
  });
  const SteadyTime begin = SteadyNow();
  const Status status = peer->Call(kEcho, "x", In(60s)).status();
  EXPECT_EQ(status.code(), Code::kUnavailable) << status.ToString();
  EXPECT_LT(SteadyNow() - begin, 30s);
  killer.join();
}

TEST(FabricLoss, AHangingServerCostsNoMoreThanTheDeadline) {
  const SharedMemory memory(16 << 20);
  ServerProcess server(memory);
  const auto client = OpenClient();
  const auto peer = Connect(*client, server.address());
  ASSERT_TRUE(peer->Call(kEcho, "x", In(10s)).ok());
  server.child().Stop();
  std::string data = Noise(16 << 20, 1);
  const SteadyTime begin = SteadyNow();
  EXPECT_EQ(peer->WriteNow(server.key(), {0, data.data(), data.size()}, In(300ms)).code(),
            Code::kDeadlineExceeded);
  // Its memory is free from here on, so the connection had to end.
  EXPECT_TRUE(peer->broken());
  EXPECT_LT(SteadyNow() - begin, 10s);
  server.child().Signal(SIGCONT);
  const auto again = Connect(*client, server.address());
  EXPECT_TRUE(again->WriteNow(server.key(), {0, data.data(), data.size()}, In(20s)).ok());
  EXPECT_EQ(std::memcmp(memory.begin(), data.data(), data.size()), 0);
}

TEST(FabricLoss, AnUnansweredCallLeavesThePeerUsable) {
  const SharedMemory memory(4096);
  ServerProcess server(memory);
  const auto client = OpenClient();
  const auto peer = Connect(*client, server.address());
  ASSERT_TRUE(peer->Call(kEcho, "x", In(10s)).ok());
  server.child().Stop();
  EXPECT_EQ(peer->Call(kEcho, "late", In(200ms)).status().code(), Code::kDeadlineExceeded);
  server.child().Signal(SIGCONT);
  const Result<wire::Frame> reply = peer->Call(kEcho, "next", In(10s));
  ASSERT_TRUE(reply.ok()) << reply.status().ToString();
  EXPECT_EQ(reply->payload, "txen");
}

TEST(FabricLoss, AClientKilledWhileItWritesHurtsNobody) {
  const SharedMemory memory(64 << 20);
  for (int round = 0; round < 3; ++round) {
    Pipe address;
    Child writer([&] {
      const std::string text = address.Receive(sizeof(FabricPeer::Key) + 16);
      FabricPeer::Key key;
      std::memcpy(&key, text.data(), sizeof key);
      const auto client = OpenClient();
      const auto peer = Connect(*client, text.substr(sizeof key));
      std::string out(memory.bytes(), 'w');
      for (;;) (void)peer->WriteNow(key, {0, out.data(), out.size()}, In(60s));
    });
    std::memset(memory.begin(), 0, memory.bytes());
    const auto server = StartServer();
    const FabricPeer::Key key = Expose(*server, memory);
    address.Send(std::string(reinterpret_cast<const char*>(&key), sizeof key) + server->address());
    ASSERT_TRUE(
        Eventually(30s, "it writes", [&] { return *static_cast<volatile char*>(memory.begin()) == 'w'; }));
    writer.Kill();
    const auto client = OpenClient();
    const auto peer = Connect(*client, server->address());
    std::string data = Noise(1 << 20, 3), in(1 << 20, '\0');
    ASSERT_TRUE(peer->Call(kEcho, data, In(10s)).ok());
    EXPECT_TRUE(peer->WriteNow(key, {0, data.data(), data.size()}, In(10s)).ok());
    EXPECT_TRUE(peer->ReadNow(key, {0, in.data(), in.size()}, In(10s)).ok());
    EXPECT_TRUE(in == data);
  }
}

TEST(FabricLoss, AForkedChildIsRefusedAndItsParentGoesOn) {
  const SharedMemory memory(4096);
  ServerProcess server(memory);
  const auto client = OpenClient();
  auto peer = Connect(*client, server.address());
  ASSERT_TRUE(peer->Call(kEcho, "x", In(10s)).ok());
  Child child([&] {
    char byte = 0;
    const bool refused =
        peer->Call(kEcho, "x", In(30s)).status().code() == Code::kFailedPrecondition &&
        peer->WriteNow(server.key(), {0, &byte, 1}, In(30s)).code() == Code::kFailedPrecondition &&
        client->Connect(server.address()).status().code() == Code::kFailedPrecondition;
    peer.reset();
    _exit(refused ? 0 : 1);
  });
  EXPECT_EQ(child.Wait(), 0);
  EXPECT_TRUE(peer->Call(kEcho, "x", In(10s)).ok());
}

}  // namespace
}  // namespace msa::nam
