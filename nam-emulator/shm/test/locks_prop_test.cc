#include <map>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "msa/nam/locks.h"

namespace msa::nam {
namespace {

// What a lock of readers and one writer is, without bits.
struct Model {
  std::uint32_t writer = 0;
  std::set<std::uint32_t> readers;
  std::set<std::uint32_t> dead;

  bool OthersRead(std::uint32_t owner) const { return readers.size() > readers.count(owner); }
  bool Try(LockMode mode, std::uint32_t owner) {
    if (mode == LockMode::kShared && readers.count(owner) != 0) return true;
    if (writer != 0 && writer != owner) return false;
    if (mode == LockMode::kShared) {
      readers.insert(owner);
      return true;
    }
    if (OthersRead(owner)) return false;
    writer = owner;
    return true;
  }
  void Free(std::uint32_t owner) {
    if (writer == owner) writer = 0;
    readers.erase(owner);
  }
};

void Compare(const SegmentLock& lock, const Model& model) {
  RC_ASSERT(lock.exclusive.load() == model.writer);
  std::set<std::uint32_t> bits;
  for (std::uint32_t owner = 1; owner <= kMaxOwners; ++owner)
    if ((lock.shared[(owner - 1) / 64].load() >> (owner - 1) % 64 & 1) != 0) bits.insert(owner);
  RC_ASSERT(bits == model.readers);
}

// An owner dies behind one of the steps of which taking a lock consists.
void Die(SegmentLock& lock, Model& model, std::uint32_t owner, int step) {
  model.dead.insert(owner);
  if (step == 0) {
    lock.shared[(owner - 1) / 64].fetch_or(std::uint64_t{1} << (owner - 1) % 64);
    model.readers.insert(owner);
  } else if (step == 1) {
    if (ClaimExclusive(lock, owner)) model.writer = owner;
  } else if (step == 2) {
    std::uint32_t free = 0;
    lock.elements.compare_exchange_strong(free, owner);
  }
}

RC_GTEST_PROP(SegmentLockProperty, BehavesLikeAReaderWriterLockWhoeverDiesWhenever, ()) {
  static const std::uint32_t kOwners[] = {1, 2, 63, 64, 65, 1023, 1024};
  SegmentLock lock{};
  Model model;
  const int steps = *rc::gen::inRange(1, 80);
  for (int i = 0; i < steps; ++i) {
    const std::uint32_t owner = kOwners[*rc::gen::inRange(0, 7)];
    if (model.dead.count(owner) != 0) {
      FreeLocksOf(lock, owner);
      model.dead.erase(owner);
      model.Free(owner);
      Compare(lock, model);
      continue;
    }
    switch (*rc::gen::inRange(0, 5)) {
      case 0:
        RC_ASSERT(TryLock(lock, LockMode::kShared, owner, kMaxOwners) == model.Try(LockMode::kShared, owner));
        break;
      case 1:
        RC_ASSERT(TryLock(lock, LockMode::kExclusive, owner, kMaxOwners) ==
                  model.Try(LockMode::kExclusive, owner));
        break;
      case 2: {
        const bool free = model.writer == 0 || model.writer == owner;
        RC_ASSERT(ClaimExclusive(lock, owner) == free);
        if (free) model.writer = owner;
        RC_ASSERT(Drained(lock, owner, kMaxOwners) == !model.OthersRead(owner));
        break;
      }
      case 3:
        RC_ASSERT(TryLock(lock, LockMode::kNone, owner, kMaxOwners));
        model.Free(owner);
        break;
      default:
        Die(lock, model, owner, *rc::gen::inRange(0, 4));
    }
    Compare(lock, model);
  }
  for (const std::uint32_t owner : kOwners) FreeLocksOf(lock, owner);
  Compare(lock, Model{});
  RC_ASSERT(lock.elements.load() == 0u);
}

}  // namespace
}  // namespace msa::nam
