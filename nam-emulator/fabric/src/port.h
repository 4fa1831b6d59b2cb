#pragma once
// One endpoint and all that belongs to it: what FabricServer and FabricClient have in common.

#include <cstdint>
#include <string>

#include "msa/base/status.h"

#include "handles.h"

namespace msa::nam {

struct PortOptions {
  std::string provider;    // libfabric's name; empty: the best that is there
  std::string host;        // address or interface to bind to; empty: the provider's choice
  std::uint16_t port = 0;  // 0: any
};

// Used as libfabric's FI_THREAD_SAFE: from any thread. (On tcp;ofi_rxm the domain model with a lock of our
// own was no faster: 11.1 and 11.1 us for a write of 8 bytes.)
class Port {
 public:
  // kUnavailable: no such provider, or none at all; says which there are. kInvalidArgument: a provider known
  // to lose or hang transfers, or no such host.
  static Result<Port> Open(const PortOptions& options);
  // Whether a provider of that name (or any, if empty) is there; its name.
  static Result<std::string> Find(const std::string& provider);

  const fi_info& info() const noexcept { return *info_; }
  fid_domain* domain() const noexcept { return domain_.get(); }
  fid_av* av() const noexcept { return av_.get(); }
  fid_cq* cq() const noexcept { return cq_.get(); }
  fid_ep* ep() const noexcept { return ep_.get(); }
  const std::string& provider() const noexcept { return provider_; }
  const std::string& address() const noexcept { return address_; }  // fi_getname
  // Transfers are done by software in this process, over TCP sockets.
  bool over_tcp() const noexcept { return over_tcp_; }
  // Readable when there is something to make progress with; see Sleepy().
  int wait_fd() const noexcept { return wait_fd_; }
  // Whether a wait on wait_fd() may begin now: nothing is ready that would not make it readable.
  bool MaySleep() const noexcept;

 private:
  Port() = default;
  Status OpenObjects();

  InfoPtr info_;
  FidPtr<fid_fabric> fabric_;
  FidPtr<fid_domain> domain_;
  FidPtr<fid_av> av_;
  FidPtr<fid_cq> cq_;
  FidPtr<fid_ep> ep_;
  std::string provider_;
  std::string address_;
  bool over_tcp_ = false;
  int wait_fd_ = -1;
};

// The bytes of an address that both sides accept: libfabric's longest is that of an InfiniBand socket.
inline constexpr std::size_t kMaxAddressBytes = 64;

// The address of this host that the kernel would use towards `address` (fi_getname bytes of a socket
// address), as text; empty if it is no socket address or nothing leads there.
std::string LocalHostTowards(const std::string& address);

}  // namespace msa::nam
