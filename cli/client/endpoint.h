#pragma once

#include <string>

#include "msa/base/status.h"
#include "msa/base/unique_fd.h"

namespace msa::cli {

// Where a system's controller is to be found.
struct Endpoint {
  std::string socket;  // path, or tls:HOST:PORT
  std::string dir;     // of a local system; empty: the machine's own
  std::string flag;    // " --dir DIR" if commands need it to find this system, else ""
};

// The system that the user means: `dir` (--dir, --server) if any, else MSA_DIR, else the user's directory if
// a system was started there, else the machine's socket, else the client file's server, else the user's
// directory. One of node daemons alone, as MSA_DIR is in jobs, means that server. Does not connect.
// kPermissionDenied: the directory is somebody else's; kInvalidArgument: path too long, faulty file.
Result<Endpoint> FindEndpoint(const std::string& dir);

// $XDG_RUNTIME_DIR/msa, else /tmp/msa-$UID.
std::string DefaultDirectory();
// Absolute, without "." and ".." and symbolic links as far as the path exists, without a trailing '/'.
// Daemons derive names from it: every command must come to the same.
std::string CanonicalDirectory(const std::string& dir);

// A connection to the controller. While a supervisor is there to restart the controller, waits for it up to
// 10 s. kUnavailable: none; the text says how to start one.
Result<UniqueFd> ConnectController(const Endpoint& endpoint);
// One attempt. The same error.
Result<UniqueFd> TryConnectController(const Endpoint& endpoint);
// True if something will start the controller again: a supervisor of a local system, init for the machine's.
bool IsSupervised(const Endpoint& endpoint);

}  // namespace msa::cli
