#pragma once

#include <sys/types.h>

#include <cstddef>

#include "msa/base/status.h"
#include "msa/base/unique_fd.h"

namespace msa::namd {

// Whoever may write an extent can truncate its file, and then namd's next touch of the mapping is a SIGBUS,
// on whichever thread it happens. Within a guarded mapping the handler puts an anonymous page in the hole,
// marks the mapping damaged and lets the thread go on; so it does in other shared mappings of the same file,
// which the fabric makes. Any other SIGBUS ends the process as usual.
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
  struct Range {
    void* base = nullptr;
    std::size_t bytes = 0;
    std::size_t page = 0;  // its page size, a power of two
    ino_t inode = 0;       // of its file
  };
  explicit BusGuard(const Range& range);
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
