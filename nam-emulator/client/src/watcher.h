#pragma once
// Sees to it that a mapped extent is attached again when its namd was restarted, whether the program calls
// the library or computes: else namd would not hear of its death, and its locks would stay.

#include <memory>

#include "extent.h"

namespace msa::nam {

// From now on until it is destroyed. One sleeping thread per process, all signals blocked, begun at the first
// call.
void Watch(const std::shared_ptr<Extent>& extent);

// Outside a job the controller holds a lease for the connection by which it was asked for. When that ends
// with its namd, the lease is asked for again over the next one, whichever namd that leads to; the region may
// lie elsewhere and not notice.
void Keep(const std::shared_ptr<Lease>& lease);

}  // namespace msa::nam
