#pragma once

namespace msa::cli {

// While one lives, the first SIGINT, SIGTERM or SIGHUP is noted instead of ending the process (one that is
// ignored stays so); the second one ends it. One at a time, in the main thread.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // The signal, 0 if none came. Any thread.
  static int signal() noexcept;
};

}  // namespace msa::cli
