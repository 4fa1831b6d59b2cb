#include "tcp_connections.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "msa/base/unique_fd.h"

namespace msa::nam {
namespace {

// The address as it is kept in TcpConnection; empty: no TCP/IP address.
std::string Bytes(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) return {reinterpret_cast<const char*>(&address), sizeof(sockaddr_in)};
  if (address.ss_family == AF_INET6) return {reinterpret_cast<const char*>(&address), sizeof(sockaddr_in6)};
  return {};
}

// nullopt: not a connected TCP socket.
std::optional<TcpConnection> Describe(int fd) {
  sockaddr_storage local{}, peer{};
  socklen_t local_size = sizeof local, peer_size = sizeof peer;
  int type = 0;
  socklen_t type_size = sizeof type;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&local), &local_size) != 0) return std::nullopt;
  TcpConnection out;
  out.local = Bytes(local);
  if (out.local.empty() || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) != 0 ||
      type != SOCK_STREAM || getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0)
    return std::nullopt;
  out.peer = Bytes(peer);
  tcp_info state{};
  socklen_t state_size = sizeof state;
  int unread = 0;
  out.ended = getsockopt(fd, IPPROTO_TCP, TCP_INFO, &state, &state_size) == 0 &&
              state.tcpi_state == TCP_CLOSE_WAIT && ioctl(fd, FIONREAD, &unread) == 0 && unread == 0;
  struct stat file {};
  if (fstat(fd, &file) != 0) return std::nullopt;
  out.inode = file.st_ino;
  return out;
}

template <class F>
void ForEach(const TcpFilter& which, F&& each) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), &closedir);
  if (!folder) return;
  while (const dirent* entry = readdir(folder.get())) {
    char* end = nullptr;
    const long fd = std::strtol(entry->d_name, &end, 10);
    if (end == entry->d_name || *end != '\0') continue;
    if (!Describe(static_cast<int>(fd))) continue;
    // A descriptor of our own: the number could mean another file by now.
    const UniqueFd own(fcntl(static_cast<int>(fd), F_DUPFD_CLOEXEC, 0));
    if (!own) continue;
    const std::optional<TcpConnection> connection = Describe(own.get());
    if (connection && which(*connection)) each(own.get(), *connection);
  }
}

const sockaddr_in* Ipv4(const std::string& a) {
  const auto* address = reinterpret_cast<const sockaddr_in*>(a.data());
  return a.size() >= sizeof(sockaddr_in) && address->sin_family == AF_INET ? address : nullptr;
}
const sockaddr_in6* Ipv6(const std::string& a) {
  const auto* address = reinterpret_cast<const sockaddr_in6*>(a.data());
  return a.size() >= sizeof(sockaddr_in6) && address->sin6_family == AF_INET6 ? address : nullptr;
}

}  // namespace

std::set<ino_t> TcpConnections(const TcpFilter& which) {
  std::set<ino_t> out;
  ForEach(which, [&](int, const TcpConnection& connection) { out.insert(connection.inode); });
  return out;
}

void CutTcpConnections(const TcpFilter& which) {
  ForEach(which, [](int fd, const TcpConnection&) { shutdown(fd, SHUT_RDWR); });
}

void ResetTcpConnections(const TcpFilter& which) {
  // Connecting to no address at all dissolves what there is (connect(2)).
  const sockaddr nowhere{AF_UNSPEC, {}};
  ForEach(which, [&](int fd, const TcpConnection&) { (void)!connect(fd, &nowhere, sizeof nowhere); });
}

std::uint16_t PortOf(const std::string& address) {
  if (const sockaddr_in* v4 = Ipv4(address)) return ntohs(v4->sin_port);
  if (const sockaddr_in6* v6 = Ipv6(address)) return ntohs(v6->sin6_port);
  return 0;
}

bool SamePort(const std::string& a, const std::string& b) { return PortOf(a) != 0 && PortOf(a) == PortOf(b); }

bool SameHost(const std::string& a, const std::string& b) {
  if (const sockaddr_in* x = Ipv4(a), *y = Ipv4(b); x != nullptr && y != nullptr)
    return x->sin_addr.s_addr == y->sin_addr.s_addr;
  if (const sockaddr_in6* x = Ipv6(a), *y = Ipv6(b); x != nullptr && y != nullptr)
    return std::memcmp(&x->sin6_addr, &y->sin6_addr, sizeof x->sin6_addr) == 0;
  return false;
}

}  // namespace msa::nam
