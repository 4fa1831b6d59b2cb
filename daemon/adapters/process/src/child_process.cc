#include "msa/adapters/process/child_process.h"

#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include <climits>
#include <fmt/format.h>

extern char** environ;

namespace msa {
namespace {

// The one owner of posix_spawn's two C objects.
class SpawnSettings {
 public:
  SpawnSettings() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
  }
  ~SpawnSettings() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  int Prepare(const SpawnSpec& spec) {
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    if (spec.new_session) flags |= POSIX_SPAWN_SETSID;
    ::posix_spawnattr_setflags(&attributes_, flags);
    if (!spec.cwd.empty())
      if (const int error = ::posix_spawn_file_actions_addchdir_np(&actions_, spec.cwd.c_str())) return error;
    const std::array<int, 3> streams{spec.in, spec.out, spec.err};
    for (int target = 0; target < 3; ++target) {
      const int source = streams[target];
      const int error = source < 0 ? ::posix_spawn_file_actions_addopen(&actions_, target, "/dev/null",
                                                                        target == 0 ? 0 : 1, 0)
                                   : ::posix_spawn_file_actions_adddup2(&actions_, source, target);
      if (error != 0) return error;
    }
    return 0;
  }
  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  out.reserve(strings.size() + 1);
  for (const std::string& s : strings) out.push_back(const_cast<char*>(s.c_str()));
  out.push_back(nullptr);
  return out;
}

int PidfdOpen(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

}  // namespace

Result<ProcessHandle> Spawn(const SpawnSpec& spec) {
  if (spec.argv.empty()) return Status(Code::kInvalidArgument, "no program to start was given");
  SpawnSettings settings;
  if (const int error = settings.Prepare(spec))
    return ErrnoError(error, "prepare start of '" + spec.argv[0] + "'");
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, spec.argv[0].c_str(), settings.actions(), settings.attributes(),
                                  Pointers(spec.argv).data(), Pointers(spec.env).data());
  if (error != 0) return ErrnoError(error, "start '" + spec.argv[0] + "'");
  // The child stays at least a zombie until it is reaped: its number cannot have been reused.
  UniqueFd pidfd(PidfdOpen(pid));
  if (!pidfd) {
    const int open_error = errno;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return ErrnoError(open_error, "watch process '" + spec.argv[0] + "'");
  }
  return ProcessHandle{pid, std::move(pidfd)};
}

Result<ProcessHandle> OpenProcess(pid_t pid) {
  UniqueFd pidfd(PidfdOpen(pid));
  if (pidfd) return ProcessHandle{pid, std::move(pidfd)};
  if (errno == ESRCH) return Error(Code::kNotFound, "process {} does not exist", pid);
  return ErrnoError(errno, fmt::format("watch process {}", pid));
}

bool SignalProcess(const ProcessHandle& process, int signal) {
  return process.pidfd && ::syscall(SYS_pidfd_send_signal, process.pidfd.get(), signal, nullptr, 0) == 0;
}

std::optional<int> ReapChild(pid_t pid) {
  int status = 0;
  pid_t got = 0;
  do got = ::waitpid(pid, &status, WNOHANG);
  while (got < 0 && errno == EINTR);
  if (got != pid) return std::nullopt;
  return status;
}

std::string DescribeWaitStatus(int wait_status) {
  if (WIFEXITED(wait_status)) return fmt::format("exited with code {}", WEXITSTATUS(wait_status));
  const int signal = WTERMSIG(wait_status);
  const char* name = ::sigdescr_np(signal);
  return fmt::format("was killed by signal {} ({}{})", signal, name == nullptr ? "unknown" : name,
                     WCOREDUMP(wait_status) ? ", core dumped" : "");
}

Status BecomeSubreaper() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
    return ErrnoError(errno, "become subreaper of descendants");
  return Status::Ok();
}

std::vector<std::string> CurrentEnvironment() {
  std::vector<std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) out.emplace_back(*entry);
  return out;
}

Result<std::string> ExecutableDirectory() {
  std::array<char, PATH_MAX> path{};
  const ssize_t n = ::readlink("/proc/self/exe", path.data(), path.size());
  if (n <= 0) return ErrnoError(errno, "find own executable by /proc/self/exe");
  const std::string_view whole(path.data(), static_cast<std::size_t>(n));
  return std::string(whole.substr(0, whole.rfind('/')));
}

}  // namespace msa
