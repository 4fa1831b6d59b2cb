// The answers to 0x08xx.
#include <utility>

#include "msa/nam/atomics.h"
#include "msa/nam/locks.h"

#include "service.h"

namespace msa::namd {
namespace {

wire::Frame Failed(const Status& status, std::uint64_t id) {
  const wire::NamFailed failed{static_cast<std::uint8_t>(status.code()), status.message()};
  return {wire::NamFailed::kType, 0, id, wire::Encode(failed)};
}

template <class M>
Service::Answer AnswerOf(const M& message) {
  Service::Answer answer;
  answer.frame.type = M::kType;
  answer.frame.payload = wire::Encode(message);
  return answer;
}

// What the client itself holds of the segment's lock. A claim that waits for readers is no lock yet: they
// update the same elements.
nam::LockMode HeldBy(const nam::SegmentLock& lock, const SegmentTarget& target) {
  const std::uint32_t owner = target.owner;
  if (lock.exclusive.load() == owner && nam::Drained(lock, owner, target.highest_owner))
    return nam::LockMode::kExclusive;
  const std::uint64_t bit = std::uint64_t{1} << (owner - 1) % 64;
  return (lock.shared[(owner - 1) / 64].load() & bit) != 0 ? nam::LockMode::kShared : nam::LockMode::kNone;
}

// An exclusive lock is claimed by the first try and stays so while the client repeats it, which keeps new
// readers out; a client that gives up frees it, and the end of one that is gone does.
bool Take(nam::SegmentLock& lock, nam::LockMode mode, const SegmentTarget& target) {
  if (mode != nam::LockMode::kExclusive) return nam::TryLock(lock, mode, target.owner, target.highest_owner);
  return nam::ClaimExclusive(lock, target.owner) && nam::Drained(lock, target.owner, target.highest_owner);
}

Status Perform(const nam::AtomicCall& call, std::byte* target, const wire::NamAtomic& atomic, char* result) {
  if (call.op == nam::AtomicOp::kCompareSwap)
    return nam::CompareAndSwap(call, target, atomic.compare.data(), atomic.operand.data(), result);
  return nam::Accumulate(call, target, atomic.operand.empty() ? nullptr : atomic.operand.data(), result,
                         atomic.count);
}

}  // namespace

template <class M>
Service::Answer Service::ServeAs(const Peer& peer, const wire::Frame& request) {
  auto message = wire::Decode<M>(request.payload);
  auto answer = message.ok() ? On(peer, *message) : Result<Answer>(message.status());
  if (!answer.ok()) return {Failed(answer.status(), request.id), UniqueFd()};
  answer->frame.id = request.id;
  return std::move(*answer);
}

Service::Answer Service::Serve(const Peer& peer, const wire::Frame& request) {
  switch (request.type) {
    case wire::NamAttach::kType:
      return ServeAs<wire::NamAttach>(peer, request);
    case wire::NamDetach::kType:
      return ServeAs<wire::NamDetach>(peer, request);
    case wire::NamLock::kType:
      return ServeAs<wire::NamLock>(peer, request);
    case wire::NamAtomic::kType:
      return ServeAs<wire::NamAtomic>(peer, request);
    default:
      return {Failed(Error(Code::kUnimplemented, "message type {:#06x} is no request to a NAM daemon",
                           request.type),
                     request.id),
              UniqueFd()};
  }
}

void Service::Note(const Peer& peer, const Grant& grant, ExtentFile& file) {
  if (file.highest_owner().load() < grant.highest_owner) file.highest_owner().store(grant.highest_owner);
  pid_t pid = peer.pid;
  if (const auto local = local_clients_.find(grant.client);
      pid == 0 && local != local_clients_.end() && local->second.uid == grant.uid)
    pid = local->second.pid;
  // Who maps the file reads it, so it is not the client's number: by that he could pass for it.
  file.owner(grant.owner).process.store(pid > 0 ? static_cast<std::uint64_t>(pid) : nam::kRemoteProcess);
  notes_.Write(grant.extent, {{grant.owner, grant.client, grant.lease, grant.uid}, pid, StartOfProcess(pid)});
}

Result<Service::Answer> Service::On(const Peer& peer, const wire::NamAttach& attach) {
  const std::uint64_t random = options_.random();
  Later later;
  Result<Grant> grant = Status::Ok();
  std::shared_ptr<ExtentFile> file;
  {
    MutexLock lock(mu_);
    grant = book_.Attach(peer.caller, attach, random);
    if (grant.ok()) {
      file = files_.at(grant->extent);
      Apply(std::exchange(grant->replaced, {}), later);
      const std::string damage = file == nullptr ? "its file is not whole" : file->Damage();
      if (damage.empty()) {
        Note(peer, *grant, *file);
      } else {
        Damage(grant->extent, damage, later);
        if (auto ended = book_.Detach(peer.caller, grant->attachment); ended.ok())
          Apply(std::move(*ended), later);
        grant = book_.Attach(peer.caller, attach, random).status();
      }
    }
  }
  Finish(std::move(later));
  if (!grant.ok()) return grant.status();

  wire::NamAttached attached;
  attached.attachment = grant->attachment;
  attached.owner = grant->owner;
  attached.known = grant->known;
  attached.file_bytes = Bytes(file->file_bytes());
  attached.header_bytes = Bytes(file->header_bytes());
  UniqueFd passed;
  Status status = grant->fabric ? RegisterKey(*grant, file, attached) : Status::Ok();
  if (status.ok() && grant->map) {
    auto opened = file->OpenFor(Has(grant->rights, NamRights::kWrite) ? ExtentFile::Access::kReadWrite
                                                                      : ExtentFile::Access::kRead);
    status = opened.status();
    if (opened.ok()) passed = std::move(*opened);
    attached.mapped = static_cast<bool>(passed);
  }
  if (!status.ok()) {
    (void)On(peer, wire::NamDetach{grant->attachment});
    return status;
  }
  Answer answer = AnswerOf(attached);
  answer.file = std::move(passed);
  return answer;
}

Status Service::RegisterKey(const Grant& grant, const std::shared_ptr<ExtentFile>& file,
                            wire::NamAttached& answer) {
  nam::FabricServer* fabric = nullptr;
  {
    MutexLock lock(mu_);
    fabric = fabric_;
  }
  if (fabric == nullptr) return Status::Ok();  // the empty provider says so
  using Access = nam::FabricServer::Access;
  MSA_ASSIGN_OR_RETURN(
      const nam::FabricKey key,
      fabric->Register(file->data(), Bytes(file->data_bytes()),
                       Has(grant.rights, NamRights::kWrite) ? Access::kReadWrite : Access::kRead));
  answer.fabric_provider = fabric->provider();
  answer.fabric_address = fabric->address();
  answer.fabric_key = key.key;
  answer.fabric_base = key.base;
  bool kept = false;
  {
    MutexLock lock(mu_);
    kept = book_.SetFabricKey(grant.attachment, key.key);
    if (kept) registered_.emplace(key.key, file);
  }
  if (kept) return Status::Ok();
  fabric->Unregister(key.key);
  return Status(Code::kFailedPrecondition,
                "lease has ended while it was being attached; open the region again");
}

Result<Service::Answer> Service::On(const Peer& peer, const wire::NamDetach& detach) {
  Later later;
  {
    MutexLock lock(mu_);
    MSA_ASSIGN_OR_RETURN(Outcome outcome, book_.Detach(peer.caller, detach.attachment));
    Apply(std::move(outcome), later);
  }
  Finish(std::move(later));
  return AnswerOf(wire::NamDone{});
}

// Under the lock to the end: an owner that is ended on another thread must not take one afterwards.
Result<Service::Answer> Service::On(const Peer& peer, const wire::NamLock& lock) {
  MutexLock guard(mu_);
  MSA_ASSIGN_OR_RETURN(const SegmentTarget target, book_.CheckLock(peer.caller, lock));
  nam::SegmentLock& words = files_.at(target.extent)->lock(target.slot);
  return AnswerOf(wire::NamLocked{Take(words, static_cast<nam::LockMode>(lock.mode), target)});
}

Result<Service::Answer> Service::On(const Peer& peer, const wire::NamAtomic& atomic) {
  const auto type = static_cast<nam::ElementType>(atomic.type);
  MutexLock guard(mu_);
  MSA_ASSIGN_OR_RETURN(const SegmentTarget target,
                       book_.CheckAtomic(peer.caller, atomic, nam::ElementBytes(type)));
  ExtentFile& file = *files_.at(target.extent);
  nam::SegmentLock& words = file.lock(target.slot);
  const nam::LockMode held = HeldBy(words, target);
  if (held == nam::LockMode::kNone &&
      !nam::TryLock(words, nam::LockMode::kShared, target.owner, target.highest_owner))
    return Error(Code::kDeadlineExceeded, "segment is locked by owner {}; try again", words.exclusive.load());
  nam::AtomicCall call;
  call.op = static_cast<nam::AtomicOp>(atomic.op);
  call.type = type;
  call.access = held == nam::LockMode::kExclusive ? nam::Access::kExclusive : nam::Access::kConcurrent;
  call.owner = target.owner;
  call.lock = &words;
  call.deadline = SteadyTime::min();  // the fabric's thread and the loop do not wait for a client
  const bool answers = atomic.fetch || call.op == nam::AtomicOp::kCompareSwap;
  wire::NamAtomicDone done;
  done.result.resize(answers ? target.bytes : 0);
  const Status status =
      Perform(call, file.data() + target.offset, atomic, answers ? done.result.data() : nullptr);
  if (held == nam::LockMode::kNone) nam::Unlock(words, nam::LockMode::kShared, target.owner);
  MSA_RETURN_IF_ERROR(status);
  return AnswerOf(done);
}

}  // namespace msa::namd
