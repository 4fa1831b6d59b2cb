#include "msa/launch/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include <fmt/format.h>

namespace msa::launch {

Result<UniqueFd> OpenOutputFile(const std::string& path, OpenMode mode) {
  const int flags =
      O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | (mode == OpenMode::kAppend ? O_APPEND : O_TRUNC);
  UniqueFd fd(::open(path.c_str(), flags, 0666));
  if (fd) return fd;
  switch (const int error = errno) {
    case ENOENT:
      return Error(Code::kNotFound,
                   "output file '{}' cannot be created: its directory does not exist; create it first", path);
    case ENOTDIR:
      return Error(Code::kNotFound,
                   "output file '{}' cannot be created: a part of its path is not a directory; correct it",
                   path);
    case EISDIR:
      return Error(Code::kInvalidArgument, "output file '{}' is a directory; name a file inside it", path);
    case ENAMETOOLONG:
      return Error(Code::kInvalidArgument,
                   "output file name of {} bytes is longer than the file system takes; shorten it",
                   path.size());
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrnoError(
          error == EROFS ? EACCES : error,
          fmt::format("output file '{}' may not be written; choose a place where you may write", path));
    case ENOSPC:
    case EDQUOT:
      return ErrnoError(
          error,
          fmt::format("output file '{}' cannot be created; free space there or choose another place", path));
    case EMFILE:
    case ENFILE:
      return ErrnoError(
          error, fmt::format("output file '{}' cannot be opened; raise 'ulimit -n' or write fewer files "
                             "(leave %t out of the pattern)",
                             path));
    default:
      return ErrnoError(error, fmt::format("open output file '{}'", path));
  }
}

}  // namespace msa::launch
