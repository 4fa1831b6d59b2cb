#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "msa/adapters/process/unix_socket.h"
#include "msa/base/ids.h"
#include "msa/base/mutex.h"
#include "msa/base/status.h"
#include "msa/base/unique_fd.h"

namespace msa {

// Who is at the other end of a connection.
struct Peer : PeerCredentials {
  std::string
      member;  // the URI of a certificate (msa/adapters/tls/certificates.h); empty: a process of this host
  bool SameAs(const Peer& other) const { return user == other.user && member == other.member; }
};

// Who is behind each descriptor that was handed to gRPC. gRPC names a call's peer "fd:N" only, closes N when
// it likes, and may still start a call of a connection whose N is closed. So a number, once used, belongs to
// its user for good: another user's connection is moved to another number, and a late call can never be taken
// for somebody else's. Any thread.
class PeerRegistry {
 public:
  // The accepted Unix socket, on a number that is `connection`'s user's. kResourceExhausted: no descriptor
  // left.
  Result<UniqueFd> Admit(UniqueFd connection) MSA_EXCLUDES(mu_);
  // The same for a peer that is known. Admit asks the kernel.
  Result<UniqueFd> Claim(UniqueFd connection, const Peer& peer) MSA_EXCLUDES(mu_);

  // `peer` as gRPC spells it. kUnauthenticated: not a descriptor that was admitted.
  Result<UserIdentity> Find(std::string_view peer) const MSA_EXCLUDES(mu_);
  // With the process that opened the connection; of a late call, another process of the same user.
  Result<Peer> FindProcess(std::string_view peer) const MSA_EXCLUDES(mu_);

 private:
  mutable Mutex mu_;
  std::unordered_map<int, Peer> peers_ MSA_GUARDED_BY(mu_);
};

}  // namespace msa
