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

// What a segment is charged: its bytes, but not less than its lock takes in the extent's header (msa/nam/
// layout.h), so that segments without bytes are not had for nothing. What aligns them is not charged.
inline constexpr std::uint64_t kMinCharge = 192;
constexpr std::uint64_t ChargeOf(Bytes bytes) { return bytes.value < kMinCharge ? kMinCharge : bytes.value; }

// Of the segments on each extent: what a node is charged.
std::vector<std::uint64_t> ChargesOf(const Layout& layout);
std::uint64_t SumOf(const std::vector<std::uint64_t>& charges);

}  // namespace msa::nam_book
