#include "passing_stream.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace msa::namd {
namespace {

constexpr useconds_t kFilesPause = 500;

}  // namespace

PassingStream::PassingStream(UniqueFd fd, std::function<void()> on_passed)
    : plain_(MakePlainStream(std::move(fd))), on_passed_(std::move(on_passed)) {}

void PassingStream::Pass(std::uint64_t position, UniqueFd file) {
  waiting_.push_back({position, std::move(file)});
}

IoResult PassingStream::Write(const char* data, std::size_t size) {
  IoResult result;
  if (waiting_.empty() || waiting_.front().position >= written_ + size) {
    result = plain_->Write(data, size);
  } else if (waiting_.front().position > written_) {
    result = plain_->Write(data, static_cast<std::size_t>(waiting_.front().position - written_));
  } else {
    result = WriteWith(data, size, waiting_.front().file.get());
    if (result.outcome == IoOutcome::kDone) {
      waiting_.pop_front();
      if (on_passed_) on_passed_();
    }
  }
  if (result.outcome == IoOutcome::kDone) written_ += result.bytes;
  return result;
}

IoResult PassingStream::WriteWith(const char* data, std::size_t size, int file) {
  // Not beyond the next one's byte.
  if (waiting_.size() > 1)
    size = static_cast<std::size_t>(std::min<std::uint64_t>(size, waiting_[1].position - written_));
  iovec piece{const_cast<char*>(data), size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &file, sizeof file);
  for (;;) {
    const ssize_t n = ::sendmsg(plain_->fd(), &message, MSG_NOSIGNAL);
    if (n >= 0) return {IoOutcome::kDone, static_cast<std::size_t>(n)};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {IoOutcome::kWantWrite, 0};
    if (errno == ETOOMANYREFS) {
      // This user's files on their way in sockets are as many as one may have open. They get fewer when some
      // client reads, of which nobody is told.
      ::usleep(kFilesPause);
      return {IoOutcome::kWantWrite, 0};
    }
    return {errno == EPIPE || errno == ECONNRESET ? IoOutcome::kClosed : IoOutcome::kError, 0};
  }
}

}  // namespace msa::namd
