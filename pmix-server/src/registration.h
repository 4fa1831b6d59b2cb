#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "msa/pmix/pmix_host.h"

#include "pmix_values.h"

namespace msa::pmix {

// How many ranks of the job's other namespaces run on a node, by the node's name; 0 for those not named.
using RanksPerNode = std::map<std::string, std::uint32_t>;

// kInvalidArgument naming what does not fit together.
Status CheckNamespace(const NamespaceInfo& info);

// Ranks of the namespace that run on `node`, ascending.
std::vector<std::uint32_t> LocalRanks(const NamespaceInfo& info, const std::string& node);

// Everything for PMIx_server_register_nspace. `others`: for node ranks, which count over all namespaces of
// the job. kInternal: libpmix could not encode the maps.
Result<InfoList> NamespaceInfos(const NamespaceInfo& info, const std::string& this_node,
                                const std::string& nspace_directory, const RanksPerNode& others);

}  // namespace msa::pmix
