// What namd does for an extent that is not mapped, and transfers over the fabric.

#include <algorithm>
#include <thread>

#include "msa/base/nam_fabric.h"

#include "errors.h"
#include "extent.h"
#include "fabric_library.h"

namespace msa::nam {
namespace {

// Of a first attachment to a namd that does not answer: one that is restarted does within a second or two.
constexpr auto kPatience = Millis(5000);
constexpr auto kAttempt = Millis(1000);
constexpr auto kRefreshAttempt = Millis(500);

// Between attempts: from 1 ms, since a restarted namd is back within tens of them.
class Pauses {
 public:
  explicit Pauses(SteadyTime deadline) : deadline_(deadline) {}
  // False: no time is left.
  bool Next() {
    const SteadyTime now = SteadyNow();
    if (now >= deadline_) return false;
    std::this_thread::sleep_for(std::min<SteadyTime::duration>(pause_, deadline_ - now));
    pause_ = std::min(pause_ * 2, Millis(50));
    return true;
  }

 private:
  SteadyTime deadline_;
  Millis pause_{1};
};

// The reply, or why it was refused.
Result<wire::Frame> Checked(Result<wire::Frame> frame, std::uint16_t expected) {
  if (!frame.ok() || frame->type == expected) return frame;
  if (frame->type != wire::NamFailed::kType)
    return Error(Code::kInternal, "NAM daemon answered with type {:#06x}, expected {:#06x}", frame->type,
                 expected);
  MSA_ASSIGN_OR_RETURN(const wire::NamFailed failed, wire::Decode<wire::NamFailed>(frame->payload));
  return Status(failed.code == 0 ? Code::kInternal : static_cast<Code>(failed.code), failed.message);
}

NamRights RightOf(Extent::Direction direction) {
  return direction == Extent::Direction::kPut ? NamRights::kWrite : NamRights::kRead;
}

// Attaching again may help.
bool IsRepairable(Code code) {
  return code == Code::kUnavailable || code == Code::kFailedPrecondition || code == Code::kAborted ||
         code == Code::kPermissionDenied;
}

}  // namespace

// --------------------------------------------------------------------------------- attaching by the fabric

Status Extent::AttachFabric(SteadyTime deadline) {
  const wire::NamExtentPlace place = lease_->Place(index_);
  if (place.fabric_provider == wire::kNamFabricStarting)
    return Error(Code::kUnavailable, "NAM node {} is starting its fabric; try again, or see its log",
                 place.node);
  if (place.fabric_provider.empty() || place.fabric_address.empty())
    return Error(Code::kUnavailable,
                 "NAM node {} serves no fabric; start its msa-namd with one, or use MSA_NAM_TRANSPORT=local",
                 place.node);
  MSA_ASSIGN_OR_RETURN(FabricClient * client, OpenFabric(place.fabric_provider));
  MSA_ASSIGN_OR_RETURN(auto peer, ConnectFabric(place.fabric_provider, place.fabric_address));
  // No connection of its own tells the namd when this process is gone.
  Control::Get().Introduce(std::min(deadline, SteadyNow() + kAttempt));
  wire::NamAttach request = Request(false);
  request.fabric_address = client->address();
  MSA_ASSIGN_OR_RETURN(
      const wire::Frame frame,
      Checked(peer->Call(wire::NamAttach::kType, wire::Encode(request), deadline), wire::NamAttached::kType));
  MSA_ASSIGN_OR_RETURN(const wire::NamAttached attached, wire::Decode<wire::NamAttached>(frame.payload));
  writable_ = Has(lease_->terms().rights, NamRights::kWrite);
  RepayUnlocks(*peer, attached.attachment, deadline);
  const MutexLock lock(mu_);
  // The number may be the old one by chance.
  if (!attached.known && !locked_.empty())
    return Error(Code::kFailedPrecondition,
                 "locks of region '{}' are lost: NAM node {} has forgotten this process; open it again",
                 lease_->terms().name, place.node);
  owner_.store(attached.owner);
  fabric_ = {
      std::move(peer), {attached.fabric_key, attached.fabric_base}, attached.attachment, fabric_.number + 1};
  return Status::Ok();
}

void Extent::RepayUnlocks(FabricPeer& peer, std::uint64_t attachment, SteadyTime deadline) {
  std::set<std::uint32_t> owed;
  {
    const MutexLock lock(mu_);
    owed = owed_unlocks_;
  }
  for (const std::uint32_t slot : owed) {
    const wire::NamLock free{.attachment = attachment, .slot = slot, .mode = 0};
    if (!peer.Call(wire::NamLock::kType, wire::Encode(free), deadline).ok()) return;
    const MutexLock lock(mu_);
    owed_unlocks_.erase(slot);
    locked_.erase(slot);
  }
}

Status Extent::AttachFabricFirst(SteadyTime deadline) {
  const SteadyTime patience = std::min(deadline, SteadyNow() + kPatience);
  Pauses pauses(deadline);
  for (;;) {
    const Status attached = AttachFabric(deadline);
    if (attached.code() != Code::kUnavailable) return attached;
    const std::string provider = lease_->Place(index_).fabric_provider;
    const bool starting = provider == wire::kNamFabricStarting;
    // What this process or the namd does not have will not come.
    const bool can_come = starting || (!provider.empty() && OpenFabric(provider).ok());
    if (!can_come || (!starting && SteadyNow() >= patience) || !pauses.Next()) return attached;
    const Status refreshed = lease_->Refresh(std::min(deadline, SteadyNow() + kRefreshAttempt));
    if (refreshed.code() == Code::kFailedPrecondition) return refreshed;
    // A lease that somebody else asked for says the same for ever: he may ask for another one.
    if (!refreshed.ok() && lease_->origin() != Lease::Origin::kController) return attached;
  }
}

Result<Extent::FabricEnd> Extent::End(SteadyTime deadline) {
  if (stale()) return WhyStale();
  FabricEnd end;
  {
    const MutexLock lock(mu_);
    end = fabric_;
  }
  if (end.peer && !end.peer->broken()) return end;
  MSA_RETURN_IF_ERROR(
      Repair(Status(Code::kUnavailable, "the connection to the NAM node is broken"), deadline));
  const MutexLock lock(mu_);
  return fabric_;
}

Status Extent::Repair(const Status& failed, SteadyTime deadline) {
  if (stale()) return WhyStale();
  if (!IsRepairable(failed.code()) || mapped()) return failed;
  std::uint64_t broken;
  {
    const MutexLock lock(mu_);
    broken = fabric_.number;
  }
  const MutexLock attaching(attaching_);
  {
    const MutexLock lock(mu_);
    if (fabric_.number != broken) return Status::Ok();  // another thread has done it
  }
  Status last = failed;
  Pauses pauses(deadline);
  do {
    const SteadyTime now = SteadyNow();
    const Status refreshed = lease_->Refresh(std::min(deadline, now + kRefreshAttempt));
    if (refreshed.code() == Code::kFailedPrecondition) {
      MarkStale(refreshed);
      return refreshed;
    }
    last = AttachFabric(std::min(deadline, SteadyNow() + kAttempt));
    if (last.ok()) return last;
    const Code code = last.code();
    // The controller has said what there is to say. The old lease may have been good for all that: it may be
    // another user's.
    const bool is_refused =
        refreshed.code() == Code::kPermissionDenied || refreshed.code() == Code::kDataLoss;
    if ((refreshed.ok() || is_refused) && code != Code::kUnavailable && code != Code::kDeadlineExceeded) {
      if (is_refused) last = refreshed;
      MarkStale(last);
      return last;
    }
  } while (pauses.Next());
  return last.code() == Code::kDeadlineExceeded ? last : Status(Code::kUnavailable, last.message());
}

// ------------------------------------------------------------------------------------------------ requests

Result<wire::Frame> Extent::CallSocket(std::uint16_t type,
                                       const std::function<std::string(std::uint64_t)>& payload,
                                       SteadyTime deadline) {
  const MutexLock asking(asking_);
  std::shared_ptr<FrameSocket> socket;
  std::uint64_t id = 0;
  std::uint64_t attachment = 0;
  {
    const MutexLock lock(mu_);
    socket = socket_;
    attachment = attachment_;
    id = ++next_id_ + 1;  // 1 was the attachment's
  }
  if (!socket) return Status(Code::kUnavailable, "not attached");
  MSA_RETURN_IF_ERROR(socket->Send(wire::Pack(type, id, payload(attachment)), deadline));
  for (;;) {
    MSA_ASSIGN_OR_RETURN(wire::Frame frame, socket->Receive(deadline));
    if (frame.id == id) return frame;
    OnEnded(frame);
    if (stale()) return WhyStale();
  }
}

Result<wire::Frame> Extent::Call(std::uint16_t type, const std::function<std::string(std::uint64_t)>& payload,
                                 SteadyTime deadline) {
  if (mapped()) return CallSocket(type, payload, deadline);
  MSA_ASSIGN_OR_RETURN(const FabricEnd end, End(deadline));
  return end.peer->Call(type, payload(end.attachment), deadline);
}

Millis Extent::AwayFor() const {
  const MutexLock lock(mu_);
  return std::chrono::duration_cast<Millis>(away_until_ - away_since_);
}

Result<bool> Extent::AskLock(std::uint32_t slot, LockMode mode, SteadyTime deadline) {
  const SteadyTime begun = SteadyNow();
  Result<bool> taken = AskForLock(slot, mode, deadline);
  const Code code = taken.status().code();
  const bool is_away = code == Code::kUnavailable || code == Code::kDeadlineExceeded;
  const MutexLock lock(mu_);
  if (!is_away) {
    away_since_ = away_until_ = {};
    return taken;
  }
  // Attempts with a long pause between them say nothing of the time in between.
  if (away_since_ == SteadyTime{} || begun - away_until_ > kAttempt) away_since_ = begun;
  away_until_ = SteadyNow();
  if (mode == LockMode::kNone) return taken;
  return Error(Code::kUnavailable, "NAM node {} cannot be asked for the lock: {}",
               lease_->terms().extents[index_].node, taken.status().message());
}

Result<bool> Extent::AskForLock(std::uint32_t slot, LockMode mode, SteadyTime deadline) {
  // One request of a lock that is not waited for takes no longer than this.
  deadline = std::max(deadline, SteadyNow() + kAttempt);
  const auto payload = [&](std::uint64_t attachment) {
    return wire::Encode(
        wire::NamLock{.attachment = attachment, .slot = slot, .mode = static_cast<std::uint8_t>(mode)});
  };
  Pauses pauses(deadline);
  for (;;) {
    if (stale()) return WhyStale();
    auto frame = Checked(Call(wire::NamLock::kType, payload, std::min(deadline, SteadyNow() + kAttempt)),
                         wire::NamLocked::kType);
    if (frame.ok()) {
      MSA_ASSIGN_OR_RETURN(const wire::NamLocked locked, wire::Decode<wire::NamLocked>(frame->payload));
      const MutexLock lock(mu_);
      owed_unlocks_.erase(slot);
      if (mode == LockMode::kNone)
        locked_.erase(slot);
      else if (locked.taken)
        locked_.insert(slot);
      return locked.taken;
    }
    const Status failed = frame.status();
    const bool lost = IsRepairable(failed.code()) || failed.code() == Code::kDeadlineExceeded;
    Status going_on = lost && pauses.Next() ? Status::Ok() : failed;
    // The watcher attaches mapped extents again.
    if (going_on.ok() && !mapped() && failed.code() != Code::kDeadlineExceeded)
      going_on = Repair(failed, deadline);
    if (going_on.ok()) continue;
    const MutexLock lock(mu_);
    if (lost && mode == LockMode::kNone) owed_unlocks_.insert(slot);
    return going_on;
  }
}

bool Extent::Allows(Direction direction) const { return Has(lease_->rights(), RightOf(direction)); }

Status Extent::CheckRight(NamRights right) const {
  if (Has(lease_->rights(), right)) return Status::Ok();
  return Error(
      Code::kPermissionDenied,
      "the right to {} region '{}' was taken from you; ask its owner (msactl region acl), or open it "
      "with the rights that are left",
      right == NamRights::kWrite ? "write to" : "read", lease_->terms().name);
}

Result<std::string> Extent::AskAtomic(wire::NamAtomic atomic, SteadyTime deadline) {
  const auto payload = [&](std::uint64_t attachment) {
    atomic.attachment = attachment;
    return wire::Encode(atomic);
  };
  // Changes nothing: may be asked twice.
  const bool only_reads = atomic.op == static_cast<std::uint8_t>(AtomicOp::kNoOp);
  Pauses pauses(deadline);
  for (;;) {
    if (stale()) return WhyStale();
    if (!mapped()) MSA_RETURN_IF_ERROR(End(deadline).status());
    MSA_RETURN_IF_ERROR(CheckRight(only_reads ? NamRights::kRead : NamRights::kWrite));
    auto sent = Call(wire::NamAtomic::kType, payload, std::max(deadline, SteadyNow() + Millis(10)));
    if (!sent.ok() && !only_reads) return UnknownOutcome(sent.status());
    auto frame = Checked(std::move(sent), wire::NamAtomicDone::kType);
    if (frame.ok()) {
      MSA_ASSIGN_OR_RETURN(wire::NamAtomicDone done, wire::Decode<wire::NamAtomicDone>(frame->payload));
      return std::move(done.result);
    }
    const Status failed = frame.status();
    const bool locked = failed.code() == Code::kDeadlineExceeded;
    if (!locked && !IsRepairable(failed.code())) return failed;
    if (!pauses.Next()) return failed;
    if (!locked && !mapped()) MSA_RETURN_IF_ERROR(Repair(failed, deadline));
  }
}

// ----------------------------------------------------------------------------------------------- transfers

Status Extent::MoveNow(Direction direction, const FabricPiece& piece, SteadyTime deadline) {
  Pauses pauses(deadline);
  for (;;) {
    MSA_ASSIGN_OR_RETURN(const FabricEnd end, End(deadline));
    MSA_RETURN_IF_ERROR(CheckRight(RightOf(direction)));
    const Status moved = direction == Direction::kPut ? end.peer->WriteNow(end.key, piece, deadline)
                                                      : end.peer->ReadNow(end.key, piece, deadline);
    if (moved.ok()) return moved;
    if (!pauses.Next()) return moved;
    MSA_RETURN_IF_ERROR(Repair(moved, deadline));
  }
}

Result<std::unique_ptr<FabricTransfer>> Extent::Start(Direction direction,
                                                      std::span<const FabricPiece> pieces,
                                                      SteadyTime deadline) {
  MSA_ASSIGN_OR_RETURN(const FabricEnd end, End(std::min(deadline, SteadyNow() + kAttempt)));
  MSA_RETURN_IF_ERROR(CheckRight(RightOf(direction)));
  return direction == Direction::kPut ? end.peer->Write(end.key, pieces) : end.peer->Read(end.key, pieces);
}

Status Extent::Move(Direction direction, std::span<const FabricPiece> pieces, SteadyTime deadline) {
  Pauses pauses(deadline);
  for (;;) {
    auto transfer = Start(direction, pieces, deadline);
    const Status moved = transfer.ok() ? (*transfer)->Wait(deadline) : transfer.status();
    if (moved.ok() || !pauses.Next()) return moved;
    if (!transfer.ok() && !Allows(direction)) return moved;
    MSA_RETURN_IF_ERROR(Repair(moved, deadline));
  }
}

}  // namespace msa::nam
