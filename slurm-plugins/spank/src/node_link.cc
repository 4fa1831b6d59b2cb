#include "node_link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>

namespace msa::spank {

Result<NodeLink> NodeLink::Connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path))
    return Error(Code::kInvalidArgument, "socket {}: the path has {} bytes, at most {} are possible", path,
                 path.size(), sizeof(address.sun_path) - 1);
  memcpy(address.sun_path, path.data(), path.size());
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return ErrnoError(errno, "make a socket");
  // A Unix socket connects at once or not at all, unless its backlog is full: then this waits for the accept.
  int result = 0;
  do result = connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  while (result < 0 && errno == EINTR);
  if (result < 0) {
    const int error = errno;
    return Status(Code::kUnavailable, ErrnoError(error, "connect to " + path).message());
  }
  return NodeLink(std::move(fd));
}

Status NodeLink::Wait(short events, Deadline deadline) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (left <= 0) return Status(Code::kDeadlineExceeded, "no answer in time");
    pollfd poll_fd{fd_.get(), events, 0};
    const int n = poll(&poll_fd, 1, static_cast<int>(std::min<std::int64_t>(left, 60'000)));
    if (n > 0) return Status::Ok();
    if (n < 0 && errno != EINTR) return ErrnoError(errno, "poll");
  }
}

Status NodeLink::SendBytes(const std::string& bytes, std::array<int, 2> descriptors, Deadline deadline) {
  if (!fd_) return Status(Code::kUnavailable, "not connected");
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    MSA_RETURN_IF_ERROR(Wait(POLLOUT, deadline));
    iovec part{const_cast<char*>(bytes.data()) + sent, bytes.size() - sent};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(descriptors))] = {};
    if (sent == 0 && descriptors[0] >= 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof(control);
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(descriptors));
      memcpy(CMSG_DATA(header), descriptors.data(), sizeof(descriptors));
    }
    const ssize_t n = sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EINTR && errno != EAGAIN) {
      const int error = errno;
      return Status(Code::kUnavailable, ErrnoError(error, "send").message());
    }
    if (n > 0) sent += static_cast<std::size_t>(n);
  }
  return Status::Ok();
}

Result<wire::Frame> NodeLink::Next(Deadline deadline, UniqueFd* descriptor) {
  if (!fd_) return Status(Code::kUnavailable, "not connected");
  for (;;) {
    MSA_ASSIGN_OR_RETURN(std::optional<wire::Frame> frame, reader_.Next());
    if (frame) return std::move(*frame);
    MSA_RETURN_IF_ERROR(Wait(POLLIN, deadline));
    char buffer[16384];
    iovec part{buffer, sizeof(buffer)};
    alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t n = recvmsg(fd_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return Status(Code::kUnavailable, "the daemon has closed the connection");
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
      const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int fd = -1;
        memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
        UniqueFd received(fd);
        if (descriptor != nullptr && !*descriptor) *descriptor = std::move(received);
      }
    }
    reader_.Append({buffer, static_cast<std::size_t>(n)});
  }
}

}  // namespace msa::spank
