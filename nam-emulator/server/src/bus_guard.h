#pragma once

#include <cstddef>

#include "msa/base/status.h"
#include "msa/base/unique_fd.h"

namespace msa::namd {

// Whoever may write an extent can truncate its file, and then namd's next touch of the mapping is a SIGBUS,
// on whichever thread it happens. Within a guarded mapping the handler puts an anonymous page in the hole,
// marks the mapping damaged and lets the thread go on; any other SIGBUS ends the process as usual.
//
// One for the process. All calls may come from any thread; slots are never given back to the system, so that
// the handler can look at them without a lock.
class BusGuard {
 public:
  // kInternal: the handler cannot be installed. Idempotent.
  static Status Install();
  // Readable when a mapping was damaged since the last Acknowledge(). -1 before Install.
  static int wake_fd();
  static void Acknowledge();

  BusGuard() = default;
  // `page` is the page size of the mapping, a power of two.
  BusGuard(void* base, std::size_t bytes, std::size_t page);
  BusGuard(BusGuard&& other) noexcept;
  BusGuard& operator=(BusGuard&& other) noexcept;
  ~BusGuard();

  bool damaged() const;

 private:
  struct Slot;
  friend struct BusGuardSlots;
  Slot* slot_ = nullptr;
};

}  // namespace msa::namd
