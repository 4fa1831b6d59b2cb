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

class Placer {
 public:
  // `topology` and `layout` outlive the placer. Nodes that are not usable are never chosen.
  Placer(const SystemTopology& topology, const CoreLayout& layout, std::vector<bool> usable);

  // All components or nothing. `request` is filled in. Node ranges get as many nodes as there are, the first
  // component first.
  std::optional<Placement> Place(const JobRequest& request, const FreeSet& free) const;
  // The components that fit, each in turn, where not all do.
  Placement PlaceWhatFits(const JobRequest& request, const FreeSet& free) const;

  // Usable nodes that the component may use, ascending.
  std::vector<std::uint32_t> Candidates(const ComponentRequest& component) const;
  // The index of a node's name.
  std::optional<std::uint32_t> Find(std::string_view name) const;
  bool usable(std::uint32_t node) const { return usable_[node]; }

 private:
  struct Room {
    std::uint32_t node = 0;
    std::uint32_t tasks = 0;  // how many fit
  };
  struct Work;

  std::vector<Room> RoomFor(const Work& work, std::size_t component) const;
  std::vector<Room> Choose(const ComponentRequest& component, std::vector<Room> rooms,
                           std::uint32_t width) const;
  static std::uint32_t WidthFor(const Work& work, const ComponentRequest& component,
                                const std::vector<Room>& rooms, std::uint32_t width);
  bool PlaceComponent(Work& work, std::size_t component, std::uint32_t width) const;
  std::optional<Placement> PlaceWidths(const JobRequest& request, const FreeSet& free,
                                       const std::vector<std::uint32_t>& widths) const;
  static void Finish(Work& work);

  const SystemTopology& topology_;
  const CoreLayout& layout_;
  std::vector<bool> usable_;
  std::unordered_map<std::string_view, std::uint32_t> node_by_name_;
  std::unordered_map<std::string_view, std::vector<std::uint32_t>> nodes_by_module_;
};

}  // namespace msa
