#pragma once

#include <string>

#include "msa/base/status.h"

namespace msa::cli {

// 16 random bytes in hex: names one submission. kInternal: the kernel gives none.
Result<std::string> MakeToken();

}  // namespace msa::cli
