#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "msa/adapters/tls/tcp_socket.h"
#include "msa/adapters/tls/tls_pump.h"

namespace msa {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

// "HOST:PORT" or "[HOST]:PORT".
Result<std::pair<std::string, std::string>> SplitAddress(const std::string& address) {
  const auto colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size())
    return Error(Code::kInvalidArgument, "address '{}'; expected HOST:PORT", address);
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return std::pair(std::move(host), address.substr(colon + 1));
}

Result<AddressList> Resolve(const std::string& address, int flags) {
  MSA_ASSIGN_OR_RETURN(const auto parts, SplitAddress(address));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* list = nullptr;
  const int rc = ::getaddrinfo(parts.first.c_str(), parts.second.c_str(), &hints, &list);
  if (rc != 0) return Error(Code::kUnavailable, "address '{}': {}", address, ::gai_strerror(rc));
  return AddressList(list, &::freeaddrinfo);
}

std::string Name(const PeerIdentity& who) {
  return fmt::format("{}{}{}", ToText(who.role), who.node.empty() ? "" : " ", who.node);
}

Status WaitFor(int fd, short events, SteadyTime deadline, const std::string& address) {
  for (;;) {
    const auto left = std::chrono::duration_cast<Millis>(deadline - SteadyNow()).count();
    pollfd polled{fd, events, 0};
    const int rc = left > 0 ? ::poll(&polled, 1, static_cast<int>(std::min<long long>(left, 60'000))) : 0;
    if (rc > 0) return Status::Ok();
    if (rc < 0 && errno != EINTR) return ErrnoError(errno, "poll");
    if (left <= 0) return Error(Code::kUnavailable, "'{}' does not answer in time", address);
  }
}

Result<UniqueFd> ConnectOne(const addrinfo& to, const std::string& address, SteadyTime deadline) {
  UniqueFd fd(::socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return ErrnoError(errno, "socket");
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  int error = ::connect(fd.get(), to.ai_addr, to.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    MSA_RETURN_IF_ERROR(WaitFor(fd.get(), POLLOUT, deadline, address));
    socklen_t size = sizeof error;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error != 0) return Error(Code::kUnavailable, "connect to '{}': {}", address, std::strerror(error));
  return fd;
}

}  // namespace

Result<UniqueFd> ListenTcp(const std::string& address) {
  MSA_ASSIGN_OR_RETURN(const AddressList list, Resolve(address, AI_PASSIVE));
  UniqueFd fd(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return ErrnoError(errno, "socket");
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd.get(), list->ai_addr, list->ai_addrlen) != 0 || ::listen(fd.get(), SOMAXCONN) != 0)
    return ErrnoError(errno, fmt::format("listen on '{}'", address));
  return fd;
}

Result<std::uint16_t> PortOf(int listener) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getsockname(listener, reinterpret_cast<sockaddr*>(&storage), &size) != 0)
    return ErrnoError(errno, "getsockname");
  return ntohs(storage.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(storage).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(storage).sin_port);
}

Result<UniqueFd> ConnectTcp(const std::string& address, SteadyTime deadline) {
  MSA_ASSIGN_OR_RETURN(const AddressList list, Resolve(address, 0));
  Status last = Error(Code::kUnavailable, "address '{}' has no numbers", address);
  for (const addrinfo* to = list.get(); to != nullptr; to = to->ai_next) {
    auto fd = ConnectOne(*to, address, deadline);
    if (fd.ok()) return fd;
    last = fd.status();
  }
  return last;
}

Result<std::unique_ptr<TlsStream>> DialMember(const std::string& address, const MemberTls& tls,
                                              const PeerIdentity& expected, SteadyTime deadline) {
  MSA_ASSIGN_OR_RETURN(UniqueFd socket, ConnectTcp(address, deadline));
  MSA_ASSIGN_OR_RETURN(auto stream, tls.Client(std::move(socket)));
  for (;;) {
    const IoResult result = stream->Handshake();
    if (result.outcome == IoOutcome::kDone) break;
    if (result.outcome != IoOutcome::kWantRead && result.outcome != IoOutcome::kWantWrite)
      return Error(Code::kUnauthenticated, "'{}' and this process do not accept each other: {}", address,
                   *stream->Error() != '\0' ? stream->Error() : "it closed the connection");
    MSA_RETURN_IF_ERROR(
        WaitFor(stream->fd(), result.outcome == IoOutcome::kWantRead ? POLLIN : POLLOUT, deadline, address));
  }
  MSA_ASSIGN_OR_RETURN(const PeerIdentity peer, stream->Peer());
  if (peer.role != expected.role || peer.node != expected.node)
    return Error(Code::kUnauthenticated, "'{}' is {}, expected {}", address, Name(peer), Name(expected));
  return stream;
}

}  // namespace msa
