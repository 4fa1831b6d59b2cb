#include "exit_record.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "output_file.h"

namespace msa::jobd {

Result<UniqueFd> SaveExitRecord(const std::string& path, const std::string& payload) {
  const std::string temporary = path + ".new";
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd) return ErrnoError(errno, "create exit record '" + temporary + "'");
  MSA_RETURN_IF_ERROR(WriteAll(fd.get(), temporary, payload));
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    return ErrnoError(errno, "rename exit record to '" + path + "'");
  return fd;
}

void SyncInBackground(UniqueFd fd) {
  std::thread([fd = fd.release()] {
    ::fsync(fd);
    ::close(fd);
  }).detach();
}

}  // namespace msa::jobd
