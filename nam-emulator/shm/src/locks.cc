#include "msa/nam/locks.h"

#include <algorithm>

namespace msa::nam {
namespace {

std::atomic<std::uint64_t>& WordOf(SegmentLock& lock, std::uint32_t owner) {
  return lock.shared[(owner - 1) / 64];
}
constexpr std::uint64_t BitOf(std::uint32_t owner) { return std::uint64_t{1} << (owner - 1) % 64; }
constexpr bool IsOwner(std::uint32_t owner) { return owner - 1 < kMaxOwners; }

bool TryShared(SegmentLock& lock, std::uint32_t owner) {
  // First say so, then look (seq_cst on both): of a reader and a writer at least one sees the other.
  if ((WordOf(lock, owner).fetch_or(BitOf(owner)) & BitOf(owner)) != 0) return true;  // it has it
  const std::uint32_t holder = lock.exclusive.load();
  if (holder == 0 || holder == owner) return true;
  WordOf(lock, owner).fetch_and(~BitOf(owner));
  return false;
}

bool TryExclusive(SegmentLock& lock, std::uint32_t owner, std::uint32_t highest_owner) {
  const bool claimed_before = lock.exclusive.load(std::memory_order_relaxed) == owner;
  if (!ClaimExclusive(lock, owner)) return false;
  if (Drained(lock, owner, highest_owner)) return true;
  if (!claimed_before) Unlock(lock, LockMode::kExclusive, owner);
  return false;
}

}  // namespace

bool TryLock(SegmentLock& lock, LockMode mode, std::uint32_t owner, std::uint32_t highest_owner) noexcept {
  if (!IsOwner(owner)) return false;
  switch (mode) {
    case LockMode::kShared:
      return TryShared(lock, owner);
    case LockMode::kExclusive:
      return TryExclusive(lock, owner, highest_owner);
    case LockMode::kNone:
      Unlock(lock, LockMode::kExclusive, owner);
      Unlock(lock, LockMode::kShared, owner);
      return true;
  }
  return false;
}

bool ClaimExclusive(SegmentLock& lock, std::uint32_t owner) noexcept {
  std::uint32_t holder = 0;
  return IsOwner(owner) && (lock.exclusive.compare_exchange_strong(holder, owner) || holder == owner);
}

bool Drained(const SegmentLock& lock, std::uint32_t owner, std::uint32_t highest_owner) noexcept {
  const std::size_t words = (std::min(highest_owner, kMaxOwners) + 63) / 64;
  for (std::size_t i = 0; i < words; ++i) {
    const std::uint64_t own = (owner - 1) / 64 == i ? BitOf(owner) : 0;
    if ((lock.shared[i].load() & ~own) != 0) return false;
  }
  return true;
}

void Unlock(SegmentLock& lock, LockMode mode, std::uint32_t owner) noexcept {
  if (!IsOwner(owner)) return;
  if (mode == LockMode::kExclusive) {
    // Only its owner writes a word that names him, so that a plain store will do.
    if (lock.exclusive.load(std::memory_order_relaxed) == owner)
      lock.exclusive.store(0, std::memory_order_release);
  } else if (mode == LockMode::kShared) {
    WordOf(lock, owner).fetch_and(~BitOf(owner), std::memory_order_release);
  }
}

void FreeLocksOf(SegmentLock& lock, std::uint32_t owner) noexcept {
  if (!IsOwner(owner)) return;
  std::uint32_t holder = owner;
  lock.exclusive.compare_exchange_strong(holder, 0);
  holder = owner;
  lock.elements.compare_exchange_strong(holder, 0);
  WordOf(lock, owner).fetch_and(~BitOf(owner));
}

void OwnerSet::Add(std::uint32_t owner) noexcept {
  if (IsOwner(owner)) words_[(owner - 1) / 64] |= BitOf(owner);
}

bool OwnerSet::Has(std::uint32_t owner) const noexcept {
  return IsOwner(owner) && (words_[(owner - 1) / 64] & BitOf(owner)) != 0;
}

void FreeLocksOfOthers(SegmentLock& lock, const OwnerSet& held) noexcept {
  for (std::atomic<std::uint32_t>* const word : {&lock.exclusive, &lock.elements}) {
    std::uint32_t holder = word->load();
    if (holder != 0 && !held.Has(holder)) word->compare_exchange_strong(holder, 0);
  }
  for (std::size_t i = 0; i < kOwnerWords; ++i)
    if ((lock.shared[i].load() & ~held.word(i)) != 0) lock.shared[i].fetch_and(held.word(i));
}

}  // namespace msa::nam
