#include "placer.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace msa {
namespace {

constexpr std::uint32_t kNoLimit = 0xffffffffu;

// Nodelists first, then whole nodes, then the largest pieces: what is least flexible chooses first.
std::vector<std::size_t> OrderOf(const JobRequest& request) {
  std::vector<std::size_t> order(request.components.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto key = [&](std::size_t i) {
    const ComponentRequest& c = request.components[i];
    const std::uint64_t tasks_a_node = c.ntasks / std::max(1u, c.min_nodes);
    return std::tuple(c.nodelist.empty(), !c.exclusive, c.fewest_nodes, ~(tasks_a_node * c.cpus_per_task), i);
  };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return order;
}

std::uint32_t TasksAtWidth(const ComponentRequest& component, std::uint32_t width) {
  return component.ntasks != 0 ? component.ntasks : width * std::max(1u, component.ntasks_per_node);
}

}  // namespace

struct Placer::Work {
  const JobRequest& request;
  const FreeSet& before;  // what was free before this job took anything
  FreeSet free;
  Placement placement;
};

Placer::Placer(const SystemTopology& topology, const CoreLayout& layout, std::vector<bool> usable)
    : topology_(topology), layout_(layout), usable_(std::move(usable)) {
  usable_.resize(topology.nodes.size(), false);
  std::unordered_map<std::uint32_t, std::string_view> module_names;
  for (const Module& module : topology.modules) module_names.emplace(module.id.value, module.name);
  for (std::uint32_t n = 0; n < topology.nodes.size(); ++n) {
    node_by_name_.emplace(topology.nodes[n].name, n);
    if (usable_[n]) nodes_by_module_[module_names[topology.nodes[n].module.value]].push_back(n);
  }
}

std::optional<std::uint32_t> Placer::Find(std::string_view name) const {
  const auto it = node_by_name_.find(name);
  if (it == node_by_name_.end()) return std::nullopt;
  return it->second;
}

std::vector<std::uint32_t> Placer::Candidates(const ComponentRequest& component) const {
  std::vector<std::uint32_t> nodes;
  if (!component.nodelist.empty()) {
    for (const std::string& name : component.nodelist)
      if (const auto node = Find(name); node && usable_[*node]) nodes.push_back(*node);
    std::sort(nodes.begin(), nodes.end());
  } else if (const auto it = nodes_by_module_.find(component.module); it != nodes_by_module_.end()) {
    nodes = it->second;
  }
  if (component.exclude.empty()) return nodes;
  std::vector<std::uint32_t> excluded;
  for (const std::string& name : component.exclude)
    if (const auto node = Find(name)) excluded.push_back(*node);
  std::sort(excluded.begin(), excluded.end());
  std::erase_if(nodes,
                [&](std::uint32_t n) { return std::binary_search(excluded.begin(), excluded.end(), n); });
  return nodes;
}

std::vector<Placer::Room> Placer::RoomFor(const Work& work, std::size_t component) const {
  const ComponentRequest& c = work.request.components[component];
  const std::uint32_t per_node = c.ntasks_per_node == 0 ? kNoLimit : c.ntasks_per_node;
  std::vector<Room> rooms;
  for (const std::uint32_t node : Candidates(c)) {
    const std::uint32_t free = work.free.FreeCores(node);
    if (free == 0 || work.free.memory(node) < c.memory.value || work.free.gpus(node) < c.gpus_per_node)
      continue;
    if (c.exclusive && !work.before.WhollyFree(node)) continue;
    std::uint32_t tasks = free / c.cpus_per_task;
    // Sized by the whole node: the tasks share what is free of it.
    if (work.request.oversubscribe) tasks = std::max(1u, layout_.cores[node] / c.cpus_per_task);
    tasks = std::min(tasks, per_node);
    if (tasks > 0) rooms.push_back({node, tasks});
  }
  return rooms;
}

// Exactly `width` nodes that together hold the tasks, ascending by node; empty if there are none such.
std::vector<Placer::Room> Placer::Choose(const ComponentRequest& component, std::vector<Room> rooms,
                                         std::uint32_t width) const {
  if (rooms.size() < width) return {};
  const std::uint32_t tasks = TasksAtWidth(component, width);
  const std::uint32_t each = (tasks + width - 1) / width;
  // Best fit: the fullest nodes that still hold an even share keep the emptier ones whole for others.
  std::vector<Room> chosen;
  for (const Room& room : rooms)
    if (room.tasks >= each) chosen.push_back(room);
  const bool even = chosen.size() >= width;
  if (!even) chosen = std::move(rooms);
  const auto fuller = [](const Room& a, const Room& b) {
    return std::tie(a.tasks, a.node) < std::tie(b.tasks, b.node);
  };
  const auto emptier = [](const Room& a, const Room& b) {
    return std::tuple(~a.tasks, a.node) < std::tuple(~b.tasks, b.node);
  };
  if (even) {
    std::nth_element(chosen.begin(), chosen.begin() + (width - 1), chosen.end(), fuller);
  } else {
    std::nth_element(chosen.begin(), chosen.begin() + (width - 1), chosen.end(), emptier);
  }
  chosen.resize(width);
  std::sort(chosen.begin(), chosen.end(), [](const Room& a, const Room& b) { return a.node < b.node; });
  return chosen;
}

// Tasks go round the nodes one at a time, as Slurm's block layout counts them; ranks are consecutive on each
// node.
static bool Deal(std::vector<std::uint32_t>& counts, const std::vector<std::uint32_t>& room,
                 std::uint32_t tasks) {
  std::uint64_t total = 0;
  for (const std::uint32_t r : room) total += r;
  if (total < tasks) return false;
  counts.assign(room.size(), 0);
  while (tasks > 0) {
    for (std::size_t i = 0; i < room.size() && tasks > 0; ++i) {
      if (counts[i] == room[i]) continue;
      ++counts[i];
      --tasks;
    }
  }
  return true;
}

// The fewest nodes, `width` at least, that hold the tasks; 0: there are none.
std::uint32_t Placer::WidthFor(const Work& work, const ComponentRequest& c, const std::vector<Room>& rooms,
                               std::uint32_t width) {
  std::vector<std::uint32_t> sizes;
  sizes.reserve(rooms.size());
  for (const Room& room : rooms) sizes.push_back(room.tasks);
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  std::uint64_t held = 0;
  std::uint32_t needed = 0;
  while (needed < sizes.size() && needed < c.max_nodes && (held < c.ntasks || needed < width))
    held += sizes[needed++];
  if (needed < width) return 0;
  if (held < c.ntasks && !work.request.oversubscribe) return 0;
  return needed;
}

bool Placer::PlaceComponent(Work& work, std::size_t index, std::uint32_t width) const {
  const ComponentRequest& c = work.request.components[index];
  const bool shared = work.request.oversubscribe;
  std::vector<Room> rooms = RoomFor(work, index);
  if (c.ntasks != 0 && width < c.max_nodes) width = WidthFor(work, c, rooms, width);
  if (width == 0) return false;
  const std::vector<Room> chosen = Choose(c, std::move(rooms), width);
  if (chosen.empty()) return false;
  std::vector<std::uint32_t> room;
  for (const Room& r : chosen)
    room.push_back(shared && c.ntasks_per_node == 0 ? kNoLimit : shared ? c.ntasks_per_node : r.tasks);
  std::vector<std::uint32_t> counts;
  if (!Deal(counts, room, TasksAtWidth(c, width))) return false;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (counts[i] == 0) return false;
    NodeShare share;
    share.component = static_cast<std::uint32_t>(index);
    share.node = chosen[i].node;
    share.tasks = counts[i];
    share.memory = c.memory;
    share.gpus = c.gpus_per_node;
    share.cores = work.free.TakeLowest(share.node, shared ? 1 : counts[i] * c.cpus_per_task);
    work.free.TakeCountable(share.node, c.memory, c.gpus_per_node);
    work.placement.push_back(std::move(share));
  }
  return true;
}

