#pragma once

#include <vector>

#include "client/types.h"
#include "commands/invocation.h"

namespace msa::cli {

// The picture, or the document that the call's format asks for.
Status ShowTopology(const Invocation& call, const SystemInfo& system, const std::vector<ModuleInfo>& modules,
                    const std::vector<NodeInfo>& nodes);

}  // namespace msa::cli
