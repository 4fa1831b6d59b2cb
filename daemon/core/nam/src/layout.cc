#include "layout.h"

#include <algorithm>
#include <numeric>

namespace msa::nam_book {
namespace {

constexpr std::uint64_t kAlign = 64;  // msa/nam/layout.h: segments share no cache line

// By segment: its room.
using Choice = std::vector<std::uint32_t>;

std::vector<std::uint32_t> LargestFirst(const std::vector<wire::NamSegmentSpec>& segments) {
  std::vector<std::uint32_t> order(segments.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return segments[a].bytes > segments[b].bytes; });
  return order;
}

// The largest first, each to the first of `use` that holds it.
std::optional<Choice> FirstFit(const std::vector<wire::NamSegmentSpec>& segments,
                               const std::vector<std::uint32_t>& order, const std::vector<Room>& rooms,
                               const std::vector<std::uint32_t>& use) {
  std::vector<std::uint64_t> free(rooms.size());
  for (std::size_t r = 0; r < rooms.size(); ++r) free[r] = rooms[r].free;
  Choice choice(segments.size(), 0);
  for (const std::uint32_t s : order) {
    const std::uint64_t bytes = ChargeOf(segments[s].bytes);
    const auto it = std::find_if(use.begin(), use.end(), [&](std::uint32_t r) { return free[r] >= bytes; });
    if (it == use.end()) return std::nullopt;
    free[*it] -= bytes;
    choice[s] = *it;
  }
  return choice;
}

// On as few rooms as hold them: the smallest that holds all, else the largest ones.
std::optional<Choice> Pack(const std::vector<wire::NamSegmentSpec>& segments,
                           const std::vector<Room>& rooms) {
  std::uint64_t total = 0;
  for (const auto& segment : segments) total += ChargeOf(segment.bytes);
  std::vector<std::uint32_t> by_free(rooms.size());
  std::iota(by_free.begin(), by_free.end(), 0u);
  std::stable_sort(by_free.begin(), by_free.end(),
                   [&](auto a, auto b) { return rooms[a].free > rooms[b].free; });
  for (auto it = by_free.rbegin(); it != by_free.rend(); ++it)
    if (rooms[*it].free >= total) return Choice(segments.size(), *it);
  const std::vector<std::uint32_t> order = LargestFirst(segments);
  std::vector<std::uint32_t> use;
  std::uint64_t free = 0;
  for (const std::uint32_t room : by_free) {
    use.push_back(room);
    free += rooms[room].free;
    if (free < total) continue;
    if (auto choice = FirstFit(segments, order, rooms, use)) return choice;
  }
  return std::nullopt;
}

// Each to the room that has got least of the region so far; equal segments go round.
std::optional<Choice> Spread(const std::vector<wire::NamSegmentSpec>& segments,
                             const std::vector<Room>& rooms) {
  std::vector<std::uint64_t> got(rooms.size(), 0);
  std::vector<std::uint64_t> count(rooms.size(), 0);
  Choice choice(segments.size(), 0);
  for (const std::uint32_t s : LargestFirst(segments)) {
    const std::uint64_t bytes = ChargeOf(segments[s].bytes);
    std::optional<std::uint32_t> best;
    for (std::uint32_t r = 0; r < rooms.size(); ++r) {
      if (rooms[r].free - got[r] < bytes) continue;
      if (!best || std::pair(got[r], count[r]) < std::pair(got[*best], count[*best])) best = r;
    }
    if (!best) return std::nullopt;
    got[*best] += bytes;
    ++count[*best];
    choice[s] = *best;
  }
  return choice;
}

// Slots, offsets and the extents' sizes, by the order of the segments.
void Arrange(Layout& layout) {
  std::vector<std::uint64_t> end(layout.extents.size(), 0);
  std::vector<std::uint32_t> slots(layout.extents.size(), 0);
  for (wire::NamSegmentPlace& segment : layout.segments) {
    std::uint64_t& at = end[segment.extent];
    at = (at + kAlign - 1) / kAlign * kAlign;
    segment.offset = at;
    segment.slot = slots[segment.extent]++;
    at += segment.bytes.value;
  }
  for (std::size_t e = 0; e < layout.extents.size(); ++e) layout.extents[e].bytes = Bytes(end[e]);
}

}  // namespace

std::optional<Layout> PlaceSegments(const std::vector<wire::NamSegmentSpec>& segments,
                                    wire::NamPlacement placement, const std::vector<Room>& rooms) {
  if (rooms.empty()) return std::nullopt;
  std::optional<Choice> choice;
  if (placement == wire::NamPlacement::kSpread) choice = Spread(segments, rooms);
  if (!choice) choice = Pack(segments, rooms);
  if (!choice) return std::nullopt;
  Layout layout;
  std::vector<std::optional<std::uint32_t>> extent_of(rooms.size());
  for (const std::uint32_t room : *choice) extent_of[room] = 0;
  for (std::size_t r = 0; r < rooms.size(); ++r) {
    if (!extent_of[r]) continue;
    extent_of[r] = static_cast<std::uint32_t>(layout.extents.size());
    layout.extents.push_back({rooms[r].node, Bytes()});
  }
  layout.segments.reserve(segments.size());
  for (std::size_t s = 0; s < segments.size(); ++s)
    layout.segments.push_back({*extent_of[(*choice)[s]], 0, 0, segments[s].bytes, segments[s].disp_unit});
  Arrange(layout);
  return layout;
}

Layout Resized(const Layout& old, const std::vector<Bytes>& sizes) {
  Layout layout = old;
  for (RegionExtent& extent : layout.extents) extent.freed = extent.damaged = false;
  for (std::size_t s = 0; s < layout.segments.size(); ++s) layout.segments[s].bytes = sizes[s];
  Arrange(layout);
  return layout;
}

std::vector<std::uint64_t> ChargesOf(const Layout& layout) {
  std::vector<std::uint64_t> charges(layout.extents.size(), 0);
  for (const wire::NamSegmentPlace& segment : layout.segments)
    charges[segment.extent] += ChargeOf(segment.bytes);
  return charges;
}

std::uint64_t SumOf(const std::vector<std::uint64_t>& charges) {
  return std::accumulate(charges.begin(), charges.end(), std::uint64_t{0});
}

}  // namespace msa::nam_book
