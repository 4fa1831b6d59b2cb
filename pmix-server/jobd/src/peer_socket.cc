#include "peer_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

#include "msa/adapters/process/unix_socket.h"

namespace msa::jobd {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// Addresses only, no names: a resolver could block the loop for seconds.
Result<AddressList> Resolve(const PeerAddress& address, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | flags;
  addrinfo* list = nullptr;
  const int rc = getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &list);
  if (rc != 0)
    return Error(Code::kInvalidArgument, "peer address 'tcp:{}:{}': {}; expected a numeric address and port",
                 address.host, address.port, gai_strerror(rc));
  return AddressList(list, &freeaddrinfo);
}

}  // namespace

Result<PeerAddress> ParsePeerAddress(const std::string& text) {
  PeerAddress address;
  if (text.starts_with("unix:")) {
    address.path = text.substr(5);
    MSA_RETURN_IF_ERROR(CheckSocketPath(address.path));
    return address;
  }
  if (text.starts_with("tcp:")) {
    const auto colon = text.rfind(':');
    if (colon > 4 && colon + 1 < text.size()) {
      address.is_unix = false;
      address.host = text.substr(4, colon - 4);
      address.port = text.substr(colon + 1);
      if (address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']')
        address.host = address.host.substr(1, address.host.size() - 2);
      return address;
    }
  }
  return Error(Code::kInvalidArgument, "peer address '{}' is neither 'unix:PATH' nor 'tcp:HOST:PORT'", text);
}

Result<UniqueFd> ListenPeer(const PeerAddress& address) {
  if (address.is_unix) return ListenUnix(address.path, 0600);
  MSA_ASSIGN_OR_RETURN(const AddressList list, Resolve(address, AI_PASSIVE));
  UniqueFd fd(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return ErrnoError(errno, "socket");
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd.get(), list->ai_addr, list->ai_addrlen) != 0 || ::listen(fd.get(), SOMAXCONN) != 0)
    return ErrnoError(errno, fmt::format("listen on 'tcp:{}:{}'", address.host, address.port));
  return fd;
}

Result<UniqueFd> ConnectPeer(const PeerAddress& address) {
  if (address.is_unix) return ConnectUnix(address.path);
  MSA_ASSIGN_OR_RETURN(const AddressList list, Resolve(address, 0));
  UniqueFd fd(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return ErrnoError(errno, "socket");
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(fd.get(), list->ai_addr, list->ai_addrlen) != 0 && errno != EINPROGRESS)
    return ErrnoError(errno, fmt::format("connect to 'tcp:{}:{}'", address.host, address.port));
  return fd;
}

Result<std::string> LocalAddress(const PeerAddress& asked, int listener) {
  if (asked.is_unix) return "unix:" + asked.path;
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getsockname(listener, reinterpret_cast<sockaddr*>(&storage), &size) != 0)
    return ErrnoError(errno, "getsockname");
  const bool v6 = storage.ss_family == AF_INET6;
  const auto port = ntohs(v6 ? reinterpret_cast<const sockaddr_in6&>(storage).sin6_port
                             : reinterpret_cast<const sockaddr_in&>(storage).sin_port);
  return v6 ? fmt::format("tcp:[{}]:{}", asked.host, port) : fmt::format("tcp:{}:{}", asked.host, port);
}

}  // namespace msa::jobd
