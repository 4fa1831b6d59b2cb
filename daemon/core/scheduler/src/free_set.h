#pragma once
// What is free at one moment: cores as bits, memory and GPUs as counts. One flat array, so that copies and
// intersections of 10,000 nodes take microseconds.

#include <cstdint>
#include <vector>

#include "msa/scheduler/scheduler.h"

namespace msa {

// Where each node's bits stand. Shared by all sets of one snapshot.
struct CoreLayout {
  explicit CoreLayout(const SystemTopology& topology);
  std::vector<std::uint32_t> first_word;  // by node; one more than there are nodes
  std::vector<std::uint32_t> cores;       // by node
  std::uint32_t nodes() const { return static_cast<std::uint32_t>(cores.size()); }
};

class FreeSet {
 public:
  // Everything that exists is free. `layout` outlives the set.
  FreeSet(const CoreLayout& layout, const SystemTopology& topology);

  std::uint32_t FreeCores(std::uint32_t node) const { return counts_[node]; }
  bool WhollyFree(std::uint32_t node) const { return FreeCores(node) == layout_->cores[node]; }
  std::uint64_t memory(std::uint32_t node) const { return memory_[node]; }
  std::uint32_t gpus(std::uint32_t node) const { return gpus_[node]; }

  // The `count` lowest free cores of `node`, taken. count <= FreeCores(node).
  std::vector<std::uint16_t> TakeLowest(std::uint32_t node, std::uint32_t count);
  void TakeCountable(std::uint32_t node, Bytes memory, std::uint32_t gpus);
  // Takes or gives back a share. Cores that do not exist (a node that shrank) are ignored.
  void Take(const NodeShare& share);
  void Give(const NodeShare& share);
  // Keeps what is free in both.
  void Intersect(const FreeSet& other);

 private:
  const CoreLayout* layout_;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint32_t> counts_;  // bits set, by node
  std::vector<std::uint64_t> memory_;
  std::vector<std::uint32_t> gpus_;
};

}  // namespace msa
