#include "run/stdin_reader.h"

#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

namespace msa::cli {
namespace {
// How soon a job that was brought to the foreground gets its terminal's input.
constexpr Millis kForegroundCheck{300};
}  // namespace

bool CanBringInput(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return false;
  return !(S_ISCHR(info.st_mode) && info.st_rdev == ::makedev(1, 3));
}

StdinReader::StdinReader(EventLoop& loop, int fd, InputWindow& window, std::function<void()> on_input)
    : loop_(loop), fd_(fd), window_(window), on_input_(std::move(on_input)) {}

StdinReader::~StdinReader() {
  StopWatching();
  if (timer_) loop_.Cancel(*timer_);
}

void StdinReader::StopWatching() {
  if (watching_) loop_.Unwatch(fd_);
  watching_ = false;
}

void StdinReader::Resume() {
  if (watching_ || timer_ || window_.room() == 0) return;
  if (InBackground()) return LookAgainLater();
  watching_ = loop_.Watch(fd_, EPOLLIN, [this](std::uint32_t) { ReadOnce(); }).ok();
  if (watching_) return;
  // A regular file cannot be polled and never blocks for long.
  timer_ = loop_.After(Millis(0), [this] {
    timer_.reset();
    ReadOnce();
    Resume();
  });
}

bool StdinReader::InBackground() const {
  const pid_t foreground = ::tcgetpgrp(fd_);
  return foreground > 0 && foreground != ::getpgrp();
}

void StdinReader::LookAgainLater() {
  StopWatching();
  timer_ = loop_.After(kForegroundCheck, [this] {
    timer_.reset();
    Resume();
  });
}

void StdinReader::ReadOnce() {
  if (InBackground()) return LookAgainLater();
  std::array<char, wire::kStdioChunkBytes> buffer;
  const ssize_t n = ::read(fd_, buffer.data(), std::min(buffer.size(), window_.room()));
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (n < 0 && errno == EIO && ::isatty(fd_)) return LookAgainLater();  // sent to the background just now
  if (n > 0) {
    window_.Append(std::string_view(buffer.data(), static_cast<std::size_t>(n)));
  } else {
    window_.MarkEof();
  }
  if (window_.room() == 0) StopWatching();
  on_input_();
}

}  // namespace msa::cli
