#pragma once
// TLS connections for libraries that want a plain descriptor: a thread moves bytes between each connection
// and one end of a socket pair, whose other end the library gets. A connection ends when one of its ends
// does, and when the peer's certificate does, unless the peer is known to have a later one.

#include <functional>
#include <memory>
#include <thread>

#include "msa/adapters/process/event_loop.h"
#include "msa/adapters/tls/member_tls.h"
#include "msa/base/status.h"

namespace msa {

class TlsPump {
 public:
  struct Options {
    std::size_t max_connections = 4096;  // further ones wait in the listener's queue
    Millis handshake{5000};              // a peer that needs longer is cut off
  };
  struct Service {
    UniqueFd listener;
    // What the server shows; asked for each connection, so that it may be renewed. Pump's thread.
    std::function<std::shared_ptr<const MemberTls>()> tls;
    // A member has come in: its plain end and who it is. Pump's thread.
    std::function<void(UniqueFd, const PeerIdentity&)> on_member;
    // Optional: a connection was refused: where from and why. Pump's thread.
    std::function<void(const std::string& from, const Status& why)> on_refused;
  };

  // kResourceExhausted: no descriptors left.
  static Result<std::unique_ptr<TlsPump>> Start(const Options& options);
  // Ends all connections.
  ~TlsPump();
  TlsPump(const TlsPump&) = delete;
  TlsPump& operator=(const TlsPump&) = delete;

  // Any thread; at most once.
  void Serve(Service service);
  // Connections with peers of this role, node and user last until then, if they would end before: they have
  // shown to whom they must that they still are who they were. Any thread.
  void Extend(const PeerIdentity& peer, Instant until);
  // The plain end of a stream whose handshake is over. Any thread.
  Result<UniqueFd> Join(std::unique_ptr<TlsStream> stream);

 private:
  class Impl;
  explicit TlsPump(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
  std::thread thread_;
};

// Connects to "HOST:PORT" and shakes hands. Blocks until `deadline` at most. kUnavailable: nobody listens or
// answers; kUnauthenticated: the other is not `expected` (role and, of a node, name), or refuses us.
Result<std::unique_ptr<TlsStream>> DialMember(const std::string& address, const MemberTls& tls,
                                              const PeerIdentity& expected, SteadyTime deadline);

}  // namespace msa
