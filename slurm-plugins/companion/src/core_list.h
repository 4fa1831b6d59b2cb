#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "msa/base/status.h"

namespace msa::companion {

// libslurm's list of a job's cores on a node, "0-3,8". (It calls them CPUs; of a core with two threads it
// counts one, where the program has not loaded its table of nodes. Measured with 22.05.) Ascending, each
// once. "" is no core. kInternal: anything else, or a core above 65535.
Result<std::vector<std::uint16_t>> ParseCores(std::string_view list);

}  // namespace msa::companion
