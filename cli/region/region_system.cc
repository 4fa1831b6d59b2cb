#include "region/region_system.h"

namespace msa::cli {

std::vector<wire::NamSegmentSpec> SegmentsOf(const wire::NamRegionInfo& region) {
  std::vector<wire::NamSegmentSpec> out;
  for (const auto& segment : region.segments) out.push_back({segment.bytes, segment.disp_unit});
  return out;
}

Status CheckSameLayout(const wire::NamRegionInfo& region, const std::vector<wire::NamSegmentSpec>& expected) {
  if (region.segments.size() != expected.size())
    return Error(Code::kFailedPrecondition, "region '{}' has {} segments, expected {}", region.name,
                 region.segments.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto& segment = region.segments[i];
    if (segment.bytes != expected[i].bytes)
      return Error(Code::kFailedPrecondition, "segment {} of region '{}' has {} bytes, expected {}", i,
                   region.name, segment.bytes, expected[i].bytes);
    if (segment.disp_unit != expected[i].disp_unit)
      return Error(Code::kFailedPrecondition,
                   "segment {} of region '{}' has displacement unit {}, expected {}", i, region.name,
                   segment.disp_unit, expected[i].disp_unit);
  }
  return Status::Ok();
}

}  // namespace msa::cli
