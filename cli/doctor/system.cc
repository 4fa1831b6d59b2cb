#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "msa/adapters/process/files.h"
#include "msa/adapters/process/lock_file.h"
#include "msa/base/clock.h"
#include "msa/topology/suggest.h"

#include "client/endpoint.h"
#include "client/system_client.h"
#include "doctor/checks.h"
#include "local/daemon_table.h"
#include "local/local_paths.h"
#include "output/text.h"

namespace msa::cli {
namespace {

using Level = Finding::Level;

constexpr Millis kCallTimeout{2000};
// Half a minute without a heartbeat: three times the longest after which a node is taken for down.
constexpr std::int64_t kOldHeartbeatMs = 30'000;
constexpr std::int64_t kSkewMs = 1000;
constexpr std::size_t kMaxProcFile = std::size_t{256} << 10;

bool AnyDaemonAlive(const LocalPaths& paths) {
  const std::vector<DaemonEntry> entries = LoadDaemonTable(paths.daemon_table());
  return std::any_of(entries.begin(), entries.end(), IsAlive);
}

Finding NoAnswer(const DoctorScope& scope, const Status& why) {
  if (scope.machine)
    return {Level::kFail, "system",
            fmt::format("the machine's controller does not answer: {}", why.message()),
            "ask its operator, or start a system of your own with 'msactl cluster up'"};
  const LocalPaths paths(scope.dir);
  const pid_t supervisor = LockHolder(paths.supervisor_lock());
  if (why.code() == Code::kPermissionDenied)
    return {Level::kFail, "system", why.message(), "choose a directory of your own with --dir or MSA_DIR"};
  if (supervisor != 0)
    return {Level::kFail, "system",
            fmt::format("supervisor {} runs in '{}', its controller does not answer", supervisor, scope.dir),
            fmt::format("see 'msactl cluster logs controller{}'; 'msactl cluster down{}' ends it all",
                        scope.flag, scope.flag)};
  if (AnyDaemonAlive(paths))
    return {Level::kFail, "system",
            fmt::format("daemons run in '{}' without supervisor and without a controller that answers",
                        scope.dir),
            fmt::format("'msactl cluster up{}' takes them over, 'msactl cluster down{}' ends them",
                        scope.flag, scope.flag)};
  return {Level::kWarn, "system", fmt::format("none runs in '{}'", scope.dir),
          fmt::format("start one with 'msactl cluster up{}'", scope.flag)};
}

Finding CheckController(const DoctorScope& scope, const SystemInfo& system) {
  const std::string what =
      fmt::format("'{}' answers, version {}, pid {}", system.system_name, system.version, system.pid);
  if (system.version != MSA_VERSION)
    return {Level::kWarn, "system", what + ", this msactl has version " MSA_VERSION,
            "use the msactl that belongs to the system, or start the system anew"};
  if (!scope.machine && LockHolder(LocalPaths(scope.dir).supervisor_lock()) == 0)
    return {Level::kWarn, "system", what + ", without supervisor: no daemon that dies is started again",
            fmt::format("run 'msactl cluster up{}', which takes them over", scope.flag)};
  return {Level::kOk, "system", what, ""};
}

Finding CheckNodes(const DoctorScope& scope, const std::vector<NodeInfo>& nodes, const std::string& version) {
  std::vector<std::string> down;
  std::vector<std::string> drained;
  std::vector<std::string> other;
  for (const NodeInfo& node : nodes) {
    if (node.state != NodeState::kUp) {
      down.push_back(node.name);
      continue;
    }
    if (node.drained) drained.push_back(node.name);
    if (node.daemon_version != version)
      other.push_back(fmt::format("{} ({})", node.name, node.daemon_version));
  }
  if (!down.empty())
    return {down.size() == nodes.size() ? Level::kFail : Level::kWarn, "nodes",
            fmt::format("{} of {} not up: {}", down.size(), Count(nodes.size(), "node"), ListNames(down)),
            fmt::format("see 'msactl node show {}{}' and 'msactl cluster logs noded-{}{}'", down[0],
                        scope.flag, down[0], scope.flag)};
  if (!other.empty())
    return {Level::kWarn, "nodes",
            fmt::format("of another version than the controller's {}: {}", version, ListNames(other)),
            "install one version of msa on all of them"};
  std::string found = fmt::format("{} up", Count(nodes.size(), "node"));
  if (!drained.empty()) found += fmt::format("; drained: {}", ListNames(drained));
  return {Level::kOk, "nodes", found, ""};
}

// ---- leftovers

struct OwnProcess {
  pid_t pid = 0;
  std::string name;                // of its program, without folder
  std::vector<std::string> words;  // arguments
  std::string environment;         // zero-separated
};

std::vector<std::string> SplitZeros(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find('\0'));
    out.emplace_back(word);
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return out;
}

std::vector<OwnProcess> OwnProcesses() {
  std::vector<OwnProcess> out;
  const Result<std::vector<std::string>> names = ListDirectory("/proc");
  if (!names.ok()) return out;
  for (const std::string& name : *names) {
    OwnProcess process;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), process.pid);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    struct stat info {};
    const std::string folder = "/proc/" + name;
    if (::stat(folder.c_str(), &info) != 0 || info.st_uid != ::geteuid()) continue;
    const Result<std::string> line = ReadFile(folder + "/cmdline", kMaxProcFile);
    if (!line.ok() || line->empty()) continue;
    process.words = SplitZeros(*line);
    process.name = process.words[0].substr(process.words[0].rfind('/') + 1);
    if (Result<std::string> environment = ReadFile(folder + "/environ", kMaxProcFile); environment.ok())
      process.environment = *std::move(environment);
    out.push_back(std::move(process));
  }
  return out;
}

