#include "commands/print.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace msa::cli {
namespace {

int WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      pollfd entry{fd, POLLOUT, 0};
      ::poll(&entry, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

Status Print(std::string_view text) {
  const int error = WriteAll(STDOUT_FILENO, text);
  return error == 0 ? Status::Ok() : ErrnoError(error, "write to standard output");
}

void PrintError(const Status& status) {
  const std::string& text = status.message();
  constexpr std::string_view kOwn = "msactl ";  // "msactl region rm needs a region"
  PrintNote(text.starts_with(kOwn) ? std::string_view(text).substr(kOwn.size()) : std::string_view(text));
}

void PrintNote(std::string_view text) {
  const std::string line = "msactl: " + std::string(text) + "\n";
  // Nobody is left to be told of a failure here.
  (void)WriteAll(STDERR_FILENO, line);
}

}  // namespace msa::cli
