#pragma once
// Key 'backing' of [nam] in the topology file: the directory in which NAM daemons keep the memory of regions,
// each in a directory of its own, named as its node. Not a part of SystemTopology: only daemons of the host
// have a use for it.

#include <string>
#include <string_view>

#include "msa/base/status.h"

namespace msa {

// Absolute; empty: not given. Errors as LoadTopologyFile and ParseTopology.
Result<std::string> LoadNamBacking(const std::string& path);
Result<std::string> ParseNamBacking(std::string_view text, const std::string& name);

}  // namespace msa
