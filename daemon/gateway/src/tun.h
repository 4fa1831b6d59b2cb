#pragma once
// A TUN interface, packet by packet, each with its virtio header: segments that the kernel has not cut travel
// whole.

#include <cstddef>
#include <span>
#include <string>

#include "msa/base/status.h"
#include "msa/base/unique_fd.h"

namespace msa::gateway {

// In front of each packet: struct virtio_net_hdr.
inline constexpr std::size_t kHeaderBytes = 10;

class Tun {
 public:
  // Takes the interface `name`, which is made if it is not there. kPermissionDenied: wants CAP_NET_ADMIN;
  // kFailedPrecondition: another process has it; kUnavailable: no /dev/net/tun.
  static Result<Tun> Open(const std::string& name);

  int fd() const { return fd_.get(); }
  // Bytes of the next packet; 0: none is there now. kUnavailable: the interface is gone.
  Result<std::size_t> Read(std::span<char> room);
  // False: the kernel would not take it now; it is lost, as on a wire.
  Result<bool> Write(std::span<const char> packet);

 private:
  explicit Tun(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace msa::gateway
