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
// libpmix 4.2.2 completes a fence whose ranks are all its own by itself, by an event in its queue, and does
// so once more for each of them whose connection it finds lost before that event has run: the second event
// works on the tracker that the first has freed (lost_connection in ptl_base_sendrecv.c, _mdxcbfunc in
// pmix_server.c). Ranks that die together, as those that a job daemon kills do, hit it nearly every time. A
// fence that has been handed to the host is not completed twice. Whether all ranks are its own libpmix judges
// by the first job size that it hears, which therefore is one too large for a namespace on one node; what
// clients are told is corrected before any of them starts. Later versions mark the tracker instead
// (openpmix pull request 4127).
bool StaysOnOneNode(const NamespaceInfo& info);
// After PMIx_server_register_nspace; waits for libpmix's thread.
Status CorrectJobSize(const NamespaceInfo& info);

std::vector<std::uint32_t> LocalRanks(const NamespaceInfo& info, const std::string& node);

// Everything for PMIx_server_register_nspace. `others`: for node ranks, which count over all namespaces of
// the job. kInternal: libpmix could not encode the maps.
Result<InfoList> NamespaceInfos(const NamespaceInfo& info, const std::string& this_node,
                                const std::string& nspace_directory, const RanksPerNode& others);

}  // namespace msa::pmix
