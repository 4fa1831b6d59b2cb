// What a server refuses, and what a refused or broken transfer leaves behind.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "fabric_fixture.h"
#include "fragments.h"
#include "port.h"
#include "tcp_connections.h"

namespace msa::nam {
namespace {

class FabricRefusal : public testing::Test {
 protected:
  Status Put(FabricPeer::Key key, std::uint64_t offset, std::uint64_t bytes) {
    return peer_->WriteNow(key, {offset, scratch_.data(), bytes}, In(30s));
  }
  Status Get(FabricPeer::Key key, std::uint64_t offset, std::uint64_t bytes) {
    return peer_->ReadNow(key, {offset, scratch_.data(), bytes}, In(30s));
  }

  std::unique_ptr<FabricServer> server_ = StartServer();
  std::unique_ptr<FabricClient> client_ = OpenClient();
  std::unique_ptr<FabricPeer> peer_ = Connect(*client_, server_->address());
  SharedMemory memory_{1 << 20};
  std::string scratch_ = Noise(1 << 20, 9);
};

TEST_F(FabricRefusal, SaysThatAKeyHasEndedAndGoesOnWithOthers) {
  const FabricPeer::Key old = Expose(*server_, memory_), live = Expose(*server_, memory_);
  ASSERT_TRUE(Put(old, 0, 8).ok());
  server_->Unregister(old.key);
  const Status put = Put(old, 0, 8);
  EXPECT_EQ(put.code(), Code::kPermissionDenied) << put.ToString();
  EXPECT_EQ(Get(old, 0, 8).code(), Code::kPermissionDenied);
  EXPECT_FALSE(peer_->broken());
  EXPECT_TRUE(Put(live, 0, 8).ok());
  EXPECT_TRUE(Get(live, 0, 100000).ok());
}

TEST_F(FabricRefusal, SaysThatAnOffsetOrALengthIsOutOfRange) {
  const FabricPeer::Key key = Expose(*server_, memory_);
  const std::uint64_t size = memory_.bytes();
  for (const auto& [offset, bytes] :
       std::vector<std::pair<std::uint64_t, std::uint64_t>>{{size, 1},
                                                            {size - 4, 8},
                                                            {1, size},
                                                            {size + 4096, 8},
                                                            {std::uint64_t{1} << 63, 8},
                                                            {UINT64_MAX - 3, 8},
                                                            {UINT64_MAX, 1}}) {
    const Status put = Put(key, offset, bytes);
    EXPECT_EQ(put.code(), Code::kOutOfRange) << offset << " " << bytes << ": " << put.ToString();
    const Status get = Get(key, offset, bytes);
    EXPECT_EQ(get.code(), Code::kOutOfRange) << offset << " " << bytes << ": " << get.ToString();
  }
  EXPECT_TRUE(Put(key, size - 8, 8).ok());
}

// FabricPeer hands on whatever key and range it is given, as a client does that leaves out the library's
// checks.
TEST_F(FabricRefusal, TouchesNothingForAClientThatChecksNothing) {
  constexpr std::uint64_t kPage = 4096;
  const SharedMemory around(3 * kPage);
  std::memset(around.begin(), 'k', around.bytes());
  const Result<FabricKey> given =
      server_->Register(around.begin() + kPage, Bytes(kPage), FabricServer::Access::kReadWrite);
  ASSERT_TRUE(given.ok()) << given.status().ToString();
  const FabricPeer::Key key = KeyOf(*given);
  const auto untouched = [&] {
    return std::count(around.begin(), around.begin() + around.bytes(), 'k') ==
           static_cast<std::ptrdiff_t>(around.bytes());
  };
  for (const std::uint64_t wrong : {std::uint64_t{0}, std::uint64_t{1}, key.key ^ 1, ~key.key, UINT64_MAX}) {
    const Status put = Put({wrong, key.base}, 0, 8);
    EXPECT_EQ(put.code(), Code::kPermissionDenied) << wrong << ": " << put.ToString();
    EXPECT_FALSE(put.message().empty());
    EXPECT_EQ(Get({wrong, key.base}, 0, 8).code(), Code::kPermissionDenied) << wrong;
  }
  // Below, above, across each end, and around the whole address space.
  const std::uint64_t minus = 0;
  for (const auto& [offset, bytes] :
       std::vector<std::pair<std::uint64_t, std::uint64_t>>{{minus - kPage, kPage},
                                                            {minus - 8, 16},
                                                            {kPage, kPage},
                                                            {kPage - 8, 16},
                                                            {minus - kPage, 3 * kPage}})
    EXPECT_EQ(Put(key, offset, bytes).code(), Code::kOutOfRange) << offset << " " << bytes;
  EXPECT_TRUE(untouched());
  EXPECT_TRUE(Put(key, 0, kPage).ok());
  EXPECT_TRUE(peer_->Call(kEcho, "x", In(30s)).ok());
}

TEST_F(FabricRefusal, LetsAReaderOnlyRead) {
  const FabricPeer::Key key = Expose(*server_, memory_, FabricServer::Access::kRead);
  std::memcpy(memory_.begin(), "kept", 4);
  EXPECT_EQ(Put(key, 0, 8).code(), Code::kPermissionDenied);
  EXPECT_TRUE(Get(key, 0, 8).ok());
  EXPECT_EQ(std::memcmp(memory_.begin(), "kept", 4), 0);
}

TEST_F(FabricRefusal, TellsTheWaiterOfAnAsynchronousTransferToo) {
  const FabricPeer::Key key = Expose(*server_, memory_);
  const FabricPiece pieces[] = {{0, scratch_.data(), 8}, {memory_.bytes() - 4, scratch_.data(), 8}};
  const Result<std::unique_ptr<FabricTransfer>> transfer = peer_->Write(key, pieces);
  ASSERT_TRUE(transfer.ok());
  EXPECT_EQ((*transfer)->Wait(In(30s)).code(), Code::kOutOfRange);
}

// The memory is the next region's as soon as Unregister has returned.
TEST_F(FabricRefusal, TouchesNothingAfterUnregisterThoughAClientGoesOnWriting) {
  const FabricPeer::Key key = Expose(*server_, memory_);
  std::atomic<bool> stop{false};
  std::atomic<int> written{0};
  std::thread writer([&] {
    std::string out(memory_.bytes(), 'w');
    while (!stop) {
      if (!peer_->WriteNow(key, {0, out.data(), out.size()}, In(30s)).ok()) return;
      ++written;
    }
  });
  ASSERT_TRUE(Eventually(30s, "the client has written", [&] { return written > 20; }));
  server_->Unregister(key.key);
  std::memset(memory_.begin(), 'n', memory_.bytes());
  writer.join();
  EXPECT_EQ(std::count(memory_.begin(), memory_.begin() + memory_.bytes(), 'n'),
            static_cast<std::ptrdiff_t>(memory_.bytes()));
  stop = true;
}

// Private memory has no second mapping: the connections are cut instead.
TEST_F(FabricRefusal, TakesPrivateMemoryBackToo) {
  std::vector<char> memory(1 << 20);
  const Result<FabricKey> key =
      server_->Register(memory.data(), Bytes(memory.size()), FabricServer::Access::kReadWrite);
  ASSERT_TRUE(key.ok()) << key.status().ToString();
  ASSERT_TRUE(Put(KeyOf(*key), 0, memory.size()).ok());
  EXPECT_EQ(std::memcmp(memory.data(), scratch_.data(), memory.size()), 0);
  server_->Unregister(key->key);
  EXPECT_FALSE(Put(KeyOf(*key), 0, 8).ok());
  const auto again = Connect(*client_, server_->address());
  EXPECT_TRUE(again->Call(kEcho, "x", In(30s)).ok());
}

// A client that announces a long write and sends half of it, and the rest when its key has ended.
TEST(FabricRevocation, EndsAWriteThatHasBegun) {
  const SharedMemory memory(256 << 20);
  const SharedMemory begun(4096);
  Pipe address;
  Child client([&] {
    const std::string text = address.Receive(sizeof(FabricPeer::Key) + 16);
    FabricPeer::Key key;
    std::memcpy(&key, text.data(), sizeof key);
    const auto fabric = OpenClient();
    const auto peer = Connect(*fabric, text.substr(sizeof key));
    const std::string out(memory.bytes(), 'w');
    for (;;) {
      begun.begin()[0] = 1;
      (void)peer->WriteNow(key, {0, const_cast<char*>(out.data()), out.size()}, In(60s));
    }
  });
  const auto server = StartServer();
  const FabricPeer::Key key = Expose(*server, memory);
  address.Send(std::string(reinterpret_cast<const char*>(&key), sizeof key) + server->address());
  ASSERT_TRUE(Eventually(30s, "the write has begun",
                         [&] { return *static_cast<volatile char*>(memory.begin()) == 'w'; }));
  client.Stop();
  server->Unregister(key.key);
  std::memset(memory.begin(), 'n', memory.bytes());
  client.Signal(SIGCONT);
  const auto other = OpenClient();
  const auto peer = Connect(*other, server->address());
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(peer->Call(kEcho, "x", In(10s)).ok());
  EXPECT_EQ(std::count(memory.begin(), memory.begin() + memory.bytes(), 'n'),
            static_cast<std::ptrdiff_t>(memory.bytes()));
}

class FabricGarbage : public testing::Test {
 protected:
  void ExpectService() {
    const auto client = OpenClient();
    const auto peer = Connect(*client, server_->address());
    const Result<wire::Frame> reply = peer->Call(kEcho, "still", In(10s));
    ASSERT_TRUE(reply.ok()) << reply.status().ToString();
    EXPECT_EQ(reply->payload, "llits");
  }
  std::atomic<int> logged_{0};
  std::unique_ptr<FabricServer> server_ =
      StartServer(&EchoHandler, [this](const std::string&) { ++logged_; });
};

TEST_F(FabricGarbage, IsDroppedAndLogged) {
  Result<Port> port = Port::Open({"tcp;ofi_rxm", "127.0.0.1", 0});
  ASSERT_TRUE(port.ok());
  fi_addr_t to = 0;
  ASSERT_EQ(fi_av_insert(port->av(), server_->address().data(), 1, &to, 0, nullptr), 1);
  std::mt19937 random(5);
  const std::string good =
      (*Fragment({FragmentKind::kRequest, kEcho, 7, 8, port->address()}, Noise(40000, 1))).front();
  int sent = 0;
  const SteadyTime limit = In(20s);
  while (sent < 300 && SteadyNow() < limit) {
    std::string bytes = sent % 3 == 0 ? Noise(1 + random() % 20000, random()) : good;
    if (sent % 3 != 0)
      for (int i = 0; i < 3; ++i)
        bytes[random() % (sent % 2 == 0 ? 60 : bytes.size())] = static_cast<char>(random());
    if (sent % 7 == 1) bytes.resize(random() % bytes.size());
    fi_context2 context;
    ssize_t code = 0;
    fi_cq_msg_entry done;
    while ((code = fi_send(port->ep(), bytes.data(), bytes.size(), nullptr, to, &context)) == -FI_EAGAIN &&
           SteadyNow() < limit)
      (void)fi_cq_read(port->cq(), nullptr, 0);
    ASSERT_EQ(code, 0);
    while (fi_cq_read(port->cq(), &done, 1) == -FI_EAGAIN && SteadyNow() < limit) {
    }
    ++sent;
  }
  EXPECT_EQ(sent, 300);
  EXPECT_TRUE(Eventually(30s, "garbage was logged", [&] { return logged_ > 50; })) << logged_;
  ExpectService();
}

TEST_F(FabricGarbage, ByPlainTcpLeavesTheServerAlone) {
  std::mt19937 random(6);
  for (int i = 0; i < 40; ++i) {
    const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(
        connect(fd.get(), reinterpret_cast<const sockaddr*>(server_->address().data()), sizeof(sockaddr_in)),
        0);
    const std::string bytes = i % 4 == 0 ? "GET / HTTP/1.0\r\n\r\n" : Noise(1 + random() % 2000, random());
    if (i % 5 != 0) (void)!send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  ExpectService();
}

// libfabric keeps their sockets, which would keep the server from sleeping.
TEST_F(FabricGarbage, ConnectionsThatEndWithoutAWordAreClosed) {
  for (int i = 0; i < 5; ++i) {
    const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(
        connect(fd.get(), reinterpret_cast<const sockaddr*>(server_->address().data()), sizeof(sockaddr_in)),
        0);
  }
  const auto client = OpenClient();
  const auto peer = Connect(*client, server_->address());
  EXPECT_TRUE(Eventually(30s, "no socket is left of them", [&] {
    EXPECT_TRUE(peer->Call(kEcho, "x", In(10s)).ok());  // the server looks when it is awake
    return TcpConnections(
               [&](const TcpConnection& c) { return c.ended && SamePort(c.local, server_->address()); })
        .empty();
  }));
  ExpectService();
}

}  // namespace
}  // namespace msa::nam
