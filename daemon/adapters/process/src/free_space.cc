#include "msa/adapters/process/free_space.h"

#include <errno.h>
#include <sys/statvfs.h>

namespace msa {

Result<Bytes> FreeSpace(const std::string& path) {
  struct statvfs disk {};
  if (::statvfs(path.c_str(), &disk) != 0) return ErrnoError(errno, "look at '" + path + "'");
  return Bytes(std::uint64_t{disk.f_bavail} * disk.f_frsize);
}

}  // namespace msa
