#include "local/take_down.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <string_view>

#include "msa/adapters/config/nam_backing.h"
#include "msa/adapters/config/topology_file.h"
#include "msa/adapters/process/child_process.h"
#include "msa/adapters/process/files.h"
#include "msa/adapters/process/lock_file.h"
#include "msa/adapters/process/sweep.h"
#include "msa/base/clock.h"

#include "client/endpoint.h"
#include "client/system_client.h"
#include "local/daemon_table.h"
#include "local/local_paths.h"
#include "local/system_files.h"

namespace msa::cli {
namespace {

constexpr int kLookMillis = 20;
constexpr Millis kCallTimeout{2000};
// SIGTERM, 5 s of grace, SIGKILL, and the ends are on disk.
constexpr std::chrono::seconds kJobsWait{8};
constexpr std::chrono::seconds kJobsWaitNow{3};
// Three phases of the supervisor's own 10 s.
constexpr std::chrono::seconds kSupervisorWait{32};
constexpr std::chrono::seconds kDaemonWait{9};
constexpr Millis kSweepWait{2000};
constexpr Millis kOfflineWait{10'000};
constexpr const char* kDownReason = "the system is shut down";
constexpr std::size_t kMaxCommandLine = std::size_t{64} << 10;

bool Ended(const ProcessHandle& process, std::chrono::milliseconds wait) {
  pollfd entry{process.pidfd.get(), POLLIN, 0};
  return ::poll(&entry, 1, static_cast<int>(wait.count())) == 1;
}

// Cancels every job and waits for their ends. How many there were.
std::size_t EndJobs(const LocalPaths& paths, bool now) {
  const Endpoint endpoint{paths.controller_socket(), paths.dir(), ""};
  auto client = SystemClient::TryConnect(endpoint, kCallTimeout);
  if (!client.ok()) return 0;
  auto jobs = (*client)->ListJobs({});
  if (!jobs.ok()) return 0;
  for (const JobInfo& job : *jobs) (void)(*client)->CancelJob(job.id, {.reason = kDownReason, .now = now});
  const std::size_t count = jobs->size();
  const SteadyTime give_up = SteadyNow() + (now ? kJobsWaitNow : kJobsWait);
  while (jobs.ok() && !jobs->empty() && SteadyNow() < give_up) {
    ::poll(nullptr, 0, kLookMillis);
    jobs = (*client)->ListJobs({});
  }
  return count;
}

void EndSupervisor(const LocalPaths& paths, DownReport* report) {
  const pid_t pid = RunningSupervisor(paths);
  if (pid == 0) return;
  const Result<ProcessHandle> process = OpenProcess(pid);
  if (!process.ok()) return;
  SignalProcess(*process, SIGTERM);
  if (Ended(*process, kSupervisorWait)) return;
  report->killed.push_back(fmt::format("supervisor (pid {})", pid));
  SignalProcess(*process, SIGKILL);
  Ended(*process, kSweepWait);
}

// Keeps everybody else from starting or clearing this system while its remains are cleared. nullopt: the lock
// cannot be had, on a full disk say, and what is there is cleared all the same. kAborted: another
// `cluster down` does not end.
Result<std::optional<LockFile>> EndSupervisorForGood(const LocalPaths& paths, DownReport* report) {
  const SteadyTime give_up = SteadyNow() + kSupervisorWait;
  for (;;) {
    EndSupervisor(paths, report);
    Result<LockFile> lock = LockFile::Acquire(paths.supervisor_lock(), "the system in '" + paths.dir() + "'");
    if (lock.ok()) return std::optional<LockFile>(*std::move(lock));
    if (lock.status().code() != Code::kAlreadyExists) return std::optional<LockFile>();
    // A supervisor that has just started is ended, another `cluster down` waited for.
    if (SteadyNow() >= give_up)
      return Error(Code::kAborted, "another 'msactl cluster up' or 'down' works on '{}' (pid {}); try again",
                   paths.dir(), LockHolder(paths.supervisor_lock()));
    ::poll(nullptr, 0, kLookMillis);
  }
}

// Daemons that a killed supervisor left.
void EndDaemons(const LocalPaths& paths, DownReport* report) {
  for (int phase = kNodedPhase; phase <= kControllerPhase; ++phase) {
    std::vector<std::pair<DaemonEntry, ProcessHandle>> left;
    for (const DaemonEntry& entry : LoadDaemonTable(paths.daemon_table())) {
      const DaemonEnd end = DaemonEndOf(entry.name);
      if (end.phase != phase || !IsAlive(entry)) continue;
      Result<ProcessHandle> process = OpenProcess(entry.pid);
      if (!process.ok()) continue;
      SignalProcess(*process, end.signal);
      left.emplace_back(entry, *std::move(process));
    }
    const SteadyTime give_up = SteadyNow() + kDaemonWait;
    for (const auto& [entry, process] : left) {
      const auto rest = std::chrono::ceil<Millis>(give_up - SteadyNow());
      if (Ended(process, std::max(rest, Millis(0)))) continue;
      report->killed.push_back(fmt::format("{} (pid {})", entry.name, entry.pid));
      SignalProcess(process, SIGKILL);
      Ended(process, kSweepWait);
    }
  }
}

// True if one word of the command line names a path below `dir`/n/, and the program is one of ours.
bool BelongsTo(pid_t pid, const std::string& dir) {
  const Result<std::string> line = ReadFile(fmt::format("/proc/{}/cmdline", pid), kMaxCommandLine);
  if (!line.ok()) return false;
  const std::string_view program = std::string_view(*line).substr(0, line->find('\0'));
  const std::string_view base = program.substr(program.rfind('/') + 1);
  if (base != "msa-jobd" && base != "msa-noded" && base != "msa-namd" && base != "msa-controllerd")
    return false;
  std::string_view rest = *line;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find('\0'));
    if (word == dir || word.starts_with(dir + "/")) return true;
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
  }
  return false;
}

// Job daemons whose node daemon was killed, and daemons that no table names.
void KillStrays(const LocalPaths& paths, DownReport* report) {
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), &::closedir);
  if (!proc) return;
  std::vector<ProcessHandle> strays;
  while (const dirent* item = ::readdir(proc.get())) {
    const std::string_view name = item->d_name;
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size() || pid == ::getpid()) continue;
    struct stat info {};
    if (::stat(fmt::format("/proc/{}", pid).c_str(), &info) != 0 ||
        (info.st_uid != ::geteuid() && ::geteuid() != 0))
      continue;
    if (!BelongsTo(pid, paths.dir())) continue;
    Result<ProcessHandle> process = OpenProcess(pid);
    if (!process.ok() || !BelongsTo(pid, paths.dir())) continue;
    SignalProcess(*process, SIGKILL);
    strays.push_back(*std::move(process));
  }
  for (const ProcessHandle& process : strays) Ended(process, kSweepWait);
  report->strays = strays.size();
}

