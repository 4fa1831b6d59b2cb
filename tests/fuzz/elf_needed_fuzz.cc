// Any file as a user's program: the reader of its libraries stays inside the file.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "elf_needed.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int fd = ::memfd_create("program", MFD_CLOEXEC);
  if (fd < 0 || ::write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  for (const std::string& name : msa::launch::ElfNeeded(path))
    if (name.size() > size) std::abort();
  if (msa::launch::ElfInterpreter(path).size() > size) std::abort();
  if (msa::launch::LinkedMpi(path).size() > size) std::abort();
  ::close(fd);
  return 0;
}
