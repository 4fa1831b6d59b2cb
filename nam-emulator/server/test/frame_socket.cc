#include "frame_socket.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "msa/base/descriptor_passing.h"

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
  ReceivedBytes in = ReceiveWithDescriptors(fd_.get(), buffer);
  if (in.error != 0) return in.error == EAGAIN;
  for (UniqueFd& one : in.descriptors) files.push_back(std::move(one));
  if (in.bytes == 0) closed_ = true;
  reader_.Append({buffer.data(), in.bytes});
  return in.bytes > 0;
}

}  // namespace msa::namd::test
