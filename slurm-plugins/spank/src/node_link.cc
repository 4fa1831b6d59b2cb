#include "node_link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "msa/base/descriptor_passing.h"

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
    std::span<const int> beside;
    if (sent == 0 && descriptors[0] >= 0) beside = descriptors;
    const SentBytes out = SendWithDescriptors(fd_.get(), std::string_view(bytes).substr(sent), beside);
    if (out.error != 0 && out.error != EAGAIN)
      return Status(Code::kUnavailable, ErrnoError(out.error, "send").message());
    sent += out.bytes;
  }
  return Status::Ok();
}

Result<wire::Frame> NodeLink::Next(Deadline deadline, UniqueFd* descriptor) {
  if (!fd_) return Status(Code::kUnavailable, "not connected");
  for (;;) {
    MSA_ASSIGN_OR_RETURN(std::optional<wire::Frame> frame, reader_.Next());
    if (frame) return std::move(*frame);
    MSA_RETURN_IF_ERROR(Wait(POLLIN, deadline));
    std::array<char, 16384> buffer;
    ReceivedBytes in = ReceiveWithDescriptors(fd_.get(), buffer);
    if (in.error == EAGAIN) continue;
    if (in.bytes == 0) return Status(Code::kUnavailable, "the daemon has closed the connection");
    if (descriptor != nullptr && !*descriptor && !in.descriptors.empty())
      *descriptor = std::move(in.descriptors.front());
    reader_.Append({buffer.data(), in.bytes});
  }
}

}  // namespace msa::spank