// The directory that a daemon was started for: of --dir, or before "/n/NODE/" in a path.
std::string DirectoryOf(const OwnProcess& daemon) {
  for (std::size_t i = 1; i < daemon.words.size(); ++i) {
    const std::string& word = daemon.words[i];
    if (word == "--dir" && i + 1 < daemon.words.size()) return daemon.words[i + 1];
    if (word.starts_with("--dir=")) return word.substr(6);
  }
  for (const std::string& word : daemon.words) {
    const std::size_t begin = word.find('/');
    const std::size_t nodes = word.find("/n/");
    if (&word != &daemon.words[0] && nodes != std::string::npos) return word.substr(begin, nodes - begin);
  }
  return "";
}

bool IsDaemon(const OwnProcess& process) {
  return process.name == "msa-controllerd" || process.name == "msa-noded" || process.name == "msa-jobd";
}

bool HasController(const std::string& dir) {
  return TryConnectController({LocalPaths(dir).controller_socket(), dir, ""}).ok();
}

// Its controller is on another host: no supervisor and no socket is to be expected here.
bool BelongsElsewhere(const std::vector<OwnProcess>& processes, const std::string& dir) {
  return std::any_of(processes.begin(), processes.end(), [&](const OwnProcess& process) {
    return process.name == "msa-noded" && DirectoryOf(process) == dir &&
           std::any_of(process.words.begin(), process.words.end(), [](const std::string& word) {
             return word.starts_with("tls:") || word.starts_with("--controller=tls:");
           });
  });
}

Finding CheckRunDirectories(const DoctorScope& scope) {
  const LocalPaths paths(scope.dir);
  struct stat info {};
  const bool dead =
      LockHolder(paths.supervisor_lock()) == 0 && !AnyDaemonAlive(paths) && !HasController(scope.dir);
  const bool left =
      ::lstat(paths.controller_socket().c_str(), &info) == 0 || ::lstat(paths.nodes().c_str(), &info) == 0;
  if (!dead || !left)
    return {Level::kOk, "leftovers", "no sockets or run directories of a system that died", ""};
  return {Level::kWarn, "leftovers",
          fmt::format("'{}' holds sockets or run directories of a system that died", scope.dir),
          fmt::format("'msactl cluster down{}' removes them, 'msactl cluster up{}' uses the directory again",
                      scope.flag, scope.flag)};
}

Finding CheckStrayDaemons(const std::vector<OwnProcess>& processes) {
  std::map<std::string, std::vector<std::string>> pids;
  for (const OwnProcess& process : processes)
    if (IsDaemon(process)) pids[DirectoryOf(process)].push_back(fmt::format("{}", process.pid));
  std::vector<std::string> stray;
  std::vector<std::string> commands;
  for (const auto& [dir, list] : pids) {
    if (dir.empty() || LockHolder(LocalPaths(dir).supervisor_lock()) != 0 || HasController(dir) ||
        BelongsElsewhere(processes, dir))
      continue;
    stray.push_back(fmt::format("{} in '{}'", fmt::join(list, " "), dir));
    // Nothing leads to them once their directory is gone.
    struct stat info {};
    commands.push_back(::stat(dir.c_str(), &info) == 0 ? fmt::format("msactl cluster down --dir {}", dir)
                                                       : fmt::format("kill -9 {}", fmt::join(list, " ")));
  }
  if (stray.empty()) return {Level::kOk, "strays", "no daemons of yours without a system", ""};
  return {Level::kWarn, "strays", fmt::format("daemons whose system is dead: {}", ListNames(stray, 64)),
          fmt::format("run '{}'", fmt::join(commands, "; "))};
}

