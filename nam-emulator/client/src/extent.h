#pragma once
// A handle's way to one of its region's extents: mapped, or over the fabric.

#include <msa_nam.h>
#include <poll.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "msa/base/mutex.h"
#include "msa/nam/fabric_client.h"

#include "frame_socket.h"
#include "gate.h"
#include "lease.h"

namespace msa::nam {

enum class Transport : std::uint8_t { kAuto, kLocal, kFabric };
// MSA_NAM_TRANSPORT. kInvalidArgument.
Result<Transport> WantedTransport();

// Any thread.
class Extent : public std::enable_shared_from_this<Extent> {
 public:
  // The connection's way and place; errors as of NamAttach, kUnavailable, and kPermissionDenied or kNotFound
  // where `transport` cannot be had.
  static Result<std::shared_ptr<Extent>> Attach(std::shared_ptr<Lease> lease, std::uint32_t index,
                                                Transport transport, SteadyTime deadline);
  ~Extent();
  Extent(const Extent&) = delete;
  Extent& operator=(const Extent&) = delete;

  bool mapped() const { return data_ != nullptr; }
  bool writable() const { return writable_; }
  std::byte* data() const { return data_; }
  Gate& gate(std::uint32_t slot) const { return (*gates_)[slot]; }
  // Of a mapped extent that may be written.
  LockWords words(std::uint32_t slot) const {
    return {locks_ + slot, highest_owner_, owner_.load(std::memory_order_relaxed)};
  }
  // "owner 3 (pid 4711)", of who holds the lock; empty: nobody, or it cannot be seen from
  // here.
  std::string HolderOf(std::uint32_t slot) const;

  // 0: well. Else what it has come to; then all calls fail.
  bool stale() { return stale_.load(std::memory_order_acquire) || (mapped() && IsRevoked()); }
  Status WhyStale() const;

  // ---- requests that namd answers: for what is not mapped, or not writable. NamLock and NamAtomic.
  // Locks are asked for again after a restart, atomics are not: kUnknown.
  Result<bool> AskLock(std::uint32_t slot, LockMode mode, SteadyTime deadline);
  // For how long one attempt after the other to ask for a lock has found no namd; 0: the last one has.
  Millis AwayFor() const;
  Result<std::string> AskAtomic(wire::NamAtomic atomic, SteadyTime deadline);

  // ---- transfers over the fabric. Repeated until the deadline.
  enum class Direction : std::uint8_t { kPut, kGet };
  Status MoveNow(Direction direction, const FabricPiece& piece, SteadyTime deadline);
  Status Move(Direction direction, std::span<const FabricPiece> pieces, SteadyTime deadline);
  // Started, not repeated by itself. kUnavailable: see Repair.
  Result<std::unique_ptr<FabricTransfer>> Start(Direction direction, std::span<const FabricPiece> pieces,
                                                SteadyTime deadline);
  // Whether the lease of now has the right for it.
  bool Allows(Direction direction) const;
  // After a failure of the transport: attaches again where it is of use. Not ok: give up with it.
  Status Repair(const Status& failed, SteadyTime deadline);

  // ---- for the watcher (watcher.h)
  // Whether the connections that it is held by are there; then they are added to `fds`, with what is to be
  // waited for at them.
  bool IsHeld(std::vector<pollfd>& fds) const;
  // Whether any of that may end before the handle does.
  bool NeedsWatching() const { return mapped() || lease_->EndsWithItsConnection(); }
  // Makes those anew that are not. Once: kUnavailable: try later.
  Status AttachAgain(SteadyTime deadline);
  void MarkStale(const Status& why);
  // What namd says without being asked; MarkStale follows.
  void Hear();
  // Called before anybody is told that the extent is stale, by whoever has found out.
  void OnStale(std::function<void()> hook);
  // The connection ends, for good.
  void Close();

 private:
  struct FabricEnd {
    std::shared_ptr<FabricPeer> peer;
    FabricPeer::Key key;
    std::uint64_t attachment = 0;
    std::uint64_t number = 0;  // grows with each one
  };

  Extent(std::shared_ptr<Lease> lease, std::uint32_t index);
  // kPermissionDenied: its owner has taken the right away since.
  Status CheckRight(NamRights right) const;
  void OnEnded(const wire::Frame& frame);
  Status Ended() const;
  // Whether namd has ended this process's leases to what it maps; then it is stale from now on.
  bool IsRevoked();
  int SocketIfUp() const;  // of a mapped one; -1: its connection has ended
  wire::NamAttach Request(bool map) const;
  Result<bool> AskForLock(std::uint32_t slot, LockMode mode, SteadyTime deadline);
  Result<wire::NamAttached> AskSocket(FrameSocket& socket, bool map, SteadyTime deadline);
  Status AttachLocal(SteadyTime deadline);
  Status AttachFabric(SteadyTime deadline);
  // Waits for a fabric that is being started, and a moment for a namd that is.
  Status AttachFabricFirst(SteadyTime deadline);
  Status Map(const wire::NamAttached& attached, UniqueFd file);
  Status CheckHeader(const wire::NamAttached& attached, const ExtentHeader& header) const;
  Status CheckSameFile(int file) const;
  // Told by the first attachment that succeeds.
  void RepayUnlocks(FabricPeer& peer, std::uint64_t attachment, SteadyTime deadline);
  Result<FabricEnd> End(SteadyTime deadline);
  Result<wire::Frame> Call(std::uint16_t type, const std::function<std::string(std::uint64_t)>& payload,
                           SteadyTime deadline);
  Result<wire::Frame> CallSocket(std::uint16_t type, const std::function<std::string(std::uint64_t)>& payload,
                                 SteadyTime deadline);

  const std::shared_ptr<Lease> lease_;
  const std::uint32_t index_;
  std::shared_ptr<Gates> gates_;
  std::uint32_t slots_ = 0;

  // A mapping; fixed from the attachment on.
  std::byte* base_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::byte* data_ = nullptr;
  SegmentLock* locks_ = nullptr;
  OwnerSlot* owners_ = nullptr;
  const std::atomic<std::uint32_t>* highest_owner_ = nullptr;
  bool writable_ = false;
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
  std::atomic<std::uint32_t> owner_{0};

  std::atomic<bool> stale_{false};
  mutable Mutex mu_;
  std::function<void()> on_stale_ MSA_GUARDED_BY(mu_);
  Status why_stale_ MSA_GUARDED_BY(mu_);
  std::shared_ptr<FrameSocket> socket_ MSA_GUARDED_BY(mu_);
  std::uint64_t attachment_ MSA_GUARDED_BY(mu_) = 0;
  std::uint64_t next_id_ MSA_GUARDED_BY(mu_) = 0;
  FabricEnd fabric_ MSA_GUARDED_BY(mu_);
  SteadyTime away_since_ MSA_GUARDED_BY(mu_){};         // {}: not away
  SteadyTime away_until_ MSA_GUARDED_BY(mu_){};         // as far as was looked
  std::set<std::uint32_t> locked_ MSA_GUARDED_BY(mu_);  // slots whose lock namd has given to this handle
  // Slots whose lock, or claim of one, nobody wants any longer, of which namd could not be told.
  std::set<std::uint32_t> owed_unlocks_ MSA_GUARDED_BY(mu_);
  // Held while attaching over the fabric; before mu_.
  Mutex attaching_;
  Mutex asking_;
};

}  // namespace msa::nam
