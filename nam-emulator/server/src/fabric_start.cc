#include "fabric_start.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include <spdlog/spdlog.h>

namespace msa::namd {

std::uint16_t PortOf(const std::string& address) {
  sockaddr_storage storage{};
  std::memcpy(&storage, address.data(), std::min(address.size(), sizeof storage));
  if (storage.ss_family == AF_INET && address.size() >= sizeof(sockaddr_in))
    return ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
  if (storage.ss_family == AF_INET6 && address.size() >= sizeof(sockaddr_in6))
    return ntohs(reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
  return 0;
}

Result<std::unique_ptr<nam::FabricServer>> StartFabric(const FabricChoice& choice, const ExtentStore& store,
                                                       const FabricStarter& start) {
  if (choice.provider == "none") return std::unique_ptr<nam::FabricServer>();
  const std::uint64_t last = store.Fact(kPortFact).value_or(0);
  nam::FabricServerOptions options{choice.provider, choice.host, choice.port};
  if (choice.port == 0 && last <= UINT16_MAX) options.port = static_cast<std::uint16_t>(last);
  auto server = start(options);
  if (!server.ok() && choice.port == 0 && options.port != 0) {
    spdlog::info("port {} of the last time: {}; taking any", options.port, server.status().message());
    options.port = 0;
    server = start(options);
  }
  if (!server.ok()) {
    if (!choice.provider.empty())
      return server.status().WithContext("fabric provider '" + choice.provider + "'");
    spdlog::warn("no fabric: {}; only processes on this host reach the memory", server.status().message());
    return std::unique_ptr<nam::FabricServer>();
  }
  const std::uint16_t port = PortOf((*server)->address());
  spdlog::info("fabric provider '{}', port {}", (*server)->provider(), port);
  if (port != 0)
    if (const Status status = store.SetFact(kPortFact, port); !status.ok())
      spdlog::warn("the next start may take another port: {}", status.message());
  return server;
}

}  // namespace msa::namd