Finding CheckSharedMemoryLeft(const std::vector<OwnProcess>& processes) {
  const std::string prefix = fmt::format("msa-{}-", ::geteuid());
  std::set<std::string> used;
  for (const OwnProcess& process : processes)
    if (IsDaemon(process)) used.insert(LocalPaths(DirectoryOf(process)).shm(::geteuid()));
  std::vector<std::string> stale;
  const Result<std::vector<std::string>> names = ListDirectory("/dev/shm");
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
    const std::string path = "/dev/shm/" + name;
    if (!name.starts_with(prefix) || used.contains(path)) continue;
    const bool named = std::any_of(processes.begin(), processes.end(), [&](const OwnProcess& process) {
      return process.environment.find(path) != std::string::npos ||
             std::any_of(process.words.begin(), process.words.end(),
                         [&](const std::string& word) { return word.find(path) != std::string::npos; });
    });
    if (!named) stale.push_back(path);
  }
  if (stale.empty()) return {Level::kOk, "shm-left", "no shared memory of dead systems", ""};
  return {Level::kWarn, "shm-left", fmt::format("shared memory of dead systems: {}", ListNames(stale, 64)),
          fmt::format("run 'rm -r {}'", fmt::join(stale, " "))};
}

}  // namespace

Finding CheckClocks(const std::vector<NodeInfo>& nodes, std::int64_t now_ms) {
  std::int64_t oldest = 0;
  std::string late;
  for (const NodeInfo& node : nodes) {
    if (node.state != NodeState::kUp || node.last_heartbeat_ms == 0) continue;
    if (node.clock_off)
      return {Level::kWarn, "clocks",
              fmt::format("the clock of {} is {} {} the controller's", node.name,
                          ShowDuration(Millis(std::abs(node.clock_offset_ms))),
                          node.clock_offset_ms > 0 ? "ahead of" : "behind"),
              "times that its jobs see will look wrong; set both by NTP: 'timedatectl set-ntp true'"};
    const std::int64_t age = now_ms - node.last_heartbeat_ms;
    if (age < -kSkewMs)
      return {Level::kWarn, "clocks",
              fmt::format("the controller's clock is at least {} ahead of this machine's (heartbeat of {})",
                          ShowDuration(Millis(-age)), node.name),
              "times in listings will look wrong; set both by NTP: 'timedatectl set-ntp true'"};
    if (age > oldest) {
      oldest = age;
      late = node.name;
    }
  }
  if (oldest > kOldHeartbeatMs)
    return {Level::kWarn, "clocks",
            fmt::format("{} is up, but its last heartbeat is {} old by this machine's clock", late,
                        ShowDuration(Millis(oldest))),
            "either clocks differ (set both by NTP) or the node daemon hangs: see its log"};
  return {Level::kOk, "clocks", fmt::format("the oldest heartbeat is {} old", ShowDuration(Millis(oldest))),
          ""};
}

Findings CheckSystem(const DoctorScope& scope) {
  const Result<Endpoint> endpoint = FindEndpoint(scope.asked_dir);
  if (!endpoint.ok()) return {NoAnswer(scope, endpoint.status())};
  const auto client = SystemClient::TryConnect(*endpoint, kCallTimeout);
  if (!client.ok()) return {NoAnswer(scope, client.status())};
  const Result<SystemInfo> system = (*client)->GetStatus();
  if (!system.ok()) return {NoAnswer(scope, system.status())};
  Findings out = {CheckController(scope, *system)};
  const Result<std::vector<NodeInfo>> nodes = (*client)->ListNodes("", {});
  if (!nodes.ok()) {
    out.push_back({Level::kFail, "nodes", nodes.status().message(), "see 'msactl cluster logs controller'"});
    return out;
  }
  out.push_back(CheckNodes(scope, *nodes, system->version));
  out.push_back(CheckClocks(*nodes, ToUnixMillis(Now())));
  return out;
}

Findings CheckLeftovers(const DoctorScope& scope) {
  const std::vector<OwnProcess> processes = OwnProcesses();
  Findings out;
  if (!scope.machine) out.push_back(CheckRunDirectories(scope));
  out.push_back(CheckStrayDaemons(processes));
  out.push_back(CheckSharedMemoryLeft(processes));
  return out;
}

}  // namespace msa::cli
