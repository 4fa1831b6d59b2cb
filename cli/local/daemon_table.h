#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "msa/base/status.h"

namespace msa::cli {

// What a supervisor has started, in a file: for the next supervisor, should it be killed, and for `cluster
// status`.
struct DaemonEntry {
  std::string name;               // "controller", "noded-cn0"
  pid_t pid = 0;                  // 0: waits to be started again
  std::uint64_t start_ticks = 0;  // of the process, after boot: a reused pid has another value
  std::int64_t started_at_ms = 0;
  std::uint32_t restarts = 0;
  friend bool operator==(const DaemonEntry&, const DaemonEntry&) = default;
};

// One line each. Lines that do not parse are left out.
std::string FormatDaemonTable(const std::vector<DaemonEntry>& entries);
std::vector<DaemonEntry> ParseDaemonTable(const std::string& text);
// Empty if there is no such file.
std::vector<DaemonEntry> LoadDaemonTable(const std::string& path);

// Ticks after boot at which a process began, 0 if there is none (zombies count as none).
std::uint64_t ProcessStartTicks(pid_t pid);
// The same as Unix milliseconds, 0 if there is none.
std::int64_t StartedAtMillis(pid_t pid);
// The process that the entry means is alive.
bool IsAlive(const DaemonEntry& entry);
// Resident memory, 0 if there is no such process.
std::uint64_t ResidentBytes(pid_t pid);

}  // namespace msa::cli
