#pragma once

#include <string>
#include <string_view>

#include "msa/base/ids.h"
#include "msa/base/status.h"

namespace msa {

// "512M", "1G", "1000 bytes": exact, in the largest unit (1024) that divides it.
std::string SizeText(Bytes size);

// srun's memory sizes: MiB, or with K, M, G, T (a B may follow). kInvalidArgument.
Result<Bytes> ParseMemory(std::string_view text);

}  // namespace msa
