#include "commands/follow.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "msa/adapters/process/files.h"
#include "msa/base/unique_fd.h"

#include "commands/print.h"

namespace msa::cli {
namespace {
constexpr int kPauseMillis = 200;
// A log's tail is looked for in its last part only: 4,096 lines of 256 bytes.
constexpr std::size_t kTailBytes = std::size_t{1} << 20;
}  // namespace

FileFollower::FileFollower(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) files_.push_back({path, 0});
}

void FileFollower::SkipToLast(std::size_t lines) {
  for (File& file : files_) {
    struct stat info {};
    if (::stat(file.path.c_str(), &info) != 0) continue;
    const std::string tail = ReadTail(file.path, kTailBytes);
    std::size_t at = tail.size();
    for (std::size_t have = 0; at > 0; --at) {
      // The newline at the very end ends the last line.
      if (tail[at - 1] == '\n' && at < tail.size() && ++have >= lines) break;
    }
    if (lines == 0) at = tail.size();
    const auto size = static_cast<std::uint64_t>(info.st_size);
    file.offset = size - std::min<std::uint64_t>(size, tail.size() - at);
  }
}

Status FileFollower::PrintNewOf(std::size_t index) {
  File& file = files_[index];
  UniqueFd fd(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd && errno == ENOENT) return Status::Ok();
  if (!fd) return ErrnoError(errno, "open '" + file.path + "'");
  any_found_ = true;
  struct stat info {};
  if (::fstat(fd.get(), &info) == 0 && static_cast<std::uint64_t>(info.st_size) < file.offset)
    file.offset = 0;  // truncated
  std::array<char, 64 * 1024> buffer;
  for (;;) {
    const ssize_t n = ::pread(fd.get(), buffer.data(), buffer.size(), static_cast<off_t>(file.offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, "read '" + file.path + "'");
    if (n == 0) return Status::Ok();
    if (files_.size() > 1 && last_printed_ != index) {
      MSA_RETURN_IF_ERROR(Print((last_printed_ == SIZE_MAX ? "==> " : "\n==> ") + file.path + " <==\n"));
      last_printed_ = index;
    }
    MSA_RETURN_IF_ERROR(Print(std::string_view(buffer.data(), static_cast<std::size_t>(n))));
    file.offset += static_cast<std::uint64_t>(n);
  }
}

Status FileFollower::PrintNew() {
  for (std::size_t i = 0; i < files_.size(); ++i) MSA_RETURN_IF_ERROR(PrintNewOf(i));
  return Status::Ok();
}

void PauseToFollow() { ::poll(nullptr, 0, kPauseMillis); }

}  // namespace msa::cli
