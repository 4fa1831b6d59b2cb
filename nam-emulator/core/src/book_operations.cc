#include "msa/nam/atomics.h"
#include "msa/nam/locks.h"
#include "msa/namd/book.h"

namespace msa::namd {
namespace {

Status CheckOperands(const wire::NamAtomic& atomic, std::size_t element_bytes, std::uint64_t bytes) {
  const auto op = static_cast<nam::AtomicOp>(atomic.op);
  if (op == nam::AtomicOp::kCompareSwap) {
    if (atomic.count != 1 || atomic.operand.size() != element_bytes || atomic.compare.size() != element_bytes)
      return Error(
          Code::kInvalidArgument,
          "compare and swap of {} elements with operands of {} and {} bytes; expected one of {} bytes",
          atomic.count, atomic.operand.size(), atomic.compare.size(), element_bytes);
    return Status::Ok();
  }
  const std::uint64_t expected = op == nam::AtomicOp::kNoOp ? 0 : bytes;
  if (atomic.operand.size() != expected)
    return Error(Code::kInvalidArgument, "operand of {} bytes for {} elements; expected {} bytes",
                 atomic.operand.size(), atomic.count, expected);
  return Status::Ok();
}

}  // namespace

Result<SegmentTarget> Book::CheckLock(const Caller& caller, const wire::NamLock& lock) const {
  MSA_ASSIGN_OR_RETURN(const Attachment* attachment, Find(caller, lock.attachment));
  if (attachment->ended)
    return Status(Code::kFailedPrecondition, "lease of this attachment has ended; open the region again");
  if (lock.mode > static_cast<std::uint8_t>(nam::LockMode::kExclusive))
    return Error(Code::kInvalidArgument, "lock mode {}; expected 0 (none), 1 (shared) or 2 (exclusive)",
                 lock.mode);
  if (lock.slot >= attachment->segments->size())
    return Error(Code::kOutOfRange, "segment slot {}; node {} has {} of this region", lock.slot, node_,
                 attachment->segments->size());
  const Extent& extent = extents_.at(attachment->extent);
  return SegmentTarget{.extent = attachment->extent,
                       .slot = lock.slot,
                       .owner = extent.owners.at(attachment->client).number,
                       .highest_owner = extent.highest_owner};
}

Result<SegmentTarget> Book::CheckAtomic(const Caller& caller, const wire::NamAtomic& atomic,
                                        std::size_t element_bytes) const {
  MSA_ASSIGN_OR_RETURN(SegmentTarget target,
                       CheckLock(caller, {.attachment = atomic.attachment, .slot = atomic.slot, .mode = 0}));
  if (element_bytes == 0) return Error(Code::kInvalidArgument, "element type {} does not exist", atomic.type);
  const auto op = static_cast<nam::AtomicOp>(atomic.op);
  const bool reads = atomic.fetch || op == nam::AtomicOp::kNoOp || op == nam::AtomicOp::kCompareSwap;
  NamRights needed = op == nam::AtomicOp::kNoOp ? NamRights::kNone : NamRights::kWrite;
  if (reads) needed = needed | NamRights::kRead;
  const Attachment& attachment = attachments_.at(atomic.attachment);
  if (!Has(attachment.rights, needed))
    return Error(Code::kPermissionDenied,
                 "lease {} does not let its holder {}; open the region with that right", attachment.lease,
                 Has(attachment.rights, NamRights::kWrite) ? "read" : "write");
  // 32 bits times at most 32: no overflow.
  target.bytes = std::uint64_t{atomic.count} * element_bytes;
  const SegmentBounds& segment = (*attachment.segments)[atomic.slot];
  if (atomic.offset < segment.offset || atomic.offset - segment.offset > segment.bytes ||
      target.bytes > segment.bytes - (atomic.offset - segment.offset))
    return Error(
        Code::kOutOfRange,
        "{} elements of {} bytes from {} of the extent are not in segment slot {}, which has {} bytes "
        "from {}",
        atomic.count, element_bytes, atomic.offset, atomic.slot, segment.bytes, segment.offset);
  // The answer must fit into a message.
  constexpr std::uint64_t kMost = wire::kMaxNamPayload - 1024;
  if (target.bytes > kMost)
    return Error(Code::kInvalidArgument, "{} elements have {} bytes; an operation takes at most {}",
                 atomic.count, target.bytes, kMost);
  MSA_RETURN_IF_ERROR(CheckOperands(atomic, element_bytes, target.bytes));
  target.offset = atomic.offset;
  return target;
}

}  // namespace msa::namd
