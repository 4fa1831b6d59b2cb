#pragma once

#include <string>

#include "msa/base/status.h"
#include "msa/base/unique_fd.h"

namespace msa::cli {

// Where a system's controller is to be found.
struct Endpoint {
  std::string socket;  // path
  std::string dir;     // of a local system; empty: the machine's own
  std::string flag;    // " --dir DIR" if commands need it to find this system, else ""
};

// The system that the user means: `dir` (--dir) if not empty, else MSA_DIR, else the user's default directory
// if a system was started there, else the machine's /run/msa/controller.sock if that is there, else the
// default directory. Does not connect. kPermissionDenied: the directory belongs to somebody else;
// kInvalidArgument: path too long.
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
