#pragma once

#include <string>

#include "msa/base/status.h"
#include "msa/base/unique_fd.h"

namespace msa {

// One process at a time holds a lock file; the kernel frees it when the holder ends, however it ends. The
// file holds the holder's pid and a newline and stays when the lock is freed: removing it would let two
// holders in.
class LockFile {
 public:
  // Waits up to 1 s for what a dead holder left. kAlreadyExists: "<what> is running already with pid 1234
  // (lock file '<path>')"; kNotFound, kPermissionDenied: the directory; kResourceExhausted: disk full.
  static Result<LockFile> Acquire(const std::string& path, const std::string& what);

 private:
  explicit LockFile(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

// pid of the process that holds the lock at `path`, 0 if nobody does or there is no such file.
pid_t LockHolder(const std::string& path);

}  // namespace msa
