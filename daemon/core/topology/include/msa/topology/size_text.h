#pragma once

#include <string>

#include "msa/base/ids.h"

namespace msa {

// "512M", "1G", "1000 bytes": exact, in the largest unit (1024) that divides it.
std::string SizeText(Bytes size);

}  // namespace msa
