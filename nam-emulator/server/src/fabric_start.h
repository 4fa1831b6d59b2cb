#pragma once

#include <functional>
#include <memory>
#include <string>

#include "msa/nam/fabric_server.h"

#include "extent_store.h"

namespace msa::namd {

struct FabricChoice {
  std::string provider;    // libfabric's; "none"; empty: the best that is there
  std::string host;        // empty: all
  std::uint16_t port = 0;  // 0: that of the last time, else any
};
using FabricStarter = std::function<Result<std::unique_ptr<nam::FabricServer>>(nam::FabricServerOptions)>;

// The fabric by choice; null: none is wanted, or none is there and none was named. The port of the last time
// is remembered in the backing directory and tried first: clients find a restarted namd where it was. Any
// thread; the store may be in use.
Result<std::unique_ptr<nam::FabricServer>> StartFabric(const FabricChoice& choice, const ExtentStore& store,
                                                       const FabricStarter& start);

// Of an address as fi_getname gives it, where that is a sockaddr; 0 elsewhere.
std::uint16_t PortOf(const std::string& address);

}  // namespace msa::namd
