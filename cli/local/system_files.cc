#include "local/system_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "msa/adapters/process/files.h"
#include "msa/adapters/process/lock_file.h"
#include "msa/base/unique_fd.h"
#include "msa/topology/suggest.h"

namespace msa::cli {
namespace {

// With the suffixes that SQLite gives.
constexpr std::array<std::string_view, 7> kStateFiles = {
    "state.db",      "state.db-wal",    "state.db-shm", "state.db-journal",
    "topology.toml", "controller.lock", "nam.key"};

constexpr std::size_t kMaxCommandLine = std::size_t{64} << 10;
// The store and its log, the sockets and directories of a few nodes, and the first lines of their logs.
constexpr std::uint64_t kLeastSpace = std::uint64_t{1} << 20;

bool IsState(std::string_view name) {
  return std::find(kStateFiles.begin(), kStateFiles.end(), name) != kStateFiles.end();
}

bool IsLog(std::string_view name) { return name.ends_with(".log") || name.ends_with(".log.1"); }

Status RemoveFile(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return ErrnoError(errno, "remove '" + path + "'");
  return Status::Ok();
}

// A directory that holds something stays.
Status RemoveIfEmpty(const std::string& path) {
  if (::rmdir(path.c_str()) == 0 || errno == ENOENT || errno == ENOTEMPTY || errno == EEXIST ||
      errno == ENOTDIR)
    return Status::Ok();
  return ErrnoError(errno, "remove directory '" + path + "'");
}

Status CheckMode(const LocalPaths& paths, const struct stat& info) {
  if (info.st_uid != ::geteuid())
    return Error(Code::kPermissionDenied,
                 "directory '{}' belongs to user {}; choose one of your own with --dir or MSA_DIR",
                 paths.dir(), info.st_uid);
  MSA_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(paths.dir()));
  if (!names.empty() && !HoldsSystem(paths))
    return Error(
        Code::kInvalidArgument,
        "directory '{}' holds files that are not msa's: {}; choose an empty or new one with --dir or "
        "MSA_DIR",
        paths.dir(), ListNames(names));
  // Root's system may be one for all users: they reach the sockets in it.
  const bool is_root = ::geteuid() == 0;
  if ((info.st_mode & (is_root ? 022 : 077)) == 0) return Status::Ok();
  return Error(Code::kInvalidArgument,
               "directory '{}' has mode {:03o}, others could {}; run 'chmod {} {}' or choose another with "
               "--dir or MSA_DIR",
               paths.dir(), info.st_mode & 0777, is_root ? "write in it" : "reach your jobs",
               is_root ? "755" : "700", paths.dir());
}

}  // namespace

pid_t RunningSupervisor(const LocalPaths& paths) {
  const pid_t holder = LockHolder(paths.supervisor_lock());
  if (holder == 0) return 0;
  const Result<std::string> line = ReadFile(fmt::format("/proc/{}/cmdline", holder), kMaxCommandLine);
  const std::string_view word("\0supervise\0", 11);
  return line.ok() && line->find(word) != std::string::npos ? holder : 0;
}

Status CheckSpace(const LocalPaths& paths) {
  std::string place = paths.dir();
  std::error_code error;
  std::uintmax_t free = std::filesystem::space(place, error).available;
  while (error) {
    if (error != std::errc::no_such_file_or_directory || place.size() <= 1)
      return Status::Ok();  // what is wrong there says who makes it
    place.erase(std::max<std::size_t>(place.rfind('/'), 1));
    free = std::filesystem::space(place, error).available;
  }
  if (free >= kLeastSpace) return Status::Ok();
  return Error(
      Code::kResourceExhausted,
      "the disk of '{}' is full: {} KiB are free, a system needs {} KiB at least; free space there or "
      "choose another directory with --dir or MSA_DIR",
      paths.dir(), free / 1024, kLeastSpace / 1024);
}

