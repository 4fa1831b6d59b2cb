#include "msa/pmi1/process_mapping.h"

#include <fmt/format.h>

namespace msa::pmi1 {
namespace {

struct Block {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t ppn = 0;
};

// The shortest beginning that gives the whole when it is repeated and cut (Knuth, Morris, Pratt).
std::size_t Period(const std::vector<std::uint32_t>& items) {
  std::vector<std::size_t> border(items.size(), 0);
  for (std::size_t i = 1; i < items.size(); ++i) {
    std::size_t length = border[i - 1];
    while (length > 0 && items[i] != items[length]) length = border[length - 1];
    border[i] = items[i] == items[length] ? length + 1 : 0;
  }
  return items.size() - border.back();
}

}  // namespace

std::string ProcessMapping(const std::vector<std::uint32_t>& rank_node) {
  if (rank_node.empty()) return {};
  const std::size_t ranks = Period(rank_node);
  std::vector<Block> blocks;
  for (std::size_t begin = 0; begin < ranks;) {
    std::size_t end = begin + 1;
    while (end < ranks && rank_node[end] == rank_node[begin]) ++end;
    const auto ppn = static_cast<std::uint32_t>(end - begin);
    const bool goes_on = !blocks.empty() && blocks.back().ppn == ppn &&
                         std::uint64_t{blocks.back().first} + blocks.back().count == rank_node[begin];
    if (goes_on)
      ++blocks.back().count;
    else
      blocks.push_back({rank_node[begin], 1, ppn});
    begin = end;
  }
  std::string out = "(vector";
  for (const Block& block : blocks) out += fmt::format(",({},{},{})", block.first, block.count, block.ppn);
  return out + ")";
}

}  // namespace msa::pmi1
