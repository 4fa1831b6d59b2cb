#pragma once

#include <memory>
#include <string>

#include "msa/nam/fabric_client.h"

namespace msa::nam {

// A client of the provider of that name (empty: the best that is there). The endpoint is opened when it is
// first needed, so that it can be on the network that leads to the first server. kUnavailable: no such
// provider.
Result<std::unique_ptr<FabricClient>> OpenFabricClient(const std::string& provider);

}  // namespace msa::nam
