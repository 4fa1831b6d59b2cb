#include "exit_record.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "msa/base/unique_fd.h"

#include "output_file.h"

namespace msa::jobd {

Status SaveExitRecord(const std::string& path, const std::string& payload) {
  const std::string temporary = path + ".new";
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd) return ErrnoError(errno, "create exit record '" + temporary + "'");
  MSA_RETURN_IF_ERROR(WriteAll(fd.get(), temporary, payload));
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    return ErrnoError(errno, "rename exit record to '" + path + "'");
  // The page cache survives the death of this process; the disk's copy, which takes milliseconds, is for the
  // machine's.
  std::thread([fd = fd.release()] {
    ::fsync(fd);
    ::close(fd);
  }).detach();
  return Status::Ok();
}

}  // namespace msa::jobd
