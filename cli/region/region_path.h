#pragma once
// Which bytes of a region a command means.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "msa/base/nam_region.h"
#include "msa/base/status.h"

namespace msa::cli {

// NAME[/SEGMENT][@OFFSET]; NAME may be a port name or a uuid.
struct RegionPath {
  std::string region;
  std::optional<std::uint32_t> segment;
  std::uint64_t offset = 0;  // in the segment, else in all segments one after another
  friend bool operator==(const RegionPath&, const RegionPath&) = default;
};
// kInvalidArgument. Pure.
Result<RegionPath> ParseRegionPath(std::string_view text);

// A stretch of all segments, one after another.
struct RegionRange {
  std::uint64_t begin = 0;
  std::uint64_t length = 0;
  friend bool operator==(const RegionRange&, const RegionRange&) = default;
};
// From the path to the end of its segment or of the region, or `length` bytes of it. kOutOfRange: it leaves
// the segment or the region; kNotFound: no such segment. Pure.
Result<RegionRange> RangeOf(const RegionPath& path, std::optional<std::uint64_t> length,
                            const wire::NamRegionInfo& region);

struct SegmentPiece {
  std::uint32_t segment = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};
// The pieces of `range`, in order, until one fails. `range` lies in the region.
Status ForEachPiece(const wire::NamRegionInfo& region, RegionRange range,
                    const std::function<Status(const SegmentPiece&)>& visit);

}  // namespace msa::cli
