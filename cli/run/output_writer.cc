#include "run/output_writer.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <climits>

namespace msa::cli {
namespace {

// A pipe that polls writable takes this much without blocking (pipe(7)).
constexpr std::size_t kSafeWrite = PIPE_BUF;

bool IsRegular(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

bool IsWritable(int fd) {
  pollfd entry{fd, POLLOUT, 0};
  return ::poll(&entry, 1, 0) == 1;  // errors count: the write tells which
}

}  // namespace

OutputWriter::OutputWriter(EventLoop& loop, int out, int err, Handlers handlers)
    : loop_(loop), out_(out), err_(err), handlers_(std::move(handlers)) {}

OutputWriter::~OutputWriter() {
  if (waiting_fd_ >= 0) loop_.Unwatch(waiting_fd_);
}

void OutputWriter::Write(To to, std::string bytes, std::uint64_t seq) {
  queued_ += bytes.size();
  queue_.push_back({to, std::move(bytes), seq, 0});
  if (waiting_fd_ < 0 && !pumping_) Pump();
}

void OutputWriter::Pump() {
  pumping_ = true;
  std::uint64_t written = 0;
  while (!queue_.empty()) {
    Item& item = queue_.front();
    while (item.written < item.bytes.size() && !failed_[item.to == To::kErr]) {
      if (!WriteSome(item)) break;
    }
    if (item.written < item.bytes.size() && !failed_[item.to == To::kErr]) break;
    queued_ -= item.bytes.size();
    written = std::max(written, item.seq);
    queue_.pop_front();
  }
  pumping_ = false;
  if (!queue_.empty()) WaitFor(Fd(queue_.front().to));
  if (written > 0) handlers_.on_written(written);
}

bool OutputWriter::WriteSome(Item& item) {
  const int fd = Fd(item.to);
  const bool regular = IsRegular(fd);
  if (!regular && !IsWritable(fd)) return false;
  const std::size_t left = item.bytes.size() - item.written;
  const ssize_t n =
      ::write(fd, item.bytes.data() + item.written, regular ? left : std::min(left, kSafeWrite));
  if (n >= 0) {
    item.written += static_cast<std::size_t>(n);
    return true;
  }
  if (errno == EINTR) return true;
  if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
  Fail(item.to, errno);
  return false;
}

void OutputWriter::Fail(To to, int error) {
  failed_[to == To::kErr] = true;
  const std::string what = to == To::kOut ? "write to standard output" : "write to standard error";
  // From the loop: the handler may do anything, this object's end included.
  loop_.Post([handler = handlers_.on_failed, to, error, what] {
    handler(to, ErrnoError(error, what), error == EPIPE);
  });
}

void OutputWriter::WaitFor(int fd) {
  waiting_fd_ = fd;
  const Status status = loop_.Watch(fd, EPOLLOUT, [this, fd](std::uint32_t) {
    loop_.Unwatch(fd);
    waiting_fd_ = -1;
    Pump();
  });
  if (status.ok()) return;
  // Full, and not to be waited for: nothing that a user could have meant.
  waiting_fd_ = -1;
  Fail(fd == out_ ? To::kOut : To::kErr, EIO);
}

}  // namespace msa::cli
