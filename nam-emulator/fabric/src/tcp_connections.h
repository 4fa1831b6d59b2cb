#pragma once
// The TCP connections of this process, found among its descriptors. libfabric 1.17 has no call that ends one
// connection of an endpoint (fi_av_remove leaves it open), or that tells which there are; for tcp;ofi_rxm the
// kernel knows both.

#include <sys/types.h>

#include <functional>
#include <set>
#include <string>

namespace msa::nam {

struct TcpConnection {
  ino_t inode = 0;    // names the connection as long as it is open
  std::string local;  // as fi_getname writes it: a sockaddr_in or sockaddr_in6
  std::string peer;
  bool ended = false;  // by the peer, and everything that it sent was read
};

// Any thread.
using TcpFilter = std::function<bool(const TcpConnection&)>;
std::set<ino_t> TcpConnections(const TcpFilter& which);
// Ends them as if the peer had: what goes on over them fails. The owner of the descriptors closes them.
void CutTcpConnections(const TcpFilter& which);

// Makes reading from them fail.
void ResetTcpConnections(const TcpFilter& which);

// Whether both are of the same host, whatever the port; of the same port, whatever the host.
bool SameHost(const std::string& a, const std::string& b);
bool SamePort(const std::string& a, const std::string& b);
// Of the same host and port; not always the same bytes (flow, scope, padding).
inline bool SameSocket(const std::string& a, const std::string& b) {
  return SameHost(a, b) && SamePort(a, b);
}
// The port of a socket address, 0 if it is none.
std::uint16_t PortOf(const std::string& address);

}  // namespace msa::nam
