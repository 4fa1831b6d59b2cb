#pragma once
// --nam, --nam-region and --gateways, as msactl and Slurm's plugin take them. Pure; any thread.

#include <cstdint>
#include <string_view>
#include <vector>

#include "msa/base/ids.h"
#include "msa/base/nam_region.h"
#include "msa/base/status.h"

namespace msa {

inline constexpr std::size_t kMaxNamRegions = 256;    // of one job
inline constexpr std::uint32_t kMaxGateways = 65536;  // likewise

// "NAME", "NAME:ro", "NAME:rw". kInvalidArgument: a name that no region can have, other rights.
Result<wire::NamRegionBinding> ParseNamRegion(std::string_view text);
// kInvalidArgument also: the region stands there already, or the list is full.
Status AddNamRegion(std::string_view text, std::vector<wire::NamRegionBinding>* to);
// Several, separated by commas. Empty: none.
Result<std::vector<wire::NamRegionBinding>> ParseNamRegions(std::string_view text);

// Of a heterogeneous job of Slurm: "SIZE" for the whole job, or "0:SIZE,1:SIZE" for its components, which are
// added up. Empty: 0. kInvalidArgument.
Result<Bytes> ParseNamOfComponents(std::string_view text);
// --gateways likewise: "2", or "0:1,1:1".
Result<std::uint32_t> ParseGatewaysOfComponents(std::string_view text);

}  // namespace msa
