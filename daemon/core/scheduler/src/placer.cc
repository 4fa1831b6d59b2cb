#include "placer.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace msa {
namespace {

constexpr std::uint32_t kNoLimit = 0xffffffffu;
// Tasks that share cores: more of them than a machine starts in half a minute are a mistake that nobody can
// end in good time. The larger of a number for a node and one for each core of the largest node.
constexpr std::uint32_t kSharedPerNode = 4096;
constexpr std::uint32_t kSharedPerCore = 512;

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

std::uint32_t PerNode(const ComponentRequest& c) {
  return c.ntasks_per_node == 0 ? kNoLimit : c.ntasks_per_node;
}

}  // namespace

// How many nodes hold how many tasks of a component: all that decides whether it fits.
class Placer::Sizes {
 public:
  void Add(std::uint32_t tasks, std::uint32_t nodes) {
    if (tasks == 0 || nodes == 0) return;
    if (tasks >= nodes_.size()) nodes_.resize(tasks + 1, 0);
    nodes_[tasks] += nodes;
    total_ += nodes;
  }
  std::uint32_t total() const { return total_; }
  std::uint32_t largest() const { return nodes_.empty() ? 0 : static_cast<std::uint32_t>(nodes_.size()) - 1; }
  std::uint32_t nodes(std::uint32_t tasks) const { return nodes_[tasks]; }
  std::uint32_t AtLeast(std::uint32_t tasks) const {
    std::uint32_t nodes = 0;
    for (std::uint32_t t = tasks; t < nodes_.size(); ++t) nodes += nodes_[t];
    return nodes;
  }
  // Tasks that the `width` nodes with the most room hold.
  std::uint64_t Hold(std::uint32_t width) const {
    std::uint64_t held = 0;
    for (std::uint32_t t = largest(); t > 0 && width > 0; --t) {
      const std::uint32_t n = std::min(width, nodes_[t]);
      held += std::uint64_t{n} * t;
      width -= n;
    }
    return held;
  }
  // The fewest nodes, `width` at least and `most` at most, that hold `tasks`; `most`, or all, if none do.
  std::uint32_t Needed(std::uint32_t tasks, std::uint32_t width, std::uint32_t most) const {
    std::uint64_t held = 0;
    std::uint32_t needed = 0;
    for (std::uint32_t t = largest(); t > 0; --t) {
      const std::uint64_t lacking = held < tasks ? tasks - held : 0;
      const std::uint64_t for_tasks = (lacking + t - 1) / t;
      const std::uint64_t for_width = width > needed ? width - needed : 0;
      const std::uint64_t want =
          std::min<std::uint64_t>(most > needed ? most - needed : 0, std::max(for_tasks, for_width));
      const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(nodes_[t], want));
      held += std::uint64_t{n} * t;
      needed += n;
      if (n == want) break;
    }
    return needed;
  }

 private:
  std::vector<std::uint32_t> nodes_;  // by tasks
  std::uint32_t total_ = 0;
};

struct Placer::Work {
  // What earlier components of the job have taken of a node.
  struct Taken {
    std::uint32_t cores = 0;
    std::uint32_t gpus = 0;
    std::uint64_t memory = 0;
  };
  const JobRequest& request;
  const FreeSet& free;
  std::vector<Taken> taken;  // by node; empty: nothing yet
  struct Share {
    NodeShare share;  // without its cores
    std::uint32_t cores = 0;
  };
  std::vector<Share> shares;  // in the order in which they choose their cores
};

Placer::Placer(const SystemTopology& topology, const CoreLayout& layout) : layout_(layout) {
  for (std::uint32_t m = 0; m < topology.modules.size(); ++m)
    module_by_name_.emplace(topology.modules[m].name, m);
  nodes_by_module_.resize(topology.modules.size());
  node_by_name_.reserve(topology.nodes.size());
  for (std::uint32_t n = 0; n < topology.nodes.size(); ++n) {
    node_by_name_.emplace(topology.nodes[n].name, n);
    if (layout.usable[n]) nodes_by_module_[layout.module[n]].push_back(n);
  }
  std::uint32_t cores = 0;
  for (const std::uint32_t of_node : layout.cores) cores = std::max(cores, of_node);
  most_shared_ = std::max(kSharedPerNode, kSharedPerCore * cores);
}

std::optional<std::uint32_t> Placer::Find(std::string_view name) const {
  const auto it = node_by_name_.find(name);
  if (it == node_by_name_.end()) return std::nullopt;
  return it->second;
}

