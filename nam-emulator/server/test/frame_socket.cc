#include "frame_socket.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace msa::namd::test {

void FrameSocket::SendRaw(std::string_view bytes) {
  while (!bytes.empty() && fd_) {
    const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
      pollfd wait{fd_.get(), POLLOUT, 0};
      ::poll(&wait, 1, 1000);
      continue;
    }
    if (n < 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::optional<wire::Frame> FrameSocket::Receive(Millis limit) {
  const SteadyTime until = SteadyNow() + limit;
  for (;;) {
    auto frame = reader_.Next();
    if (!frame.ok()) return std::nullopt;
    if (frame->has_value()) return std::move(**frame);
    const auto left = std::chrono::duration_cast<Millis>(until - SteadyNow());
    if (left.count() < 0 || !ReadSome(left)) return std::nullopt;
  }
}

bool FrameSocket::ReadSome(Millis limit) {
  pollfd wait{fd_.get(), POLLIN, 0};
  if (!fd_ || ::poll(&wait, 1, static_cast<int>(limit.count())) <= 0) return false;
  std::array<char, 65536> buffer;
  alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))];
  iovec piece{buffer.data(), buffer.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t n = ::recvmsg(fd_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  for (cmsghdr* at = CMSG_FIRSTHDR(&message); at != nullptr; at = CMSG_NXTHDR(&message, at)) {
    const std::size_t count = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(at) + i * sizeof(int), sizeof fd);
      files.emplace_back(fd);
    }
  }
  if (n == 0) closed_ = true;
  if (n > 0) reader_.Append({buffer.data(), static_cast<std::size_t>(n)});
  return n > 0;
}

}  // namespace msa::namd::test
