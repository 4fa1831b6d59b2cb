#include "step_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include <fmt/ranges.h>

#include "msa/base/wire.h"
#include "msa/topology/suggest.h"

namespace msa::jobd {
namespace {

constexpr std::uint32_t kUnlimited = std::numeric_limits<std::uint32_t>::max();

using Components = std::vector<wire::PlacedComponent>;

// A node that a component of the step may use.
struct Candidate {
  const wire::ComponentShare* share = nullptr;
  std::uint32_t room = 0;  // tasks
};

// What one component of the step asks for, completed.
struct Need {
  std::size_t component = 0;
  std::vector<const wire::ComponentShare*> shares;  // that it may use
  std::uint32_t ntasks = 0;
  std::uint32_t min_nodes = 0;  // 0: as few as hold the tasks
  std::uint32_t max_nodes = 0;
  std::uint32_t per_node = kUnlimited;
  std::uint32_t cpus_per_task = 1;
  bool as_placed = false;  // no counts at all: as the controller laid the component out
};

std::string Describe(const Components& components) {
  std::vector<std::string> list;
  for (std::size_t i = 0; i < components.size(); ++i)
    list.push_back(fmt::format("{} ({})", i, components[i].module));
  return fmt::format("{}", fmt::join(list, ", "));
}

bool IsOf(const wire::PlacedComponent& component, const std::string& module, const SlotMap& slots) {
  if (component.module == module) return true;
  return std::any_of(component.shares.begin(), component.shares.end(),
                     [&](const wire::ComponentShare& share) {
                       const wire::Member* member = slots.member(share.member);
                       return member != nullptr &&
                              (member->module_kind == module || fmt::format("{}", member->module) == module);
                     });
}

bool HasNode(const wire::PlacedComponent& component, const std::string& node, const SlotMap& slots) {
  return std::any_of(component.shares.begin(), component.shares.end(),
                     [&](const wire::ComponentShare& share) {
                       const wire::Member* member = slots.member(share.member);
                       return member != nullptr && member->node == node;
                     });
}

Result<std::size_t> ComponentOf(const wire::StepComponent& ask, const Components& components,
                                const SlotMap& slots) {
  if (ask.component != wire::StepComponent::kAnyComponent) {
    if (ask.component >= components.size())
      return Error(Code::kNotFound, "component {} does not exist in the job, which has {}; see --het-group",
                   ask.component, Describe(components));
    if (!ask.module.empty() && !IsOf(components[ask.component], ask.module, slots))
      return Error(Code::kInvalidArgument,
                   "component {} of the job is of module '{}', not '{}'; leave out --module or --het-group",
                   ask.component, components[ask.component].module, ask.module);
    return std::size_t{ask.component};
  }
  for (std::size_t i = 0; i < components.size(); ++i) {
    const bool fits = !ask.module.empty()     ? IsOf(components[i], ask.module, slots)
                      : !ask.nodelist.empty() ? HasNode(components[i], ask.nodelist[0], slots)
                                              : true;
    if (fits) return i;
  }
  if (ask.module.empty()) return std::size_t{0};  // the unknown node is named later
  std::vector<std::string> names;
  for (const wire::PlacedComponent& component : components) names.push_back(component.module);
  return Error(Code::kNotFound, "module '{}' is not part of the job; {}its components are {}", ask.module,
               DidYouMean(ask.module, names), Describe(components));
}

Status CheckNodes(const std::vector<std::string>& nodes, const wire::PlacedComponent& component,
                  const SlotMap& slots) {
  std::vector<std::string> names;
  for (const wire::ComponentShare& share : component.shares)
    if (const wire::Member* member = slots.member(share.member)) names.push_back(member->node);
  for (const std::string& node : nodes)
    if (std::find(names.begin(), names.end(), node) == names.end())
      return Error(Code::kNotFound,
                   "node '{}' is not among those of the component in module '{}'; {}it has {}", node,
                   component.module, DidYouMean(node, names), fmt::format("{}", fmt::join(names, ",")));
  return Status::Ok();
}

void Count(const wire::StepComponent& ask, const wire::PlacedComponent& component, Need& need) {
  const auto nodes = static_cast<std::uint32_t>(need.shares.size());
  need.cpus_per_task = std::max(ask.cpus_per_task != 0 ? ask.cpus_per_task : component.cpus_per_task, 1u);
  if (ask.ntasks_per_node != 0) need.per_node = ask.ntasks_per_node;
  need.min_nodes = ask.min_nodes;
  need.max_nodes = std::max(ask.max_nodes, ask.min_nodes);
  if (!ask.nodelist.empty()) need.min_nodes = need.max_nodes = nodes;  // exactly these
  need.ntasks = ask.ntasks;
  if (need.ntasks != 0) return;
  const std::uint32_t each = ask.ntasks_per_node != 0 ? ask.ntasks_per_node : 1;
  if (ask.min_nodes != 0) {
    need.ntasks = each * std::max(need.min_nodes, std::min(need.max_nodes, nodes));
  } else if (ask.ntasks_per_node != 0) {
    need.ntasks = each * nodes;
  } else {
    need.as_placed = true;
    for (const wire::ComponentShare* share : need.shares) need.ntasks += share->tasks;
    need.ntasks = std::max(need.ntasks, 1u);
  }
}

Result<Need> NeedOf(const wire::StepComponent& ask, const Components& components, const SlotMap& slots) {
  Need need;
  MSA_ASSIGN_OR_RETURN(need.component, ComponentOf(ask, components, slots));
  const wire::PlacedComponent& component = components[need.component];
  MSA_RETURN_IF_ERROR(CheckNodes(ask.nodelist, component, slots));
  MSA_RETURN_IF_ERROR(CheckNodes(ask.exclude, component, slots));
  const auto named = [](const std::vector<std::string>& list, const std::string& node) {
    return std::find(list.begin(), list.end(), node) != list.end();
  };
  for (const wire::ComponentShare& share : component.shares) {
    const wire::Member* member = slots.member(share.member);
    if (member == nullptr || named(ask.exclude, member->node)) continue;
    if (ask.nodelist.empty() || named(ask.nodelist, member->node)) need.shares.push_back(&share);
  }
  if (need.shares.empty())
    return Error(Code::kOutOfRange, "no node is left of component {} of the job, in module '{}'",
                 need.component, component.module);
  Count(ask, component, need);
  if (need.ntasks < need.min_nodes)
    return Error(Code::kInvalidArgument, "{} cannot be spread over {} nodes; ask for as many tasks at least",
                 need.ntasks == 1 ? "1 task" : fmt::format("{} tasks", need.ntasks), need.min_nodes);
  if (need.ntasks > wire::kMaxListItems)
    return Error(Code::kOutOfRange, "{} tasks are asked for; a step has at most {}", need.ntasks,
                 wire::kMaxListItems);
  return need;
}

// How many tasks the slots of a node hold now.
std::uint32_t RoomOn(const Need& need, const wire::ComponentShare& share, const wire::PlacedComponent& placed,
                     const SlotMap& slots) {
  const auto cores = static_cast<std::uint32_t>(slots.FreeOf(share.member, share.cores).size());
  std::uint32_t room = cores / need.cpus_per_task;
  // A job with --oversubscribe: more tasks than cores, and a task needs no core of its own.
  if (share.tasks * placed.cpus_per_task > share.cores.size()) room = std::max(room, share.tasks);
  return std::min(room, need.per_node);
}

// Spreads the tasks evenly over exactly `nodes` of the candidates. Empty: they do not fit.
std::vector<std::uint32_t> SpreadOver(const Need& need, const std::vector<Candidate>& candidates,
                                      std::uint32_t nodes) {
  const std::uint32_t even = (need.ntasks + nodes - 1) / nodes;
  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Nodes that hold an even share are as good as larger ones: the first of them are taken.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::min(candidates[a].room, even) > std::min(candidates[b].room, even);
  });
  order.resize(nodes);
  std::sort(order.begin(), order.end());
  std::vector<std::uint32_t> counts(candidates.size(), 0);
  std::uint32_t left = need.ntasks;
  for (bool progress = true; left > 0 && progress;) {
    progress = false;
    for (const std::size_t i : order) {
      if (left == 0 || counts[i] >= candidates[i].room) continue;
      ++counts[i];
      --left;
      progress = true;
    }
  }
  const bool all_used = std::all_of(order.begin(), order.end(), [&](std::size_t i) { return counts[i] > 0; });
  return left == 0 && all_used ? counts : std::vector<std::uint32_t>();
}

