#include "region/region_path.h"

#include <algorithm>

#include "options/values.h"
#include "region/region_values.h"

namespace msa::cli {
namespace {

std::uint64_t TotalOf(const wire::NamRegionInfo& region) {
  std::uint64_t out = 0;
  for (const auto& segment : region.segments) out += segment.bytes.value;
  return out;
}

}  // namespace

Result<RegionPath> ParseRegionPath(std::string_view text) {
  RegionPath out;
  std::string_view rest = text;
  if (const std::size_t at = rest.find('@'); at != std::string_view::npos) {
    auto offset = ParseByteCount(rest.substr(at + 1));
    if (!offset.ok()) return offset.status().WithContext(fmt::format("region '{}': offset", text));
    out.offset = *offset;
    rest = rest.substr(0, at);
  }
  if (const std::size_t slash = rest.find('/'); slash != std::string_view::npos) {
    const auto segment = ParseNumber(rest.substr(slash + 1), {0, wire::kMaxNamSegments - 1});
    if (!segment.ok()) return segment.status().WithContext(fmt::format("region '{}': segment", text));
    out.segment = static_cast<std::uint32_t>(*segment);
    rest = rest.substr(0, slash);
  }
  MSA_ASSIGN_OR_RETURN(out.region, ParseRegionName(rest));
  return out;
}

Result<RegionRange> RangeOf(const RegionPath& path, std::optional<std::uint64_t> length,
                            const wire::NamRegionInfo& region) {
  RegionRange out;
  std::uint64_t room = TotalOf(region);
  std::string where = fmt::format("region '{}'", region.name);
  if (path.segment) {
    if (*path.segment >= region.segments.size())
      return Error(Code::kNotFound, "region '{}' has no segment {}: its segments are 0 to {}", region.name,
                   *path.segment, region.segments.size() - 1);
    for (std::uint32_t i = 0; i < *path.segment; ++i) out.begin += region.segments[i].bytes.value;
    room = region.segments[*path.segment].bytes.value;
    where = fmt::format("segment {} of region '{}'", *path.segment, region.name);
  }
  if (path.offset > room)
    return Error(Code::kOutOfRange, "offset {} is not in {}, which has {} bytes", path.offset, where, room);
  const std::uint64_t left = room - path.offset;
  if (length && *length > left)
    return Error(Code::kOutOfRange,
                 "{} bytes from offset {} on are more than {} has: {} bytes, {} from there", *length,
                 path.offset, where, room, left);
  out.begin += path.offset;
  out.length = length.value_or(left);
  return out;
}

Status ForEachPiece(const wire::NamRegionInfo& region, RegionRange range,
                    const std::function<Status(const SegmentPiece&)>& visit) {
  std::uint64_t first = 0;  // of the segment, in the row of all
  for (std::uint32_t i = 0; i < region.segments.size() && range.length > 0; ++i) {
    const std::uint64_t bytes = region.segments[i].bytes.value;
    if (range.begin < first + bytes) {
      const std::uint64_t offset = range.begin - first;
      const std::uint64_t take = std::min(range.length, bytes - offset);
      MSA_RETURN_IF_ERROR(visit({i, offset, take}));
      range.begin += take;
      range.length -= take;
    }
    first += bytes;
  }
  if (range.length == 0) return Status::Ok();
  return Error(Code::kOutOfRange, "{} bytes beyond the end of region '{}'", range.length, region.name);
}

}  // namespace msa::cli
