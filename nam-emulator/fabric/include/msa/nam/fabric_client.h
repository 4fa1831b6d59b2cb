#pragma once
// A client's side of the fabric, in libmsanam-fabric.so, which libmsanam loads when a region needs it, so
// that programs which do not are not linked with libfabric. One FabricClient per process; any thread may use
// it and its peers. One progress thread of its own, which sleeps when nothing is outstanding.
//
// Every operation has a deadline, and after an error of the transport the peer is broken: all that is
// outstanding fails with kUnavailable at once, and the owner connects again with a new address.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "msa/base/clock.h"
#include "msa/base/status.h"
#include "msa/base/wire.h"

namespace msa::nam {

// A piece of one transfer: `bytes` between local memory and the peer's memory at `offset`.
struct FabricPiece {
  std::uint64_t offset = 0;
  void* local = nullptr;
  std::uint64_t bytes = 0;
};

// A transfer that was started. Dropping it before it is done waits for it; after a Wait in vain it ends it,
// and its connection with it. Either way local memory is not touched any more.
class FabricTransfer {
 public:
  virtual ~FabricTransfer() = default;
  // nullopt: not yet. A status: done; local memory may be used again, and what was written is in the peer's
  // memory (FI_DELIVERY_COMPLETE).
  virtual std::optional<Status> Test() = 0;
  // kDeadlineExceeded: it goes on.
  virtual Status Wait(SteadyTime deadline) = 0;
};

class FabricPeer {
 public:
  virtual ~FabricPeer() = default;
  // A request of 0x08xx and its answer. kDeadlineExceeded, kUnavailable: it may have been carried out or not.
  virtual Result<wire::Frame> Call(std::uint16_t type, const std::string& payload, SteadyTime deadline) = 0;

  struct Key {
    std::uint64_t key = 0;
    std::uint64_t base = 0;
  };
  // Pieces of one transfer go out together, in any order. Local memory stays until it is done.
  virtual Result<std::unique_ptr<FabricTransfer>> Write(Key key, std::span<const FabricPiece> pieces) = 0;
  virtual Result<std::unique_ptr<FabricTransfer>> Read(Key key, std::span<const FabricPiece> pieces) = 0;
  // Blocking ones, for the latency of small transfers: no allocation.
  virtual Status WriteNow(Key key, const FabricPiece& piece, SteadyTime deadline) = 0;
  virtual Status ReadNow(Key key, const FabricPiece& piece, SteadyTime deadline) = 0;
  virtual bool broken() const = 0;
};

class FabricClient {
 public:
  virtual ~FabricClient() = default;
  virtual const std::string& address() const = 0;  // of this process's endpoint, for NamAttach
  // `address`: fi_getname bytes of a namd's endpoint.
  virtual Result<std::unique_ptr<FabricPeer>> Connect(const std::string& address) = 0;
};

// The one symbol of libmsanam-fabric.so. `provider` as of the lease. The status goes to *error.
#define MSA_NAM_FABRIC_SYMBOL "msa_nam_fabric_open"
using FabricOpen = FabricClient* (*)(std::uint32_t version, const char* provider, Status* error);
inline constexpr std::uint32_t kFabricAbi = 1;

}  // namespace msa::nam
