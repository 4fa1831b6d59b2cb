#pragma once
// PMI_process_mapping, by which MPICH learns which ranks share a node. Pure.

#include <cstdint>
#include <string>
#include <vector>

namespace msa::pmi1 {

// "(vector,(first,count,ppn),...)": `ppn` ranks on each of `count` nodes from `first` on; the list is gone
// through again until every rank has its node. `rank_node` gives the node of each rank, by any numbers. Exact
// for every distribution, and short for block, cyclic and whatever else repeats. Empty if rank_node is.
std::string ProcessMapping(const std::vector<std::uint32_t>& rank_node);

}  // namespace msa::pmi1
