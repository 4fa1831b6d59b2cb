#pragma once
// A server in this process or in a child of it, shared memory that it serves, and a client.

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "msa/base/clock.h"
#include "msa/base/unique_fd.h"
#include "msa/nam/fabric_server.h"
#include "msa/support/eventually.h"

#include "client.h"

namespace msa::nam {

using namespace std::chrono_literals;
using support::Eventually;

constexpr std::uint16_t kEcho = 0x0801;  // answered by the same type with the payload reversed

inline SteadyTime In(std::chrono::milliseconds time) { return SteadyNow() + time; }

class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes) : bytes_(bytes) {
    begin_ =
        static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    if (begin_ == MAP_FAILED) std::abort();
  }
  ~SharedMemory() { munmap(begin_, bytes_); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  char* begin() const { return begin_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  char* begin_;
};

inline wire::Frame EchoHandler(const std::string&, wire::Frame request) {
  return {request.type, 0, request.id, std::string(request.payload.rbegin(), request.payload.rend())};
}

inline std::unique_ptr<FabricServer> StartServer(FabricServer::Handler handler = &EchoHandler,
                                                 std::function<void(const std::string&)> log = {}) {
  Result<std::unique_ptr<FabricServer>> server = FabricServer::Start(
      {.provider = "tcp;ofi_rxm", .host = "127.0.0.1", .port = 0, .log = std::move(log)}, std::move(handler));
  EXPECT_TRUE(server.ok()) << server.status().ToString();
  return server.ok() ? std::move(*server) : nullptr;
}

inline std::unique_ptr<FabricClient> OpenClient() {
  Result<std::unique_ptr<FabricClient>> client = OpenFabricClient("tcp;ofi_rxm");
  EXPECT_TRUE(client.ok()) << client.status().ToString();
  return client.ok() ? std::move(*client) : nullptr;
}

inline std::unique_ptr<FabricPeer> Connect(FabricClient& client, const std::string& address) {
  Result<std::unique_ptr<FabricPeer>> peer = client.Connect(address);
  EXPECT_TRUE(peer.ok()) << peer.status().ToString();
  return peer.ok() ? std::move(*peer) : nullptr;
}

inline FabricPeer::Key KeyOf(const FabricKey& key) { return {key.key, key.base}; }

inline FabricPeer::Key Expose(FabricServer& server, const SharedMemory& memory,
                              FabricServer::Access access = FabricServer::Access::kReadWrite) {
  const Result<FabricKey> key = server.Register(memory.begin(), Bytes(memory.bytes()), access);
  EXPECT_TRUE(key.ok()) << key.status().ToString();
  return key.ok() ? KeyOf(*key) : FabricPeer::Key{};
}

inline std::string Noise(std::size_t bytes, unsigned seed) {
  std::mt19937_64 random(seed);
  std::string out(bytes, '\0');
  for (std::size_t i = 0; i < bytes; i += 8) {
    const std::uint64_t word = random();
    std::memcpy(out.data() + i, &word, std::min<std::size_t>(8, bytes - i));
  }
  return out;
}

// A child process that lives until it is stopped, or this process ends.
class Child {
 public:
  template <class F>
  explicit Child(F&& body) {
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    body();
    _exit(0);
  }
  ~Child() { Kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const { return pid_; }
  void Signal(int signal) const { kill(pid_, signal); }
  // It does nothing any more when this returns.
  void Stop() const {
    kill(pid_, SIGSTOP);
    waitpid(pid_, nullptr, WUNTRACED);
  }
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  // The exit status of a child that ends by itself.
  int Wait() {
    int status = -1;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_ = -1;
};

struct Pipe {
  Pipe() {
    int fds[2];
    if (pipe(fds) != 0) std::abort();
    out.reset(fds[0]);
    in.reset(fds[1]);
  }
  void Send(const std::string& bytes) const {
    if (write(in.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
  }
  std::string Receive(std::size_t bytes) const {
    std::string text(bytes, '\0');
    std::size_t got = 0;
    while (got < bytes) {
      const ssize_t n = read(out.get(), text.data() + got, bytes - got);
      if (n <= 0) return {};
      got += static_cast<std::size_t>(n);
    }
    return text;
  }
  UniqueFd out, in;
};

// A server in a process of its own, which can be killed.
class ServerProcess {
 public:
  explicit ServerProcess(const SharedMemory& memory) : child_([&] { Serve(memory); }) {
    const std::string text = pipe_.Receive(sizeof(FabricKey) + 1);
    if (text.size() != sizeof(FabricKey) + 1) {
      ADD_FAILURE() << "the server's process did not start";
      return;
    }
    FabricKey key;
    std::memcpy(&key, text.data(), sizeof key);
    key_ = KeyOf(key);
    address_ = pipe_.Receive(static_cast<unsigned char>(text.back()));
  }
  FabricPeer::Key key() const { return key_; }
  const std::string& address() const { return address_; }
  Child& child() { return child_; }

 private:
  void Serve(const SharedMemory& memory) {
    const auto server = StartServer();
    if (!server) return;
    const Result<FabricKey> key =
        server->Register(memory.begin(), Bytes(memory.bytes()), FabricServer::Access::kReadWrite);
    if (!key.ok()) return;
    std::string text(reinterpret_cast<const char*>(&*key), sizeof *key);
    text += static_cast<char>(server->address().size());
    pipe_.Send(text + server->address());
    for (;;) pause();
  }
  Pipe pipe_;
  Child child_;
  FabricPeer::Key key_;
  std::string address_;
};

}  // namespace msa::nam
