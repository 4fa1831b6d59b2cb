#pragma once

#include <string>
#include <vector>

#include "msa/base/status.h"

namespace msa::cli {

// "cn0 bn[0-3],dn0" as names. kInvalidArgument as ExpandHostList.
Result<std::vector<std::string>> ExpandNodeNames(const std::vector<std::string>& words);

}  // namespace msa::cli
