#include "msa/pmi1/process_mapping.h"

#include <cstdio>
#include <random>

#include <gtest/gtest.h>

#include "msa/pmi1/line.h"

namespace msa::pmi1 {
namespace {

using Nodes = std::vector<std::uint32_t>;

// As MPICH reads it.
Nodes Expand(const std::string& mapping, std::size_t size) {
  struct Block {
    unsigned first, count, ppn;
  };
  std::vector<Block> blocks;
  for (std::size_t at = mapping.find(",("); at != std::string::npos; at = mapping.find(",(", at + 1)) {
    Block block{};
    EXPECT_EQ(std::sscanf(mapping.c_str() + at, ",(%u,%u,%u)", &block.first, &block.count, &block.ppn), 3);
    blocks.push_back(block);
  }
  Nodes out;
  while (out.size() < size)
    for (const Block& block : blocks)
      for (unsigned node = 0; node < block.count; ++node)
        for (unsigned i = 0; i < block.ppn && out.size() < size; ++i) out.push_back(block.first + node);
  return out;
}

TEST(ProcessMapping, IsShortForWhatIsRegular) {
  EXPECT_EQ(ProcessMapping({0}), "(vector,(0,1,1))");
  EXPECT_EQ(ProcessMapping({0, 0, 0}), "(vector,(0,1,1))");
  EXPECT_EQ(ProcessMapping({0, 0, 1, 1, 2, 2}), "(vector,(0,3,2))") << "block";
  EXPECT_EQ(ProcessMapping({0, 1, 2, 0, 1, 2}), "(vector,(0,3,1))") << "cyclic";
  EXPECT_EQ(ProcessMapping({0, 0, 1, 1, 1, 1, 2, 2, 2, 2}), "(vector,(0,1,2),(1,2,4))") << "two modules";
  EXPECT_EQ(ProcessMapping({0, 0, 0, 1}), "(vector,(0,1,3),(1,1,1))") << "ragged";
  EXPECT_EQ(ProcessMapping({1, 0}), "(vector,(1,1,1),(0,1,1))") << "backwards";
  EXPECT_EQ(ProcessMapping({}), "");
}

TEST(ProcessMapping, OfTenThousandCyclicRanksFitsAValue) {
  Nodes nodes;
  for (std::uint32_t rank = 0; rank < 10'000; ++rank) nodes.push_back(rank % 97);
  EXPECT_LT(ProcessMapping(nodes).size(), kMaxValue);
  EXPECT_EQ(Expand(ProcessMapping(nodes), nodes.size()), nodes);
}

TEST(ProcessMapping, GivesEveryDistributionBack) {
  std::mt19937 random(7);
  for (int round = 0; round < 3'000; ++round) {
    const std::uint32_t nodes = 1 + random() % 5;
    Nodes rank_node(1 + random() % 20);
    for (std::uint32_t& node : rank_node) node = random() % nodes;
    ASSERT_EQ(Expand(ProcessMapping(rank_node), rank_node.size()), rank_node) << ProcessMapping(rank_node);
  }
}

}  // namespace
}  // namespace msa::pmi1
