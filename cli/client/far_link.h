#pragma once
// Connections to daemons on other hosts, as the calling user, for whom munge vouches.

#include <string>

#include "msa/base/status.h"
#include "msa/base/unique_fd.h"

namespace msa::cli {

// To the controller at tls:HOST:PORT. Blocks, 5 s at most. kUnavailable: nobody answers, or munged does not;
// kUnauthenticated: it is not the controller, or does not accept this host's credentials.
Result<UniqueFd> DialController(const std::string& server);

// To a node daemon, by the address that the controller tells: "unix:PATH" or "tls:NODE@HOST:PORT".
// `controller` (Endpoint::socket) vouches for the user there; if it is of this host, the client file's server
// does. Likewise.
Result<UniqueFd> DialNode(const std::string& controller, const std::string& address);

}  // namespace msa::cli
