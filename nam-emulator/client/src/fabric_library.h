#pragma once
// libmsanam-fabric.so, loaded from beside this library when a region needs it.

#include <memory>
#include <string>

#include "msa/nam/fabric_client.h"

namespace msa::nam {

// This process's endpoint for a provider; made at the first call. kUnavailable: no such library or provider.
Result<FabricClient*> OpenFabric(const std::string& provider);

// A connection to a namd's endpoint; shared by all extents, made anew if it is broken.
Result<std::shared_ptr<FabricPeer>> ConnectFabric(const std::string& provider, const std::string& address);

}  // namespace msa::nam
