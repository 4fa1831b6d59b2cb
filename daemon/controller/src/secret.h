#pragma once

#include <string>

#include "msa/base/status.h"

namespace msa {

// 32 bytes of the kernel's randomness in hex: the secret of a job's daemons. kInternal: the kernel has none.
// Any thread.
Result<std::string> MakeSecret();

}  // namespace msa
