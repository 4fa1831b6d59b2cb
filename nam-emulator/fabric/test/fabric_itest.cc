// A server and a client over tcp;ofi_rxm on the loopback interface.

#include <atomic>
#include <thread>

#include "fabric_fixture.h"

namespace msa::nam {
namespace {

struct Pair {
  std::unique_ptr<FabricServer> server = StartServer();
  std::unique_ptr<FabricClient> client = OpenClient();
  std::unique_ptr<FabricPeer> peer = Connect(*client, server->address());
};

TEST(Fabric, AnswersARequest) {
  Pair pair;
  const Result<wire::Frame> reply = pair.peer->Call(kEcho, "hello", In(30s));
  ASSERT_TRUE(reply.ok()) << reply.status().ToString();
  EXPECT_EQ(reply->type, kEcho);
  EXPECT_EQ(reply->payload, "olleh");
}

TEST(Fabric, CarriesRequestsAndAnswersOfAnySizeUpToALeases) {
  Pair pair;
  for (const std::size_t bytes : {0u, 1u, 15895u, 15896u, 15897u, 65536u, 1u << 20, (4u << 20) + 4096}) {
    const std::string text = Noise(bytes, static_cast<unsigned>(bytes));
    const Result<wire::Frame> reply = pair.peer->Call(kEcho, text, In(10s));
    ASSERT_TRUE(reply.ok()) << bytes << ": " << reply.status().ToString();
    EXPECT_TRUE(std::equal(text.rbegin(), text.rend(), reply->payload.begin(), reply->payload.end()))
        << bytes;
  }
}

TEST(Fabric, BringsBackWhatWasWrittenAtAnySizeAndOffset) {
  Pair pair;
  const SharedMemory memory(10 << 20);
  const FabricPeer::Key key = Expose(*pair.server, memory);
  std::string expected(memory.bytes(), '\0');
  std::size_t offset = 1;
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{63}, std::size_t{64},
        std::size_t{65}, std::size_t{4095}, std::size_t{16384}, std::size_t{65537}, std::size_t{1} << 20,
        (std::size_t{9} << 20) - 3}) {
    offset = bytes > 1 << 20 ? 3 : offset * 3 % 60000;
    std::string out = Noise(bytes, static_cast<unsigned>(bytes));
    const Status put = pair.peer->WriteNow(key, {offset, out.data(), bytes}, In(10s));
    ASSERT_TRUE(put.ok()) << bytes << ": " << put.ToString();
    expected.replace(offset, bytes, out);
    EXPECT_EQ(std::memcmp(memory.begin(), expected.data(), expected.size()), 0) << bytes;
    std::string in(bytes, '\0');
    const Status get = pair.peer->ReadNow(key, {offset, in.data(), bytes}, In(10s));
    ASSERT_TRUE(get.ok()) << bytes << ": " << get.ToString();
    EXPECT_TRUE(in == out) << bytes;
  }
}

// 1,000 pieces of up to 5,000 bytes with gaps between them.
TEST(Fabric, PutsManyPiecesInOneTransferAndGetsThemBack) {
  Pair pair;
  const SharedMemory memory(8 << 20);
  const FabricPeer::Key key = Expose(*pair.server, memory);
  const std::string out = Noise(memory.bytes(), 1);
  std::string in(memory.bytes(), '\0'), expected(memory.bytes(), '\0');
  std::vector<FabricPiece> put, get;
  std::mt19937 random(2);
  for (std::size_t offset = 5; put.size() < 1000;) {
    const std::size_t bytes = random() % 5000;
    put.push_back({offset, const_cast<char*>(out.data()) + offset, bytes});
    get.push_back({offset, in.data() + offset, bytes});
    expected.replace(offset, bytes, out, offset, bytes);
    offset += bytes + 1 + random() % 3000;
  }
  Result<std::unique_ptr<FabricTransfer>> written = pair.peer->Write(key, put);
  ASSERT_TRUE(written.ok()) << written.status().ToString();
  ASSERT_TRUE((*written)->Wait(In(10s)).ok());
  EXPECT_EQ(std::memcmp(memory.begin(), expected.data(), expected.size()), 0);
  Result<std::unique_ptr<FabricTransfer>> read = pair.peer->Read(key, get);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  ASSERT_TRUE(Eventually(30s, "the read is done", [&] { return (*read)->Test().has_value(); }));
  EXPECT_TRUE((*read)->Test()->ok());
  EXPECT_TRUE(in == expected);
}

TEST(Fabric, FinishesTransfersThatNobodyWaitsFor) {
  Pair pair;
  const SharedMemory memory(64 << 20);
  const FabricPeer::Key key = Expose(*pair.server, memory);
  std::string out = Noise(memory.bytes(), 3);
  const FabricPiece piece{0, out.data(), out.size()};
  const Result<std::unique_ptr<FabricTransfer>> written = pair.peer->Write(key, {&piece, 1});
  ASSERT_TRUE(written.ok()) << written.status().ToString();
  // Looked at in memory, so that this thread makes no progress.
  EXPECT_TRUE(Eventually(30s, "all is in memory",
                         [&] { return std::memcmp(memory.begin(), out.data(), out.size()) == 0; }));
  EXPECT_TRUE((*written)->Wait(In(30s)).ok());
}

