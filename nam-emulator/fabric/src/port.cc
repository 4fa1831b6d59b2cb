#include "port.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cstring>
#include <set>

#include "msa/base/unique_fd.h"

namespace msa::nam {
namespace {

constexpr std::uint32_t kApi = FI_VERSION(1, 17);
// Enough to keep a network busy; libfabric's own default of 2,048 costs memory for each.
constexpr std::size_t kQueue = 512;
constexpr std::string_view kBest[] = {"verbs;ofi_rxm", "cxi", "tcp;ofi_rxm"};

// Why a provider that libfabric offers is not taken.
std::string_view Unfit(std::string_view provider) {
  if (provider == "shm") return "waits for ever for a peer that has died";
  if (provider == "net") return "loses atomics, and does not tell when a peer has died";
  if (provider == "sockets") return "is slower than tcp;ofi_rxm by far and no longer maintained";
  if (provider == "tcp" || provider == "verbs") return "connects in pairs only: name it with ';ofi_rxm'";
  return {};
}

// What `provider` (empty: any) offers on the address `host` (empty: where it likes); null: nothing.
InfoPtr Ask(const std::string& provider, const std::string& host) {
  const InfoPtr hints(fi_allocinfo());
  if (!hints) return nullptr;
  hints->ep_attr->type = FI_EP_RDM;
  // FI_SOURCE: who sent a message, as the transport sees it.
  hints->caps = FI_MSG | FI_RMA | FI_SOURCE;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->tx_attr->msg_order = FI_ORDER_SAS;
  hints->rx_attr->msg_order = FI_ORDER_SAS;
  hints->tx_attr->size = kQueue;
  hints->rx_attr->size = kQueue;
  hints->domain_attr->threading = FI_THREAD_SAFE;
  hints->domain_attr->av_type = FI_AV_TABLE;
  // Not FI_MR_LOCAL: ofi_rxm registers local buffers itself where the device wants it, and cxi does not.
  hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  if (!provider.empty()) hints->fabric_attr->prov_name = strdup(provider.c_str());
  fi_info* found = nullptr;
  const int code = fi_getinfo(kApi, host.empty() ? nullptr : host.c_str(), nullptr,
                              host.empty() ? 0 : FI_SOURCE, hints.get(), &found);
  return InfoPtr(code == 0 ? found : nullptr);
}

std::string Offered() {
  std::string text;
  const InfoPtr all = Ask("", "");
  std::set<std::string> seen;
  for (const fi_info* info = all.get(); info != nullptr; info = info->next) {
    const std::string name = info->fabric_attr->prov_name;
    if (!Unfit(name).empty() || !seen.insert(name).second) continue;
    text += (text.empty() ? "" : ", ") + name;
  }
  return text.empty() ? "none" : text;
}

// The first address of the interface of that name; `host` itself if there is none.
std::string AddressOf(const std::string& host) {
  if (host.empty()) return host;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return host;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
      if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != family || host != i->ifa_name) continue;
      char text[NI_MAXHOST];
      const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      if (getnameinfo(i->ifa_addr, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0) return text;
    }
  }
  return host;
}

// The port stands in the source address, which is a socket address on every provider taken here but cxi.
Status SetPort(fi_info& info, std::uint16_t port) {
  if (port == 0) return Status::Ok();
  if (info.src_addr != nullptr && info.src_addrlen >= sizeof(sockaddr_in) &&
      info.addr_format == FI_SOCKADDR_IN) {
    static_cast<sockaddr_in*>(info.src_addr)->sin_port = htons(port);
    return Status::Ok();
  }
  if (info.src_addr != nullptr && info.src_addrlen >= sizeof(sockaddr_in6) &&
      info.addr_format == FI_SOCKADDR_IN6) {
    static_cast<sockaddr_in6*>(info.src_addr)->sin6_port = htons(port);
    return Status::Ok();
  }
  return Error(Code::kInvalidArgument, "port {} asked for, but provider '{}' has no ports; leave it out",
               port, info.fabric_attr->prov_name);
}

}  // namespace

Result<std::string> Port::Find(const std::string& provider) {
  if (const std::string_view why = Unfit(provider); !why.empty())
    return Error(Code::kInvalidArgument, "libfabric provider '{}' {}; there are: {}", provider, why,
                 Offered());
  if (!provider.empty()) {
    if (Ask(provider, "")) return provider;
    return Error(Code::kUnavailable, "no libfabric provider '{}' here; there are: {}", provider, Offered());
  }
  for (const std::string_view name : kBest)
    if (Ask(std::string(name), "")) return std::string(name);
  return Error(Code::kUnavailable,
               "none of libfabric's providers verbs;ofi_rxm, cxi, tcp;ofi_rxm is here; see fi_info -l");
}

