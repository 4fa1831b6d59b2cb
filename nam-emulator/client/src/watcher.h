#pragma once
// Sees to it that an extent is attached again when its namd was restarted, and that its lease is held by the
// connection of now, whether the program calls the library or computes: else namd would not hear of its
// death, and its locks would stay, or would be given to others while it lives.

#include <memory>

#include "extent.h"

namespace msa::nam {

// From now on until it is destroyed. One sleeping thread per process, all signals blocked, begun at the first
// call.
void Watch(const std::shared_ptr<Extent>& extent);

}  // namespace msa::nam
