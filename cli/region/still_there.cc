#include "region/still_there.h"

#include <fmt/format.h>

namespace msa::cli {

Status CheckStillThere(RegionSystem& system, const wire::NamRegionInfo& region) {
  const auto now = system.Find(ToText(region.uuid));
  if (now.ok() && now->generation == region.generation) return Status::Ok();
  if (!now.ok() && now.status().code() != Code::kNotFound)
    return now.status().WithContext(
        fmt::format("region '{}' was written; whether it is still there could not be asked", region.name));
  return Error(Code::kAborted,
               "region '{}' was {} while it was written, what was written is lost; put it again", region.name,
               now.ok() ? "resized or restored" : "removed");
}

}  // namespace msa::cli
