#include "msa/adapters/process/fork_server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "msa/base/wire.h"

namespace msa {
namespace {

// An order holds a path or two and a cookie.
constexpr std::size_t kMaxPacket = 16 * 1024;

enum class Side { kServer, kChild };

bool Report(int socket, const ForkReport& report) {
  const std::string packet = wire::Encode(report);
  return ::send(socket, packet.data(), packet.size(), MSG_NOSIGNAL) >= 0;
}

// Forks a child that is not the caller's: a process in between, which shares the caller's memory (vfork) and
// so costs next to nothing, makes it, reports it and ends, whereupon the child goes to the subreaper.
Side ForkAway(int socket, std::uint64_t number) {
  const pid_t between = ::vfork();
  if (between == 0) {
    const pid_t child = ::fork();
    if (child == 0) return Side::kChild;  // with a copy of this stack
    const bool told = Report(socket, {number, std::max(child, 0), child > 0 ? 0 : errno});
    ::_exit(told ? 0 : 1);
  }
  if (between < 0) (void)Report(socket, {number, 0, errno});
  while (between > 0 && ::waitpid(between, nullptr, 0) < 0 && errno == EINTR) continue;
  return Side::kServer;
}

void Detach() {
  ::setsid();
  const int null = ::open("/dev/null", O_RDONLY);
  if (null <= STDIN_FILENO) return;  // the socket was stdin
  ::dup2(null, STDIN_FILENO);
  ::close(null);
}

// 0: the other end is closed; below: errno.
ssize_t ReceivePacket(int socket, std::array<char, kMaxPacket>& buffer) {
  for (;;) {
    const ssize_t n = ::recv(socket, buffer.data(), buffer.size(), 0);
    if (n >= 0) return n;
    if (errno != EINTR) return -errno;
  }
}

}  // namespace

Result<std::optional<ForkOrder>> ServeForks(UniqueFd socket) {
  std::array<char, kMaxPacket> buffer;
  for (;;) {
    const ssize_t n = ReceivePacket(socket.get(), buffer);
    if (n < 0) return ErrnoError(static_cast<int>(-n), "receive an order to fork");
    if (n == 0) return std::optional<ForkOrder>();
    MSA_ASSIGN_OR_RETURN(ForkOrder order,
                         wire::Decode<ForkOrder>({buffer.data(), static_cast<std::size_t>(n)}));
    if (ForkAway(socket.get(), order.number) == Side::kServer) continue;
    socket.reset();
    Detach();
    return std::optional<ForkOrder>(std::move(order));
  }
}

Result<ForkSockets> MakeForkSockets() {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return ErrnoError(errno, "make a pair of sockets; raise 'ulimit -n'");
  ForkSockets sockets{UniqueFd(ends[0]), UniqueFd(ends[1])};
  if (::fcntl(sockets.ours.get(), F_SETFL, O_NONBLOCK) != 0) return ErrnoError(errno, "O_NONBLOCK");
  return sockets;
}

Status SendForkOrder(int socket, const ForkOrder& order) {
  const std::string packet = wire::Encode(order);
  if (packet.size() > kMaxPacket)
    return Error(Code::kInvalidArgument, "an order to fork has {} bytes, the limit is {}", packet.size(),
                 kMaxPacket);
  ssize_t sent = 0;
  do sent = ::send(socket, packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  while (sent < 0 && errno == EINTR);
  if (sent >= 0) return Status::Ok();
  return Status(Code::kUnavailable, ErrnoError(errno, "send an order to fork").message());
}

Result<std::optional<ForkReport>> ReceiveForkReport(int socket) {
  std::array<char, kMaxPacket> buffer;
  const ssize_t n = ReceivePacket(socket, buffer);
  if (n == -EAGAIN) return std::optional<ForkReport>();
  if (n <= 0) return Status(Code::kUnavailable, "the process that forks job daemons has ended");
  MSA_ASSIGN_OR_RETURN(const ForkReport report,
                       wire::Decode<ForkReport>({buffer.data(), static_cast<std::size_t>(n)}));
  return std::optional<ForkReport>(report);
}

}  // namespace msa
