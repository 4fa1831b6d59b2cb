#include "msa/adapters/process/sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "msa/base/clock.h"
#include "msa/base/unique_fd.h"

namespace msa {
namespace {

struct ProcessEntry {
  pid_t parent = 0;
  std::uint64_t started = 0;  // clock ticks since boot: with the pid, the process's identity
  char state = '?';
};
using Processes = std::map<pid_t, ProcessEntry>;
using Identity = std::pair<pid_t, std::uint64_t>;

// Files of /proc tell no size; `limit` is a bound for hostile environments.
std::string ReadProcFile(const std::string& path, std::size_t limit) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!fd) return text;
  std::array<char, 16 * 1024> buffer;
  while (text.size() < limit) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return text;
}

// /proc/PID/stat: "PID (name) S PPID ... ", field 22 is the start time; the name may hold spaces and
// parentheses.
std::optional<ProcessEntry> ReadStat(pid_t pid) {
  const std::string text = ReadProcFile(fmt::format("/proc/{}/stat", pid), 4096);
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return std::nullopt;
  ProcessEntry entry;
  std::string_view rest = std::string_view(text).substr(name_end + 2);
  for (int field = 3; field <= 22 && !rest.empty(); ++field) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    if (field == 3) entry.state = word.empty() ? '?' : word[0];
    if (field == 4) std::from_chars(word.data(), word.data() + word.size(), entry.parent);
    if (field == 22) std::from_chars(word.data(), word.data() + word.size(), entry.started);
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
  }
  return entry;
}

Processes ListProcesses() {
  Processes out;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), &::closedir);
  if (!proc) return out;
  while (const dirent* entry = ::readdir(proc.get())) {
    const std::string_view name = entry->d_name;
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    if (const auto stat = ReadStat(pid)) out.emplace(pid, *stat);
  }
  return out;
}

bool EnvironmentHolds(pid_t pid, std::string_view wanted) {
  const std::string text = ReadProcFile(fmt::format("/proc/{}/environ", pid), std::size_t{4} << 20);
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find('\0'));
    if (entry == wanted) return true;
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
  }
  return false;
}

// What is known over the rounds of one sweep.
class Sweep {
 public:
  explicit Sweep(std::string wanted) : wanted_(std::move(wanted)) {}

  // SIGKILL to all that belong and live; how many processes that were not killed before.
  int Round(std::vector<UniqueFd>& dying) {
    const Processes all = ListProcesses();
    for (const auto& [pid, entry] : all)
      if (pid != ::getpid() && !marked_.contains({pid, entry.started}) && EnvironmentHolds(pid, wanted_))
        marked_.insert({pid, entry.started});
    // Descendants keep the mark: a child that cleared its environment is found by its parent, also after that
    // has died.
    for (bool grew = true; grew;) {
      grew = false;
      for (const auto& [pid, entry] : all) {
        const auto parent = all.find(entry.parent);
        if (pid == ::getpid() || parent == all.end() ||
            !marked_.contains({entry.parent, parent->second.started}))
          continue;
        if (marked_.insert({pid, entry.started}).second) grew = true;
      }
    }
    int fresh = 0;
    for (const auto& [pid, entry] : all)
      if (entry.state != 'Z' && marked_.contains({pid, entry.started}) && Kill(pid, entry.started, dying))
        ++fresh;
    return fresh;
  }

 private:
  bool Kill(pid_t pid, std::uint64_t started, std::vector<UniqueFd>& dying) {
    UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    // The descriptor pins the process; only then is it known whose number this is.
    const auto now = ReadStat(pid);
    if (!pidfd || !now || now->started != started) return false;
    if (::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0) != 0) return false;
    dying.push_back(std::move(pidfd));
    return killed_.insert({pid, started}).second;
  }

  std::string wanted_;
  std::set<Identity> marked_;
  std::set<Identity> killed_;
};

void AwaitEnds(const std::vector<UniqueFd>& dying, SteadyTime until) {
  for (const UniqueFd& pidfd : dying) {
    const auto left = std::chrono::ceil<Millis>(until - SteadyNow()).count();
    if (left <= 0) return;
    pollfd wait{.fd = pidfd.get(), .events = POLLIN, .revents = 0};
    ::poll(&wait, 1, static_cast<int>(left));
  }
}

}  // namespace

int KillStrayChildren(const std::function<bool(pid_t)>& spared) {
  int killed = 0;
  for (const auto& [pid, entry] : ListProcesses()) {
    // A child keeps its number until it is reaped: no other process can be hit.
    if (entry.parent != ::getpid() || entry.state == 'Z' || spared(pid)) continue;
    if (::kill(pid, SIGKILL) == 0) ++killed;
  }
  return killed;
}

int SweepLeftovers(const std::string& job_socket, Millis limit) {
  return SweepEnvironment("MSA_JOB_SOCKET=" + job_socket, limit);
}

int SweepEnvironment(const std::string& entry, Millis limit) {
  const SteadyTime until = SteadyNow() + limit;
  Sweep sweep(entry);
  int killed = 0;
  // One more round after the last that found anything: a process may fork between the listing and its death.
  for (;;) {
    std::vector<UniqueFd> dying;
    killed += sweep.Round(dying);
    if (dying.empty() || SteadyNow() >= until) return killed;
    AwaitEnds(dying, until);
  }
}

}  // namespace msa
