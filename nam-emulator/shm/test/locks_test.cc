#include "msa/nam/locks.h"

#include <sched.h>

#include <array>
#include <random>

#include <gtest/gtest.h>

#include "shared_memory.h"

namespace msa::nam {
namespace {

using test::Kill;
using test::Shared;
using test::Spawn;

bool IsFree(const SegmentLock& lock) {
  bool free = lock.exclusive.load() == 0 && lock.elements.load() == 0;
  for (const auto& word : lock.shared) free = free && word.load() == 0;
  return free;
}

TEST(SegmentLock, ManyShareItAndNobodyWrites) {
  SegmentLock lock{};
  for (const std::uint32_t owner : {1u, 64u, 65u, 1024u})
    EXPECT_TRUE(TryLock(lock, LockMode::kShared, owner, kMaxOwners));
  EXPECT_FALSE(TryLock(lock, LockMode::kExclusive, 2, kMaxOwners));
  for (const std::uint32_t owner : {1u, 64u, 65u, 1024u}) Unlock(lock, LockMode::kShared, owner);
  EXPECT_TRUE(IsFree(lock));
  EXPECT_TRUE(TryLock(lock, LockMode::kExclusive, 2, kMaxOwners));
  EXPECT_FALSE(TryLock(lock, LockMode::kShared, 1, kMaxOwners));
  EXPECT_FALSE(TryLock(lock, LockMode::kExclusive, 1, kMaxOwners));
  EXPECT_TRUE(TryLock(lock, LockMode::kExclusive, 2, kMaxOwners)) << "its own";
}

TEST(SegmentLock, AFailedTryLeavesNothingBehind) {
  SegmentLock lock{};
  ASSERT_TRUE(TryLock(lock, LockMode::kShared, 7, 7));
  EXPECT_FALSE(TryLock(lock, LockMode::kExclusive, 8, 8));
  EXPECT_EQ(lock.exclusive.load(), 0u);
  Unlock(lock, LockMode::kShared, 7);
  ASSERT_TRUE(TryLock(lock, LockMode::kExclusive, 7, 8));
  EXPECT_FALSE(TryLock(lock, LockMode::kShared, 8, 8));
  EXPECT_EQ(lock.shared[0].load(), 0u);
}

TEST(SegmentLock, AClaimKeepsNewReadersOutUntilTheOldOnesHaveGone) {
  SegmentLock lock{};
  ASSERT_TRUE(TryLock(lock, LockMode::kShared, 1, 3));
  ASSERT_TRUE(ClaimExclusive(lock, 2));
  EXPECT_FALSE(Drained(lock, 2, 3));
  EXPECT_FALSE(TryLock(lock, LockMode::kShared, 3, 3));
  EXPECT_FALSE(TryLock(lock, LockMode::kExclusive, 2, 3)) << "claimed, not drained";
  EXPECT_EQ(lock.exclusive.load(), 2u) << "a try does not give an older claim up";
  Unlock(lock, LockMode::kShared, 1);
  EXPECT_TRUE(Drained(lock, 2, 3));
  EXPECT_TRUE(TryLock(lock, LockMode::kExclusive, 2, 3));
}

TEST(SegmentLock, FreeingWhatIsNotHeldDoesNoHarm) {
  SegmentLock lock{};
  ASSERT_TRUE(TryLock(lock, LockMode::kExclusive, 5, 5));
  EXPECT_TRUE(TryLock(lock, LockMode::kNone, 6, 6));
  Unlock(lock, LockMode::kExclusive, 6);
  FreeLocksOf(lock, 6);
  EXPECT_EQ(lock.exclusive.load(), 5u);
  EXPECT_TRUE(TryLock(lock, LockMode::kNone, 5, 5));
  EXPECT_TRUE(IsFree(lock));
}

TEST(SegmentLock, OwnerNumbersOutsideTheMapTouchNothing) {
  SegmentLock lock{};
  for (const std::uint32_t owner : {0u, kMaxOwners + 1, ~0u}) {
    EXPECT_FALSE(TryLock(lock, LockMode::kShared, owner, kMaxOwners));
    EXPECT_FALSE(TryLock(lock, LockMode::kExclusive, owner, kMaxOwners));
    Unlock(lock, LockMode::kShared, owner);
    FreeLocksOf(lock, owner);
  }
  EXPECT_TRUE(IsFree(lock));
  EXPECT_TRUE(Drained(lock, 1, ~0u)) << "a highest owner that a client wrote is not believed";
}

TEST(SegmentLock, WhatADeadOwnerHeldOrHadBegunIsFree) {
  SegmentLock lock{};
  lock.exclusive.store(9);
  lock.elements.store(9);
  lock.shared[0].store(std::uint64_t{1} << 8 | 1);
  FreeLocksOf(lock, 9);
  EXPECT_EQ(lock.shared[0].load(), 1u) << "another's stays";
  FreeLocksOf(lock, 1);
  EXPECT_TRUE(IsFree(lock));
}

TEST(SegmentLock, AClaimGivenUpOrOfADeadOwnerLetsReadersInAgain) {
  SegmentLock lock{};
  ASSERT_TRUE(TryLock(lock, LockMode::kShared, 1, 3));
  for (const bool dies : {false, true}) {
    ASSERT_TRUE(ClaimExclusive(lock, 2));
    EXPECT_FALSE(TryLock(lock, LockMode::kShared, 3, 3));
    EXPECT_FALSE(ClaimExclusive(lock, 3)) << "one at a time";
    if (dies)
      FreeLocksOf(lock, 2);
    else
      Unlock(lock, LockMode::kExclusive, 2);
    EXPECT_TRUE(TryLock(lock, LockMode::kShared, 3, 3));
    Unlock(lock, LockMode::kShared, 3);
  }
}

TEST(SegmentLock, AClaimantThatReadsKeepsItsSharedLockAndIsNotWaitedForByItself) {
  SegmentLock lock{};
  ASSERT_TRUE(TryLock(lock, LockMode::kShared, 1, 2));
  ASSERT_TRUE(TryLock(lock, LockMode::kShared, 2, 2));
  ASSERT_TRUE(ClaimExclusive(lock, 2));
  EXPECT_TRUE(TryLock(lock, LockMode::kShared, 2, 2)) << "its own";
  EXPECT_FALSE(Drained(lock, 2, 2));
  Unlock(lock, LockMode::kShared, 1);
  EXPECT_TRUE(Drained(lock, 2, 2));
}

// ---------------------------------------------------------------------------------- several processes

struct Arena {
  SegmentLock lock;
  std::atomic<std::uint64_t> passes;
  std::atomic<std::uint32_t> writer;  // owner inside as a writer
  std::array<std::atomic<std::uint32_t>, 8> reader;
  std::atomic<std::uint32_t> violations;
  std::uint64_t plain;  // written by writers alone, without atomics
};

// A writer or a reader, over and over, which sees to it that nobody is where he must not be.
void Visit(Arena& arena, std::uint32_t owner, std::uint64_t visits) {
  std::minstd_rand random(owner * 7919 + static_cast<unsigned>(getpid()));
  for (std::uint64_t done = 0; done < visits;) {
    const bool writes = random() % 2 == 0;
    const LockMode mode = writes ? LockMode::kExclusive : LockMode::kShared;
    if (!TryLock(arena.lock, mode, owner, kMaxOwners)) {
      sched_yield();
      continue;
    }
    if (writes) {
      if (arena.writer.exchange(owner) != 0) ++arena.violations;
      for (auto& reader : arena.reader)
        if (reader.load() != 0) ++arena.violations;
      ++arena.plain;
      arena.writer.store(0);
    } else {
      arena.reader[owner].store(owner);
      if (arena.writer.load() != 0) ++arena.violations;
      arena.reader[owner].store(0);
    }
    Unlock(arena.lock, mode, owner);
    ++arena.passes;
    ++done;
  }
}

TEST(SegmentLock, ProcessesExcludeEachOther) {
  const Shared<Arena> arena;
  std::array<pid_t, 4> children{};
  for (std::uint32_t i = 0; i < children.size(); ++i)
    children[i] = Spawn([&] { Visit(*arena, i + 1, 5000); });
  for (const pid_t child : children) EXPECT_TRUE(test::EndsWell(child));
  EXPECT_EQ(arena->violations.load(), 0u);
  EXPECT_TRUE(IsFree(arena->lock));
}

// Each reader holds the lock until the next one has it, as long as one comes: it is never free.
void ReadInRelay(Arena& arena, std::uint32_t owner) {
  for (bool written = false; !written && arena.passes.load() < 200'000;) {
    if (!TryLock(arena.lock, LockMode::kShared, owner, kMaxOwners)) {
      sched_yield();
      continue;
    }
    if (arena.writer.load() != 0) ++arena.violations;
    written = arena.plain != 0;
    const std::uint64_t mine = ++arena.passes;
    while (!written && arena.passes.load() == mine && arena.lock.exclusive.load() == 0) sched_yield();
    Unlock(arena.lock, LockMode::kShared, owner);
  }
}

TEST(SegmentLock, AWriterWhoKeepsItsClaimIsNotStarvedByReadersInRelay) {
  const Shared<Arena> arena;
  std::array<pid_t, 3> readers{};
  for (std::uint32_t i = 0; i < readers.size(); ++i) readers[i] = Spawn([&] { ReadInRelay(*arena, i + 1); });
  while (arena->passes.load() < 100) sched_yield();
  while (!ClaimExclusive(arena->lock, 9)) sched_yield();
  const std::uint64_t before = arena->passes.load();
  while (!Drained(arena->lock, 9, kMaxOwners)) sched_yield();
  arena->writer.store(9);
  EXPECT_LE(arena->passes.load(), before + readers.size()) << "those who had it, counting themselves";
  arena->plain = 1;
  arena->writer.store(0);
  Unlock(arena->lock, LockMode::kExclusive, 9);
  for (const pid_t reader : readers) EXPECT_TRUE(test::EndsWell(reader));
  EXPECT_EQ(arena->violations.load(), 0u);
  EXPECT_TRUE(IsFree(arena->lock));
}

TEST(SegmentLock, ProcessesKilledAnywhereLeaveALockThatOthersCanTake) {
  const Shared<Arena> arena;
  std::array<pid_t, 4> children{};
  const auto start = [&](std::uint32_t i) {
    children[i] = Spawn([&] { Visit(*arena, i + 1, ~std::uint64_t{0}); });
  };
  for (std::uint32_t i = 0; i < children.size(); ++i) start(i);
  std::minstd_rand random(1);
  for (int death = 0; death < 200; ++death) {
    const std::uint64_t until = arena->passes.load() + random() % 50;
    while (arena->passes.load() < until) sched_yield();
    const std::uint32_t victim = random() % children.size();
    Kill(children[victim]);
    // What it had written about itself, then what it held: as namd does when a connection ends.
    std::uint32_t owner = victim + 1;
    arena->writer.compare_exchange_strong(owner, 0);
    arena->reader[victim + 1].store(0);
    FreeLocksOf(arena->lock, victim + 1);
    start(victim);
  }
  const std::uint64_t until = arena->passes.load() + 1000;
  while (arena->passes.load() < until) sched_yield();
  for (const pid_t child : children) Kill(child);
  for (std::uint32_t owner = 1; owner <= children.size(); ++owner) FreeLocksOf(arena->lock, owner);
  EXPECT_EQ(arena->violations.load(), 0u);
  EXPECT_TRUE(IsFree(arena->lock));
}

}  // namespace
}  // namespace msa::nam
