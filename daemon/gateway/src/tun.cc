#include "tun.h"

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace msa::gateway {

Result<Tun> Tun::Open(const std::string& name) {
  if (name.empty() || name.size() >= IFNAMSIZ)
    return Error(Code::kInvalidArgument, "interface name '{}' has {} characters; expected 1 to {}", name,
                 name.size(), IFNAMSIZ - 1);
  UniqueFd fd(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!fd)
    return Error(errno == EACCES || errno == EPERM ? Code::kPermissionDenied : Code::kUnavailable,
                 "open /dev/net/tun: {}; load the module tun, and run as root", std::strerror(errno));
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
  if (::ioctl(fd.get(), TUNSETIFF, &request) != 0) {
    const int error = errno;
    if (error == EBUSY)
      return Error(Code::kFailedPrecondition,
                   "interface '{}' has a relay already; end that, or take another --tun", name);
    if (error == EINVAL)
      return Error(Code::kFailedPrecondition,
                   "interface '{}' is of another sort; make it with 'ip tuntap add dev {} mode tun vnet_hdr'",
                   name, name);
    return Error(error == EPERM ? Code::kPermissionDenied : Code::kUnavailable,
                 "take interface '{}': {}; run as root", name, std::strerror(error));
  }
  if (::ioctl(fd.get(), TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) != 0)
    return Error(Code::kUnavailable, "offloads of interface '{}': {}", name, std::strerror(errno));
  return Tun(std::move(fd));
}

Result<std::size_t> Tun::Read(std::span<char> room) {
  for (;;) {
    const ssize_t count = ::read(fd_.get(), room.data(), room.size());
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return std::size_t{0};
    return Error(Code::kUnavailable, "read from the interface: {}; it was removed?", std::strerror(errno));
  }
}

Result<bool> Tun::Write(std::span<const char> packet) {
  for (;;) {
    if (::write(fd_.get(), packet.data(), packet.size()) >= 0) return true;
    if (errno == EINTR) continue;
    // EIO: the interface is down; EINVAL: a packet that the kernel will not have again; both cost that
    // packet.
    if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM || errno == EIO || errno == EINVAL)
      return false;
    return Error(Code::kUnavailable, "write to the interface: {}; it was removed?", std::strerror(errno));
  }
}

}  // namespace msa::gateway