Result<Port> Port::Open(const PortOptions& options) {
  Port port;
  MSA_ASSIGN_OR_RETURN(port.provider_, Find(options.provider));
  port.info_ = Ask(port.provider_, AddressOf(options.host));
  if (!port.info_)
    return Error(
        Code::kInvalidArgument,
        "libfabric provider '{}' cannot listen on '{}'; expected an address or an interface of this host",
        port.provider_, options.host);
  MSA_RETURN_IF_ERROR(SetPort(*port.info_, options.port));
  MSA_RETURN_IF_ERROR(port.OpenObjects().WithContext(fmt::format("open the fabric on {}", port.provider_)));
  port.over_tcp_ = port.provider_.find("tcp") != std::string::npos;
  return port;
}

Status Port::OpenObjects() {
  fid_fabric* fabric = nullptr;
  if (const int code = fi_fabric(info_->fabric_attr, &fabric, nullptr); code != 0)
    return FabricError(code, "fi_fabric");
  fabric_.reset(fabric);
  fid_domain* domain = nullptr;
  if (const int code = fi_domain(fabric, info_.get(), &domain, nullptr); code != 0)
    return FabricError(code, "fi_domain");
  domain_.reset(domain);
  fi_av_attr av_attr{};
  av_attr.type = FI_AV_TABLE;
  fid_av* av = nullptr;
  if (const int code = fi_av_open(domain, &av_attr, &av, nullptr); code != 0)
    return FabricError(code, "fi_av_open");
  av_.reset(av);
  fi_cq_attr cq_attr{};
  cq_attr.format = FI_CQ_FORMAT_MSG;
  cq_attr.wait_obj = FI_WAIT_FD;
  cq_attr.size = 4 * kQueue;
  fid_cq* cq = nullptr;
  if (const int code = fi_cq_open(domain, &cq_attr, &cq, nullptr); code != 0)
    return FabricError(code, "fi_cq_open");
  cq_.reset(cq);
  fid_ep* ep = nullptr;
  if (const int code = fi_endpoint(domain, info_.get(), &ep, nullptr); code != 0)
    return FabricError(code, "fi_endpoint");
  ep_.reset(ep);
  if (const int code = fi_ep_bind(ep, &av->fid, 0); code != 0) return FabricError(code, "fi_ep_bind");
  if (const int code = fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV); code != 0)
    return FabricError(code, "fi_ep_bind");
  if (const int code = fi_enable(ep); code != 0) return FabricError(code, "fi_enable");
  if (const int code = fi_control(&cq->fid, FI_GETWAIT, &wait_fd_); code != 0)
    return FabricError(code, "fi_control(FI_GETWAIT)");
  char address[kMaxAddressBytes];
  std::size_t size = sizeof address;
  if (const int code = fi_getname(&ep->fid, address, &size); code != 0)
    return FabricError(code, "fi_getname");
  address_.assign(address, size);
  return Status::Ok();
}

bool Port::MaySleep() const noexcept {
  fid* waited[] = {&cq_->fid};
  return fi_trywait(fabric_.get(), waited, 1) == 0;
}

std::string LocalHostTowards(const std::string& address) {
  sockaddr_storage to{};
  if (address.size() < sizeof(sockaddr_in) || address.size() > sizeof to) return {};
  std::memcpy(&to, address.data(), address.size());
  const bool ipv4 = to.ss_family == AF_INET && address.size() == sizeof(sockaddr_in);
  const bool ipv6 = to.ss_family == AF_INET6 && address.size() == sizeof(sockaddr_in6);
  if (!ipv4 && !ipv6) return {};
  // Sends nothing: the kernel only looks for a route.
  const UniqueFd probe(socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage from{};
  socklen_t size = sizeof from;
  if (!probe || connect(probe.get(), reinterpret_cast<const sockaddr*>(&to), address.size()) != 0 ||
      getsockname(probe.get(), reinterpret_cast<sockaddr*>(&from), &size) != 0)
    return {};
  char text[NI_MAXHOST];
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&from), size, text, sizeof text, nullptr, 0,
                  NI_NUMERICHOST) != 0)
    return {};
  return text;
}

}  // namespace msa::nam
