#include "msa/adapters/grpc/peer_registry.h"

#include <fcntl.h>

#include <cerrno>
#include <charconv>

namespace msa {

Result<UniqueFd> PeerRegistry::Admit(UniqueFd connection) {
  MSA_ASSIGN_OR_RETURN(const PeerCredentials peer, GetPeerCredentials(connection.get()));
  return Claim(std::move(connection), Peer{peer, {}});
}

Result<UniqueFd> PeerRegistry::Claim(UniqueFd connection, const Peer& peer) {
  MutexLock lock(mu_);
  for (;;) {
    const auto [it, fresh] = peers_.emplace(connection.get(), peer);
    if (fresh || it->second.SameAs(peer)) {
      it->second.pid = peer.pid;
      return connection;
    }
    UniqueFd moved(::fcntl(connection.get(), F_DUPFD_CLOEXEC, connection.get() + 1));
    if (!moved) return ErrnoError(errno, "find a descriptor for a connection of another user");
    connection = std::move(moved);
  }
}

Result<UserIdentity> PeerRegistry::Find(std::string_view peer) const {
  MSA_ASSIGN_OR_RETURN(const Peer found, FindProcess(peer));
  return found.user;
}

Result<Peer> PeerRegistry::FindProcess(std::string_view peer) const {
  constexpr std::string_view kPrefix = "fd:";
  int fd = -1;
  if (peer.starts_with(kPrefix)) {
    const char* const end = peer.data() + peer.size();
    const auto parsed = std::from_chars(peer.data() + kPrefix.size(), end, fd);
    if (parsed.ec != std::errc() || parsed.ptr != end) fd = -1;
  }
  MutexLock lock(mu_);
  const auto it = peers_.find(fd);
  if (it == peers_.end())
    return Error(Code::kUnauthenticated, "peer '{}' is not a known local connection", peer);
  return it->second;
}

}  // namespace msa
