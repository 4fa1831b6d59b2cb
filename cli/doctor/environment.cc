#include <arpa/inet.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <thread>

#include "msa/adapters/config/topology_file.h"
#include "msa/adapters/process/files.h"
#include "msa/adapters/process/unix_socket.h"

#include "doctor/checks.h"
#include "local/bring_up.h"
#include "local/local_paths.h"
#include "output/text.h"

namespace msa::cli {
namespace {

using Level = Finding::Level;

// A store, logs and the streams of jobs in files.
constexpr std::uint64_t kScarceBytes = std::uint64_t{256} << 20;
// A full disk refuses jobs.
constexpr std::uint64_t kFullBytes = std::uint64_t{16} << 20;

std::string NearestParent(std::string path) {
  struct stat info {};
  while (path.size() > 1 && ::stat(path.c_str(), &info) != 0)
    path = std::filesystem::path(path).parent_path();
  return path;
}

std::string Limit(rlim_t value) { return value == RLIM_INFINITY ? "unlimited" : fmt::format("{}", value); }

rlim_t SoftLimit(int resource) {
  rlimit limit{};
  return ::getrlimit(static_cast<__rlimit_resource>(resource), &limit) == 0 ? limit.rlim_cur : 0;
}

// RLIM_INFINITY is the largest value there is.
Level Judge(rlim_t value, rlim_t few, rlim_t enough) {
  return value < few ? Level::kFail : value < enough ? Level::kWarn : Level::kOk;
}

Finding CheckFiles() {
  // A job daemon holds three pipes, a pidfd and a PMIx connection a task, the controller a connection a node.
  const rlim_t files = SoftLimit(RLIMIT_NOFILE);
  const Level level = Judge(files, 256, 1024);
  return {level, "nofile", fmt::format("{} open files a process", Limit(files)),
          level == Level::kOk
              ? ""
              : "six files a task are needed; run 'ulimit -n 4096' before 'msactl cluster up'"};
}

Finding CheckProcesses() {
  const rlim_t processes = SoftLimit(RLIMIT_NPROC);
  // The kernel does not bind root by it.
  const Level level = ::geteuid() == 0 ? Level::kOk : Judge(processes, 256, 1024);
  return {level, "nproc", fmt::format("{} processes and threads of this user", Limit(processes)),
          level == Level::kOk ? ""
                              : "an MPI task has three threads, a daemon up to eight; run 'ulimit -u 4096' "
                                "before 'msactl cluster up', "
                                "or raise nproc in /etc/security/limits.conf"};
}

Finding CheckLockedMemory(const std::string& fabrics) {
  constexpr rlim_t kEnough = rlim_t{64} << 20;
  const rlim_t bytes = SoftLimit(RLIMIT_MEMLOCK);
  const std::string amount = bytes == RLIM_INFINITY ? "unlimited" : ShowBytes(bytes);
  const Result<std::vector<std::string>> devices = ListDirectory(fabrics);
  if (!devices.ok() || devices->empty())
    return {Level::kOk, "memlock", fmt::format("{}; there is no RDMA fabric that needs more", amount), ""};
  const bool few = bytes < kEnough;
  return {few ? Level::kWarn : Level::kOk, "memlock",
          fmt::format("{} for fabric {}", amount, devices->front()),
          few ? "RDMA registers its buffers as locked memory; run 'ulimit -l unlimited' before 'msactl "
                "cluster up', or "
                "raise memlock in /etc/security/limits.conf"
              : ""};
}

// Empty: it resolves.
std::string ResolveProblem(const std::string& name) {
  // A name server may not answer for long: in a thread that is left behind if need be.
  auto promise = std::make_shared<std::promise<int>>();
  std::future<int> answer = promise->get_future();
  std::thread([promise, name] {
    addrinfo* list = nullptr;
    const int error = ::getaddrinfo(name.c_str(), nullptr, nullptr, &list);
    if (list != nullptr) ::freeaddrinfo(list);
    promise->set_value(error);
  }).detach();
  if (answer.wait_for(std::chrono::seconds(2)) != std::future_status::ready) return "no answer after 2 s";
  const int error = answer.get();
  return error == 0 ? "" : ::gai_strerror(error);
}

}  // namespace

Finding CheckRoom(const std::string& check, const std::string& path, const std::string& use) {
  struct statvfs info {};
  const std::string where = NearestParent(path);
  if (::statvfs(where.c_str(), &info) != 0)
    return {Level::kFail, check, fmt::format("cannot look at '{}': {}", where, ::strerror(errno)),
            "choose another directory with --dir or MSA_DIR"};
  const std::uint64_t free = static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
  // File systems without a table of inodes count none at all.
  const bool no_inodes = info.f_files > 0 && info.f_favail < 64;
  const Level level = free < kFullBytes || no_inodes ? Level::kFail
                      : free < kScarceBytes          ? Level::kWarn
                                                     : Level::kOk;
  return {
      level, check,
      fmt::format("{} free in '{}'{}", ShowBytes(free), where, no_inodes ? ", but no inodes for files" : ""),
      level == Level::kOk ? "" : fmt::format("{}; make room or enlarge the file system", use)};
}

Finding CheckDirectory(const DoctorScope& scope) {
  const std::string& dir = scope.dir;
  const std::string other = "choose a directory of your own with --dir or MSA_DIR";
  struct stat info {};
  if (::lstat(dir.c_str(), &info) != 0) {
    const std::string parent = NearestParent(dir);
    if (::access(parent.c_str(), W_OK | X_OK) == 0)
      return {Level::kOk, "directory",
              fmt::format("'{}' is not there yet; 'msactl cluster up' makes it", dir), ""};
    return {Level::kFail, "directory",
            fmt::format("'{}' cannot be made: no right to write in '{}'", dir, parent), other};
  }
  if (!S_ISDIR(info.st_mode))
    return {Level::kFail, "directory", fmt::format("'{}' is no directory", dir), other};
  if (info.st_uid != ::geteuid())
    return {Level::kFail, "directory",
            fmt::format("'{}' belongs to user {}, you are {}", dir, info.st_uid, ::geteuid()), other};
  const bool is_root = ::geteuid() == 0;  // its system may be one for all users
  if ((info.st_mode & (is_root ? 022 : 077)) != 0)
    return {Level::kFail, "directory",
            fmt::format("'{}' has mode {:04o}: others could {}", dir, info.st_mode & 07777,
                        is_root ? "write in it" : "reach your jobs"),
            fmt::format("run 'chmod {} {}'", is_root ? "755" : "700", dir)};
  if ((info.st_mode & 0700) != 0700)
    return {Level::kFail, "directory",
            fmt::format("'{}' has mode {:04o}: you cannot write in it", dir, info.st_mode & 07777),
            fmt::format("run 'chmod 700 {}'", dir)};
  if ((info.st_mode & 055) != 0)
    return {Level::kOk, "directory",
            fmt::format("'{}' is yours, and every user reaches the system in it (mode {:04o})", dir,
                        info.st_mode & 07777),
            ""};
  return {Level::kOk, "directory", fmt::format("'{}' is yours alone (mode 0700)", dir), ""};
}

Finding CheckSharedMemory(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
    return {Level::kFail, "shm", fmt::format("there is no '{}'", path),
            fmt::format("MPI keeps its shared memory there; as root: mount -t tmpfs -o mode=1777 tmpfs {}",
                        path)};
  if (::access(path.c_str(), W_OK | X_OK) != 0)
    return {Level::kFail, "shm",
            fmt::format("no right to write in '{}' (mode {:04o})", path, info.st_mode & 07777),
            fmt::format("as root: chmod 1777 {}", path)};
  return CheckRoom("shm", path, "Open MPI takes 4 MiB a rank there (in a container: --shm-size)");
}

Finding CheckSockets(const DoctorScope& scope) {
  const LocalPaths paths(scope.dir);
  struct stat info {};
  const bool in_use = ::stat(paths.topology().c_str(), &info) == 0;
  const Result<SystemTopology> topology =
      in_use ? LoadTopologyFile(paths.topology()) : ParseTopology(DefaultTopologyText(), "default");
  if (!topology.ok())
    return {Level::kFail, "sockets", topology.status().message(),
            fmt::format("run 'msactl cluster up{} --topology FILE' with one that is right", scope.flag)};
  if (const Status status = CheckSocketPaths(paths, *topology); !status.ok())
    return {Level::kFail, "sockets", status.message(),
            "choose a shorter directory with --dir or MSA_DIR, as /tmp/msa"};
  return {Level::kOk, "sockets",
          fmt::format("the paths of the sockets of {} fit into {} bytes",
                      Count(topology->nodes.size(), "node"), kMaxSocketPath),
          ""};
}

Findings CheckLimits(const std::string& fabrics) {
  const rlim_t core = SoftLimit(RLIMIT_CORE);
  const Finding dumps{
      Level::kOk, "core",
      core == 0 ? "0: a task that crashes leaves no core file ('ulimit -c unlimited' before 'msactl run' "
                  "lets it)"
                : Limit(core) + (core == RLIM_INFINITY ? "" : " bytes"),
      ""};
  return {CheckFiles(), CheckProcesses(), CheckLockedMemory(fabrics), dumps};
}

Finding CheckLoopback() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0)
    return {Level::kFail, "loopback", fmt::format("cannot list network interfaces: {}", ::strerror(errno)),
            "see 'ip address'"};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, &::freeifaddrs);
  for (const ifaddrs* item = list; item != nullptr; item = item->ifa_next) {
    if ((item->ifa_flags & IFF_LOOPBACK) == 0 || (item->ifa_flags & IFF_UP) == 0 || item->ifa_addr == nullptr)
      continue;
    if (item->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN] = {};
    const auto* address = reinterpret_cast<const sockaddr_in*>(item->ifa_addr);
    ::inet_ntop(AF_INET, &address->sin_addr, text, sizeof text);
    return {Level::kOk, "loopback", fmt::format("{} is up with {}", item->ifa_name, text), ""};
  }
  return {Level::kFail, "loopback", "no loopback interface is up with an IPv4 address",
          "MPI tasks of one machine connect over it; as root: ip link set lo up"};
}

Finding CheckHostname() {
  char text[HOST_NAME_MAX + 1] = {};
  if (::gethostname(text, sizeof text - 1) != 0) text[0] = '\0';
  const std::string name = text;
  const std::string set = "as root: hostname NAME, and write it into /etc/hostname";
  if (name.empty() || name == "(none)") return {Level::kFail, "hostname", "this machine has no name", set};
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
  if (!plain || name.front() == '-' || name.front() == '.')
    return {Level::kWarn, "hostname",
            fmt::format("'{}' is no valid name: letters, digits, '-' and '.' are (RFC 1123)", name), set};
  const std::string problem = ResolveProblem(name);
  if (!problem.empty())
    return {Level::kWarn, "hostname", fmt::format("'{}' has no address: {}", name, problem),
            fmt::format("some MPI programs look it up; add '127.0.1.1 {}' to /etc/hosts", name)};
  return {Level::kOk, "hostname", fmt::format("'{}' has an address", name), ""};
}

}  // namespace msa::cli
