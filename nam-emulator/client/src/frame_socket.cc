#include "frame_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "msa/base/descriptor_passing.h"
#include "msa/base/nam_region.h"

namespace msa::nam {
namespace {

// Never destroyed: threads may outlive static objects.
struct OpenSockets {
  std::mutex mu;
  std::vector<int> fds;
};
OpenSockets& Open() {
  static auto* const open = new OpenSockets;
  return *open;
}

int PollMillis(SteadyTime deadline) {
  const auto left = std::chrono::ceil<Millis>(deadline - SteadyNow()).count();
  return static_cast<int>(std::clamp<long>(left, 0, 3'600'000));
}

Status Closed() { return Status(Code::kUnavailable, "the daemon has closed the connection"); }

}  // namespace

void LockSocketsForFork() noexcept { Open().mu.lock(); }
void UnlockSocketsAfterFork() noexcept { Open().mu.unlock(); }
void CloseInheritedSockets() noexcept {
  for (const int fd : Open().fds) close(fd);
  Open().fds.clear();
  Open().mu.unlock();
}

FrameSocket::FrameSocket(UniqueFd fd) : fd_(std::move(fd)), reader_(wire::kMaxNamPayload + 4096) {
  const std::lock_guard lock(Open().mu);
  Open().fds.push_back(fd_.get());
}

FrameSocket::~FrameSocket() {
  const std::lock_guard lock(Open().mu);
  std::erase(Open().fds, fd_.get());
  // The watcher may hold it in a poll: then closing alone would not end it.
  Shutdown();
  fd_.reset();
}

Result<std::shared_ptr<FrameSocket>> FrameSocket::Connect(const std::string& path, SteadyTime deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return Error(Code::kInvalidArgument, "path of socket '{}' has {} bytes, expected 1 to {}", path,
                 path.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return ErrnoError(errno, "socket");
  for (auto pause = Millis(1);; pause = std::min(pause * 2, Millis(50))) {
    if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) break;
    if (errno == EINTR) continue;
    // The listener's queue is full.
    if (errno != EAGAIN || SteadyNow() >= deadline) return ErrnoError(errno, "connect to " + path);
    std::this_thread::sleep_for(pause);
  }
  return std::shared_ptr<FrameSocket>(new FrameSocket(std::move(fd)));
}

Status FrameSocket::Wait(short events, SteadyTime deadline) {
  for (;;) {
    pollfd poll_fd{fd_.get(), events, 0};
    const int ready = poll(&poll_fd, 1, PollMillis(deadline));
    if (ready > 0) return Status::Ok();
    if (ready < 0 && errno != EINTR) return ErrnoError(errno, "poll");
    if (ready == 0 && SteadyNow() >= deadline) return Status(Code::kDeadlineExceeded, "no answer in time");
  }
}

Status FrameSocket::Send(std::string_view bytes, SteadyTime deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      MSA_RETURN_IF_ERROR(Wait(POLLOUT, deadline));
    } else if (errno != EINTR) {
      return errno == EPIPE || errno == ECONNRESET ? Closed() : ErrnoError(errno, "send");
    }
  }
  return Status::Ok();
}

Status FrameSocket::Fill() {
  std::array<char, 65536> bytes;
  ReceivedBytes got = ReceiveWithDescriptors(fd_.get(), bytes);
  if (got.error == EAGAIN) return Status::Ok();
  if (got.error != 0) return got.error == ECONNRESET ? Closed() : ErrnoError(got.error, "receive");
  if (got.bytes == 0) return Closed();
  for (UniqueFd& one : got.descriptors) fds_.push_back(std::move(one));
  reader_.Append({bytes.data(), got.bytes});
  return Status::Ok();
}

Result<wire::Frame> FrameSocket::Receive(SteadyTime deadline) {
  for (;;) {
    MSA_ASSIGN_OR_RETURN(std::optional<wire::Frame> frame, reader_.Next());
    if (frame) return std::move(*frame);
    MSA_RETURN_IF_ERROR(Wait(POLLIN, deadline));
    MSA_RETURN_IF_ERROR(Fill());
  }
}

UniqueFd FrameSocket::TakeFd() {
  if (fds_.empty()) return UniqueFd();
  UniqueFd fd = std::move(fds_.front());
  fds_.clear();
  return fd;
}

void FrameSocket::Shutdown() { shutdown(fd_.get(), SHUT_RDWR); }

}  // namespace msa::nam
