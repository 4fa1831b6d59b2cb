#include <algorithm>

#include <fmt/format.h>

#include "msa/topology/suggest.h"

#include "planner.h"

namespace msa {
namespace {

struct Lendable {
  std::uint32_t node = 0;
  std::uint32_t preference = 0;  // of its module, 0 the first
  std::uint32_t cores = 0;       // free throughout
};

// Which modules may lend, in order of preference. Nodes whose purpose is memory or to connect modules are
// lent by name alone.
Result<std::vector<ModuleId>> ModulesFor(const SystemTopology& topology, const ClusterView& view,
                                         const DynamicRequest& request) {
  std::vector<ModuleId> modules;
  const auto add = [&](ModuleId id) {
    if (std::find(modules.begin(), modules.end(), id) == modules.end()) modules.push_back(id);
  };
  if (!request.module.empty()) {
    MSA_ASSIGN_OR_RETURN(const std::vector<const Module*> named, topology.SelectModules(request.module));
    for (const Module* module : named) add(module->id);
    return modules;
  }
  for (const RunningJob& job : view.running)
    if (job.id == request.job)
      for (const NodeShare& share : job.held) add(topology.nodes[share.node].module);
  for (const Module& module : topology.modules)
    if ((module.kind != "nam" && module.kind != kGatewayKind) || !request.nodes.empty()) add(module.id);
  return modules;
}

Status CheckNames(const SystemTopology& topology, const DynamicRequest& request) {
  for (const std::string& name : request.nodes) MSA_RETURN_IF_ERROR(topology.SelectNode(name).status());
  return Status::Ok();
}

class Lender {
 public:
  Lender(const SystemTopology& topology, Planner& planner, const DynamicRequest& request,
         std::vector<ModuleId> modules)
      : topology_(topology), planner_(planner), request_(request), modules_(std::move(modules)) {}

  // Nodes that may lend by name and module, whatever runs on them.
  std::vector<Lendable> Eligible() const {
    std::vector<Lendable> nodes;
    for (std::uint32_t n = 0; n < topology_.nodes.size(); ++n) {
      const auto module = std::find(modules_.begin(), modules_.end(), topology_.nodes[n].module);
      if (module == modules_.end()) continue;
      const auto& names = request_.nodes;
      if (!names.empty() && std::find(names.begin(), names.end(), topology_.nodes[n].name) == names.end())
        continue;
      nodes.push_back({n, static_cast<std::uint32_t>(module - modules_.begin()), topology_.nodes[n].cores});
    }
    return nodes;
  }

  std::vector<Lendable> Free(const FreeSet& free) const {
    std::vector<Lendable> nodes;
    for (Lendable node : Eligible()) {
      node.cores = free.FreeCores(node.node);
      const auto& avoid = request_.avoid;
      if (node.cores == 0 || !planner_.placer().usable(node.node)) continue;
      if (std::find(avoid.begin(), avoid.end(), node.node) != avoid.end()) continue;
      if (request_.slots_per_node > 0) node.cores = std::min(node.cores, request_.slots_per_node);
      nodes.push_back(node);
    }
    return nodes;
  }

  static std::uint64_t Sum(const std::vector<Lendable>& nodes) {
    std::uint64_t cores = 0;
    for (const Lendable& node : nodes) cores += node.cores;
    return cores;
  }

  bool IsOwn(const Lendable& node) const {
    return std::find(request_.own.begin(), request_.own.end(), node.node) != request_.own.end();
  }

  // The job's own nodes first, then further ones.
  std::optional<Placement> Choose(std::vector<Lendable> nodes, FreeSet free, std::uint32_t slots) const {
    if (Sum(nodes) < slots) return std::nullopt;
    const auto further =
        std::stable_partition(nodes.begin(), nodes.end(), [&](const auto& n) { return IsOwn(n); });
    std::vector<Lendable> others(further, nodes.end());
    nodes.erase(further, nodes.end());
    if (request_.nodes_exactly > 0) return Spread(std::move(others), std::move(free), slots);
    std::stable_sort(nodes.begin(), nodes.end(),
                     [](const auto& a, const auto& b) { return a.preference < b.preference; });
    Placement lent;
    for (const Lendable& node : nodes) {
      const std::uint32_t cores = std::min(slots, node.cores);
      if (cores == 0) break;
      lent.push_back({0, node.node, free.TakeLowest(node.node, cores), cores, Bytes(), 0});
      slots -= cores;
    }
    if (slots > 0) {
      const auto rest = ChooseFurther(std::move(others), std::move(free), slots);
      if (!rest) return std::nullopt;
      lent.insert(lent.end(), rest->begin(), rest->end());
    }
    std::sort(lent.begin(), lent.end(),
              [](const NodeShare& a, const NodeShare& b) { return a.node < b.node; });
    return lent;
  }

