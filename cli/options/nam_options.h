#pragma once
// --nam and --nam-region, which runs, allocations and batch jobs have alike. Pure; any thread.

#include <string_view>
#include <vector>

#include "msa/base/nam_region.h"
#include "msa/base/status.h"

namespace msa::cli {

inline constexpr char kNamHelp[] =
    "network attached memory for the job's windows, in MiB or with K, M, G, T: it starts when so much is "
    "free";
inline constexpr char kNamRegionHelp[] =
    "a region that the job uses, for reading alone (ro) or for both (rw, the default); repeatable";
inline constexpr std::size_t kMaxNamRegions = 256;  // of one job

// "NAME", "NAME:ro", "NAME:rw". kInvalidArgument: a name that no region can have, other rights.
Result<wire::NamRegionBinding> ParseNamRegion(std::string_view text);
// kInvalidArgument also: the region stands there already, or the list is full.
Status AddNamRegion(std::string_view text, std::vector<wire::NamRegionBinding>* to);

}  // namespace msa::cli
