#include <algorithm>

#include <fmt/format.h>

#include "msa/topology/size_text.h"
#include "msa/topology/suggest.h"

#include "planner.h"

namespace msa {
namespace {

// Everything that decides whether a request fits; jobs with equal keys fit or fail alike.
std::string KeyOf(const JobRequest& request) {
  std::string key = fmt::format("{}/{}/{}/{}", request.time_limit ? request.time_limit->count() : -1,
                                request.oversubscribe, request.nam, request.gateways);
  for (const ComponentRequest& c : request.components) {
    fmt::format_to(std::back_inserter(key), "|{},{},{},{},{},{},{},{},{},{}", c.module, c.min_nodes,
                   c.max_nodes, c.ntasks, c.ntasks_per_node, c.cpus_per_task, c.memory, c.gpus_per_node,
                   c.exclusive, c.fewest_nodes);
    for (const std::string& name : c.nodelist) key += "+" + name;
    for (const std::string& name : c.exclude) key += "-" + name;
  }
  return key;
}

// A queue of equal requests is the usual long one: most keys are the one before.
bool SameKey(const JobRequest& a, const JobRequest& b) {
  const auto same = [](const ComponentRequest& x, const ComponentRequest& y) {
    return x.module == y.module && x.min_nodes == y.min_nodes && x.max_nodes == y.max_nodes &&
           x.ntasks == y.ntasks && x.ntasks_per_node == y.ntasks_per_node &&
           x.cpus_per_task == y.cpus_per_task && x.memory == y.memory && x.gpus_per_node == y.gpus_per_node &&
           x.exclusive == y.exclusive && x.fewest_nodes == y.fewest_nodes && x.nodelist == y.nodelist &&
           x.exclude == y.exclude;
  };
  return a.time_limit == b.time_limit && a.oversubscribe == b.oversubscribe && a.nam == b.nam &&
         a.gateways == b.gateways &&
         std::equal(a.components.begin(), a.components.end(), b.components.begin(), b.components.end(), same);
}

std::string Count(std::uint64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::uint64_t TasksAtLeast(const ComponentRequest& c) {
  return c.ntasks != 0 ? c.ntasks : std::uint64_t{c.min_nodes} * std::max(1u, c.ntasks_per_node);
}

}  // namespace

Planner::Planner(const ClusterView& view, const std::vector<PendingJob>& pending, Instant now,
                 const SchedulerOptions& options)
    : view_(view),
      pending_(pending),
      now_(now),
      options_(options),
      layout_(*view.topology, view.usable),
      placer_(*view.topology, layout_),
      everything_(layout_, *view.topology),
      profile_(view_, layout_, now) {
  everything_.Bound({view.nam_capacity, view.gateway_capacity});
}

bool Planner::TryStart(const PendingJob& job, Plan& plan) {
  const Instant end = std::max(Profile::EndOf(now_, job.request.time_limit), now_ + kOverrun);
  auto placement = placer_.Place(job.request, profile_.FreeUntil(end));
  if (!placement) return false;
  profile_.StartNow({*placement, {job.request.nam, job.request.gateways}}, end);
  plan.starts.push_back({job.id, std::move(*placement)});
  return true;
}

// Finds the job its start and holds the cores for it.
void Planner::Hold(Blocked& blocked) {
  auto slot = profile_.Earliest(blocked.job->request, placer_);
  if (!slot) return;
  blocked.waiting.nodes = CountNodes(slot->placement);
  if (slot->start < kSomeday) {
    blocked.waiting.expected_start = slot->start;
    profile_.Reserve({slot->placement, {blocked.job->request.nam, blocked.job->request.gateways}},
                     slot->start, Profile::EndOf(slot->start, blocked.job->request.time_limit));
  } else {
    // Its start has no date: what it could have already is kept from jobs without a limit, or it would never
    // start.
    const FreeSet last = profile_.FreeAtLast();
    const JobRequest& request = blocked.job->request;
    SystemShare share;
    if (Placer::NamFits(request, last)) share.nam = request.nam;
    if (Placer::GatewaysFit(request, last)) share.gateways = request.gateways;
    profile_.Reserve({placer_.PlaceWhatFits(request, last), share}, kSomeday, kNever);
  }
  blocked.reserved = true;
  if (reservations_++ == 0) first_reserved_ = blocked.job->id;
}

void Planner::Block(const PendingJob& job, const std::string& key) {
  auto [lack, fresh] = lack_by_key_.try_emplace(key);
  if (fresh) lack->second = LackFor(job);
  Blocked blocked;
  blocked.job = &job;
  blocked.waiting = {job.id, kNever, lack->second.reason};
  blocked.hopeless = lack->second.hopeless;
  const std::size_t limit = options_.backfill == Backfill::kEasy ? 1 : options_.planned;
  if (!blocked.hopeless && reservations_ < limit) Hold(blocked);
  blocked_.push_back(std::move(blocked));
}

std::string Planner::LackOf(const ComponentRequest& component, const FreeSet& free, Shared shared) const {
  std::uint64_t cores = 0;
  std::uint32_t nodes = 0;
  if (const auto module = placer_.WholeModule(component); module && !component.exclusive) {
    const FreeSet::Counts counts = free.NodesByFree(*module);
    for (std::uint32_t n = 1; n < counts.size; ++n) {
      cores += std::uint64_t{n} * counts.nodes[n];
      nodes += counts.nodes[n];
    }
  } else {
    for (const std::uint32_t node : placer_.Candidates(component)) {
      const std::uint32_t n = free.FreeCores(node);
      const bool counts = component.exclusive ? free.WhollyFree(node) : n > 0;
      cores += counts ? n : 0;
      nodes += counts ? 1 : 0;
    }
  }
  const std::uint64_t tasks = TasksAtLeast(component);
  const std::string where = component.nodelist.empty()
                                ? fmt::format("module '{}'", component.module)
                                : fmt::format("the nodes named in module '{}'", component.module);
  // Shared cores are not counted, and who named no nodes is not told of the fewest that could do.
  const std::string asked = shared == Shared::kYes ? Count(tasks, "task") + " that share cores"
                                                   : Count(tasks * component.cpus_per_task, "core");
  const std::string on = component.fewest_nodes ? "" : " on " + Count(component.min_nodes, "node");
  return fmt::format("{}: {}{} asked, {} free on {}", where, asked, on, Count(cores, "core"),
                     Count(nodes, "node"));
}

std::string Planner::NotReady(const ComponentRequest& component) const {
  std::vector<std::string> away;
  for (const std::string& name : component.nodelist)
    if (const auto node = placer_.Find(name); node && !placer_.usable(*node)) away.push_back(name);
  if (!away.empty())
    return fmt::format("nodes down or drained: {}, which the job names; see 'msactl node show {}'",
                       ListNames(away), away.front());
  const std::size_t ready = placer_.Candidates(component).size();
  return fmt::format("nodes down or drained: module '{}' has {} ready, which cannot hold {}{}",
                     component.module, Count(ready, "node"), Count(TasksAtLeast(component), "task"),
                     component.fewest_nodes ? "" : " on " + Count(component.min_nodes, "node"));
}

// "--nam 2G: 512M of 1G are free".
std::string Planner::NamLack(const JobRequest& request, const FreeSet& free) const {
  const auto left = static_cast<std::uint64_t>(std::max<std::int64_t>(free.nam(), 0));
  return fmt::format("--nam {}: {} of {} are free", SizeText(request.nam), SizeText(Bytes(left)),
                     SizeText(view_.nam_capacity));
}

// "--gateways 2: 1 of 3 are free".
std::string Planner::GatewayLack(const JobRequest& request, const FreeSet& free) const {
  return fmt::format("--gateways {}: {} of {} are free", request.gateways,
                     std::max<std::int64_t>(free.gateways(), 0), view_.gateway_capacity);
}

Planner::Lack Planner::LackFor(const PendingJob& job) const {
  const auto alone = [&](const ComponentRequest& component) {
    return JobRequest{{component}, job.request.time_limit, job.request.oversubscribe};
  };
  if (!Placer::NamFits(job.request, everything_))
    return {
        "resources: " + NamLack(job.request, profile_.free_now()) +
            ", and no more with all jobs ended: persistent regions take the rest, or NAM nodes are away; see "
            "'msactl region df'",
        true};
  if (!Placer::GatewaysFit(job.request, everything_))
    return {"resources: " + GatewayLack(job.request, profile_.free_now()) +
                ", the others are down or drained; see 'msactl node list'",
            true};
  if (!placer_.Fits(job.request, everything_)) {
    for (const ComponentRequest& component : job.request.components) {
      if (placer_.Fits(alone(component), everything_)) continue;
      return {NotReady(component), true};
    }
    return {"nodes down or drained: its components do not fit together on those that are ready", true};
  }
  const FreeSet& free = profile_.free_now();
  if (placer_.Fits(job.request, free)) {
    if (first_reserved_.value == 0) return {"priority: jobs in front of it are started first", false};
    return {fmt::format("priority: its start now would delay job {}", first_reserved_), false};
  }
  const Shared shared = job.request.oversubscribe ? Shared::kYes : Shared::kNo;
  for (const ComponentRequest& component : job.request.components)
    if (!placer_.Fits(alone(component), free))
      return {"resources: " + LackOf(component, free, shared), false};
  if (!Placer::NamFits(job.request, free)) return {"resources: " + NamLack(job.request, free), false};
  if (!Placer::GatewaysFit(job.request, free)) return {"resources: " + GatewayLack(job.request, free), false};
  return {"resources: its components do not fit together on what is free", false};
}

Plan Planner::Run() {
  Plan plan;
  blocked_.reserve(pending_.size());
  std::size_t seen = 0;
  const JobRequest* last = nullptr;
  std::string key;
  for (const PendingJob& job : pending_) {
    if (seen++ >= options_.depth) {
      blocked_.push_back({&job,
                          {job.id, kNever, fmt::format("priority: {} jobs wait in front of it", seen - 1)},
                          false,
                          true});
      continue;
    }
    // Within a pass what is free only shrinks: a request that failed once fails again.
    if (last == nullptr || !SameKey(*last, job.request)) key = KeyOf(job.request);
    last = &job.request;
    if (!lack_by_key_.contains(key) && TryStart(job, plan)) continue;
    Block(job, key);
  }
  // The starts of the others, for people and for grants: as if every waiting job held a reservation.
  plan.waiting.reserve(blocked_.size());
  for (Blocked& blocked : blocked_) {
    if (!blocked.reserved && !blocked.hopeless && reservations_ < options_.planned) Hold(blocked);
    plan.waiting.push_back(std::move(blocked.waiting));
  }
  return plan;
}

Plan Schedule(const ClusterView& view, const std::vector<PendingJob>& pending, Instant now,
              const SchedulerOptions& options) {
  return Planner(view, pending, now, options).Run();
}

}  // namespace msa
