#include "said_on_stderr.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string_view>

namespace msa::companion {
namespace {

constexpr std::size_t kMost = 8192;  // of a plugin's text

std::string Contents(int fd) {
  std::string text(kMost, '\0');
  const ssize_t n = ::pread(fd, text.data(), text.size(), 0);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

}  // namespace

SaidOnStderr::SaidOnStderr()
    : real_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10)), caught_(::memfd_create("stderr", MFD_CLOEXEC)) {
  if (!real_ || !caught_ || ::dup2(caught_.get(), STDERR_FILENO) < 0) caught_.reset();
}

SaidOnStderr::~SaidOnStderr() {
  if (!caught_) return;
  ::dup2(real_.get(), STDERR_FILENO);
  const std::string text = Contents(caught_.get());
  if (!text.empty()) (void)!::write(STDERR_FILENO, text.data(), text.size());
}

std::string SaidOnStderr::Text() { return caught_ ? LibslurmText(Contents(caught_.get())) : ""; }

std::string LibslurmText(const std::string& output) {
  std::string text;
  std::string_view rest = output;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (const std::size_t at = line.find("error: "); at != line.npos) line.remove_prefix(at + 7);
    while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    if (!text.empty()) text += "; ";
    text += line;
  }
  return text;
}

}  // namespace msa::companion
