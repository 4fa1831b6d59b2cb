// Several processes of several threads each at the same elements: every update counts once.

#include <sched.h>

#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "msa/nam/atomics.h"
#include "msa/nam/locks.h"

#include "shared_memory.h"

namespace msa::nam {
namespace {

using test::Shared;
using test::Spawn;

constexpr int kProcesses = 2;
constexpr int kThreads = 2;
constexpr int kRounds = 4000;
constexpr int kElements = 3;

struct Arena {
  SegmentLock lock;
  std::atomic<std::uint64_t> rounds;
  alignas(64) std::array<std::byte, 512> memory;
};

void Work(Arena& arena, std::size_t at, ElementType type, const void* operand) {
  std::vector<std::thread> threads;
  const std::uint32_t owner = static_cast<std::uint32_t>(getpid()) % kMaxOwners + 1;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      const AtomicCall call{AtomicOp::kSum, type, Access::kConcurrent, owner, &arena.lock};
      for (int i = 0; i < kRounds; ++i)
        if (!Accumulate(call, arena.memory.data() + at, operand, nullptr, kElements).ok()) _exit(1);
    });
  for (auto& thread : threads) thread.join();
}

template <class T>
void CountsExactly(ElementType type, std::size_t at, T one) {
  const Shared<Arena> arena;
  std::array<T, kElements> operand;
  operand.fill(one);
  std::array<pid_t, kProcesses> children{};
  for (pid_t& child : children) child = Spawn([&] { Work(*arena, at, type, operand.data()); });
  for (const pid_t child : children) ASSERT_TRUE(test::EndsWell(child));
  for (int i = 0; i < kElements; ++i) {
    T sum;
    std::memcpy(&sum, arena->memory.data() + at + i * sizeof(T), sizeof sum);
    EXPECT_EQ(sum, static_cast<T>(one * (kProcesses * kThreads * kRounds)));
  }
  EXPECT_EQ(arena->lock.elements.load(), 0u);
}

TEST(ContendedAccumulate, CountsExactlyForEveryKindOfElement) {
  CountsExactly<std::int64_t>(ElementType::kInt64, 0, 3);
  CountsExactly<std::int16_t>(ElementType::kInt16, 2, 1);
  CountsExactly<float>(ElementType::kFloat, 4, 1);
  CountsExactly<double>(ElementType::kDouble, 8, 1);
  CountsExactly<long double>(ElementType::kLongDouble, 16, 1);
}

TEST(ContendedAccumulate, CountsExactlyAtOddAddresses) {
  CountsExactly<std::int64_t>(ElementType::kInt64, 1, 3);
  CountsExactly<double>(ElementType::kDouble, 4, 1);
}

TEST(ContendedAccumulate, BothHalvesOfAComplexNumberCount) {
  struct Number {
    float re, im;
  };
  for (const std::size_t at : {std::size_t{0}, std::size_t{4}}) {
    const Shared<Arena> arena;
    const std::array<Number, kElements> operand = {Number{1, 2}, Number{1, 2}, Number{1, 2}};
    std::array<pid_t, kProcesses> children{};
    for (pid_t& child : children)
      child = Spawn([&] { Work(*arena, at, ElementType::kFloatComplex, operand.data()); });
    for (const pid_t child : children) ASSERT_TRUE(test::EndsWell(child));
    Number sum;
    std::memcpy(&sum, arena->memory.data() + at, sizeof sum);
    EXPECT_EQ(sum.re, kProcesses * kThreads * kRounds);
    EXPECT_EQ(sum.im, 2 * kProcesses * kThreads * kRounds);
  }
}

TEST(ContendedAccumulate, PlainUpdatesUnderTheExclusiveLockAndOthersUnderTheSharedOneCountExactly) {
  const Shared<Arena> arena;
  std::array<pid_t, 4> children{};
  for (std::uint32_t i = 0; i < children.size(); ++i)
    children[i] = Spawn([&] {
      const bool exclusive = i % 2 == 0;
      const LockMode mode = exclusive ? LockMode::kExclusive : LockMode::kShared;
      const AtomicCall call{AtomicOp::kSum, ElementType::kDouble,
                            exclusive ? Access::kExclusive : Access::kConcurrent, i + 1, &arena->lock};
      const double one = 1;
      for (int done = 0; done < kRounds;) {
        if (!TryLock(arena->lock, mode, i + 1, kMaxOwners)) {
          sched_yield();
          continue;
        }
        if (!Accumulate(call, arena->memory.data(), &one, nullptr, 1).ok()) _exit(1);
        Unlock(arena->lock, mode, i + 1);
        ++done;
      }
    });
  for (const pid_t child : children) ASSERT_TRUE(test::EndsWell(child));
  double sum;
  std::memcpy(&sum, arena->memory.data(), sizeof sum);
  EXPECT_EQ(sum, 4.0 * kRounds);
}

TEST(ContendedAccumulate, GoesOnWhenAnOwnerIsKilledAmongElements) {
  const Shared<Arena> arena;
  const AtomicCall mine{AtomicOp::kSum, ElementType::kLongDouble, Access::kConcurrent, 1, &arena->lock};
  const std::array<long double, 16> ones{};
  for (int death = 0; death < 50; ++death) {
    const std::uint64_t before = arena->rounds.load();
    const pid_t victim = Spawn([&] {
      AtomicCall call = mine;
      call.owner = 2;
      for (;;) {
        (void)Accumulate(call, arena->memory.data(), ones.data(), nullptr, ones.size()).ok();
        ++arena->rounds;
      }
    });
    while (arena->rounds.load() < before + 10) sched_yield();
    test::Kill(victim);
    FreeLocksOf(arena->lock, 2);
    AtomicCall call = mine;
    call.deadline = SteadyNow() + std::chrono::seconds(5);
    ASSERT_TRUE(Accumulate(call, arena->memory.data(), ones.data(), nullptr, 1).ok());
  }
}

}  // namespace
}  // namespace msa::nam
