#include "region/still_there.h"

#include <fmt/format.h>

namespace msa::cli {

Status CheckStillThere(RegionSystem& system, const wire::NamRegionInfo& region) {
  const auto now = system.Find(ToText(region.uuid));
  // One that is removed by force is found until its last user has let go of it: the caller, perhaps.
  const bool removed =
      now.ok() ? now->state == wire::NamRegionState::kRemoving : now.status().code() == Code::kNotFound;
  if (now.ok() && !removed && now->generation == region.generation) return Status::Ok();
  if (!now.ok() && !removed)
    return now.status().WithContext(
        fmt::format("region '{}' was written; whether it is still there could not be asked", region.name));
  return Error(Code::kAborted,
               "region '{}' was {} while it was written, what was written is lost; put it again", region.name,
               removed ? "removed" : "resized or restored");
}

}  // namespace msa::cli
