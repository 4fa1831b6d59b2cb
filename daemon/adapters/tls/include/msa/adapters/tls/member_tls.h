#pragma once
// TLS 1.3 (RFC 8446) between members of one system: both ends show a certificate of its authority, and
// neither trusts any other root. A stream belongs to one thread; a MemberTls may be used by several.

#include <memory>
#include <string>

#include "msa/adapters/process/byte_stream.h"
#include "msa/adapters/tls/certificates.h"

namespace msa {

class TlsStream : public ByteStream {
 public:
  // Goes on with the handshake: kDone when it is over, else what to wait for. Reading and writing do the
  // same.
  virtual IoResult Handshake() = 0;
  // Who is at the other end. kFailedPrecondition: the handshake is not over; kUnauthenticated: its
  // certificate is no member's, or of another system.
  virtual Result<PeerIdentity> Peer() const = 0;
  // When the peer's certificate ends.
  virtual Instant PeerUntil() const = 0;
};

class MemberTls {
 public:
  // kInvalidArgument: the credentials do not fit together.
  static Result<std::shared_ptr<const MemberTls>> Make(const Credentials& credentials);
  ~MemberTls();

  // Streams over a connected socket. Errors: kInternal.
  Result<std::unique_ptr<TlsStream>> Client(UniqueFd socket) const;
  Result<std::unique_ptr<TlsStream>> Server(UniqueFd socket) const;
  // Of the own certificate.
  const PeerIdentity& self() const;
  Instant until() const;

 private:
  struct Impl;
  explicit MemberTls(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace msa
