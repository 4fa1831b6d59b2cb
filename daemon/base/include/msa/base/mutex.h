#pragma once
// A mutex that clang's thread-safety analysis understands (std::mutex gives false warnings there).
// https://clang.llvm.org/docs/ThreadSafetyAnalysis.html

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define MSA_TSA_(x) __attribute__((x))
#else
#define MSA_TSA_(x)
#endif
#define MSA_CAPABILITY(x) MSA_TSA_(capability(x))
#define MSA_SCOPED_CAPABILITY MSA_TSA_(scoped_lockable)
#define MSA_GUARDED_BY(x) MSA_TSA_(guarded_by(x))
#define MSA_REQUIRES(...) MSA_TSA_(requires_capability(__VA_ARGS__))
#define MSA_ACQUIRE(...) MSA_TSA_(acquire_capability(__VA_ARGS__))
#define MSA_RELEASE(...) MSA_TSA_(release_capability(__VA_ARGS__))
#define MSA_EXCLUDES(...) MSA_TSA_(locks_excluded(__VA_ARGS__))
#define MSA_NO_THREAD_SAFETY_ANALYSIS MSA_TSA_(no_thread_safety_analysis)

namespace msa {

class MSA_CAPABILITY("mutex") Mutex {
 public:
  void lock() MSA_ACQUIRE() { mu_.lock(); }
  void unlock() MSA_RELEASE() { mu_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mu_;
};

class MSA_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mu) MSA_ACQUIRE(mu) : mu_(mu) { mu_.lock(); }
  ~MutexLock() MSA_RELEASE() { mu_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mu_;
};

// Wait with the mutex held; it is held again when Wait returns. Spurious wake-ups happen: loop on the
// condition.
class CondVar {
 public:
  void Wait(Mutex& mu) MSA_REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }
  // False when `deadline` passed first.
  bool WaitUntil(Mutex& mu, std::chrono::steady_clock::time_point deadline) MSA_REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    const bool in_time = cv_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return in_time;
  }
  void NotifyOne() noexcept { cv_.notify_one(); }
  void NotifyAll() noexcept { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

}  // namespace msa
