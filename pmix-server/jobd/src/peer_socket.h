#pragma once

#include <string>

#include "msa/base/status.h"
#include "msa/base/unique_fd.h"

namespace msa::jobd {

// Where a job daemon listens for its peers: "unix:PATH" or "tcp:HOST:PORT" (HOST an address, IPv6 in
// brackets).
struct PeerAddress {
  bool is_unix = true;
  std::string path;  // unix
  std::string host;  // tcp
  std::string port;
};

// kInvalidArgument: neither of the two forms, with the value.
Result<PeerAddress> ParsePeerAddress(const std::string& text);

// A listening, non-blocking socket; a unix one has mode 0600. kAlreadyExists: in use. Else the system's
// reason.
Result<UniqueFd> ListenPeer(const PeerAddress& address);

// A non-blocking socket that is connected, or (tcp) connecting. kUnavailable: nobody listens.
Result<UniqueFd> ConnectPeer(const PeerAddress& address);

// The address of a listening socket as text; for tcp with the port that the kernel chose.
Result<std::string> LocalAddress(const PeerAddress& asked, int listener);

}  // namespace msa::jobd