std::optional<std::uint32_t> Placer::WholeModule(const ComponentRequest& component) const {
  if (!component.nodelist.empty() || !component.exclude.empty()) return std::nullopt;
  const auto it = module_by_name_.find(component.module);
  if (it == module_by_name_.end()) return std::nullopt;
  return it->second;
}

std::vector<std::uint32_t> Placer::Candidates(const ComponentRequest& component) const {
  std::vector<std::uint32_t> nodes;
  if (!component.nodelist.empty()) {
    for (const std::string& name : component.nodelist)
      if (const auto node = Find(name); node && usable(*node)) nodes.push_back(*node);
    std::sort(nodes.begin(), nodes.end());
  } else if (const auto it = module_by_name_.find(component.module); it != module_by_name_.end()) {
    nodes = nodes_by_module_[it->second];
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

std::vector<Placer::Room> Placer::RoomFor(const Work& work, const ComponentRequest& c) const {
  const std::uint32_t per_node = PerNode(c);
  std::vector<std::uint32_t> named;
  const auto module = WholeModule(c);
  if (!module) named = Candidates(c);
  const std::vector<std::uint32_t>& candidates = module ? nodes_by_module_[*module] : named;
  std::vector<Room> rooms;
  rooms.reserve(candidates.size());
  for (const std::uint32_t node : candidates) {
    const Work::Taken taken = work.taken.empty() ? Work::Taken{} : work.taken[node];
    const std::uint32_t free = work.free.FreeCores(node) - taken.cores;
    if (free == 0) continue;
    if (work.free.memory_limited(node) && work.free.memory(node) - taken.memory < c.memory.value) continue;
    if (work.free.gpus(node) - taken.gpus < c.gpus_per_node) continue;
    if (c.exclusive && !work.free.WhollyFree(node)) continue;
    std::uint32_t tasks = free / c.cpus_per_task;
    // Sized by the whole node: the tasks share what is free of it.
    if (work.request.oversubscribe) tasks = std::max(1u, layout_.cores[node] / c.cpus_per_task);
    tasks = std::min(tasks, per_node);
    if (tasks > 0) rooms.push_back({node, tasks});
  }
  return rooms;
}

// Nothing but its free cores tells one node of its module from another.
bool Placer::AnyNodeWillDo(const Work& work, const ComponentRequest& c) const {
  return work.taken.empty() && !work.request.oversubscribe && !c.exclusive && c.memory.value == 0 &&
         c.gpus_per_node == 0 && WholeModule(c).has_value();
}

// By the counts of its module: exact if any node will do, else at least what there is. nullopt: these counts
// say nothing.
std::optional<Placer::Sizes> Placer::SizesOf(const JobRequest& request, const ComponentRequest& c,
                                             const std::vector<std::uint32_t>& by_free) const {
  const auto module = WholeModule(c);
  if (!module || request.oversubscribe) return std::nullopt;
  const FreeSet::Counts counts = FreeSet::CountsIn(layout_, by_free, *module);
  Sizes sizes;
  const std::uint32_t least = std::max(c.cpus_per_task, c.exclusive ? layout_.least_cores[*module] : 1);
  for (std::uint32_t free = counts.size; free-- > least;)
    sizes.Add(std::min(free / c.cpus_per_task, PerNode(c)), counts.nodes[free]);
  return sizes;
}

// The nodes that hold the tasks on `width` nodes, which `sizes` says exist; ascending by node.
std::vector<Placer::Room> Placer::Choose(const std::vector<Room>& rooms, const Sizes& sizes,
                                         std::uint32_t tasks, std::uint32_t width) {
  // Best fit: the fullest nodes that still hold an even share keep the emptier ones whole for others.
  const std::uint32_t each = (tasks + width - 1) / width;
  const bool even = sizes.AtLeast(each) >= width;
  // The room of the last node chosen, and how many with that room are.
  std::uint32_t edge = even ? each : sizes.largest();
  std::uint32_t ties = width;
  while (sizes.nodes(edge) < ties) {
    ties -= sizes.nodes(edge);
    edge += even ? 1 : -1;
  }
  std::vector<Room> chosen;
  chosen.reserve(width);
  for (const Room& room : rooms) {
    const bool inside = even ? room.tasks >= each && room.tasks < edge : room.tasks > edge;
    if (!inside && (room.tasks != edge || ties == 0)) continue;
    if (!inside) --ties;
    chosen.push_back(room);
  }
  return chosen;
}

// Tasks go round the nodes one at a time, as Slurm's block layout counts them; ranks are consecutive on each
// node. The room suffices.
static std::vector<std::uint32_t> Deal(const std::vector<std::uint32_t>& room, std::uint32_t tasks) {
  std::vector<std::uint32_t> counts(room.size(), 0);
  while (tasks > 0) {
    for (std::size_t i = 0; i < room.size() && tasks > 0; ++i) {
      if (counts[i] == room[i]) continue;
      ++counts[i];
      --tasks;
    }
  }
  return counts;
}

std::uint32_t Placer::SharedPerNode(const ComponentRequest& c) const {
  return std::min(PerNode(c), most_shared_);
}

// The nodes that the component takes if `width` are the least; 0: it does not fit.
std::uint32_t Placer::WidthIn(const Sizes& sizes, const JobRequest& request, const ComponentRequest& c,
                              std::uint32_t width) const {
  const bool ranged = c.ntasks != 0 && width < c.max_nodes;
  const std::uint32_t w = ranged ? sizes.Needed(c.ntasks, width, c.max_nodes) : width;
  if (w == 0 || w < width || sizes.total() < w) return 0;
  const std::uint32_t tasks = TasksAtWidth(c, w);
  const std::uint64_t holds = request.oversubscribe ? std::uint64_t{w} * SharedPerNode(c) : sizes.Hold(w);
  return holds >= tasks && tasks >= w ? w : 0;
}

bool Placer::PlaceComponent(Work& work, std::size_t index, std::uint32_t width, Answer answer) const {
  const JobRequest& request = work.request;
  const ComponentRequest& c = request.components[index];
  const bool shared = request.oversubscribe;
  if (const auto quick = SizesOf(request, c, work.free.by_free())) {
    const bool fits = WidthIn(*quick, request, c, width) != 0;
    if (!fits || (answer == Answer::kWhether && AnyNodeWillDo(work, c))) return fits;
  }
  const std::vector<Room> rooms = RoomFor(work, c);
  Sizes sizes;
  for (const Room& room : rooms) sizes.Add(room.tasks, 1);
  width = WidthIn(sizes, request, c, width);
  if (width == 0 || answer == Answer::kWhether) return width != 0;
  const std::uint32_t tasks = TasksAtWidth(c, width);
  const std::vector<Room> chosen = Choose(rooms, sizes, tasks, width);
  std::vector<std::uint32_t> room;
  for (const Room& r : chosen) room.push_back(shared ? SharedPerNode(c) : r.tasks);
  const std::vector<std::uint32_t> counts = Deal(room, tasks);
  if (request.components.size() > 1) work.taken.resize(layout_.nodes());
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const std::uint32_t node = chosen[i].node;
    const std::uint32_t cores = shared ? 1 : counts[i] * c.cpus_per_task;
    work.shares.push_back(
        {{static_cast<std::uint32_t>(index), node, {}, counts[i], c.memory, c.gpus_per_node}, cores});
    if (work.taken.empty()) continue;
    Work::Taken& taken = work.taken[node];
    taken.cores += cores;
    taken.gpus += c.gpus_per_node;
    taken.memory += c.memory.value;
  }
  return true;
}

bool Placer::PlaceAll(Work& work, const std::vector<std::uint32_t>& widths, Answer answer) const {
  const std::vector<std::size_t> order = OrderOf(work.request);
  for (const std::size_t component : order) {
    // What an earlier component takes decides about the later ones.
    const Answer here = component == order.back() ? answer : Answer::kWhere;
    if (!PlaceComponent(work, component, widths[component], here)) return false;
  }
  return true;
}

// Gives the shares their cores, and hands out what is left on the job's own nodes: to shared tasks up to what
// they would need, to whole-node components all.
Placement Placer::Finish(const Work& work) {
  const auto& components = work.request.components;
  Placement placement;
  placement.reserve(work.shares.size());
  const auto by_place = [](const NodeShare& a, const NodeShare& b) {
    return std::tie(a.component, a.node) < std::tie(b.component, b.node);
  };
  if (components.size() == 1 && !work.request.oversubscribe && !components[0].exclusive) {
    for (const Work::Share& share : work.shares) {
      placement.push_back(share.share);
      placement.back().cores = work.free.Lowest(share.share.node, share.cores);
    }
    return placement;
  }
  FreeSet free = work.free;
  for (const Work::Share& share : work.shares) {
    placement.push_back(share.share);
    placement.back().cores = free.TakeLowest(share.share.node, share.cores);
  }
  std::sort(placement.begin(), placement.end(), by_place);
  for (NodeShare& share : placement) {
    const ComponentRequest& c = components[share.component];
    if (!work.request.oversubscribe && !c.exclusive) continue;
    std::uint32_t extra = free.FreeCores(share.node);
    const std::uint64_t needed = std::uint64_t{share.tasks} * c.cpus_per_task;
    const std::uint64_t has = share.cores.size();
    if (!c.exclusive)
      extra = static_cast<std::uint32_t>(std::min<std::uint64_t>(extra, needed > has ? needed - has : 0));
    const std::vector<std::uint16_t> more = free.TakeLowest(share.node, extra);
    share.cores.insert(share.cores.end(), more.begin(), more.end());
    std::sort(share.cores.begin(), share.cores.end());
  }
  return placement;
}

// Raises `widths` of node ranges as far as everything still fits. False: not even as they are.
bool Placer::Widen(const JobRequest& request, const FreeSet& free, std::vector<std::uint32_t>& widths) const {
  const auto fits = [&] {
    Work work{request, free, {}, {}};
    return PlaceAll(work, widths, Answer::kWhether);
  };
  if (!fits()) return false;
  for (std::size_t i = 0; i < request.components.size(); ++i) {
    const ComponentRequest& c = request.components[i];
    if (c.fewest_nodes || c.max_nodes <= c.min_nodes) continue;
    std::uint32_t known = c.min_nodes;
    std::uint32_t fails = std::min<std::uint32_t>(c.max_nodes, layout_.nodes()) + 1;
    while (fails - known > 1) {
      widths[i] = known + (fails - known) / 2;
      (fits() ? known : fails) = widths[i];
    }
    widths[i] = known;
  }
  return true;
}

static std::vector<std::uint32_t> LeastWidths(const JobRequest& request) {
  std::vector<std::uint32_t> widths;
  for (const ComponentRequest& c : request.components) widths.push_back(c.min_nodes);
  return widths;
}

std::uint32_t CountNodes(const Placement& placement) {
  std::vector<std::uint32_t> nodes;
  for (const NodeShare& share : placement) nodes.push_back(share.node);
  std::sort(nodes.begin(), nodes.end());
  return static_cast<std::uint32_t>(std::unique(nodes.begin(), nodes.end()) - nodes.begin());
}

bool Placer::NamFits(const JobRequest& request, const FreeSet& free) {
  const std::int64_t there = free.nam();
  return request.nam.value == 0 || (there > 0 && request.nam.value <= static_cast<std::uint64_t>(there));
}

bool Placer::GatewaysFit(const JobRequest& request, const FreeSet& free) {
  return request.gateways == 0 || request.gateways <= free.gateways();
}

bool Placer::Fits(const JobRequest& request, const FreeSet& free) const {
  if (!NamFits(request, free) || !GatewaysFit(request, free)) return false;
  Work work{request, free, {}, {}};
  return PlaceAll(work, LeastWidths(request), Answer::kWhether);
}

bool Placer::MayFit(const JobRequest& request, const std::vector<std::uint32_t>& by_free) const {
  return std::all_of(request.components.begin(), request.components.end(), [&](const ComponentRequest& c) {
    const auto sizes = SizesOf(request, c, by_free);
    return !sizes || WidthIn(*sizes, request, c, c.min_nodes) != 0;
  });
}

std::optional<Placement> Placer::Place(const JobRequest& request, const FreeSet& free) const {
  if (!NamFits(request, free) || !GatewaysFit(request, free)) return std::nullopt;
  std::vector<std::uint32_t> widths = LeastWidths(request);
  if (!Widen(request, free, widths)) return std::nullopt;
  Work work{request, free, {}, {}};
  if (!PlaceAll(work, widths, Answer::kWhere)) return std::nullopt;
  return Finish(work);
}

Placement Placer::PlaceWhatFits(const JobRequest& request, const FreeSet& free) const {
  Work work{request, free, {}, {}};
  for (const std::size_t component : OrderOf(request))
    (void)PlaceComponent(work, component, request.components[component].min_nodes, Answer::kWhere);
  return Finish(work);
}

}  // namespace msa
