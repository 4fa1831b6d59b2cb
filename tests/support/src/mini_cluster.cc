#include "msa/support/mini_cluster.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "msa/support/entries_below.h"
#include "msa/support/eventually.h"

namespace msa::support {
namespace {

namespace fs = std::filesystem;

// Contents of a file in /proc with zeros between the entries; empty if the process is gone or another user's.
std::string ReadProc(pid_t pid, const char* name) { return ReadFile(fmt::format("/proc/{}/{}", pid, name)); }

// One of the zero-separated `entries` names `dir` or a path below it ("--dir=/x", "MSA_JOB_SOCKET=/x/n/..").
bool Names(const std::string& entries, const std::string& dir) {
  for (std::size_t at = entries.find(dir); at != std::string::npos; at = entries.find(dir, at + 1)) {
    const std::size_t end = at + dir.size();
    if (end == entries.size() || entries[end] == '/' || entries[end] == '\0') return true;
  }
  return false;
}

std::vector<pid_t> AllPids() {
  std::vector<pid_t> pids;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; }))
      pids.push_back(std::atoi(name.c_str()));
  }
  return pids;
}

bool IsZombie(pid_t pid) {
  const std::string stat = ReadProc(pid, "stat");
  const auto paren = stat.rfind(')');
  return paren == std::string::npos || paren + 2 >= stat.size() || stat[paren + 2] == 'Z';
}

bool IsProgram(const ProcessEntry& process, const std::string& program) {
  const std::string first = process.command.substr(0, process.command.find(' '));
  return fs::path(first).filename() == program;
}

// The daemons, msactl and the libraries that they look for beside themselves.
void CopyBinaries(const std::string& to) {
  fs::create_directories(to + "/bin");
  fs::create_directories(to + "/lib");
  for (const char* name : {"msactl", "msa-controllerd", "msa-noded", "msa-jobd", "msa-exec", "msa-namd"})
    fs::copy(BinaryPath(name), to + "/bin/" + name);
  const fs::path libraries = fs::path(BinaryPath("msactl")).parent_path().parent_path() / "lib";
  for (const auto& entry : fs::directory_iterator(libraries))
    if (entry.path().filename().string().find(".so") != std::string::npos)
      fs::copy(entry.path(), to + "/lib", fs::copy_options::copy_symlinks);
}

}  // namespace

std::string BinaryPath(const std::string& name) {
  const char* other = std::getenv("MSA_TEST_BIN_DIR");
  return fmt::format("{}/{}", other != nullptr ? other : MSA_BINARY_DIR, name);
}
std::string ProgramPath(const std::string& name) { return std::string(MSA_PROGRAM_DIR) + "/" + name; }

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

MiniCluster::MiniCluster(MiniClusterOptions options)
    : options_(std::move(options)), dir_(scratch_.path() + "/d") {
  if (options_.uid != 0 && ::chown(scratch_.path().c_str(), options_.uid, options_.uid) != 0)
    ADD_FAILURE() << "chown " << scratch_.path() << " failed with errno " << errno;
  if (!options_.all_users) return;
  ::chmod(scratch_.path().c_str(), 0755);
  fs::create_directory(dir_);
  ::chmod(dir_.c_str(), 0755);
  CopyBinaries(scratch_.path() + "/opt");
  options_.bin = scratch_.path() + "/opt/bin";
}

