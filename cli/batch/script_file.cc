#include "batch/script_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "msa/base/unique_fd.h"
#include "msa/job/job_spec.h"

namespace msa::cli {

Result<std::string> ReadScriptFile(const std::string& path) {
  const bool typed = path == "-";
  const std::string what = typed ? "the script from standard input" : fmt::format("the script '{}'", path);
  const UniqueFd fd(typed ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                          : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return ErrnoError(errno, "open " + what);
  std::string out;
  std::array<char, 64 * 1024> buffer;
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, "read " + what);
    if (n == 0) return out;
    out.append(buffer.data(), static_cast<std::size_t>(n));
    if (out.size() > kMaxScriptBytes)
      return Error(Code::kInvalidArgument, "{} has more than {} bytes, the limit; keep data in other files",
                   what, kMaxScriptBytes);
  }
}

}  // namespace msa::cli