// Tasks on each candidate. Empty: they do not fit.
std::vector<std::uint32_t> LayOut(const Need& need, const std::vector<Candidate>& candidates) {
  std::vector<std::uint32_t> counts;
  if (need.as_placed) {
    bool fits = true;
    for (const Candidate& candidate : candidates) {
      counts.push_back(candidate.share->tasks);
      fits = fits && candidate.share->tasks <= candidate.room;
    }
    if (fits && std::accumulate(counts.begin(), counts.end(), 0u) == need.ntasks) return counts;
  }
  if (need.min_nodes > 0) {
    const std::uint32_t most =
        std::min({need.max_nodes, static_cast<std::uint32_t>(candidates.size()), need.ntasks});
    for (std::uint32_t nodes = need.min_nodes; nodes <= most; ++nodes)
      if (counts = SpreadOver(need, candidates, nodes); !counts.empty()) return counts;
    return {};
  }
  counts.assign(candidates.size(), 0);
  std::uint32_t left = need.ntasks;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    counts[i] = std::min(candidates[i].room, left);
    left -= counts[i];
  }
  return left == 0 ? counts : std::vector<std::uint32_t>();
}

// False: it does not fit now.
bool Take(const Need& need, const wire::PlacedComponent& placed, SlotMap& slots, StepPlace& place) {
  std::vector<Candidate> candidates;
  for (const wire::ComponentShare* share : need.shares)
    candidates.push_back({share, RoomOn(need, *share, placed, slots)});
  const std::vector<std::uint32_t> counts = LayOut(need, candidates);
  if (counts.empty()) return false;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const wire::ComponentShare& share = *candidates[i].share;
    for (std::uint32_t task = 0; task < counts[i]; ++task) {
      std::vector<std::uint16_t> free = slots.FreeOf(share.member, share.cores);
      if (free.size() < need.cpus_per_task) free.clear();
      free.resize(std::min<std::size_t>(free.size(), need.cpus_per_task));
      slots.TakeThese(share.member, free);
      place.rank_member.push_back(share.member);
      place.rank_cores.push_back(std::move(free));
    }
  }
  return true;
}

