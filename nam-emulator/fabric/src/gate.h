#pragma once
// The lock of FabricClient's engine: held by a thread that polls, for as long as it polls, and lent to the
// others in between. A std::mutex alone would not do: who unlocks and locks again at once gets it before any
// sleeper.

#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "msa/base/clock.h"
#include "msa/base/mutex.h"

#define MSA_RETURN_CAPABILITY(x) MSA_TSA_(lock_returned(x))

namespace msa::nam {

class MSA_CAPABILITY("mutex") Gate {
 public:
  void Lock() MSA_ACQUIRE() {
    if (!mu_.try_lock()) {
      contenders_.fetch_add(1);
      mu_.lock();
      contenders_.fetch_sub(1);
    }
    entries_.store(entries_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void Unlock() MSA_RELEASE() { mu_.unlock(); }

  // Somebody waits in Lock().
  bool contended() const noexcept { return contenders_.load(std::memory_order_relaxed) > 0; }
  // Lets one of those in, and returns when it has left or leads nowhere.
  void GiveWay() MSA_REQUIRES(this) {
    const unsigned entries = entries_.load(std::memory_order_relaxed);
    mu_.unlock();
    // 100 us: a thread that sleeps on the lock needs about 50 to run.
    const SteadyTime limit = SteadyNow() + std::chrono::microseconds(100);
    while (contended() && entries_.load(std::memory_order_relaxed) == entries && SteadyNow() < limit)
      sched_yield();
    mu_.lock();
  }
  // Spurious wake-ups happen.
  void WaitUntil(std::condition_variable& changed, SteadyTime deadline) MSA_REQUIRES(this) {
    std::unique_lock<std::mutex> lock(mu_, std::adopt_lock);
    changed.wait_until(lock, deadline);
    lock.release();
  }
  void Wait(std::condition_variable& changed) MSA_REQUIRES(this) {
    std::unique_lock<std::mutex> lock(mu_, std::adopt_lock);
    changed.wait(lock);
    lock.release();
  }

 private:
  std::mutex mu_;
  std::atomic<int> contenders_{0};
  std::atomic<unsigned> entries_{0};
};

class MSA_SCOPED_CAPABILITY GateLock {
 public:
  explicit GateLock(Gate& gate) MSA_ACQUIRE(gate) : gate_(gate) { gate_.Lock(); }
  ~GateLock() MSA_RELEASE() { gate_.Unlock(); }
  GateLock(const GateLock&) = delete;
  GateLock& operator=(const GateLock&) = delete;

 private:
  Gate& gate_;
};

}  // namespace msa::nam
