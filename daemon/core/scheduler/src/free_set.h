#pragma once
// What is free at one moment: cores as bits, memory and GPUs as counts, and how many nodes of each module
// have how many free cores, which tells in microseconds whether a request can fit at all.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "msa/scheduler/scheduler.h"

namespace msa {

// Where each node's bits stand. Shared by all sets of one snapshot.
struct CoreLayout {
  // `usable` by node index; nodes beyond its end are not usable.
  CoreLayout(const SystemTopology& topology, std::vector<bool> usable);
  std::vector<std::uint32_t> first_word;   // by node; one more than there are nodes
  std::vector<std::uint32_t> cores;        // by node
  std::vector<bool> usable;                // by node
  std::vector<std::uint32_t> module;       // by node: its place in SystemTopology::modules
  std::vector<std::uint32_t> least_cores;  // by module: of its smallest node
  // By module, and at the end for all nodes that are not usable: where its counts of nodes begin, one for
  // each number of free cores; then the end.
  std::vector<std::uint32_t> first_count;
  std::vector<std::uint32_t> first_count_of;  // by node
  std::uint32_t nodes() const { return static_cast<std::uint32_t>(cores.size()); }
};

// One word of a share's cores, so that it is taken and given back at once. Memory and GPUs stand in the first
// piece of a share.
struct Piece {
  std::uint32_t node = 0;
  std::uint32_t word = 0;  // in FreeSet
  std::uint64_t mask = 0;
  std::uint32_t cores = 0;  // bits of `mask`
  std::uint32_t gpus = 0;
  std::uint64_t memory = 0;
  // Of no node: `node` and `word` mean nothing then.
  std::uint64_t nam = 0;
  std::uint32_t gateways = 0;
  bool of_system() const { return nam != 0 || gateways != 0; }
  bool countable() const { return memory != 0 || gpus != 0 || of_system(); }
};
// Appends the pieces of `share`. Cores that do not exist (a node that shrank) are left out.
void AddPieces(const CoreLayout& layout, const NodeShare& share, std::vector<Piece>& pieces);
// What a job takes of the system as a whole.
struct SystemShare {
  Bytes nam;
  std::uint32_t gateways = 0;
};
// Appends the piece of `share`, if it is not empty.
void AddPiece(const SystemShare& share, std::vector<Piece>& pieces);

class FreeSet {
 public:
  // Everything that exists is free, and what is the system's has no bound. `layout` outlives the set.
  FreeSet(const CoreLayout& layout, const SystemTopology& topology);
  // What there is of network attached memory and gateways.
  void Bound(const SystemShare& there) {
    nam_ = static_cast<std::int64_t>(std::min(there.nam.value, kMostNam));
    gateways_ = there.gateways;
  }
  // Below 0: a NAM node went away while jobs hold what it had.
  std::int64_t nam() const { return nam_; }
  std::int64_t gateways() const { return gateways_; }

  std::uint32_t FreeCores(std::uint32_t node) const { return counts_[node]; }
  bool WhollyFree(std::uint32_t node) const { return FreeCores(node) == layout_->cores[node]; }
  std::uint64_t memory(std::uint32_t node) const { return memory_[node]; }
  // Memory that nobody stated or measured yet limits nothing.
  bool memory_limited(std::uint32_t node) const { return memory_[node] != kUnlimited; }
  std::uint32_t gpus(std::uint32_t node) const { return gpus_[node]; }

  // Usable nodes of `module` by their free cores: [i] have i. `size` entries.
  struct Counts {
    const std::uint32_t* nodes = nullptr;
    std::uint32_t size = 0;
  };
  Counts NodesByFree(std::uint32_t module) const { return CountsIn(*layout_, by_free_, module); }
  // Those of all modules together, for CountsIn.
  const std::vector<std::uint32_t>& by_free() const { return by_free_; }
  static Counts CountsIn(const CoreLayout& layout, const std::vector<std::uint32_t>& by_free,
                         std::uint32_t module) {
    const std::uint32_t first = layout.first_count[module];
    return {by_free.data() + first, layout.first_count[module + 1] - first};
  }

  // The `count` lowest free cores of `node`. count <= FreeCores(node).
  std::vector<std::uint16_t> Lowest(std::uint32_t node, std::uint32_t count) const;
  // The same, taken.
  std::vector<std::uint16_t> TakeLowest(std::uint32_t node, std::uint32_t count);
  void Take(const std::vector<Piece>& pieces);
  void Give(const std::vector<Piece>& pieces);
  void TakeCores(const std::vector<Piece>& pieces);
  // Memory and GPUs alone.
  void TakeCountable(const std::vector<Piece>& pieces);
  void GiveCountable(const std::vector<Piece>& pieces);
  // Keeps no more memory and GPUs of `node`, and no more of the system's, than there are in `other`.
  void LowerCountable(std::uint32_t node, const FreeSet& other);

 private:
  static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};
  static constexpr std::uint64_t kMostNam = std::uint64_t{1} << 62;

  void SetCount(std::uint32_t node, std::uint32_t count);
  void TakeCores(const Piece& piece);
  void TakeCountable(const Piece& piece);
  void GiveCountable(const Piece& piece);

  const CoreLayout* layout_;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint32_t> counts_;  // bits set, by node
  std::vector<std::uint64_t> memory_;
  std::vector<std::uint32_t> gpus_;
  std::vector<std::uint32_t> by_free_;  // see CoreLayout::first_count
  std::int64_t nam_ = static_cast<std::int64_t>(kMostNam);
  std::int64_t gateways_ = std::numeric_limits<std::uint32_t>::max();
};

}  // namespace msa
