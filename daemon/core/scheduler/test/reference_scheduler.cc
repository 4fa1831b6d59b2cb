#include "reference_scheduler.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace msa::scheduler_test {
namespace {

constexpr Instant kLast = kNever - Millis(1);  // when what has no limit has ended
constexpr std::uint32_t kAny = 0xffffffffu;

struct NodeFree {
  std::set<std::uint16_t> cores;
  std::uint64_t memory = 0;  // of nodes that state none: far more than anybody asks
  std::uint32_t gpus = 0;
};
// By node; behind the last a node without cores, whose memory is the network attached one.
using Free = std::vector<NodeFree>;

struct Room {
  std::uint32_t node = 0;
  std::uint32_t tasks = 0;
};

void Take(Free& free, const NodeShare& share) {
  NodeFree& node = free[share.node];
  for (const std::uint16_t core : share.cores) node.cores.erase(core);
  node.memory -= std::min(node.memory, share.memory.value);
  node.gpus -= std::min(node.gpus, share.gpus);
}

void Give(Free& free, const NodeShare& share, const SystemTopology& topology) {
  NodeFree& node = free[share.node];
  for (const std::uint16_t core : share.cores)
    if (core < topology.nodes[share.node].cores) node.cores.insert(core);  // none of the last
  node.memory += share.memory.value;
  node.gpus += share.gpus;
}

void Intersect(Free& free, const Free& other) {
  for (std::size_t n = 0; n < free.size(); ++n) {
    std::erase_if(free[n].cores, [&](std::uint16_t core) { return !other[n].cores.contains(core); });
    free[n].memory = std::min(free[n].memory, other[n].memory);
    free[n].gpus = std::min(free[n].gpus, other[n].gpus);
  }
}

std::vector<std::uint16_t> TakeLowest(NodeFree& node, std::size_t count) {
  std::vector<std::uint16_t> taken;
  for (; taken.size() < count && !node.cores.empty(); node.cores.erase(node.cores.begin()))
    taken.push_back(*node.cores.begin());
  return taken;
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Reference {
 public:
  Reference(const ClusterView& view, Instant now) : view_(view), topology_(*view.topology), now_(now) {
    Free all(topology_.nodes.size());
    for (std::size_t n = 0; n < all.size(); ++n) {
      for (std::uint32_t c = 0; c < topology_.nodes[n].cores; ++c)
        all[n].cores.insert(static_cast<std::uint16_t>(c));
      const std::uint64_t memory = topology_.nodes[n].memory.value;
      all[n].memory = memory == 0 ? std::uint64_t{1} << 60 : memory;
      all[n].gpus = topology_.nodes[n].gpus;
    }
    all.emplace_back().memory = view.nam_capacity.value;
    all.back().gpus = view.gateway_capacity;
    everything_ = all;
    free_now_ = std::move(all);
    for (const RunningJob& job : view.running)
      for (const NodeShare& share : WithSystems(job.held, job.nam, job.gateways)) Take(free_now_, share);
  }

  Plan Run(const std::vector<PendingJob>& pending, const SchedulerOptions& options) {
    struct Blocked {
      const PendingJob* job;
      Waiting waiting;
      bool done;  // reserved, or hopeless
    };
    Plan plan;
    std::vector<Blocked> blocked;
    std::vector<JobRequest> failed;
    std::size_t reservations = 0;
    const auto hold = [&](Blocked& b) {
      b.done = Hold(*b.job, b.waiting);
      reservations += b.done ? 1 : 0;
    };
    for (const PendingJob& job : pending) {
      const bool failed_before = std::any_of(failed.begin(), failed.end(),
                                             [&](const JobRequest& r) { return Same(r, job.request); });
      if (!failed_before && TryStart(job, plan)) continue;
      failed.push_back(job.request);
      blocked.push_back({&job, {job.id, kNever, ""}, !Place(job.request, everything_)});
      const std::size_t limit = options.backfill == Backfill::kEasy ? 1 : options.planned;
      if (!blocked.back().done && reservations < limit) hold(blocked.back());
    }
    for (Blocked& b : blocked) {
      if (!b.done && reservations < options.planned) hold(b);
      plan.waiting.push_back(b.waiting);
    }
    return plan;
  }

 private:
  struct Step {
    Instant at;
    Free free;
  };

  // What is the system's stands as a node of its own behind the others.
  Placement WithSystems(Placement placement, Bytes nam, std::uint32_t gateways) const {
    placement.push_back({0, static_cast<std::uint32_t>(topology_.nodes.size()), {}, 0, nam, gateways});
    return placement;
  }

  static bool Same(const JobRequest& a, const JobRequest& b) {
    const auto key = [](const ComponentRequest& c) {
      return std::tie(c.module, c.min_nodes, c.max_nodes, c.ntasks, c.ntasks_per_node, c.cpus_per_task,
                      c.memory, c.gpus_per_node, c.exclusive, c.fewest_nodes, c.nodelist, c.exclude);
    };
    return a.time_limit == b.time_limit && a.oversubscribe == b.oversubscribe && a.nam == b.nam &&
           a.gateways == b.gateways &&
           std::equal(a.components.begin(), a.components.end(), b.components.begin(), b.components.end(),
                      [&](const auto& x, const auto& y) { return key(x) == key(y); });
  }

  static Instant EndOf(Instant start, const std::optional<Millis>& limit) {
    return !limit || start >= kLast || *limit > kLast - start ? kNever : start + *limit;
  }

  bool TryStart(const PendingJob& job, Plan& plan) {
    const Instant end = EndOf(now_, job.request.time_limit);
    Free free = free_now_;
    for (const Step& step : steps_)
      if (step.at == now_ || step.at < end) Intersect(free, step.free);
    const auto placement = Place(job.request, free);
    if (!placement) return false;
    const Placement taken = WithSystems(*placement, job.request.nam, job.request.gateways);
    for (const NodeShare& share : taken) Take(free_now_, share);
    if (steps_.empty())
      started_.push_back({JobId(), end, *placement, job.request.nam, job.request.gateways});
    else
      Occupy(taken, now_, end);
    plan.starts.push_back({job.id, *placement});
    return true;
  }

  bool Hold(const PendingJob& job, Waiting& waiting) {
    if (steps_.empty()) BuildSteps();
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      const Instant start = steps_[s].at;
      const Instant end = EndOf(start, job.request.time_limit);
      if (!Place(job.request, steps_[s].free)) continue;
      Free free = steps_[s].free;
      for (std::size_t t = s + 1; t < steps_.size() && steps_[t].at < end; ++t)
        Intersect(free, steps_[t].free);
      const auto placement = Place(job.request, free);
      if (!placement) continue;
      if (start < kLast) {
        waiting.expected_start = start;
        Occupy(WithSystems(*placement, job.request.nam, job.request.gateways), start, end);
      } else {
        const Free& last = steps_[steps_.size() - 2].free;
        const Bytes nam = last.back().memory >= job.request.nam.value ? job.request.nam : Bytes();
        const std::uint32_t gateways = last.back().gpus >= job.request.gateways ? job.request.gateways : 0;
        Occupy(WithSystems(PlaceWhatFits(job.request, last), nam, gateways), kLast, kNever);
      }
      return true;
    }
    return false;
  }

  void BuildSteps() {
    std::map<Instant, std::vector<Placement>> ends;
    const auto add = [&](const RunningJob& job) {
      ends[job.expected_end >= kLast ? kLast : std::max(job.expected_end, now_ + Millis(1000))].push_back(
          WithSystems(job.held, job.nam, job.gateways));
    };
    for (const RunningJob& job : view_.running) add(job);
    for (const RunningJob& job : started_) add(job);
    ends[kLast];
    steps_.push_back({now_, free_now_});
    for (const auto& [at, placements] : ends) {
      Step step{at, steps_.back().free};
      for (const Placement& placement : placements)
        for (const NodeShare& share : placement) Give(step.free, share, topology_);
      steps_.push_back(std::move(step));
    }
  }

  std::size_t StepAt(Instant at) {
    std::size_t i = steps_.size();
    while (steps_[i - 1].at > at) --i;
    if (steps_[i - 1].at == at) return i - 1;
    steps_.insert(steps_.begin() + static_cast<std::ptrdiff_t>(i), Step{at, steps_[i - 1].free});
    return i;
  }

  void Occupy(const Placement& placement, Instant start, Instant end) {
    const std::size_t first = StepAt(start);
    const std::size_t last = end >= kLast ? steps_.size() : StepAt(end);
    for (std::size_t s = first; s < last; ++s)
      for (const NodeShare& share : placement) Take(steps_[s].free, share);
  }

  // ---- placing

  static std::vector<std::size_t> OrderOf(const JobRequest& request) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < request.components.size(); ++i) order.push_back(i);
    const auto key = [&](std::size_t i) {
      const ComponentRequest& c = request.components[i];
      const std::uint64_t each = std::uint64_t{c.ntasks / std::max(1u, c.min_nodes)} * c.cpus_per_task;
      return std::tuple(c.nodelist.empty(), !c.exclusive, c.fewest_nodes, ~each, i);
    };
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return key(a) < key(b); });
    return order;
  }

  std::vector<Room> RoomFor(const JobRequest& request, const ComponentRequest& c, const Free& before,
                            const Free& free) const {
    std::vector<Room> rooms;
    for (std::uint32_t n = 0; n < topology_.nodes.size(); ++n) {
      const NodeSpec& node = topology_.nodes[n];
      const bool meant = c.nodelist.empty() ? topology_.FindModule(node.module)->name == c.module
                                            : Contains(c.nodelist, node.name);
      if (!meant || !view_.usable[n] || Contains(c.exclude, node.name)) continue;
      if (free[n].memory < c.memory.value || free[n].gpus < c.gpus_per_node) continue;
      if (c.exclusive && before[n].cores.size() != node.cores) continue;
      auto tasks = static_cast<std::uint32_t>(free[n].cores.size()) / c.cpus_per_task;
      if (request.oversubscribe) tasks = std::max(1u, node.cores / c.cpus_per_task);
      if (c.ntasks_per_node != 0) tasks = std::min(tasks, c.ntasks_per_node);
      if (tasks > 0 && !free[n].cores.empty()) rooms.push_back({n, tasks});
    }
    return rooms;
  }

  bool PlaceComponent(const JobRequest& request, std::size_t index, std::uint32_t width, const Free& before,
                      Free& free, Placement& placement) const {
    const ComponentRequest& c = request.components[index];
    std::vector<Room> rooms = RoomFor(request, c, before, free);
    const auto emptier = [](const Room& a, const Room& b) {
      return std::tuple(~a.tasks, a.node) < std::tuple(~b.tasks, b.node);
    };
    std::sort(rooms.begin(), rooms.end(), emptier);
    if (c.ntasks != 0 && width < c.max_nodes) {
      std::uint32_t needed = 0;
      std::uint32_t held = 0;
      while (needed < rooms.size() && needed < c.max_nodes && (held < c.ntasks || needed < width))
        held += rooms[needed++].tasks;
      if (needed < width || (held < c.ntasks && !request.oversubscribe)) return false;
      width = needed;
    }
    if (width == 0 || rooms.size() < width) return false;
    std::uint32_t tasks = c.ntasks != 0 ? c.ntasks : width * std::max(1u, c.ntasks_per_node);
    std::vector<Room> even;
    for (const Room& room : rooms)
      if (room.tasks >= (tasks + width - 1) / width) even.push_back(room);
    if (even.size() >= width) {
      std::sort(even.begin(), even.end(), [](const Room& a, const Room& b) {
        return std::tie(a.tasks, a.node) < std::tie(b.tasks, b.node);
      });
      rooms = even;
    }
    rooms.resize(width);
    std::sort(rooms.begin(), rooms.end(), [](const Room& a, const Room& b) { return a.node < b.node; });
    if (request.oversubscribe)
      for (Room& room : rooms) room.tasks = c.ntasks_per_node == 0 ? kAny : c.ntasks_per_node;
    std::vector<std::uint32_t> counts(width, 0);
    for (bool dealt = true; dealt && tasks > 0;) {
      dealt = false;
      for (std::size_t i = 0; i < width && tasks > 0; ++i) {
        if (counts[i] == rooms[i].tasks) continue;
        ++counts[i];
        --tasks;
        dealt = true;
      }
    }
    if (tasks > 0 || std::find(counts.begin(), counts.end(), 0u) != counts.end()) return false;
    for (std::size_t i = 0; i < width; ++i) {
      NodeShare share{
          static_cast<std::uint32_t>(index), rooms[i].node, {}, counts[i], c.memory, c.gpus_per_node};
      share.cores =
          TakeLowest(free[share.node], request.oversubscribe ? 1 : std::size_t{counts[i]} * c.cpus_per_task);
      free[share.node].memory -= c.memory.value;
      free[share.node].gpus -= c.gpus_per_node;
      placement.push_back(std::move(share));
    }
    return true;
  }

  static void Finish(const JobRequest& request, Free& free, Placement& placement) {
    std::sort(placement.begin(), placement.end(), [](const NodeShare& a, const NodeShare& b) {
      return std::tie(a.component, a.node) < std::tie(b.component, b.node);
    });
    for (NodeShare& share : placement) {
      const ComponentRequest& c = request.components[share.component];
      const std::size_t needed = std::size_t{share.tasks} * c.cpus_per_task;
      std::size_t extra = 0;
      if (request.oversubscribe && needed > share.cores.size()) extra = needed - share.cores.size();
      if (c.exclusive) extra = free[share.node].cores.size();
      for (const std::uint16_t core : TakeLowest(free[share.node], extra)) share.cores.push_back(core);
      std::sort(share.cores.begin(), share.cores.end());
    }
  }

  std::optional<Placement> PlaceWidths(const JobRequest& request, const Free& before,
                                       const std::vector<std::uint32_t>& widths) const {
    Free free = before;
    Placement placement;
    for (const std::size_t c : OrderOf(request))
      if (!PlaceComponent(request, c, widths[c], before, free, placement)) return std::nullopt;
    Finish(request, free, placement);
    return placement;
  }

  std::optional<Placement> Place(const JobRequest& request, const Free& free) const {
    if (request.nam.value > free.back().memory || request.gateways > free.back().gpus) return std::nullopt;
    std::vector<std::uint32_t> widths;
    for (const ComponentRequest& c : request.components) widths.push_back(c.min_nodes);
    auto best = PlaceWidths(request, free, widths);
    for (std::size_t i = 0; best && i < widths.size(); ++i) {
      const ComponentRequest& c = request.components[i];
      if (c.fewest_nodes) continue;
      std::uint32_t fits = c.min_nodes;
      std::uint32_t fails = std::min<std::uint32_t>(c.max_nodes, static_cast<std::uint32_t>(free.size())) + 1;
      while (fails > fits + 1) {
        widths[i] = fits + (fails - fits) / 2;
        auto wider = PlaceWidths(request, free, widths);
        (wider ? fits : fails) = widths[i];
        if (wider) best = std::move(wider);
      }
      widths[i] = fits;
    }
    return best;
  }

  Placement PlaceWhatFits(const JobRequest& request, const Free& before) const {
    Free free = before;
    Placement placement;
    for (const std::size_t c : OrderOf(request))
      (void)PlaceComponent(request, c, request.components[c].min_nodes, before, free, placement);
    Finish(request, free, placement);
    return placement;
  }

  const ClusterView& view_;
  const SystemTopology& topology_;
  Instant now_;
  Free everything_;
  Free free_now_;
  std::vector<RunningJob> started_;
  std::vector<Step> steps_;
};

}  // namespace

Plan ReferenceSchedule(const ClusterView& view, const std::vector<PendingJob>& pending, Instant now,
                       const SchedulerOptions& options) {
  return Reference(view, now).Run(pending, options);
}

}  // namespace msa::scheduler_test