// All components or none.
std::optional<StepPlace> PlaceAll(const wire::StepOpen& step, const std::vector<Need>& needs,
                                  const Components& components, SlotMap& slots, std::size_t& failed) {
  SlotMap trial = slots;
  StepPlace place;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    failed = i;
    if (!Take(needs[i], components[needs[i].component], trial, place)) return std::nullopt;
    const wire::StepComponent& ask = step.components[i];
    place.apps.push_back(
        {static_cast<std::uint32_t>(i), ask.argv, ask.env, ask.cwd, needs[i].ntasks, needs[i].cpus_per_task});
  }
  slots = std::move(trial);
  return place;
}

std::string Asked(const Need& need) {
  std::string text = fmt::format("{} {}", need.ntasks, need.ntasks == 1 ? "task" : "tasks");
  if (need.cpus_per_task > 1) text += fmt::format(" of {} cores", need.cpus_per_task);
  if (need.min_nodes > 0)
    text += need.min_nodes == need.max_nodes ? fmt::format(" on {} nodes", need.min_nodes)
                                             : fmt::format(" on {}-{} nodes", need.min_nodes, need.max_nodes);
  if (need.per_node != kUnlimited) text += fmt::format(", at most {} a node", need.per_node);
  return text;
}

struct Slots {
  std::size_t free = 0;
  std::size_t all = 0;
};
Slots SlotsOf(const Need& need, const SlotMap& slots) {
  Slots sum;
  for (const wire::ComponentShare* share : need.shares) {
    sum.free += slots.FreeOf(share->member, share->cores).size();
    sum.all += share->cores.size();
  }
  return sum;
}

}  // namespace

StepDecision PlaceStep(const wire::StepOpen& step, const Components& components, SlotMap& slots) {
  StepDecision decision;
  const auto refuse = [&](Status why) {
    decision.refusal = std::move(why);
    return decision;
  };
  if (components.empty() || step.components.empty())
    return refuse(Error(Code::kInvalidArgument,
                        "the step has {} components, the job {}; expected one at least",
                        step.components.size(), components.size()));
  std::vector<Need> needs;
  for (const wire::StepComponent& ask : step.components) {
    if (ask.argv.empty() || ask.argv[0].empty())
      return refuse(Status(Code::kInvalidArgument, "a component of the step names no program"));
    auto need = NeedOf(ask, components, slots);
    if (!need.ok()) return refuse(need.status());
    decision.components.insert(need->component);
    needs.push_back(std::move(*need));
  }
  SlotMap all_free = slots.AllFree();
  std::size_t failed = 0;
  auto alone = PlaceAll(step, needs, components, all_free, failed);
  if (!alone) {
    const Need& need = needs[failed];
    return refuse(
        Error(Code::kOutOfRange,
              "{} do not fit into component {} of the job, which has {} slots on {} nodes of module "
              "'{}' for this step; ask for less, or start a larger job",
              Asked(need), need.component, SlotsOf(need, slots).all, need.shares.size(),
              components[need.component].module));
  }
  if (step.overlap) {  // shares what is there with everybody
    for (auto& cores : alone->rank_cores) cores.clear();
    decision.place = std::move(alone);
    return decision;
  }
  decision.place = PlaceAll(step, needs, components, slots, failed);
  if (decision.place) return decision;
  const Need& need = needs[failed];
  const Slots count = SlotsOf(need, slots);
  decision.reason =
      fmt::format("{} wait for slots of module '{}' that other steps of the job use: {} of {} are free",
                  Asked(need), components[need.component].module, count.free, count.all);
  return decision;
}

}  // namespace msa::jobd
