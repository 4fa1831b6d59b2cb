#pragma once

#include "region/region_system.h"

namespace msa::cli {

// After writing into `region`: kAborted if it was removed, resized or restored meanwhile, so that nobody will
// find what was written. By uuid: another one may have its name.
Status CheckStillThere(RegionSystem& system, const wire::NamRegionInfo& region);

}  // namespace msa::cli
