#include "msa/adapters/process/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "msa/base/unique_fd.h"

namespace msa {
namespace {

Status CheckOwnDirectory(const std::string& path, uid_t owner) {
  struct stat st {};
  if (::lstat(path.c_str(), &st) != 0) return ErrnoError(errno, "look at directory '" + path + "'");
  if (!S_ISDIR(st.st_mode))
    return Error(Code::kAlreadyExists, "'{}' is there and is not a directory; remove it", path);
  if (st.st_uid != owner && st.st_uid != ::geteuid())
    return Error(Code::kPermissionDenied, "directory '{}' belongs to uid {}, not to uid {}; choose another",
                 path, st.st_uid, owner);
  return Status::Ok();
}

Status WriteAll(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, "write '" + path + "'");
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return Status::Ok();
}

// Appends up to `limit` bytes from the descriptor's position; false on an error, which errno names.
bool ReadUpTo(int fd, std::size_t limit, std::string& out) {
  std::array<char, 64 * 1024> buffer;
  while (out.size() < limit) {
    const ssize_t n = ::read(fd, buffer.data(), std::min(buffer.size(), limit - out.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    if (n == 0) return true;
    out.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return true;
}

Status MakeParents(const std::string& path, mode_t mode) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string parent = path.substr(0, slash);
    if (::mkdir(parent.c_str(), mode) != 0 && errno != EEXIST && ::access(parent.c_str(), F_OK) != 0)
      return ErrnoError(errno, "create directory '" + parent + "'");
  }
  return Status::Ok();
}

}  // namespace

Status MakeDirectory(const std::string& path, mode_t mode, std::optional<UserIdentity> owner) {
  if (path.empty()) return Status(Code::kInvalidArgument, "directory path is empty");
  const bool is_new = ::mkdir(path.c_str(), mode) == 0;
  if (!is_new && errno != EEXIST) MSA_RETURN_IF_ERROR(MakeParents(path, mode));
  if (!is_new && ::mkdir(path.c_str(), mode) != 0) {
    if (errno != EEXIST) return ErrnoError(errno, "create directory '" + path + "'");
    MSA_RETURN_IF_ERROR(CheckOwnDirectory(path, owner ? owner->uid : ::geteuid()));
  }
  if (::chmod(path.c_str(), mode) != 0) return ErrnoError(errno, "set mode of directory '" + path + "'");
  if (owner && owner->uid != ::geteuid() && ::lchown(path.c_str(), owner->uid, owner->gid) != 0)
    return ErrnoError(errno, fmt::format("hand directory '{}' to uid {}", path, owner->uid));
  return Status::Ok();
}

Status TakeDirectory(const std::string& path, mode_t fresh) {
  struct stat st {};
  if (::lstat(path.c_str(), &st) != 0) return MakeDirectory(path, fresh);
  MSA_RETURN_IF_ERROR(CheckOwnDirectory(path, ::geteuid()));
  // Users of root's daemons reach their sockets in it.
  const mode_t wrong = ::geteuid() == 0 ? 022 : 077;
  if ((st.st_mode & wrong) == 0) return Status::Ok();
  return Error(Code::kInvalidArgument,
               "directory '{}' has mode {:04o}: others could {} it; run 'chmod {:o} {}' or choose another",
               path, st.st_mode & 07777, (st.st_mode & 022) != 0 ? "write in" : "reach",
               st.st_mode & 0777 & ~wrong, path);
}

Status RemoveTree(const std::string& path) {
  // What somebody else removes meanwhile is no failure; whoever adds as fast as this removes is one.
  constexpr int kRounds = 100;
  std::error_code error;
  for (int round = 0; round < kRounds; ++round) {
    std::filesystem::remove_all(path, error);
    if (!error) return Status::Ok();
    if (error != std::errc::no_such_file_or_directory && error != std::errc::directory_not_empty) break;
  }
  return ErrnoError(error.value(), "remove '" + path + "'");
}

Result<std::vector<std::string>> ListDirectory(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), &::closedir);
  if (!directory) return ErrnoError(errno, "list directory '" + path + "'");
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::string> ReadFile(const std::string& path, std::size_t limit) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return ErrnoError(errno, "open '" + path + "'");
  std::string text;
  if (!ReadUpTo(fd.get(), limit + 1, text)) return ErrnoError(errno, "read '" + path + "'");
  if (text.size() > limit) {
    struct stat st {};
    ::fstat(fd.get(), &st);
    return Error(Code::kResourceExhausted, "'{}' has {} bytes, the limit is {}", path,
                 std::max<std::uint64_t>(static_cast<std::uint64_t>(st.st_size), text.size()), limit);
  }
  return text;
}

std::string ReadTail(const std::string& path, std::size_t limit) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return {};
  const off_t size = ::lseek(fd.get(), 0, SEEK_END);
  const off_t from = std::max<off_t>(size - static_cast<off_t>(limit), 0);
  ::lseek(fd.get(), from, SEEK_SET);
  std::string text;
  ReadUpTo(fd.get(), limit, text);
  if (from > 0)
    if (const auto newline = text.find('\n'); newline != std::string::npos && newline + 1 < text.size())
      text.erase(0, newline + 1);
  return text;
}

Status WriteFileAtomically(const std::string& path, std::string_view text, mode_t mode) {
  std::string temporary = path + ".XXXXXX";  // the X are mkostemp's: a name of its own
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) return ErrnoError(errno, "create a file beside '" + path + "'");
  Status status = WriteAll(fd.get(), text, temporary);
  if (status.ok() && ::fchmod(fd.get(), mode) != 0)
    status = ErrnoError(errno, "set mode of '" + temporary + "'");
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0)
    status = ErrnoError(errno, "replace '" + path + "'");
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

}  // namespace msa
