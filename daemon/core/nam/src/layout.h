#pragma once
// Where the segments of a region lie.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "msa/nam/nam_book.h"

namespace msa::nam_book {

struct Layout {
  std::vector<RegionExtent> extents;
  std::vector<wire::NamSegmentPlace> segments;  // in the order asked
};

// A NAM node that may take segments.
struct Room {
  std::string node;
  std::uint64_t free = 0;
};

// nullopt: the segments do not fit, each whole on one node. `rooms` by the topology's order; the same
// arguments give the same layout.
std::optional<Layout> PlaceSegments(const std::vector<wire::NamSegmentSpec>& segments,
                                    wire::NamPlacement placement, const std::vector<Room>& rooms);

// The same segments on the same nodes with other sizes.
Layout Resized(const Layout& old, const std::vector<Bytes>& sizes);

// Bytes of the segments on each extent: what a node is charged. What aligns them is not charged, nor headers.
std::vector<std::uint64_t> ChargesOf(const Layout& layout);

}  // namespace msa::nam_book