namespace {

std::string BackingOf(const std::string& backing, const NodeSpec& node) { return backing + "/" + node.name; }

// Held by a NAM daemon as long as it lives.
bool IsInUse(const std::string& directory) {
  const UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

// Of msa-namd: extents that are committed or not, and its facts.
bool IsNams(std::string_view name) {
  return name.ends_with(".extent") || name.ends_with(".pending") || name == "system" || name == "port" ||
         name == "system.new" || name == "port.new";
}

constexpr std::string_view kBackingKey = "key 'backing' of [nam] in the topology file";

}  // namespace

Status CheckBacking(const std::string& backing, const SystemTopology& topology) {
  struct stat info {};
  if (::stat(backing.c_str(), &info) != 0)
    return errno == ENOENT
               ? Error(Code::kNotFound, "{} is '{}', which is not there; make this directory first",
                       kBackingKey, backing)
               : ErrnoError(errno, "look at '" + backing + "'");
  if (!S_ISDIR(info.st_mode))
    return Error(Code::kInvalidArgument, "{} is '{}', which is no directory; name one", kBackingKey, backing);
  if (::access(backing.c_str(), W_OK | X_OK) != 0)
    return Error(Code::kPermissionDenied,
                 "{} is '{}', which uid {} cannot write ({}); name another directory", kBackingKey, backing,
                 ::geteuid(), std::strerror(errno));
  std::map<std::pair<dev_t, ino_t>, std::string> seen;
  for (const NodeSpec& node : topology.nodes) {
    const std::string path = BackingOf(backing, node);
    if (node.nam.value == 0 || ::stat(path.c_str(), &info) != 0) continue;
    if (const auto [other, fresh] = seen.emplace(std::pair(info.st_dev, info.st_ino), node.name); !fresh)
      return Error(Code::kAlreadyExists,
                   "nodes '{}' and '{}' have the same directory below '{}'; give each its own", other->second,
                   node.name, backing);
    if (info.st_uid != ::geteuid())
      return Error(Code::kPermissionDenied, "'{}' belongs to uid {}, not to {}; name another 'backing'", path,
                   info.st_uid, ::geteuid());
    if (IsInUse(path))
      return Error(Code::kAlreadyExists,
                   "'{}' is used by another system's NAM daemon; name another 'backing' in the topology file",
                   path);
  }
  return Status::Ok();
}

Status RemoveBacking(const std::string& backing, const SystemTopology& topology) {
  for (const NodeSpec& node : topology.nodes) {
    const std::string path = BackingOf(backing, node);
    const auto names = node.nam.value == 0 ? Result<std::vector<std::string>>(std::vector<std::string>())
                                           : ListDirectory(path);
    if (names.status().code() == Code::kNotFound) continue;
    MSA_RETURN_IF_ERROR(names.status());
    if (IsInUse(path)) continue;  // another system has it now
    for (const std::string& name : *names)
      if (IsNams(name)) MSA_RETURN_IF_ERROR(RemoveFile(path + "/" + name));
    if (node.nam.value > 0) MSA_RETURN_IF_ERROR(RemoveIfEmpty(path));
  }
  return Status::Ok();
}

bool HoldsSystem(const LocalPaths& paths) {
  struct stat info {};
  return ::lstat(paths.supervisor_lock().c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

Status ClaimDirectory(const LocalPaths& paths) {
  struct stat info {};
  if (::stat(paths.dir().c_str(), &info) == 0) {
    if (!S_ISDIR(info.st_mode))
      return Error(Code::kInvalidArgument, "'{}' is not a directory; choose another with --dir or MSA_DIR",
                   paths.dir());
    MSA_RETURN_IF_ERROR(CheckMode(paths, info));
  } else if (errno != ENOENT) {
    return ErrnoError(errno, "look at '" + paths.dir() + "'");
  } else {
    MSA_RETURN_IF_ERROR(MakeDirectory(paths.dir()));
  }
  // The mark of a system's directory, before anything else is made in it.
  const UniqueFd mark(
      ::open(paths.supervisor_lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!mark) return ErrnoError(errno, "make lock file '" + paths.supervisor_lock() + "'");
  return Status::Ok();
}

Status RemoveRunFiles(const LocalPaths& paths) {
  MSA_RETURN_IF_ERROR(RemoveTree(paths.nodes()));
  MSA_RETURN_IF_ERROR(RemoveFile(paths.controller_socket()));
  MSA_RETURN_IF_ERROR(RemoveFile(paths.daemon_table()));
  // Root may take down a user's system.
  struct stat info {};
  if (::lstat(paths.supervisor_lock().c_str(), &info) != 0) return Status::Ok();
  return RemoveTree(paths.shm(info.st_uid));
}

Result<std::vector<std::string>> RemoveState(const LocalPaths& paths) {
  if (const auto logs = ListDirectory(paths.log_directory()); logs.ok()) {
    for (const std::string& name : *logs)
      if (IsLog(name)) MSA_RETURN_IF_ERROR(RemoveFile(paths.log_directory() + "/" + name));
    MSA_RETURN_IF_ERROR(RemoveIfEmpty(paths.log_directory()));
  }
  MSA_RETURN_IF_ERROR(RemoveTree(paths.nam()));
  MSA_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(paths.dir()));
  for (const std::string& name : names)
    if (IsState(name)) MSA_RETURN_IF_ERROR(RemoveFile(paths.dir() + "/" + name));
  // The mark last: a removal that was interrupted can be repeated.
  MSA_RETURN_IF_ERROR(RemoveFile(paths.supervisor_lock()));
  MSA_RETURN_IF_ERROR(RemoveIfEmpty(paths.dir()));
  const auto left = ListDirectory(paths.dir());
  return left.ok() ? *left : std::vector<std::string>();
}

}  // namespace msa::cli
