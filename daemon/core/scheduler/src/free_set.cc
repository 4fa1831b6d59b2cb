#include "free_set.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_map>
#include <utility>

namespace msa {

CoreLayout::CoreLayout(const SystemTopology& topology, std::vector<bool> usable_nodes)
    : usable(std::move(usable_nodes)) {
  usable.resize(topology.nodes.size(), false);
  std::unordered_map<std::uint32_t, std::uint32_t> module_index;
  for (std::uint32_t m = 0; m < topology.modules.size(); ++m)
    module_index.emplace(topology.modules[m].id.value, m);
  const std::size_t unusable = topology.modules.size();
  std::vector<std::uint32_t> most_cores(unusable + 1, 0);
  least_cores.assign(unusable, std::numeric_limits<std::uint32_t>::max());
  first_word.reserve(topology.nodes.size() + 1);
  cores.reserve(topology.nodes.size());
  module.reserve(topology.nodes.size());
  std::uint32_t word = 0;
  for (const NodeSpec& node : topology.nodes) {
    first_word.push_back(word);
    cores.push_back(node.cores);
    module.push_back(module_index.at(node.module.value));
    std::uint32_t& most = most_cores[usable[module.size() - 1] ? module.back() : unusable];
    most = std::max(most, node.cores);
    least_cores[module.back()] = std::min(least_cores[module.back()], node.cores);
    word += (node.cores + 63) / 64;
  }
  first_word.push_back(word);
  std::uint32_t count = 0;
  for (const std::uint32_t most : most_cores) {
    first_count.push_back(count);
    count += most + 1;
  }
  first_count.push_back(count);
  for (std::uint32_t n = 0; n < nodes(); ++n)
    first_count_of.push_back(first_count[usable[n] ? module[n] : unusable]);
}

void AddPieces(const CoreLayout& layout, const NodeShare& share, std::vector<Piece>& pieces) {
  const std::size_t first = pieces.size();
  for (const std::uint16_t core : share.cores) {
    if (core >= layout.cores[share.node]) continue;
    const std::uint32_t word = layout.first_word[share.node] + core / 64u;
    // Cores are ascending, as a rule: the word is that of the core before.
    if (pieces.size() == first || pieces.back().word != word)
      pieces.push_back({.node = share.node, .word = word});
    const std::uint64_t bit = std::uint64_t{1} << (core % 64u);
    pieces.back().cores += (pieces.back().mask & bit) == 0 ? 1 : 0;
    pieces.back().mask |= bit;
  }
  if (share.memory.value == 0 && share.gpus == 0) return;
  if (pieces.size() == first) pieces.push_back({.node = share.node, .word = layout.first_word[share.node]});
  pieces[first].memory = share.memory.value;
  pieces[first].gpus = share.gpus;
}

void AddPiece(const SystemShare& share, std::vector<Piece>& pieces) {
  // More than any memory; sums of what jobs hold stay in range.
  constexpr std::uint64_t kMost = std::uint64_t{1} << 56;
  if (share.nam.value == 0 && share.gateways == 0) return;
  pieces.push_back({.nam = std::min(share.nam.value, kMost), .gateways = share.gateways});
}

// One word more than there are cores for: pieces without cores name one, too.
FreeSet::FreeSet(const CoreLayout& layout, const SystemTopology& topology)
    : layout_(&layout),
      words_(layout.first_word.back() + 1, ~std::uint64_t{0}),
      counts_(layout.cores),
      by_free_(layout.first_count.back(), 0) {
  memory_.reserve(topology.nodes.size());
  gpus_.reserve(topology.nodes.size());
  for (std::uint32_t n = 0; n < layout.nodes(); ++n) {
    const std::uint32_t cores = layout.cores[n];
    if (cores % 64 != 0) words_[layout.first_word[n + 1] - 1] = (std::uint64_t{1} << (cores % 64)) - 1;
    const NodeSpec& node = topology.nodes[n];
    memory_.push_back(node.memory.value == 0 ? kUnlimited : node.memory.value);
    gpus_.push_back(node.gpus);
    ++by_free_[layout.first_count_of[n] + cores];
  }
}

inline void FreeSet::SetCount(std::uint32_t node, std::uint32_t count) {
  std::uint32_t* const by_free = by_free_.data() + layout_->first_count_of[node];
  --by_free[std::exchange(counts_[node], count)];
  ++by_free[count];
}

std::vector<std::uint16_t> FreeSet::Lowest(std::uint32_t node, std::uint32_t count) const {
  std::vector<std::uint16_t> lowest;
  lowest.reserve(count);
  const std::uint32_t first = layout_->first_word[node];
  for (std::uint32_t w = first; w < layout_->first_word[node + 1] && lowest.size() < count; ++w)
    for (std::uint64_t bits = words_[w]; bits != 0 && lowest.size() < count; bits &= bits - 1)
      lowest.push_back(
          static_cast<std::uint16_t>((w - first) * 64 + static_cast<std::uint32_t>(std::countr_zero(bits))));
  return lowest;
}

std::vector<std::uint16_t> FreeSet::TakeLowest(std::uint32_t node, std::uint32_t count) {
  std::vector<std::uint16_t> taken = Lowest(node, count);
  for (const std::uint16_t core : taken)
    words_[layout_->first_word[node] + core / 64u] &= ~(std::uint64_t{1} << (core % 64u));
  SetCount(node, counts_[node] - static_cast<std::uint32_t>(taken.size()));
  return taken;
}

inline void FreeSet::TakeCores(const Piece& piece) {
  std::uint64_t& word = words_[piece.word];
  const std::uint64_t lost = word & piece.mask;
  if (lost == 0) return;
  word &= ~piece.mask;
  // As a rule all of them are free: a popcount is a function call on the oldest processors that this runs on.
  const auto count = lost == piece.mask ? piece.cores : static_cast<std::uint32_t>(std::popcount(lost));
  SetCount(piece.node, counts_[piece.node] - count);
}

inline void FreeSet::TakeCountable(const Piece& piece) {
  if (!piece.countable()) return;
  nam_ -= static_cast<std::int64_t>(piece.nam);
  gateways_ -= piece.gateways;
  if (memory_limited(piece.node)) memory_[piece.node] -= std::min(memory_[piece.node], piece.memory);
  gpus_[piece.node] -= std::min(gpus_[piece.node], piece.gpus);
}

inline void FreeSet::GiveCountable(const Piece& piece) {
  if (!piece.countable()) return;
  nam_ += static_cast<std::int64_t>(piece.nam);
  gateways_ += piece.gateways;
  if (memory_limited(piece.node)) memory_[piece.node] += piece.memory;
  gpus_[piece.node] += piece.gpus;
}

void FreeSet::Take(const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) {
    TakeCores(piece);
    TakeCountable(piece);
  }
}

void FreeSet::Give(const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) {
    std::uint64_t& word = words_[piece.word];
    const std::uint64_t won = piece.mask & ~word;
    if (won != 0) {
      word |= piece.mask;
      const auto count = won == piece.mask ? piece.cores : static_cast<std::uint32_t>(std::popcount(won));
      SetCount(piece.node, counts_[piece.node] + count);
    }
    GiveCountable(piece);
  }
}

void FreeSet::TakeCores(const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) TakeCores(piece);
}

void FreeSet::TakeCountable(const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) TakeCountable(piece);
}

void FreeSet::GiveCountable(const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) GiveCountable(piece);
}

void FreeSet::LowerCountable(std::uint32_t node, const FreeSet& other) {
  memory_[node] = std::min(memory_[node], other.memory_[node]);
  gpus_[node] = std::min(gpus_[node], other.gpus_[node]);
  nam_ = std::min(nam_, other.nam_);
  gateways_ = std::min(gateways_, other.gateways_);
}

}  // namespace msa
