#include "local/daemon_table.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
#include <sstream>

#include "msa/adapters/process/files.h"
#include "msa/base/clock.h"

namespace msa::cli {
namespace {

// A line has below 128 bytes; a system at most 65,536 nodes.
constexpr std::size_t kMaxTableBytes = std::size_t{16} << 20;
constexpr std::size_t kMaxProcFile = 4096;

std::vector<std::string> StatFields(pid_t pid) {
  const Result<std::string> text = ReadFile(fmt::format("/proc/{}/stat", pid), kMaxProcFile);
  if (!text.ok()) return {};
  // "PID (name) S PPID ...": the name may hold anything.
  const std::size_t name_end = text->rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream in(text->substr(name_end + 1));
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(std::move(word));
  return out;
}

}  // namespace

DaemonEnd DaemonEndOf(std::string_view name) {
  if (name == "controller") return {kControllerPhase, SIGTERM};
  if (name.starts_with("namd-")) return {kNamdPhase, SIGTERM};
  return {kNodedPhase, SIGINT};
}

std::string FormatDaemonTable(const std::vector<DaemonEntry>& entries) {
  std::string out;
  for (const DaemonEntry& e : entries)
    out += fmt::format("{} {} {} {} {}\n", e.name, e.pid, e.start_ticks, e.started_at_ms, e.restarts);
  return out;
}

std::vector<DaemonEntry> ParseDaemonTable(const std::string& text) {
  std::vector<DaemonEntry> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    DaemonEntry e;
    if (words >> e.name >> e.pid >> e.start_ticks >> e.started_at_ms >> e.restarts)
      out.push_back(std::move(e));
  }
  return out;
}

std::vector<DaemonEntry> LoadDaemonTable(const std::string& path) {
  const Result<std::string> text = ReadFile(path, kMaxTableBytes);
  return text.ok() ? ParseDaemonTable(*text) : std::vector<DaemonEntry>();
}

std::uint64_t ProcessStartTicks(pid_t pid) {
  // Field 22 of proc(5); the fields here begin with the third, the state.
  const std::vector<std::string> fields = StatFields(pid);
  if (fields.size() < 20 || fields[0] == "Z" || fields[0] == "X") return 0;
  std::uint64_t ticks = 0;
  std::from_chars(fields[19].data(), fields[19].data() + fields[19].size(), ticks);
  return ticks;
}

std::int64_t StartedAtMillis(pid_t pid) {
  const std::uint64_t ticks = ProcessStartTicks(pid);
  timespec boot{};
  if (ticks == 0 || ::clock_gettime(CLOCK_BOOTTIME, &boot) != 0) return 0;
  const std::int64_t boot_ms = boot.tv_sec * 1000 + boot.tv_nsec / 1'000'000;
  const auto since_boot_ms =
      static_cast<std::int64_t>(ticks * 1000 / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK)));
  return ToUnixMillis(Now()) - boot_ms + since_boot_ms;
}

bool IsAlive(const DaemonEntry& entry) {
  return entry.pid > 0 && entry.start_ticks != 0 && ProcessStartTicks(entry.pid) == entry.start_ticks;
}

std::uint64_t ResidentBytes(pid_t pid) {
  const std::vector<std::string> fields = StatFields(pid);
  if (fields.size() < 22) return 0;
  std::uint64_t pages = 0;
  std::from_chars(fields[21].data(), fields[21].data() + fields[21].size(), pages);
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace msa::cli