Result<std::unique_ptr<MiniCluster>> MiniCluster::Start(MiniClusterOptions options) {
  std::unique_ptr<MiniCluster> cluster(new MiniCluster(std::move(options)));
  std::vector<std::string> arguments = {"cluster", "up", "--timeout", "120"};
  if (!cluster->options_.topology.empty()) {
    arguments.push_back("--topology");
    arguments.push_back(cluster->scratch_.Write("topology.toml", cluster->options_.topology));
  }
  arguments.insert(arguments.end(), cluster->options_.up.begin(), cluster->options_.up.end());
  Command command = cluster->Msactl(arguments);
  command.env.insert(cluster->options_.env.begin(), cluster->options_.env.end());
  command.limits = cluster->options_.up_limits;
  command.timeout = Millis(150'000);
  const Outcome outcome = RunCommand(std::move(command));
  if (outcome.code != 0) return Error(Code::kInternal, "msactl cluster up: {}", outcome.Text());
  for (const ProcessEntry& process : cluster->Processes()) {
    const auto at = process.command.find("/dev/shm/msa-");
    if (at == std::string::npos) continue;
    const auto slash = process.command.find('/', at + std::string("/dev/shm/").size());
    cluster->shm_ = process.command.substr(at, slash - at);
    break;
  }
  return cluster;
}

MiniCluster::~MiniCluster() {
  Down();
  for (const ProcessEntry& process : Processes()) {
    ADD_FAILURE() << "left over after cluster down: " << process.pid << " " << process.command;
    ::kill(process.pid, SIGKILL);
  }
  if (testing::Test::HasFailure()) {
    for (const char* log : {"supervisor", "controller"})
      fmt::print(stderr, "--- end of {}.log\n{}\n", log, [&] {
        const std::string text = ReadFile(fmt::format("{}/log/{}.log", dir_, log));
        return text.substr(text.size() > 4000 ? text.size() - 4000 : 0);
      }());
  }
}

Command MiniCluster::Msactl(std::vector<std::string> arguments) const {
  Command command;
  command.argv = {options_.bin.empty() ? BinaryPath("msactl") : options_.bin + "/msactl"};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.env = {{"MSA_DIR", dir_}};
  command.cwd = scratch_.path();
  command.uid = options_.uid;
  if (options_.without_home)
    command.unset = {"HOME"};
  else if (options_.uid != 0)
    command.env["HOME"] = scratch_.path();
  return command;
}

Command MiniCluster::MsactlAs(uid_t uid, std::vector<std::string> arguments) const {
  Command command = Msactl(std::move(arguments));
  const std::string home = fmt::format("{}/{}", scratch_.path(), uid);
  if (::mkdir(home.c_str(), 0700) == 0 && ::chown(home.c_str(), uid, uid) != 0)
    ADD_FAILURE() << "chown " << home << " failed with errno " << errno;
  command.uid = uid;
  command.cwd = home;
  command.env["HOME"] = home;
  command.unset = {"XDG_RUNTIME_DIR", "XDG_STATE_HOME"};
  return command;
}

std::string MiniCluster::ProgramForAll(const std::string& name) const {
  const std::string path = scratch_.path() + "/opt/" + name;
  if (!fs::exists(path)) fs::copy(ProgramPath(name), path);
  return path;
}

Outcome MiniCluster::Run(std::vector<std::string> arguments, Millis timeout) const {
  Command command = Msactl(std::move(arguments));
  command.timeout = timeout;
  return RunCommand(std::move(command));
}

Json MiniCluster::Query(std::vector<std::string> arguments) const {
  arguments.insert(arguments.end(), {"-f", "json"});
  const Outcome outcome = Run(std::move(arguments));
  return outcome.code == 0 ? Json::Parse(outcome.out).value_or(Json()) : Json();
}

std::vector<ProcessEntry> MiniCluster::Processes() const {
  std::vector<ProcessEntry> result;
  for (const pid_t pid : AllPids()) {
    if (pid == ::getpid() || IsZombie(pid)) continue;
    std::string command = ReadProc(pid, "cmdline");
    if (!Names(command, dir_) && !Names(ReadProc(pid, "environ"), dir_)) continue;
    std::replace(command.begin(), command.end(), '\0', ' ');
    result.push_back({pid, command});
  }
  return result;
}

pid_t MiniCluster::Daemon(const std::string& name) const {
  if (name == "supervisor") return std::atoi(ReadFile(dir_ + "/supervisor.lock").c_str());
  for (const ProcessEntry& process : Processes()) {
    if (name == "controller" && IsProgram(process, "msa-controllerd")) return process.pid;
    for (const std::string kind : {"noded", "namd"})
      if (name.starts_with(kind + "-") && IsProgram(process, "msa-" + kind) &&
          process.command.find("--name " + name.substr(kind.size() + 1) + " ") != std::string::npos)
        return process.pid;
  }
  return 0;
}

Status MiniCluster::KillDaemon(const std::string& name) const {
  const pid_t before = Daemon(name);
  if (before == 0) return Error(Code::kNotFound, "daemon '{}' does not run", name);
  ::kill(before, SIGKILL);
  const bool back = Eventually(Millis(60'000), "another one", [&] {
    const pid_t now = Daemon(name);
    return now != 0 && now != before;
  });
  return back ? Status::Ok()
              : Error(Code::kDeadlineExceeded, "daemon '{}' did not come back within 60 s", name);
}

std::vector<pid_t> MiniCluster::JobDaemons(const std::string& node) const {
  std::vector<pid_t> result;
  for (const ProcessEntry& process : Processes())
    if (IsProgram(process, "msa-jobd") &&
        (node.empty() || process.command.find("--node " + node + " ") != std::string::npos))
      result.push_back(process.pid);
  return result;
}

Outcome MiniCluster::Down() const { return Run({"cluster", "down"}, Millis(60'000)); }

std::vector<std::string> MiniCluster::LeftoverFiles(bool down) const {
  std::vector<std::string> result;
  std::error_code error;
  for (const fs::directory_entry& entry : EntriesBelow(dir_)) {
    const std::string path = entry.path();
    if (down && entry.is_socket()) result.push_back("socket " + path);
    // A job's: its peer socket n/<node>/j<job>.<inc>; n/<node>/w<seq> is a pool daemon's, and there are none
    // when down.
    const std::string name = entry.path().filename();
    const fs::path parent = entry.path().parent_path();
    const bool below_node = parent.parent_path().filename() == "n";
    // In a system of all users: n/<node>/u<uid>/j<job>.<inc>.
    const bool below_user =
        parent.filename().string().starts_with('u') && parent.parent_path().parent_path().filename() == "n";
    if (below_user && name.starts_with('j')) result.push_back("peer socket " + path);
    if (below_node && (name.starts_with('j') && name != "jobd.sock")) result.push_back("peer socket " + path);
    if (below_node && down && name.starts_with('w')) result.push_back("run directory " + path);
  }
  if (!shm_.empty() && fs::exists(shm_, error)) {
    if (down) result.push_back("shared memory " + shm_);
    for (const auto& node : fs::directory_iterator(shm_, error))
      for (const auto& job : fs::directory_iterator(node.path(), error))
        result.push_back("shared memory " + job.path().string());
  }
  return result;
}

std::vector<std::string> MiniCluster::Leftovers() const {
  std::vector<std::string> result;
  const bool down = Daemon("controller") == 0;
  for (const ProcessEntry& process : Processes()) {
    const bool daemon =
        fs::path(process.command.substr(0, process.command.find(' '))).filename().string().starts_with("msa");
    if (down || !daemon) result.push_back(fmt::format("process {} {}", process.pid, process.command));
  }
  const auto files = LeftoverFiles(down);
  result.insert(result.end(), files.begin(), files.end());
  return result;
}

int MiniCluster::SlotsUsed() const {
  const Json nodes = Query({"node", "list"});
  int used = 0;
  for (const Json& node : nodes["items"].list()) used += static_cast<int>(node["cores_used"].number());
  return nodes.is_null() ? -1 : used;
}

}  // namespace msa::support
