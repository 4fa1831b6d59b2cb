#pragma once
// Memory that clients may reach by a key, and how it is taken back from them.
//
// Closing a registration does not stop a transfer that has begun: tcp;ofi_rxm looks a key up once, when a
// transfer's header comes, and goes on to receive into that address, at the pace of the sender. So what is
// registered is a second mapping of the memory, of this class's own. Taking it back puts empty pages in its
// place, which ends the access at once, and the addresses are given back when every connection that was open
// then has gone. Where no second mapping can be had (private memory, hugetlbfs) the connections are cut.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "msa/base/mutex.h"
#include "msa/nam/fabric_server.h"

#include "fragments.h"
#include "port.h"
#include "tcp_connections.h"

namespace msa::nam {

// A mapping that is unmapped when it goes. Movable.
class Mapping {
 public:
  Mapping() = default;
  Mapping(void* begin, std::size_t bytes) : begin_(begin), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept { *this = std::move(other); }
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();
  char* begin() const noexcept { return static_cast<char*>(begin_); }
  std::size_t bytes() const noexcept { return bytes_; }
  explicit operator bool() const noexcept { return begin_ != nullptr; }

 private:
  void* begin_ = nullptr;
  std::size_t bytes_ = 0;
};

class ExposedMemory {
 public:
  struct Options {
    // Which TCP connections are the port's.
    TcpFilter connections = [](const TcpConnection&) { return true; };
    // Makes progress on the endpoint, or lets another thread make it, for about a millisecond.
    std::function<void()> progress;
    // Addresses kept back for connections that are still open; beyond, those connections are cut.
    std::size_t kept_back_bytes = std::size_t{1} << 44;  // 16 TiB of 128
    std::size_t kept_back_count = 8192;                  // a process has 65,530 mappings
  };
  ExposedMemory(const Port& port, Options options);
  ~ExposedMemory();

  // Any thread. kInvalidArgument: no memory there. kResourceExhausted.
  Result<FabricKey> Add(void* base, Bytes bytes, FabricServer::Access access);
  // Any thread. When it returns nothing touches the memory any more. Unknown keys are passed over.
  void Remove(std::uint64_t key);
  // What there is to be said against a transfer: kPermissionDenied: no such key, or it does not let one
  // write; kOutOfRange.
  CheckAnswer Check(const CheckQuestion& question) const;

 private:
  struct Exposed {
    Mapping alias;  // null: the memory itself is registered
    FidPtr<fid_mr> mr;
    std::size_t bytes = 0;
    FabricServer::Access access = FabricServer::Access::kRead;
  };
  struct KeptBack {
    Mapping sink;
    std::set<ino_t> connections;  // that were open, and may still be in a transfer
  };
  Result<Exposed> Expose(char* base, std::size_t bytes, FabricServer::Access access);
  void TakeBack(Mapping alias);
  void ReleaseKeptBack() MSA_REQUIRES(mu_);
  void CutAll();

  const Port& port_;
  const Options options_;
  mutable Mutex mu_;
  std::unordered_map<std::uint64_t, Exposed> exposed_ MSA_GUARDED_BY(mu_);
  std::vector<KeptBack> kept_back_ MSA_GUARDED_BY(mu_);
};

}  // namespace msa::nam
