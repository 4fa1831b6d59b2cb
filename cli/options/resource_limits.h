#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "msa/base/messages.h"
#include "msa/base/status.h"

namespace msa::cli {

// Those of this process that --propagate can name.
std::vector<wire::ResourceLimit> OwnLimits();

// Of `own` what srun's --propagate says: "ALL", "NONE", or names as in "NOFILE,CORE" (any case, with or
// without RLIMIT_); "": ALL. kInvalidArgument: another name, with those that there are. Pure; any thread.
Result<std::vector<wire::ResourceLimit>> Propagated(std::string_view expression,
                                                    const std::vector<wire::ResourceLimit>& own);

// "ALL", "NONE", "AS", "CORE", ...
std::vector<std::string> PropagateWords();

}  // namespace msa::cli
