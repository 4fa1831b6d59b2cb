#include "size_choice.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <fmt/ranges.h>

namespace msa::companion {
namespace {

constexpr std::uint32_t kMaxSlots = std::uint32_t{1} << 20;  // as elements of a list in the wire format
constexpr std::size_t kMaxText = 4096;

std::uint32_t DivideUp(std::uint32_t value, std::uint32_t by) { return (value + by - 1) / by; }

// The largest and the smallest that would do.
std::uint32_t Smallest(const wire::CompanionAsk& ask) {
  for (auto it = ask.alternatives.rbegin(); it != ask.alternatives.rend(); ++it)
    if (*it > 0) return *it;
  return ask.slots;
}

// Of the nodes that the ask allows; 1: unknown.
std::uint32_t CoresOfSmallest(const wire::CompanionAsk& ask, const std::vector<NodeFacts>& nodes) {
  std::uint32_t cores = UINT32_MAX;
  for (const NodeFacts& node : nodes)
    if (ask.nodes.empty() || std::ranges::find(ask.nodes, node.name) != ask.nodes.end())
      cores = std::min(cores, std::max(node.cores, 1U));
  return cores == UINT32_MAX ? 1 : cores;
}

Status CheckText(std::string_view what, std::string_view text) {
  if (text.size() > kMaxText)
    return Error(Code::kInvalidArgument, "{} has {} bytes, at most {} are possible", what, text.size(),
                 kMaxText);
  for (const char c : text)
    if (static_cast<unsigned char>(c) < ' ')
      return Error(Code::kInvalidArgument, "{} contains a control character", what);
  return Status::Ok();
}

}  // namespace

Status CheckAsk(const wire::CompanionAsk& ask) {
  if (ask.version != wire::kSlurmHelperVersion)
    return Error(
        Code::kFailedPrecondition,
        "the job daemon speaks version {} with msa-companion, which has {}; install one version of msa",
        ask.version, wire::kSlurmHelperVersion);
  if (ask.parent.value == 0 || ask.parent.value > UINT32_MAX)
    return Error(Code::kInvalidArgument, "parent job {}: expected a job id of Slurm", ask.parent);
  if (ask.slots == 0 || ask.slots > kMaxSlots)
    return Error(Code::kInvalidArgument, "{} slots asked for, expected 1 to {}", ask.slots, kMaxSlots);
  std::uint32_t last = ask.slots;
  for (const std::uint32_t other : ask.alternatives) {
    if (other >= last)
      return Error(Code::kInvalidArgument, "alternative {} follows {}: they must descend", other, last);
    last = other;
  }
  if (ask.nodes_exactly > kMaxSlots)
    return Error(Code::kInvalidArgument, "{} nodes asked for, at most {} are possible", ask.nodes_exactly,
                 kMaxSlots);
  if (ask.nodes_exactly > ask.slots)
    return Error(Code::kInvalidArgument, "{} slots on exactly {} nodes: each node needs one", ask.slots,
                 ask.nodes_exactly);
  if (ask.slots_per_node > 0 && ask.nodes_exactly > 0 &&
      std::uint64_t{ask.slots_per_node} * ask.nodes_exactly < ask.slots)
    return Error(Code::kInvalidArgument, "{} slots do not fit on {} nodes with at most {} on each", ask.slots,
                 ask.nodes_exactly, ask.slots_per_node);
  if (ask.wait_ms < 0 || ask.settle_ms < 0 || ask.time_ms < 0)
    return Error(Code::kInvalidArgument, "wait {} ms, settle {} ms, time {} ms: none may be negative",
                 ask.wait_ms, ask.settle_ms, ask.time_ms);
  MSA_RETURN_IF_ERROR(CheckText("the partition's name", ask.partition));
  return CheckText("the feature expression", ask.features);
}

SizeRequest ExactRequest(const wire::CompanionAsk& ask) {
  SizeRequest request{.tasks = ask.slots, .tasks_per_node = ask.slots_per_node, .whole_nodes = ask.exclusive};
  if (ask.nodes_exactly > 0)
    request.min_nodes = request.max_nodes = ask.nodes_exactly;
  else if (ask.slots_per_node > 0)
    request.min_nodes = request.max_nodes = DivideUp(ask.slots, ask.slots_per_node);
  return request;
}

SizeRequest RangeRequest(const wire::CompanionAsk& ask, const std::vector<NodeFacts>& nodes) {
  const std::uint32_t least = Smallest(ask);
  SizeRequest request{.whole_nodes = ask.exclusive};
  if (ask.nodes_exactly > 0) {
    request.min_nodes = request.max_nodes = ask.nodes_exactly;
    request.tasks = std::max(least, ask.nodes_exactly);
    request.tasks_per_node = ask.slots_per_node;
    request.whole_nodes = ask.exclusive || ask.slots_per_node == 0;
    return request;
  }
  if (ask.slots_per_node > 0) {
    // No number of tasks: else Slurm takes it for all that is wanted and fills fewer nodes.
    request.min_nodes = DivideUp(least, ask.slots_per_node);
    request.max_nodes = DivideUp(ask.slots, ask.slots_per_node);
    request.tasks_per_node = ask.slots_per_node;
    return request;
  }
  const std::uint32_t cores = CoresOfSmallest(ask, nodes);
  request.max_nodes = DivideUp(ask.slots, cores);
  if (ask.exclusive) {
    request.tasks = least;
  } else {
    request.min_nodes = DivideUp(least, cores);
    request.tasks_per_node = cores;
  }
  return request;
}

std::optional<Fit> ChooseFit(const wire::CompanionAsk& ask, const std::vector<wire::SlurmNodeCores>& nodes) {
  std::vector<std::uint64_t> holds(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    holds[i] = nodes[i].cores.size();
    if (ask.slots_per_node > 0) holds[i] = std::min<std::uint64_t>(holds[i], ask.slots_per_node);
  }
  const std::uint64_t all = std::accumulate(holds.begin(), holds.end(), std::uint64_t{0});
  Fit fit;
  if (ask.slots <= all) fit.slots = ask.slots;
  for (auto it = ask.alternatives.begin(); fit.slots == 0 && it != ask.alternatives.end(); ++it)
    if (*it <= all) fit.slots = *it;
  if (fit.slots == 0) return std::nullopt;
  std::vector<std::size_t> order(nodes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return holds[a] > holds[b]; });
  std::set<std::size_t> kept;
  std::uint64_t held = 0;
  for (const std::size_t i : order) {
    if (held >= fit.slots && ask.nodes_exactly == 0) break;
    kept.insert(i);
    held += holds[i];
  }
  for (const std::size_t i : kept) fit.keep.push_back(nodes[i].node);
  return fit;
}

Result<std::vector<std::string>> ExcludedNodes(const wire::CompanionAsk& ask,
                                               const std::vector<NodeFacts>& nodes) {
  std::set<std::string> wanted(ask.nodes.begin(), ask.nodes.end());
  std::vector<std::string> excluded;
  for (const NodeFacts& node : nodes) {
    if (wanted.erase(node.name) == 0 && !ask.nodes.empty()) excluded.push_back(node.name);
  }
  if (!wanted.empty())
    return Error(Code::kNotFound, "no node {} in partition '{}'; see sinfo -N", fmt::join(wanted, ", "),
                 ask.partition);
  return excluded;
}

}  // namespace msa::companion
