#include "local/bring_up.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "msa/adapters/config/nam_backing.h"
#include "msa/adapters/config/topology_file.h"
#include "msa/adapters/process/files.h"
#include "msa/adapters/process/lock_file.h"
#include "msa/adapters/process/unix_socket.h"
#include "msa/topology/suggest.h"

#include "client/endpoint.h"
#include "client/region_client.h"
#include "client/system_client.h"
#include "local/daemon_table.h"
#include "local/supervisor.h"
#include "local/system_files.h"
#include "local/take_down.h"
#include "output/text.h"

namespace msa::cli {
namespace {

constexpr std::size_t kLogTailBytes = 600;
constexpr int kLookMillis = 10;
constexpr Millis kCallTimeout{2000};
// Three phases of its own 10 s.
constexpr Millis kSupervisorWait{32'000};
constexpr std::array<const char*, 5> kExecutables = {"msa-controllerd", "msa-noded", "msa-namd", "msa-jobd",
                                                     "msa-exec"};

bool AnyDaemonAlive(const LocalPaths& paths) {
  const std::vector<DaemonEntry> entries = LoadDaemonTable(paths.daemon_table());
  return std::any_of(entries.begin(), entries.end(), IsAlive);
}

Result<std::string> FindExecutables() {
  MSA_ASSIGN_OR_RETURN(std::string bin, ExecutableDirectory());
  for (const char* name : kExecutables) {
    const std::string path = bin + "/" + name;
    if (::access(path.c_str(), X_OK) != 0)
      return Error(Code::kNotFound,
                   "'{}' is not there or not executable; build or install all of msa into one directory",
                   path);
  }
  return bin;
}

// What the system is to be made of, as text.
Result<std::string> TopologyText(const UpOptions& options, const LocalPaths& paths) {
  const bool adopt = AnyDaemonAlive(paths);
  std::string text(DefaultTopologyText());
  if (!options.topology.empty()) {
    auto given = ReadFile(options.topology, kMaxTopologyFileBytes);
    if (!given.ok())
      return Error(
          given.status().code() == Code::kResourceExhausted ? Code::kInvalidArgument : given.status().code(),
          "topology file: {}; give a file as msa-topology(5) describes it, or leave --topology out "
          "for the default system",
          given.status().message());
    text = *std::move(given);
  }
  if (!adopt) return text;
  MSA_ASSIGN_OR_RETURN(const std::string in_use, ReadFile(paths.topology(), kMaxTopologyFileBytes));
  if (!options.topology.empty() && text != in_use)
    return Error(
        Code::kFailedPrecondition,
        "daemons run in '{}' with another topology than '{}'; stop them with 'msactl cluster down{}' first",
        paths.dir(), options.topology, options.flag);
  return in_use;
}

Result<ProcessHandle> StartSupervisor(const LocalPaths& paths, const std::string& bin) {
  const std::string path = paths.log("supervisor");
  UniqueFd log(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!log) return ErrnoError(errno, "open log '" + path + "'");
  SpawnSpec spec;
  spec.argv = {bin + "/msactl", "cluster", "supervise", "--dir", paths.dir()};
  spec.env = CurrentEnvironment();
  spec.out = log.get();
  spec.err = log.get();
  return Spawn(spec);
}

std::string LogTail(const LocalPaths& paths, const std::string& daemon) {
  std::string tail = ReadTail(paths.log(daemon), kLogTailBytes);
  while (tail.ends_with('\n')) tail.pop_back();
  if (tail.empty()) return fmt::format("\n  {} is empty", paths.log(daemon));
  std::string out = fmt::format("\n  end of {}:\n    ", paths.log(daemon));
  for (const char c : tail) out += c == '\n' ? std::string("\n    ") : std::string(1, c);
  return out;
}

bool HasEnded(const ProcessHandle& process) {
  pollfd entry{process.pidfd.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

Status SupervisorFailed(const UpOptions& options, const LocalPaths& paths, const ProcessHandle& supervisor) {
  const std::optional<int> how = ReapChild(supervisor.pid);
  const bool locked = how && WIFEXITED(*how) && WEXITSTATUS(*how) == 7;
  const pid_t holder = RunningSupervisor(paths);  // 0: a `cluster down` has the lock
  // Another `cluster up` was faster.
  if (locked && holder != 0)
    return Error(
        Code::kAlreadyExists,
        "a system runs in '{}' already, its supervisor has pid {}; stop it with 'msactl cluster down{}'",
        paths.dir(), holder, options.flag);
  // A `cluster down` had the lock, and has it no more; or it ended the supervisor.
  if (locked || (how && WIFEXITED(*how) && WEXITSTATUS(*how) == 0))
    return Error(Code::kAborted,
                 "the system in '{}' was taken down while it came up; run 'msactl cluster up{}' again",
                 paths.dir(), options.flag);
  return Error(Code::kInternal, "the supervisor {}{}", how ? DescribeWaitStatus(*how) : "has gone",
               LogTail(paths, "supervisor"));
}

// Names of nodes that are not up; all of them while the controller does not answer.
std::vector<std::string> MissingNodes(const Endpoint& endpoint, const SystemTopology& topology,
                                      bool* controller_answers) {
  *controller_answers = false;
  auto client = SystemClient::TryConnect(endpoint, kCallTimeout);
  if (client.ok()) {
    if (const auto nodes = (*client)->ListNodes("", {}); nodes.ok()) {
      *controller_answers = true;
      std::vector<std::string> missing;
      for (const NodeInfo& node : *nodes)
        if (node.state != NodeState::kUp) missing.push_back(node.name);
      return missing;
    }
  }
  return NodeNames(topology);
}

// NAM nodes whose namd has not said hello yet; asked once the nodes are up.
std::vector<std::string> MissingNamds(const Endpoint& endpoint, const SystemTopology& topology) {
  std::vector<std::string> missing;
  for (const NodeSpec& node : topology.nodes)
    if (node.nam.value != 0) missing.push_back(node.name);
  if (missing.empty()) return missing;
  auto client = RegionClient::TryConnect(endpoint, kCallTimeout);
  if (!client.ok()) return missing;
  const auto usage = (*client)->Usage();
  if (!usage.ok()) return missing;
  for (const wire::NamNodeUsage& node : usage->nodes)
    if (node.up) std::erase(missing, node.node);
  return missing;
}

Status WaitUntilUp(const UpOptions& options, const LocalPaths& paths, const SystemTopology& topology,
                   const ProcessHandle& supervisor) {
  const Endpoint endpoint{paths.controller_socket(), paths.dir(), options.flag};
  const SteadyTime give_up = SteadyNow() + options.timeout;
  for (;;) {
    bool controller_answers = false;
    std::vector<std::string> missing = MissingNodes(endpoint, topology, &controller_answers);
    std::string daemon = "noded-";
    if (missing.empty()) {
      missing = MissingNamds(endpoint, topology);
      daemon = "namd-";
    }
    if (missing.empty()) return Status::Ok();
    if (HasEnded(supervisor)) return SupervisorFailed(options, paths, supervisor);
    if (SteadyNow() >= give_up) {
      if (!controller_answers)
        return Error(Code::kDeadlineExceeded, "the controller does not answer after {}{}",
                     ShowDuration(options.timeout), LogTail(paths, "controller"));
      return Error(Code::kDeadlineExceeded, "{} not up after {}: {}{}",
                   missing.size() == 1 ? "a node is" : "nodes are", ShowDuration(options.timeout),
                   ListNames(missing), LogTail(paths, daemon + missing[0]));
    }
    ::poll(nullptr, 0, kLookMillis);
  }
}

// Daemons of a killed supervisor were taken over: their jobs may run, nothing is stopped.
Status StillStarting(const UpOptions& options, const Status& why) {
  if (why.code() != Code::kDeadlineExceeded) return why;
  return Error(
      why.code(),
      "{}\n  the system runs with daemons of before and goes on starting; see 'msactl cluster status{}'",
      why.message(), options.flag);
}

// Takes down what was started. Jobs of before stay queued.
Status NotUp(const UpOptions& options, const LocalPaths& paths, const ProcessHandle& supervisor,
             const Status& why) {
  // Another `cluster up` was faster: it is that one's system. A `cluster down` clears up by itself.
  if (why.code() == Code::kAlreadyExists || why.code() == Code::kAborted) return why;
  // It may not have its lock yet, by which TakeDown would find it.
  SignalProcess(supervisor, SIGTERM);
  pollfd entry{supervisor.pidfd.get(), POLLIN, 0};
  ::poll(&entry, 1, static_cast<int>(kSupervisorWait.count()));
  const Status space = CheckSpace(paths);
  const Status down = TakeDown({.dir = options.dir, .now = true, .keep_jobs = true}).status();
  if (!space.ok()) return space;
  if (!down.ok())
    return Error(why.code(), "{}\n  it could not be taken down again: {}; see 'msactl cluster status{}'",
                 why.message(), down.message(), options.flag);
  return Error(why.code(), "{}\n  what was started is stopped again; logs are in {}", why.message(),
               paths.log_directory());
}

}  // namespace

std::vector<std::string> NodeNames(const SystemTopology& topology) {
  std::vector<std::string> out;
  for (const NodeSpec& node : topology.nodes) out.push_back(node.name);
  return out;
}

Status CheckSocketPaths(const LocalPaths& paths, const SystemTopology& topology) {
  std::string longest = paths.controller_socket();
  for (const NodeSpec& node : topology.nodes) {
    // The longest of a node: its millionth job daemon, its 10^9-th job.
    for (const char* name : {"/w999999/job.sock", "/j999999999.99", "/noded.sock", "/nam-link.sock"}) {
      std::string path = paths.node(node.name) + name;
      if (path.size() > longest.size()) longest = std::move(path);
    }
  }
  return CheckSocketPath(longest);
}

namespace {

// A `cluster down` that still clears up is waited for.
Status CheckNotRunning(const UpOptions& options, const LocalPaths& paths) {
  const SteadyTime give_up = SteadyNow() + kSupervisorWait;
  for (;;) {
    if (const pid_t pid = RunningSupervisor(paths); pid != 0)
      return Error(
          Code::kAlreadyExists,
          "a system runs in '{}' already, its supervisor has pid {}; stop it with 'msactl cluster down{}'",
          paths.dir(), pid, options.flag);
    const pid_t holder = LockHolder(paths.supervisor_lock());
    if (holder == 0) return Status::Ok();
    if (SteadyNow() >= give_up)
      return Error(Code::kAborted, "a 'msactl cluster down' (pid {}) still works on '{}'; try again later",
                   holder, paths.dir());
    ::poll(nullptr, 0, kLookMillis);
  }
}

}  // namespace

Result<RunningSystem> BringUp(const UpOptions& options) {
  const LocalPaths paths(options.dir);
  MSA_RETURN_IF_ERROR(CheckNotRunning(options, paths));
  RunningSystem out;
  MSA_ASSIGN_OR_RETURN(const std::string text, TopologyText(options, paths));
  MSA_ASSIGN_OR_RETURN(out.topology,
                       ParseTopology(text, options.topology.empty() ? "default" : options.topology));
  MSA_RETURN_IF_ERROR(CheckSocketPaths(paths, out.topology));
  MSA_ASSIGN_OR_RETURN(const std::string backing,
                       ParseNamBacking(text, options.topology.empty() ? "default" : options.topology));
  MSA_ASSIGN_OR_RETURN(const std::string bin, FindExecutables());
  MSA_RETURN_IF_ERROR(CheckSpace(paths));
  // NAM daemons that were taken over hold theirs.
  if (!backing.empty() && !AnyDaemonAlive(paths)) MSA_RETURN_IF_ERROR(CheckBacking(backing, out.topology));
  MSA_RETURN_IF_ERROR(ClaimDirectory(paths));
  MSA_RETURN_IF_ERROR(MakeDirectory(paths.log_directory()));
  MSA_RETURN_IF_ERROR(WriteFileAtomically(paths.topology(), text));
  const bool adopts = AnyDaemonAlive(paths);
  MSA_ASSIGN_OR_RETURN(const ProcessHandle supervisor, StartSupervisor(paths, bin));
  out.supervisor = supervisor.pid;
  if (const Status status = WaitUntilUp(options, paths, out.topology, supervisor); !status.ok())
    return adopts ? StillStarting(options, status) : NotUp(options, paths, supervisor, status);
  const auto client =
      SystemClient::Connect({paths.controller_socket(), paths.dir(), options.flag}, kCallTimeout);
  auto modules = client.ok() ? (*client)->ListModules() : Result<std::vector<ModuleInfo>>(client.status());
  if (!modules.ok() && modules.status().code() == Code::kUnavailable) {
    // Taken down in this moment?
    pollfd entry{supervisor.pidfd.get(), POLLIN, 0};
    if (::poll(&entry, 1, static_cast<int>(kSupervisorWait.count())) == 1)
      return SupervisorFailed(options, paths, supervisor);
  }
  MSA_RETURN_IF_ERROR(modules.status());
  out.modules = *std::move(modules);
  return out;
}

Status Supervise(const LocalPaths& paths) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&set, signal);
  ::signal(SIGPIPE, SIG_IGN);
  if (::sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return ErrnoError(errno, "block signals");
  UniqueFd signals(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals) return ErrnoError(errno, "watch signals");
  MSA_ASSIGN_OR_RETURN(const LockFile lock,
                       LockFile::Acquire(paths.supervisor_lock(), "the supervisor of '" + paths.dir() + "'"));
  MSA_ASSIGN_OR_RETURN(const SystemTopology topology, LoadTopologyFile(paths.topology()));
  MSA_ASSIGN_OR_RETURN(const std::string bin, ExecutableDirectory());
  MSA_ASSIGN_OR_RETURN(const std::unique_ptr<EventLoop> loop, EventLoop::Create());
  const auto log = [](const std::string& text) {
    const std::string line = UtcTime(ToUnixMillis(Now())) + " supervisor " + text + "\n";
    // A full disk silences the log and nothing else.
    if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;
  };
  Supervisor::Options options;
  options.table = paths.daemon_table();
  options.log_directory = paths.log_directory();
  Supervisor supervisor(*loop, std::move(options), LocalDaemons(paths, bin, topology), log);
  log(fmt::format("supervises '{}' with pid {}", paths.dir(), ::getpid()));
  supervisor.Start();
  MSA_RETURN_IF_ERROR(loop->Watch(signals.get(), EPOLLIN, [&](std::uint32_t) {
    signalfd_siginfo info{};
    while (::read(signals.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      if (info.ssi_signo == SIGHUP) continue;  // the terminal of `cluster up` is closed
      log(fmt::format("ends on signal {}", info.ssi_signo));
      supervisor.Stop([&] { loop->Stop(); });
    }
  }));
  const Status status = loop->Run();
  log("has ended");
  return status;
}

}  // namespace msa::cli