// Tasks outlive nothing; should a job daemon have been killed together with its node daemon, they are found
// here.
void SweepTasks(const LocalPaths& paths) {
  const Result<std::vector<std::string>> nodes = ListDirectory(paths.nodes());
  if (!nodes.ok()) return;
  for (const std::string& node : *nodes) {
    const Result<std::vector<std::string>> names = ListDirectory(paths.node(node));
    if (!names.ok()) continue;
    for (const std::string& name : *names)
      if (name.starts_with('w') && name.find('.') == std::string::npos)
        SweepLeftovers(paths.node(node) + "/" + name + "/job.sock", kSweepWait);
  }
}

// What the controller could not cancel because it was dead: its store is told, so that the next one neither
// starts nor shows these jobs. How many there were.
Result<std::size_t> CancelStoredJobs(const LocalPaths& paths) {
  if (::access(paths.state_db().c_str(), F_OK) != 0) return std::size_t{0};
  MSA_ASSIGN_OR_RETURN(const std::string bin, ExecutableDirectory());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoError(errno, "make a pipe");
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  SpawnSpec spec;
  spec.argv = {bin + "/msa-controllerd", "--dir",         paths.dir(), "--topology",
               paths.topology(),         "--cancel-jobs", kDownReason};
  spec.env = CurrentEnvironment();
  spec.out = write_end.get();
  spec.err = write_end.get();
  MSA_ASSIGN_OR_RETURN(const ProcessHandle process, Spawn(spec));
  write_end = UniqueFd();
  if (!Ended(process, kOfflineWait)) {
    SignalProcess(process, SIGKILL);
    Ended(process, kSweepWait);
  }
  // Its text fits into the pipe.
  std::array<char, 4096> text;
  const ssize_t size = std::max<ssize_t>(::read(read_end.get(), text.data(), text.size()), 0);
  std::size_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + size, count);
  const std::optional<int> how = ReapChild(process.pid);
  if (how && WIFEXITED(*how) && WEXITSTATUS(*how) == 0 && error == std::errc()) return count;
  std::string said(text.data(), static_cast<std::size_t>(size));
  while (said.ends_with('\n')) said.pop_back();
  return Error(Code::kInternal,
               "the daemons in '{}' are stopped, but jobs are not cancelled and would go on with the next "
               "'msactl cluster up': {}; try again, or drop them with --purge",
               paths.dir(), said.empty() && how ? "msa-controllerd " + DescribeWaitStatus(*how) : said);
}

