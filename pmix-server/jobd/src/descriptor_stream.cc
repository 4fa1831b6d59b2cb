#include "descriptor_stream.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace msa::jobd {
namespace {

// In one message: more than anybody here sends (2). What does not fit the kernel closes.
constexpr std::size_t kMostAtOnce = 8;

IoResult Outcome(ssize_t n, IoOutcome wait) {
  if (n > 0) return {IoOutcome::kDone, static_cast<std::size_t>(n)};
  if (n == 0) return {IoOutcome::kClosed, 0};
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {wait, 0};
  return {errno == EPIPE || errno == ECONNRESET ? IoOutcome::kClosed : IoOutcome::kError, 0};
}

}  // namespace

std::vector<UniqueFd> DescriptorStream::TakeReceived() { return std::exchange(received_, {}); }

IoResult DescriptorStream::Read(char* buffer, std::size_t size) {
  iovec piece{buffer, size};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostAtOnce * sizeof(int))];
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n = 0;
  do n = ::recvmsg(plain_->fd(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);
  if (n > 0) Keep(message);
  return Outcome(n, IoOutcome::kWantRead);
}

void DescriptorStream::Keep(const msghdr& message) {
  auto* all = const_cast<msghdr*>(&message);
  for (cmsghdr* header = CMSG_FIRSTHDR(all); header != nullptr; header = CMSG_NXTHDR(all, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      UniqueFd one(fd);
      if (received_.size() < most_received_) received_.push_back(std::move(one));
    }
  }
}

IoResult DescriptorStream::Write(const char* data, std::size_t size) {
  if (waiting_.empty()) return plain_->Write(data, size);
  const int descriptor = waiting_.front().get();
  iovec piece{const_cast<char*>(data), size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  ssize_t n = 0;
  do n = ::sendmsg(plain_->fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);
  if (n > 0) waiting_.pop_front();
  return Outcome(n, IoOutcome::kWantWrite);
}

}  // namespace msa::jobd
