#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "msa/base/status.h"

namespace msa::cli {

// srun's --export: "ALL" the caller's whole environment, "NONE" what a login needs (HOME, LOGNAME, PATH,
// SHELL, USER) only, "A,B=val" this and the named variables, "ALL,B=val" everything and B. What belongs to a
// launch around this one (a run inside a run) is never passed on. kInvalidArgument: a malformed name. Pure.
Result<std::vector<std::string>> ExportEnvironment(std::string_view expression,
                                                   const std::vector<std::string>& env);

}  // namespace msa::cli
