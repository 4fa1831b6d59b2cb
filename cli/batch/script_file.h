#pragma once

#include <string>

#include "msa/base/status.h"

namespace msa::cli {

// The text of a batch script; "-" is standard input. kInvalidArgument: it has more than kMaxScriptBytes; else
// as the system says.
Result<std::string> ReadScriptFile(const std::string& path);

}  // namespace msa::cli
