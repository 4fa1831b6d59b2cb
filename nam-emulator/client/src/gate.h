#pragma once
// What this process holds of a segment's lock: one per segment, shared by all its handles and threads, since
// owners are processes. An atomic update enters and leaves; entered without a lock of the user's it has the
// shared lock for as long, so that it is never in the way of another process's plain updates.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "msa/base/clock.h"
#include "msa/base/nam_ids.h"
#include "msa/base/status.h"
#include "msa/nam/atomics.h"
#include "msa/nam/locks.h"

namespace msa::nam {

// The words of a segment's lock in the mapped file.
struct LockWords {
  SegmentLock* lock = nullptr;
  const std::atomic<std::uint32_t>* highest_owner = nullptr;
  std::uint32_t owner = 0;
};

class Gate {
  class Backoff {
   public:
    explicit Backoff(SteadyTime deadline) : deadline_(deadline) {}
    bool Pause();  // false: the deadline has passed

   private:
    SteadyTime deadline_;
    int spins_ = 0;
    std::chrono::microseconds sleep_{2};
  };

 public:
  // ---- updates. kDeadlineExceeded: another process has the lock, or another thread is at it.
  Result<Access> Enter(const LockWords& words, Millis timeout) {
    std::uint32_t idle = 0;
    if (state_.compare_exchange_strong(idle, kSettling, std::memory_order_acquire)) [[likely]] {
      if (TryLock(*words.lock, LockMode::kShared, words.owner, kMaxOwners)) [[likely]] {
        state_.store(kTransient | 1, std::memory_order_release);
        return Access::kConcurrent;
      }
      state_.store(0, std::memory_order_release);
    }
    return EnterSlowly(words, timeout);
  }
  void Leave(const LockWords& words) noexcept {
    std::uint32_t last = kTransient | 1;
    if (state_.compare_exchange_strong(last, kSettling, std::memory_order_acquire)) [[likely]] {
      Unlock(*words.lock, LockMode::kShared, words.owner);
      state_.store(0, std::memory_order_release);
      return;
    }
    LeaveSlowly(words);
  }

  // ---- the user's lock, where nothing is in the way. False: nothing has changed; see Acquire and Release.
  bool TryAcquire(const void* handle, LockMode mode, const LockWords& words) noexcept;
  bool TryRelease(const LockWords& words) noexcept;

  // What is done between two tries; false: no further one.
  using Pause = std::function<bool()>;
  // Spins, then sleeps longer and longer, up to 1 ms, until the deadline.
  static Pause Until(SteadyTime deadline) {
    return [backoff = Backoff(deadline)]() mutable { return backoff.Pause(); };
  }

  // kClaimed: readers are still there, but no new ones come, and no writer.
  enum class Try : std::uint8_t { kTaken, kClaimed, kInTheWay };
  // ---- the user's lock. `handle` is who will free it. `take`: tries to take it in the segment, a
  // Result<Try>. `give_up`: when it is not waited for any longer. Where only readers are waited for, this
  // process's other threads go on with their updates.
  template <class Take, class GiveUp>
  Status Acquire(const void* handle, LockMode mode, const Pause& pause, Take take, GiveUp give_up) {
    MSA_RETURN_IF_ERROR(Settle(pause));
    for (;;) {
      Result<Try> taken = take();
      if (taken.ok() && *taken == Try::kTaken) {
        handle_ = handle;
        state_.store(mode == LockMode::kShared ? kShared : kExclusive, std::memory_order_release);
        return Status::Ok();
      }
      if (taken.ok() && (*taken == Try::kClaimed ? PauseOpenly(pause) : pause())) continue;
      give_up();
      state_.store(0, std::memory_order_release);
      return taken.ok() ? Status(Code::kDeadlineExceeded, "") : taken.status();
    }
  }
  // `free`(mode) frees it in the segment. kInvalidArgument: not held.
  template <class Free>
  Status Release(SteadyTime deadline, Free free) {
    LockMode mode = LockMode::kNone;
    MSA_RETURN_IF_ERROR(Unsettle(deadline, mode));
    const Status freed = free(mode);
    handle_ = nullptr;
    state_.store(0, std::memory_order_release);
    return freed;
  }
  LockMode mode() const {
    const std::uint32_t mode = state_.load(std::memory_order_relaxed) & kModes;
    return mode == kShared ? LockMode::kShared : mode == kExclusive ? LockMode::kExclusive : LockMode::kNone;
  }
  bool IsHeldBy(const void* handle) const { return mode() != LockMode::kNone && handle_ == handle; }

 private:
  // Low half: updates under way. kSettling: one thread changes what is held, the others wait.
  static constexpr std::uint32_t kCount = 0xffff;
  static constexpr std::uint32_t kWanted = 1u << 16;  // a lock is waited for: no new updates
  static constexpr std::uint32_t kSettling = 1u << 17;
  static constexpr std::uint32_t kTransient = 2u << 17;
  static constexpr std::uint32_t kShared = 3u << 17;
  static constexpr std::uint32_t kExclusive = 4u << 17;
  static constexpr std::uint32_t kClaiming = 5u << 17;  // the exclusive lock, but for readers who are there
  static constexpr std::uint32_t kModes = 7u << 17;

  Result<Access> EnterSlowly(const LockWords& words, Millis timeout);
  bool TryEnter(const LockWords& words, Access& access);
  void LeaveSlowly(const LockWords& words) noexcept;
  bool PauseOpenly(const Pause& pause);
  Status Settle(const Pause& pause);
  Status Unsettle(SteadyTime deadline, LockMode& mode);

  std::atomic<std::uint32_t> state_{0};
  const void* handle_ = nullptr;  // of the user's lock; changed while settling
};

// The gates of an extent's segments, by slot. The same object for all handles of this process.
using Gates = std::vector<Gate>;
struct GatesKey {
  RegionUuid uuid;
  Generation generation;
  std::string node;
  friend auto operator<=>(const GatesKey&, const GatesKey&) = default;
};
std::shared_ptr<Gates> GatesOf(const GatesKey& key, std::size_t slots);
// In a forked child, which holds none of its parent's locks.
void ForgetInheritedGates() noexcept;

}  // namespace msa::nam
