#include "msa/adapters/process/unix_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace msa {
namespace {

sockaddr_un Address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

}  // namespace

Status CheckSocketPath(const std::string& path) {
  if (path.empty()) return Status(Code::kInvalidArgument, "socket path is empty");
  if (path.size() <= kMaxSocketPath) return Status::Ok();
  return Error(
      Code::kInvalidArgument,
      "socket path '{}' has {} bytes, the kernel allows {}; choose a shorter directory (--dir or MSA_DIR)",
      path, path.size(), kMaxSocketPath);
}

Result<UniqueFd> ListenUnix(const std::string& path, mode_t mode) {
  MSA_RETURN_IF_ERROR(CheckSocketPath(path));
  if (auto probe = ConnectUnix(path); probe.ok())
    return Error(Code::kAlreadyExists, "socket '{}' is in use by another process", path);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return ErrnoError(errno, "socket");
  ::unlink(path.c_str());
  const sockaddr_un address = Address(path);
  // fchmod before bind sets the mode of the file without a moment in which it is open to others (unix(7),
  // Linux).
  ::fchmod(fd.get(), mode);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return ErrnoError(errno, "bind socket '" + path + "'");
  if (::chmod(path.c_str(), mode) != 0) return ErrnoError(errno, "set mode of socket '" + path + "'");
  if (::listen(fd.get(), SOMAXCONN) != 0) return ErrnoError(errno, "listen on socket '" + path + "'");
  return fd;
}

Result<UniqueFd> ConnectUnix(const std::string& path) {
  MSA_RETURN_IF_ERROR(CheckSocketPath(path));
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return ErrnoError(errno, "socket");
  const sockaddr_un address = Address(path);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    if (error == ENOENT || error == EAGAIN)  // EAGAIN: the backlog is full; the listener is alive, try again
      return Status(Code::kUnavailable, ErrnoError(error, "connect to socket '" + path + "'").message());
    return ErrnoError(error, "connect to socket '" + path + "'");
  }
  return fd;
}

Result<UniqueFd> AcceptUnix(int listener) {
  for (;;) {
    UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) return fd;
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return UniqueFd();
    return ErrnoError(errno, "accept");
  }
}

Result<PeerCredentials> GetPeerCredentials(int fd) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0)
    return ErrnoError(errno, "read peer credentials");
  return PeerCredentials{credentials.pid, {credentials.uid, credentials.gid}};
}

}  // namespace msa
