#include "helper_link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <charconv>
#include <string_view>

#include <fmt/format.h>

namespace msa::companion {

Result<HelperLink> HelperLink::Take(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISSOCK(status.st_mode))
    return Error(Code::kInvalidArgument,
                 "descriptor {} is no socket: msa's daemons start this program, see --help", fd);
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return HelperLink(UniqueFd(fd));
}

Status HelperLink::SendBytes(const std::string& bytes) {
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const ssize_t n = ::send(fd_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, "send to the daemon");
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  return Status::Ok();
}

bool HelperLink::Read() {
  char buffer[16384];
  for (;;) {
    const ssize_t n = ::recv(fd_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (n > 0) {
      reader_.Append({buffer, static_cast<std::size_t>(n)});
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
}

std::optional<wire::Frame> HelperLink::Next() {
  if (broken_) return std::nullopt;
  auto frame = reader_.Next();
  if (!frame.ok()) {
    broken_ = true;
    fmt::print(stderr, "{}\n", frame.status().message());
    return std::nullopt;
  }
  return std::move(*frame);
}

namespace {

bool TakeNumber(std::string_view text, int least, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= least;
}

}  // namespace

HelperStart ParseHelperOptions(int argc, char** argv, const char* help, bool polls) {
  HelperStart start;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "-h" || word == "--help") {
      fmt::print("{}", help);
      start.exit_code = 0;
      return start;
    }
    if (word == "--version") {
      fmt::print("{} {}\n", ::basename(argv[0]), MSA_VERSION);
      start.exit_code = 0;
      return start;
    }
    const bool fd = word == "--fd";
    int& number = fd ? start.options.fd : start.options.poll_ms;
    if ((!fd && (!polls || word != "--poll-ms")) || i + 1 == argc ||
        !TakeNumber(argv[++i], fd ? 0 : 1, number)) {
      fmt::print(stderr, "{}: '{}' is no option of it, or lacks its number; see --help\n",
                 ::basename(argv[0]), word);
      start.exit_code = 2;
      return start;
    }
  }
  return start;
}

}  // namespace msa::companion