Result<bool> LooksLikeSystem(const LocalPaths& paths, const DownOptions& options) {
  struct stat info {};
  if (::stat(paths.dir().c_str(), &info) != 0) {
    if (errno == ENOENT) return false;
    return ErrnoError(errno, "look at '" + paths.dir() + "'");
  }
  if (!S_ISDIR(info.st_mode))
    return Error(Code::kInvalidArgument, "'{}' is not a directory; give that of a local system with --dir",
                 paths.dir());
  if (info.st_uid != ::geteuid() && ::geteuid() != 0)
    return Error(Code::kPermissionDenied,
                 "the system in '{}' belongs to user {}; only that user and root may stop it", paths.dir(),
                 info.st_uid);
  if (HoldsSystem(paths)) return true;
  if (options.purge)
    return Error(Code::kFailedPrecondition,
                 "no system was ever started in '{}', nothing is removed; if you mean that directory, remove "
                 "it yourself",
                 paths.dir());
  return false;
}

}  // namespace

Result<DownReport> TakeDown(const DownOptions& options) {
  const LocalPaths paths(options.dir);
  DownReport report;
  MSA_ASSIGN_OR_RETURN(const bool there, LooksLikeSystem(paths, options));
  if (!there) return report;
  const std::vector<DaemonEntry> entries = LoadDaemonTable(paths.daemon_table());
  report.was_running = RunningSupervisor(paths) != 0 || std::any_of(entries.begin(), entries.end(), IsAlive);
  if (report.was_running && !options.keep_jobs) report.jobs_cancelled = EndJobs(paths, options.now);
  MSA_ASSIGN_OR_RETURN(const std::optional<LockFile> lock, EndSupervisorForGood(paths, &report));
  EndDaemons(paths, &report);
  KillStrays(paths, &report);
  SweepTasks(paths);
  report.was_running = report.was_running || report.strays > 0;
  MSA_RETURN_IF_ERROR(RemoveRunFiles(paths));
  if (options.purge) {
    // Before the file that says where it is.
    if (const auto backing = LoadNamBacking(paths.topology()); backing.ok() && !backing->empty()) {
      MSA_ASSIGN_OR_RETURN(const SystemTopology topology, LoadTopologyFile(paths.topology()));
      MSA_RETURN_IF_ERROR(RemoveBacking(*backing, topology));
    }
    MSA_ASSIGN_OR_RETURN(report.kept, RemoveState(paths));
  } else if (!options.keep_jobs) {
    MSA_ASSIGN_OR_RETURN(const std::size_t stored, CancelStoredJobs(paths));
    // Those that did not end in time were counted before.
    report.jobs_cancelled = std::max(report.jobs_cancelled, stored);
  }
  return report;
}

}  // namespace msa::cli
