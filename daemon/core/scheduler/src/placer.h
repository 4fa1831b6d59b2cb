#pragma once
// Puts one job onto what is free, or says that it does not fit.

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "msa/scheduler/scheduler.h"

#include "free_set.h"

namespace msa {

// Different nodes of a placement.
std::uint32_t CountNodes(const Placement& placement);

class Placer {
 public:
  // `topology` and `layout` outlive the placer. Nodes that are not usable are never chosen.
  Placer(const SystemTopology& topology, const CoreLayout& layout);

  // All components or nothing. `request` is filled in. Node ranges get as many nodes as there are, the first
  // component first.
  std::optional<Placement> Place(const JobRequest& request, const FreeSet& free) const;
  // Whether Place finds a placement. Much faster: most requests need no look at single nodes.
  bool Fits(const JobRequest& request, const FreeSet& free) const;
  // Whether the network attached memory that it asks is free.
  static bool NamFits(const JobRequest& request, const FreeSet& free);
  static bool GatewaysFit(const JobRequest& request, const FreeSet& free);
  // False: it fits nowhere where the nodes of each module have as many free cores as FreeSet::by_free says,
  // or fewer.
  bool MayFit(const JobRequest& request, const std::vector<std::uint32_t>& by_free) const;
  // The components that fit, each in turn, where not all do.
  Placement PlaceWhatFits(const JobRequest& request, const FreeSet& free) const;

  // Usable nodes that the component may use, ascending.
  std::vector<std::uint32_t> Candidates(const ComponentRequest& component) const;
  // The module of a component that may use all usable nodes of it; nullopt: nodes are named.
  std::optional<std::uint32_t> WholeModule(const ComponentRequest& component) const;
  // The index of a node's name.
  std::optional<std::uint32_t> Find(std::string_view name) const;
  bool usable(std::uint32_t node) const { return layout_.usable[node]; }
  // Tasks of one component that a node takes when they need no core of their own.
  std::uint32_t most_shared() const { return most_shared_; }

 private:
  struct Room {
    std::uint32_t node = 0;
    std::uint32_t tasks = 0;  // how many fit
  };
  class Sizes;
  struct Work;
  enum class Answer { kWhether, kWhere };

  bool AnyNodeWillDo(const Work& work, const ComponentRequest& component) const;
  std::vector<Room> RoomFor(const Work& work, const ComponentRequest& component) const;
  std::optional<Sizes> SizesOf(const JobRequest& request, const ComponentRequest& component,
                               const std::vector<std::uint32_t>& by_free) const;
  std::uint32_t SharedPerNode(const ComponentRequest& component) const;
  std::uint32_t WidthIn(const Sizes& sizes, const JobRequest& request, const ComponentRequest& component,
                        std::uint32_t width) const;
  static std::vector<Room> Choose(const std::vector<Room>& rooms, const Sizes& sizes, std::uint32_t tasks,
                                  std::uint32_t width);
  bool PlaceComponent(Work& work, std::size_t component, std::uint32_t width, Answer answer) const;
  bool PlaceAll(Work& work, const std::vector<std::uint32_t>& widths, Answer answer) const;
  bool Widen(const JobRequest& request, const FreeSet& free, std::vector<std::uint32_t>& widths) const;
  static Placement Finish(const Work& work);

  const CoreLayout& layout_;
  std::unordered_map<std::string_view, std::uint32_t> node_by_name_;
  std::unordered_map<std::string_view, std::uint32_t> module_by_name_;
  std::vector<std::vector<std::uint32_t>> nodes_by_module_;  // usable ones
  std::uint32_t most_shared_ = 0;
};

}  // namespace msa
