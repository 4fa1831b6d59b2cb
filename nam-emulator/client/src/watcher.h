#pragma once
// Sees to it that a mapped extent is attached again when its namd was restarted, whether the program calls
// the library or computes: else namd would not hear of its death, and its locks would stay.

#include <memory>

#include "extent.h"

namespace msa::nam {

// From now on until it is destroyed. One sleeping thread per process, all signals blocked, begun at the first
// call.
void Watch(const std::shared_ptr<Extent>& extent);

}  // namespace msa::nam
