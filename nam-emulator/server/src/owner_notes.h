#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "msa/base/status.h"
#include "msa/namd/attachments.h"

namespace msa::namd {

// When a process was started, in the kernel's ticks since the boot: tells it from a later one with its pid.
// 0: no such process.
std::uint64_t StartOfProcess(pid_t pid);

// Who holds which owner number, kept where a client cannot write: a namd that takes over knows which locks
// belong to whom, and whose owner has died meanwhile. One small file for each extent that has owners, in a
// directory of their own. Losing a note costs a lock after a restart, so that nothing waits for a disk and
// failures are only logged. Not thread-safe.
class OwnerNotes {
 public:
  struct Note {
    RestoredOwner owner;
    pid_t pid = 0;            // 0: of another host
    std::uint64_t start = 0;  // StartOfProcess when it attached
  };
  explicit OwnerNotes(std::string directory) : directory_(std::move(directory)) {}

  void Write(const ExtentKey& extent, const Note& note);
  void Clear(const ExtentKey& extent, std::uint32_t owner);
  std::vector<Note> Read(const ExtentKey& extent) const;
  void Remove(const ExtentKey& extent);
  // Those of extents that are not `kept`.
  void RemoveOthers(const std::vector<ExtentKey>& kept);

 private:
  struct Record;
  void Put(const ExtentKey& extent, std::uint32_t owner, const Record& record);
  std::string PathOf(const ExtentKey& extent) const { return directory_ + "/" + ToText(extent); }
  std::string directory_;
};

}  // namespace msa::namd
