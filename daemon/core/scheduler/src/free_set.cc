#include "free_set.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace msa {

CoreLayout::CoreLayout(const SystemTopology& topology) {
  first_word.reserve(topology.nodes.size() + 1);
  cores.reserve(topology.nodes.size());
  std::uint32_t word = 0;
  for (const NodeSpec& node : topology.nodes) {
    first_word.push_back(word);
    cores.push_back(node.cores);
    word += (node.cores + 63) / 64;
  }
  first_word.push_back(word);
}

FreeSet::FreeSet(const CoreLayout& layout, const SystemTopology& topology)
    : layout_(&layout), words_(layout.first_word.back(), 0), counts_(layout.cores) {
  memory_.reserve(topology.nodes.size());
  gpus_.reserve(topology.nodes.size());
  for (std::uint32_t n = 0; n < layout.nodes(); ++n) {
    for (std::uint32_t c = 0; c < layout.cores[n]; ++c)
      words_[layout.first_word[n] + c / 64] |= std::uint64_t{1} << (c % 64);
    const NodeSpec& node = topology.nodes[n];
    // Memory that nobody stated or measured yet limits nothing.
    memory_.push_back(node.memory.value == 0 ? std::numeric_limits<std::uint64_t>::max() : node.memory.value);
    gpus_.push_back(node.gpus);
  }
}

std::vector<std::uint16_t> FreeSet::TakeLowest(std::uint32_t node, std::uint32_t count) {
  std::vector<std::uint16_t> taken;
  taken.reserve(count);
  const std::uint32_t first = layout_->first_word[node];
  for (std::uint32_t w = first; w < layout_->first_word[node + 1] && taken.size() < count; ++w) {
    while (words_[w] != 0 && taken.size() < count) {
      taken.push_back(static_cast<std::uint16_t>((w - first) * 64 +
                                                 static_cast<std::uint32_t>(std::countr_zero(words_[w]))));
      words_[w] &= words_[w] - 1;
    }
  }
  counts_[node] -= static_cast<std::uint32_t>(taken.size());
  return taken;
}

void FreeSet::TakeCountable(std::uint32_t node, Bytes memory, std::uint32_t gpus) {
  if (memory_[node] != std::numeric_limits<std::uint64_t>::max())
    memory_[node] -= std::min(memory_[node], memory.value);
  gpus_[node] -= std::min(gpus_[node], gpus);
}

void FreeSet::Take(const NodeShare& share) {
  for (const std::uint16_t core : share.cores) {
    if (core >= layout_->cores[share.node]) continue;
    std::uint64_t& word = words_[layout_->first_word[share.node] + core / 64u];
    const std::uint64_t bit = std::uint64_t{1} << (core % 64u);
    counts_[share.node] -= (word & bit) != 0 ? 1 : 0;
    word &= ~bit;
  }
  TakeCountable(share.node, share.memory, share.gpus);
}

void FreeSet::Give(const NodeShare& share) {
  for (const std::uint16_t core : share.cores) {
    if (core >= layout_->cores[share.node]) continue;
    std::uint64_t& word = words_[layout_->first_word[share.node] + core / 64u];
    const std::uint64_t bit = std::uint64_t{1} << (core % 64u);
    counts_[share.node] += (word & bit) == 0 ? 1 : 0;
    word |= bit;
  }
  if (memory_[share.node] != std::numeric_limits<std::uint64_t>::max())
    memory_[share.node] += share.memory.value;
  gpus_[share.node] += share.gpus;
}

void FreeSet::Intersect(const FreeSet& other) {
  for (std::uint32_t n = 0; n < layout_->nodes(); ++n) {
    for (std::uint32_t w = layout_->first_word[n]; w < layout_->first_word[n + 1]; ++w) {
      const std::uint64_t lost = words_[w] & ~other.words_[w];
      if (lost == 0) continue;
      counts_[n] -= static_cast<std::uint32_t>(std::popcount(lost));
      words_[w] &= other.words_[w];
    }
  }
  for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i] = std::min(memory_[i], other.memory_[i]);
  for (std::size_t i = 0; i < gpus_.size(); ++i) gpus_[i] = std::min(gpus_[i], other.gpus_[i]);
}

}  // namespace msa
