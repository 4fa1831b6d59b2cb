#include "gate.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace msa::nam {
namespace {

class GateTest : public testing::Test {
 protected:
  LockWords Words(std::uint32_t owner) { return {&lock_, &highest_, owner}; }
  Status Take(Gate& gate, LockMode mode, std::uint32_t owner, Millis wait = Millis(0)) {
    return gate.Acquire(
        this, mode, Gate::Until(SteadyNow() + wait),
        [&]() -> Result<Gate::Try> {
          return TryLock(lock_, mode, owner, kMaxOwners) ? Gate::Try::kTaken : Gate::Try::kInTheWay;
        },
        [&] { TryLock(lock_, LockMode::kNone, owner, kMaxOwners); });
  }
  Status Free(Gate& gate, std::uint32_t owner) {
    return gate.Release(SteadyNow() + std::chrono::seconds(5), [&](LockMode mode) {
      Unlock(lock_, mode, owner);
      return Status::Ok();
    });
  }
  bool NobodyShares() const {
    for (const auto& word : lock_.shared)
      if (word.load() != 0) return false;
    return true;
  }
  SegmentLock lock_{};
  std::atomic<std::uint32_t> highest_{kMaxOwners};
};

TEST_F(GateTest, AnUpdateWithoutALockHasTheSharedOneForAsLong) {
  Gate gate;
  const auto access = gate.Enter(Words(3), Millis(0));
  ASSERT_TRUE(access.ok());
  EXPECT_EQ(*access, Access::kConcurrent);
  EXPECT_EQ(lock_.shared[0].load(), 4u);
  EXPECT_FALSE(TryLock(lock_, LockMode::kExclusive, 9, kMaxOwners));
  gate.Leave(Words(3));
  EXPECT_TRUE(NobodyShares());
  EXPECT_TRUE(TryLock(lock_, LockMode::kExclusive, 9, kMaxOwners));
  EXPECT_EQ(gate.Enter(Words(3), Millis(1)).status().code(), Code::kDeadlineExceeded);
  EXPECT_TRUE(NobodyShares());
}

TEST_F(GateTest, UnderTheExclusiveLockUpdatesArePlainOnes) {
  Gate gate;
  ASSERT_TRUE(Take(gate, LockMode::kExclusive, 1).ok());
  auto access = gate.Enter(Words(1), Millis(0));
  ASSERT_TRUE(access.ok());
  EXPECT_EQ(*access, Access::kExclusive);
  EXPECT_EQ(gate.Enter(Words(1), Millis(0)).status().code(), Code::kDeadlineExceeded)
      << "a second thread's plain update at once";
  gate.Leave(Words(1));
  EXPECT_EQ(lock_.exclusive.load(), 1u);
  EXPECT_TRUE(Free(gate, 1).ok());
  EXPECT_EQ(lock_.exclusive.load(), 0u);
  ASSERT_TRUE(Take(gate, LockMode::kShared, 1).ok());
  access = gate.Enter(Words(1), Millis(0));
  ASSERT_TRUE(access.ok());
  EXPECT_EQ(*access, Access::kConcurrent);
  gate.Leave(Words(1));
  EXPECT_EQ(lock_.shared[0].load(), 1u) << "the user's lock stays";
}

TEST_F(GateTest, OneLockAtATimeAndOnlyWhatIsHeldIsFreed) {
  Gate gate;
  EXPECT_EQ(Free(gate, 1).code(), Code::kInvalidArgument);
  ASSERT_TRUE(Take(gate, LockMode::kShared, 1).ok());
  EXPECT_TRUE(gate.IsHeldBy(this));
  EXPECT_EQ(Take(gate, LockMode::kExclusive, 1).code(), Code::kInvalidArgument);
  EXPECT_TRUE(Free(gate, 1).ok());
  EXPECT_FALSE(gate.IsHeldBy(this));
  EXPECT_TRUE(NobodyShares());
}

TEST_F(GateTest, WhereNothingIsInTheWayALockIsTakenAtOnceElseNothingChanges) {
  Gate gate;
  ASSERT_TRUE(gate.TryAcquire(this, LockMode::kExclusive, Words(3)));
  EXPECT_TRUE(gate.IsHeldBy(this));
  EXPECT_EQ(gate.mode(), LockMode::kExclusive);
  EXPECT_EQ(lock_.exclusive.load(), 3u);
  EXPECT_FALSE(gate.TryAcquire(this, LockMode::kShared, Words(3))) << "one lock at a time";
  ASSERT_TRUE(gate.Enter(Words(3), Millis(0)).ok());
  EXPECT_FALSE(gate.TryRelease(Words(3))) << "an update is under way";
  gate.Leave(Words(3));
  EXPECT_TRUE(gate.TryRelease(Words(3)));
  EXPECT_FALSE(gate.TryRelease(Words(3)));
  EXPECT_FALSE(gate.IsHeldBy(this));
  EXPECT_EQ(lock_.exclusive.load(), 0u);

  ASSERT_TRUE(TryLock(lock_, LockMode::kShared, 9, kMaxOwners));
  EXPECT_FALSE(gate.TryAcquire(this, LockMode::kExclusive, Words(3))) << "owner 9 reads";
  EXPECT_EQ(lock_.exclusive.load(), 0u) << "no claim stays behind";
  ASSERT_TRUE(gate.TryAcquire(this, LockMode::kShared, Words(3)));
  EXPECT_EQ(lock_.shared[0].load(), 4u | 256u);
  EXPECT_TRUE(gate.TryRelease(Words(3)));
  EXPECT_EQ(lock_.shared[0].load(), 256u);

  Unlock(lock_, LockMode::kShared, 9);
  ASSERT_TRUE(TryLock(lock_, LockMode::kExclusive, 9, kMaxOwners));
  EXPECT_FALSE(gate.TryAcquire(this, LockMode::kShared, Words(3))) << "owner 9 writes";
  EXPECT_TRUE(NobodyShares());
  EXPECT_EQ(gate.mode(), LockMode::kNone);
}

TEST_F(GateTest, WhoeverGivesUpLeavesNothingBehind) {
  Gate gate;
  ASSERT_TRUE(TryLock(lock_, LockMode::kShared, 2, kMaxOwners));
  EXPECT_EQ(Take(gate, LockMode::kExclusive, 1, Millis(5)).code(), Code::kDeadlineExceeded);
  EXPECT_EQ(lock_.exclusive.load(), 0u);
  EXPECT_EQ(gate.mode(), LockMode::kNone);
  EXPECT_TRUE(gate.Enter(Words(1), Millis(0)).ok());
}

// As a region does it: claims, then looks whether the readers have gone.
Result<Gate::Try> Claim(SegmentLock& lock, std::uint32_t owner) {
  if (!ClaimExclusive(lock, owner)) return Gate::Try::kInTheWay;
  return Drained(lock, owner, kMaxOwners) ? Gate::Try::kTaken : Gate::Try::kClaimed;
}

TEST_F(GateTest, UpdatesOfOtherThreadsPassWhileAClaimWaitsForAReader) {
  Gate gate;
  ASSERT_TRUE(TryLock(lock_, LockMode::kShared, 2, kMaxOwners));
  int pauses = 0;
  const auto taken = gate.Acquire(
      this, LockMode::kExclusive,
      [&] {
        // The claim stands: another thread's update, before which the reader does not go.
        EXPECT_EQ(lock_.exclusive.load(), 1u);
        EXPECT_EQ(gate.mode(), LockMode::kNone);
        const auto access = gate.Enter(Words(1), Millis(0));
        EXPECT_TRUE(access.ok());
        EXPECT_EQ(*access, Access::kConcurrent);
        EXPECT_FALSE(TryLock(lock_, LockMode::kShared, 3, kMaxOwners)) << "no new reader";
        gate.Leave(Words(1));
        EXPECT_FALSE(gate.TryAcquire(this, LockMode::kShared, Words(1))) << "one lock at a time";
        Unlock(lock_, LockMode::kShared, 2);
        return ++pauses < 5;
      },
      [&] { return Claim(lock_, 1); }, [&] { ADD_FAILURE() << "gave up"; });
  EXPECT_TRUE(taken.ok());
  EXPECT_EQ(pauses, 1);
  EXPECT_EQ(gate.mode(), LockMode::kExclusive);
  EXPECT_EQ(*gate.Enter(Words(1), Millis(0)), Access::kExclusive);
  gate.Leave(Words(1));
  EXPECT_TRUE(gate.TryRelease(Words(1)));
}

TEST_F(GateTest, AClaimIsNoLockWhileAnUpdateOfAnotherThreadIsUnderWay) {
  Gate gate;
  ASSERT_TRUE(TryLock(lock_, LockMode::kShared, 2, kMaxOwners));
  int pauses = 0;
  const auto taken = gate.Acquire(
      this, LockMode::kExclusive,
      [&] {
        if (++pauses == 1) {
          EXPECT_TRUE(gate.Enter(Words(1), Millis(0)).ok());
          Unlock(lock_, LockMode::kShared, 2);
        } else if (pauses == 3) {
          gate.Leave(Words(1));
        } else {
          EXPECT_EQ(gate.Enter(Words(1), Millis(0)).status().code(), Code::kDeadlineExceeded)
              << "no new ones";
        }
        return true;
      },
      [&] { return Claim(lock_, 1); }, [] {});
  EXPECT_TRUE(taken.ok());
  EXPECT_EQ(pauses, 3);
}

TEST_F(GateTest, WhoeverGivesAClaimUpWaitsForUpdatesUnderIt) {
  Gate gate;
  ASSERT_TRUE(TryLock(lock_, LockMode::kShared, 2, kMaxOwners));
  std::atomic<bool> left{false};
  std::thread updater;
  const auto taken = gate.Acquire(
      this, LockMode::kExclusive,
      [&] {
        EXPECT_TRUE(gate.Enter(Words(1), Millis(0)).ok());
        updater = std::thread([&] {
          left = true;
          gate.Leave(Words(1));
        });
        return false;
      },
      [&] { return Claim(lock_, 1); },
      [&] {
        EXPECT_TRUE(left);
        Unlock(lock_, LockMode::kExclusive, 1);
      });
  updater.join();
  EXPECT_EQ(taken.code(), Code::kDeadlineExceeded);
  EXPECT_EQ(lock_.exclusive.load(), 0u);
  EXPECT_TRUE(gate.TryAcquire(this, LockMode::kShared, Words(1)));
}

TEST_F(GateTest, ThreadsOfOneProcessCountExactlyWhateverTheyHold) {
  Gate gate;
  std::int64_t target = 0;
  constexpr int kRounds = 3000;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        // One thread locks now and then; the others update throughout.
        const bool locks = t == 0 && i % 10 == 0;
        if (locks) {
          EXPECT_TRUE(
              Take(gate, i % 20 == 0 ? LockMode::kExclusive : LockMode::kShared, 1, std::chrono::seconds(20))
                  .ok());
        }
        const auto access = gate.Enter(Words(1), std::chrono::seconds(20));
        ASSERT_TRUE(access.ok());
        const std::int64_t one = 1;
        EXPECT_TRUE(
            Accumulate({AtomicOp::kSum, ElementType::kInt64, *access, 1, &lock_}, &target, &one, nullptr, 1)
                .ok());
        gate.Leave(Words(1));
        if (locks) {
          EXPECT_TRUE(Free(gate, 1).ok());
        }
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(target, 4 * kRounds);
  EXPECT_TRUE(NobodyShares());
  EXPECT_EQ(lock_.exclusive.load(), 0u);
}

TEST(Gates, AreTheSameForAllHandlesOfAnExtent) {
  const GatesKey key{RegionUuid{1, 2}, Generation{1}, "nam0"};
  const auto first = GatesOf(key, 4);
  EXPECT_EQ(GatesOf(key, 4), first);
  GatesKey other = key;
  other.generation = Generation{2};
  EXPECT_NE(GatesOf(other, 4), first);
}

}  // namespace
}  // namespace msa::nam
