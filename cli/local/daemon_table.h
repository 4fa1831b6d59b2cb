#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "msa/base/status.h"

namespace msa::cli {

// What a supervisor has started, in a file: for the next supervisor, should it be killed, and for `cluster
// status`.
struct DaemonEntry {
  std::string name;               // "controller", "noded-cn0", "namd-nam0"
  pid_t pid = 0;                  // 0: waits to be started again
  std::uint64_t start_ticks = 0;  // of the process, after boot: a reused pid has another value
  std::int64_t started_at_ms = 0;
  std::uint32_t restarts = 0;
  friend bool operator==(const DaemonEntry&, const DaemonEntry&) = default;
};

// How daemons are ended: by which signal, and in which order.
inline constexpr int kNodedPhase = 0;       // SIGINT: with the jobs on its node
inline constexpr int kNamdPhase = 1;        // jobs use its memory to their end
inline constexpr int kControllerPhase = 2;  // all tell it what becomes of them
struct DaemonEnd {
  int phase = kNodedPhase;
  int signal = 0;
};
DaemonEnd DaemonEndOf(std::string_view name);

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
