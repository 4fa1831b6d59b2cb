#pragma once
// Passive-target locks in shared memory, with an owner. Async-signal-safe, no system call, no allocation. Any
// thread; one owner number is used by one process, whose threads agree among themselves.
//
// Correct for any interleaving of owners, deaths included: a taker says who it is before it counts (Dekker's
// pattern, sequentially consistent), and FreeLocksOf undoes whatever a dead owner had begun.

#include <cstdint>

#include "msa/nam/layout.h"

namespace msa::nam {

enum class LockMode : std::uint8_t { kNone = 0, kShared = 1, kExclusive = 2 };

// Takes it if nobody is in the way. An owner takes one lock of a segment at a time; kNone frees what it
// holds, and does no harm if it holds nothing. False: another owner is in the way; nothing is left behind;
// who repeats it for an exclusive lock uses ClaimExclusive, or readers in relay starve him. Asking for what
// it has already is true. highest_owner: the extent header's limits what is looked at, if nobody can attach
// between its reading and the call; else kMaxOwners, or claim first and read it then.
bool TryLock(SegmentLock& lock, LockMode mode, std::uint32_t owner, std::uint32_t highest_owner) noexcept;

// Exclusive in two steps, so that a stream of readers does not starve a writer: true once the claim stands
// (no new shared lock is given), then Drained() until the readers have gone. Both may be repeated. Unlock
// gives a claim up. Nobody waits for anything while he has a claim but for those who hold the lock: claims of
// several segments cannot wait for each other.
bool ClaimExclusive(SegmentLock& lock, std::uint32_t owner) noexcept;
bool Drained(const SegmentLock& lock, std::uint32_t owner, std::uint32_t highest_owner) noexcept;

void Unlock(SegmentLock& lock, LockMode mode, std::uint32_t owner) noexcept;

// The owner is gone for good: whatever it held or had begun is free.
void FreeLocksOf(SegmentLock& lock, std::uint32_t owner) noexcept;

// Owner numbers, 1 to kMaxOwners; others are ignored.
class OwnerSet {
 public:
  void Add(std::uint32_t owner) noexcept;
  bool Has(std::uint32_t owner) const noexcept;
  std::uint64_t word(std::size_t index) const noexcept { return words_[index]; }

 private:
  std::uint64_t words_[kOwnerWords] = {};
};

// Whatever owners that are not in `held` hold or had begun is free. None of them comes meanwhile. Writes to
// the lock only if there is something.
void FreeLocksOfOthers(SegmentLock& lock, const OwnerSet& held) noexcept;

}  // namespace msa::nam