// Hands out what is left on the job's own nodes: to shared tasks up to what they would need, to whole-node
// components all.
void Placer::Finish(Work& work) {
  std::sort(work.placement.begin(), work.placement.end(), [](const NodeShare& a, const NodeShare& b) {
    return std::tie(a.component, a.node) < std::tie(b.component, b.node);
  });
  for (NodeShare& share : work.placement) {
    const ComponentRequest& c = work.request.components[share.component];
    if (!work.request.oversubscribe && !c.exclusive) continue;
    std::uint32_t extra = work.free.FreeCores(share.node);
    const std::uint64_t needed = std::uint64_t{share.tasks} * c.cpus_per_task;
    const std::uint64_t has = share.cores.size();
    if (!c.exclusive)
      extra = static_cast<std::uint32_t>(std::min<std::uint64_t>(extra, needed > has ? needed - has : 0));
    const std::vector<std::uint16_t> more = work.free.TakeLowest(share.node, extra);
    share.cores.insert(share.cores.end(), more.begin(), more.end());
    std::sort(share.cores.begin(), share.cores.end());
  }
}

std::optional<Placement> Placer::PlaceWidths(const JobRequest& request, const FreeSet& free,
                                             const std::vector<std::uint32_t>& widths) const {
  Work work{request, free, free, {}};
  for (const std::size_t component : OrderOf(request))
    if (!PlaceComponent(work, component, widths[component])) return std::nullopt;
  Finish(work);
  return std::move(work.placement);
}

std::optional<Placement> Placer::Place(const JobRequest& request, const FreeSet& free) const {
  std::vector<std::uint32_t> widths;
  for (const ComponentRequest& c : request.components) widths.push_back(c.min_nodes);
  std::optional<Placement> best = PlaceWidths(request, free, widths);
  if (!best) return best;
  for (std::size_t i = 0; i < request.components.size(); ++i) {
    const ComponentRequest& c = request.components[i];
    if (c.fewest_nodes || c.max_nodes <= c.min_nodes) continue;
    std::uint32_t fits = c.min_nodes;
    std::uint32_t fails = std::min<std::uint32_t>(c.max_nodes, layout_.nodes()) + 1;
    while (fails - fits > 1) {
      widths[i] = fits + (fails - fits) / 2;
      if (auto wider = PlaceWidths(request, free, widths)) {
        best = std::move(wider);
        fits = widths[i];
      } else {
        fails = widths[i];
      }
    }
    widths[i] = fits;
  }
  return best;
}

Placement Placer::PlaceWhatFits(const JobRequest& request, const FreeSet& free) const {
  Work work{request, free, free, {}};
  for (const std::size_t component : OrderOf(request))
    (void)PlaceComponent(work, component, request.components[component].min_nodes);
  Finish(work);
  return std::move(work.placement);
}

}  // namespace msa