  std::optional<Placement> ChooseFurther(std::vector<Lendable> nodes, FreeSet free,
                                         std::uint32_t slots) const {
    if (Sum(nodes) < slots) return std::nullopt;
    // One module alone, the most preferred that suffices, before a mixture.
    for (std::uint32_t m = 0; m < modules_.size(); ++m) {
      std::vector<Lendable> alone;
      for (const Lendable& node : nodes)
        if (node.preference == m) alone.push_back(node);
      if (Sum(alone) < slots) continue;
      nodes = std::move(alone);
      break;
    }
    std::sort(nodes.begin(), nodes.end(), [](const Lendable& a, const Lendable& b) {
      return std::tuple(a.preference, ~a.cores, a.node) < std::tuple(b.preference, ~b.cores, b.node);
    });
    Placement lent;
    std::uint32_t left = slots;
    for (std::size_t i = 0; i < nodes.size() && left > 0; ++i) {
      std::size_t best = i;
      // The last node: the smallest that holds the rest.
      for (std::size_t j = i; j < nodes.size() && nodes[j].preference == nodes[i].preference; ++j)
        if (nodes[j].cores >= left && nodes[j].cores < nodes[best].cores) best = j;
      const std::uint32_t cores = std::min(left, nodes[best].cores);
      lent.push_back({0, nodes[best].node, free.TakeLowest(nodes[best].node, cores), cores, Bytes(), 0});
      left -= cores;
    }
    std::sort(lent.begin(), lent.end(),
              [](const NodeShare& a, const NodeShare& b) { return a.node < b.node; });
    return lent;
  }

  // Exactly `nodes_exactly` nodes, each with an even share.
  std::optional<Placement> Spread(std::vector<Lendable> nodes, FreeSet free, std::uint32_t slots) const {
    const std::uint32_t count = request_.nodes_exactly;
    if (slots < count) return std::nullopt;
    std::sort(nodes.begin(), nodes.end(), [](const Lendable& a, const Lendable& b) {
      return std::tuple(a.preference, ~a.cores, a.node) < std::tuple(b.preference, ~b.cores, b.node);
    });
    Placement lent;
    for (const Lendable& node : nodes) {
      if (lent.size() == count) break;
      const auto index = static_cast<std::uint32_t>(lent.size());
      const std::uint32_t cores = slots / count + (index < slots % count ? 1 : 0);
      if (node.cores < cores) continue;
      lent.push_back({0, node.node, free.TakeLowest(node.node, cores), cores, Bytes(), 0});
    }
    if (lent.size() < count) return std::nullopt;
    std::sort(lent.begin(), lent.end(),
              [](const NodeShare& a, const NodeShare& b) { return a.node < b.node; });
    return lent;
  }

  std::string Where() const {
    if (!request_.nodes.empty()) return fmt::format("on {}", ListNames(request_.nodes));
    if (!request_.module.empty()) return fmt::format("in module '{}'", request_.module);
    return "in the system";
  }

 private:
  const SystemTopology& topology_;
  Planner& planner_;
  const DynamicRequest& request_;
  std::vector<ModuleId> modules_;
};

std::string WhenText(Instant at, Instant now) {
  if (at >= kSomeday) return "; it could start when a job without time limit ends";
  const auto seconds = (at - now + Millis(999)) / Millis(1000);
  return fmt::format("; it could start in about {} s", std::max<std::int64_t>(seconds, 1));
}

}  // namespace

DynamicAnswer FindDynamic(const ClusterView& view, const std::vector<PendingJob>& pending,
                          const DynamicRequest& request, Instant now, const SchedulerOptions& options) {
  DynamicAnswer answer;
  const SystemTopology& topology = *view.topology;
  if (Status status = CheckNames(topology, request); !status.ok()) {
    answer.reason = status.message();
    return answer;
  }
  auto modules = ModulesFor(topology, view, request);
  if (!modules.ok()) {
    answer.reason = modules.status().message();
    return answer;
  }
  SchedulerOptions conservative = options;
  conservative.backfill = Backfill::kConservative;
  Planner planner(view, pending, now, conservative);
  (void)planner.Run();
  Lender lender(topology, planner, request, std::move(*modules));
  const FreeSet& kept = planner.profile().FreeUntil(request.until);
  const std::vector<Lendable> lendable = lender.Free(kept);
  if (request.slots > 0) answer.lent = lender.Choose(lendable, kept, request.slots);
  for (std::size_t i = 0; i < request.alternatives.size() && !answer.lent; ++i)
    if (request.alternatives[i] > 0) answer.lent = lender.Choose(lendable, kept, request.alternatives[i]);
  if (answer.lent) return answer;

  std::vector<Lendable> eligible = lender.Eligible();
  if (request.slots_per_node > 0)
    for (Lendable& node : eligible) node.cores = std::min(node.cores, request.slots_per_node);
  const std::uint64_t exist = Lender::Sum(eligible);
  answer.possible_later =
      request.slots > 0 && exist >= request.slots && eligible.size() >= request.nodes_exactly;
  const std::vector<Lendable> free_now = lender.Free(planner.profile().free_now());
  const std::uint64_t free = Lender::Sum(free_now);
  const std::uint64_t unplanned = Lender::Sum(lender.Free(kept));
  answer.reason = fmt::format("{} slot{} asked {} beyond those of the job, {} free on {} node{}",
                              request.slots, request.slots == 1 ? "" : "s", lender.Where(), free,
                              free_now.size(), free_now.size() == 1 ? "" : "s");
  if (unplanned < free)
    answer.reason += fmt::format(", {} of them planned for waiting jobs", free - unplanned);
  if (request.nodes_exactly > 1)
    answer.reason += fmt::format("; they must be spread over {} nodes", request.nodes_exactly);
  if (!answer.possible_later) {
    answer.reason += fmt::format("; only {} exist", exist);
    return answer;
  }
  const auto later = planner.profile().FirstTime(
      [&](const FreeSet& at) { return Lender::Sum(lender.Free(at)) >= request.slots; });
  if (later) answer.reason += WhenText(*later, now);
  return answer;
}

}  // namespace msa