TEST(Fabric, FinishesATransferThatIsDroppedBeforeItIsDone) {
  Pair pair;
  const SharedMemory memory(16 << 20);
  const FabricPeer::Key key = Expose(*pair.server, memory);
  std::string out = Noise(memory.bytes(), 4);
  const FabricPiece piece{0, out.data(), out.size()};
  ASSERT_TRUE(pair.peer->Write(key, {&piece, 1}).ok());
  EXPECT_EQ(std::memcmp(memory.begin(), out.data(), out.size()), 0);
}

TEST(Fabric, ServesManyThreadsOfOneProcess) {
  Pair pair;
  constexpr std::size_t kThreads = 8, kBytes = 200000;
  const SharedMemory memory(kThreads * kBytes);
  const FabricPeer::Key key = Expose(*pair.server, memory);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (unsigned round = 0; round < 50; ++round) {
        const std::size_t bytes = round % 2 == 0 ? 8 + round : kBytes - round;
        std::string out = Noise(bytes, static_cast<unsigned>(t * 1000 + round)), in(bytes, '\0');
        if (!pair.peer->WriteNow(key, {t * kBytes, out.data(), bytes}, In(20s)).ok()) ++wrong;
        const Result<wire::Frame> reply = pair.peer->Call(kEcho, out, In(20s));
        if (!reply.ok() ||
            !std::equal(out.rbegin(), out.rend(), reply->payload.begin(), reply->payload.end()))
          ++wrong;
        if (!pair.peer->ReadNow(key, {t * kBytes, in.data(), bytes}, In(20s)).ok() || in != out) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Fabric, ServesSixtyFourClientsAtOnce) {
  const auto server = StartServer();
  constexpr std::size_t kClients = 64;
  const SharedMemory memory(kClients * 4096);
  const FabricPeer::Key key = Expose(*server, memory);
  std::vector<std::unique_ptr<FabricClient>> clients;
  std::vector<std::unique_ptr<FabricPeer>> peers;
  for (std::size_t i = 0; i < kClients; ++i) {
    clients.push_back(OpenClient());
    peers.push_back(Connect(*clients.back(), server->address()));
  }
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kClients; ++i) {
    threads.emplace_back([&, i] {
      std::string out = Noise(4096, static_cast<unsigned>(i)), in(4096, '\0');
      const Result<wire::Frame> reply = peers[i]->Call(kEcho, out, In(30s));
      EXPECT_TRUE(reply.ok()) << i << ": " << reply.status().ToString();
      const Status put = peers[i]->WriteNow(key, {i * 4096, out.data(), 4096}, In(30s));
      EXPECT_TRUE(put.ok()) << i << ": " << put.ToString();
      const Status get = peers[i]->ReadNow(key, {i * 4096, in.data(), 4096}, In(30s));
      EXPECT_TRUE(get.ok()) << i << ": " << get.ToString();
      EXPECT_TRUE(in == out) << i;
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Fabric, TellsTheHandlerWhoAsks) {
  std::string from;
  const auto server = StartServer([&](const std::string& who, wire::Frame request) {
    from = who;
    return EchoHandler(who, std::move(request));
  });
  const auto client = OpenClient();
  const auto peer = Connect(*client, server->address());
  ASSERT_TRUE(peer->Call(kEcho, "", In(30s)).ok());
  EXPECT_EQ(from, client->address());
}

TEST(Fabric, LetsTheHandlerRegisterAndUnregister) {
  const SharedMemory memory(4096);
  FabricServer* serving = nullptr;
  const auto server = StartServer([&](const std::string&, wire::Frame request) {
    const Result<FabricKey> key = serving->Register(memory.begin(), Bytes(4096), FabricServer::Access::kRead);
    if (key.ok()) serving->Unregister(key->key);
    return wire::Frame{kEcho, 0, request.id, key.ok() ? "done" : key.status().ToString()};
  });
  serving = server.get();
  const auto client = OpenClient();
  const auto peer = Connect(*client, server->address());
  const Result<wire::Frame> reply = peer->Call(kEcho, "", In(30s));
  ASSERT_TRUE(reply.ok()) << reply.status().ToString();
  EXPECT_EQ(reply->payload, "done");
}

TEST(Fabric, NamesTheProvidersThatThereAre) {
  const Result<std::unique_ptr<FabricClient>> client = OpenFabricClient("no-such");
  ASSERT_FALSE(client.ok());
  EXPECT_EQ(client.status().code(), Code::kUnavailable);
  EXPECT_NE(client.status().message().find("tcp;ofi_rxm"), std::string::npos) << client.status().ToString();
  EXPECT_EQ(OpenFabricClient("shm").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(FabricServer::Start({.provider = "tcp;ofi_rxm", .host = "no.such.host.invalid"}, &EchoHandler)
                .status()
                .code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace msa::nam
