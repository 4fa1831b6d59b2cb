#pragma once
// --nam, --nam-region and --gateways, which runs, allocations and batch jobs have alike.

#include "msa/job/nam_options.h"

namespace msa::cli {

inline constexpr char kNamHelp[] =
    "network attached memory for the job's windows, in MiB or with K, M, G, T: it starts when so much is "
    "free";
inline constexpr char kNamRegionHelp[] =
    "a region that the job uses, for reading alone (ro) or for both (rw, the default); repeatable";

inline constexpr char kGatewaysHelp[] =
    "gateway nodes for this job alone, named in MSA_GATEWAYS: it starts when so many are free";

}  // namespace msa::cli
