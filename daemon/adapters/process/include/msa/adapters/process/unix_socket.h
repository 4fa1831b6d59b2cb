#pragma once

#include <sys/types.h>

#include <string>

#include "msa/base/ids.h"
#include "msa/base/status.h"
#include "msa/base/unique_fd.h"

namespace msa {

// The kernel's sun_path holds 107 bytes and a zero (unix(7)).
inline constexpr std::size_t kMaxSocketPath = 107;

// kInvalidArgument, with path, length, limit and remedy, if `path` cannot be a socket's.
Status CheckSocketPath(const std::string& path);

// A listening, non-blocking, close-on-exec stream socket with the given mode; a stale file at `path` is
// replaced. kInvalidArgument: path too long. kAlreadyExists: somebody listens there.
// kNotFound/kPermissionDenied: the directory.
Result<UniqueFd> ListenUnix(const std::string& path, mode_t mode = 0600);

// A connected, non-blocking, close-on-exec stream socket. kUnavailable: nobody listens, or no such file.
Result<UniqueFd> ConnectUnix(const std::string& path);

// The next waiting connection; an invalid UniqueFd if there is none.
Result<UniqueFd> AcceptUnix(int listener);

struct PeerCredentials {
  pid_t pid = 0;
  UserIdentity user;
};
// Who is at the other end of a Unix socket, as the kernel saw at connect(2) (SO_PEERCRED).
Result<PeerCredentials> GetPeerCredentials(int fd);

}  // namespace msa
