// Random systems, loads and queues.

#include <map>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "msa/scheduler/scheduler.h"

#include "reference_scheduler.h"

namespace msa {
namespace {

const Instant kNow = Instant(Millis(1'000'000));

struct Case {
  SystemTopology topology;
  ClusterView view;
  std::vector<PendingJob> pending;
  SchedulerOptions options;
};

template <class T>
T Between(T low, T high) {
  return *rc::gen::inRange<T>(low, high + 1);
}

SystemTopology RandomTopology() {
  SystemTopology t;
  const int modules = Between(1, 3);
  for (int m = 0; m < modules; ++m) {
    t.modules.push_back({ModuleId(static_cast<std::uint32_t>(m)), fmt::format("m{}", m), "any"});
    const int nodes = Between(1, 4);
    for (int n = 0; n < nodes; ++n)
      t.nodes.push_back({.name = fmt::format("m{}n{}", m, n),
                         .module = ModuleId(static_cast<std::uint32_t>(m)),
                         .cores = Between<std::uint32_t>(1, 70),
                         .memory = Bytes(8)});
  }
  t.modules.push_back({ModuleId(9), "gw", "gateway"});
  for (int n = 0; n < 3; ++n)
    t.nodes.push_back({.name = fmt::format("gw{}", n), .module = ModuleId(9), .cores = 1});
  return t;
}

ComponentRequest RandomComponent(const SystemTopology& t) {
  ComponentRequest c;
  c.module = t.modules[Between<std::size_t>(0, t.modules.size() - 1)].name;
  c.min_nodes = Between<std::uint32_t>(0, 3);
  if (c.min_nodes > 0 && Between(0, 1) == 1) c.max_nodes = c.min_nodes + Between<std::uint32_t>(0, 2);
  c.ntasks = Between<std::uint32_t>(0, 40);
  c.ntasks_per_node = Between(0, 3) == 0 ? Between<std::uint32_t>(1, 8) : 0;
  c.cpus_per_task = Between<std::uint32_t>(0, 3);
  c.memory = Bytes(Between<std::uint64_t>(0, 4));
  c.exclusive = Between(0, 6) == 0;
  return c;
}

// Whether two components of one job may compete for the nodes of a module. Packing those is done by rules of
// thumb, so that more free cores may, rarely, fit worse: what is promised to the minute holds for the others.
enum class Components { kAny, kOnDifferentModules };

Case RandomCase(Components components_are = Components::kAny) {
  Case c;
  c.topology = RandomTopology();
  c.view.topology = &c.topology;
  for (std::size_t n = 0; n < c.topology.nodes.size(); ++n) c.view.usable.push_back(Between(0, 9) != 0);
  c.options.backfill = Between(0, 1) == 0 ? Backfill::kEasy : Backfill::kConservative;
  const int running = Between(0, 4);
  std::vector<std::uint32_t> next(c.topology.nodes.size(), 0);
  for (int r = 0; r < running; ++r) {
    const auto node = Between<std::uint32_t>(0, static_cast<std::uint32_t>(c.topology.nodes.size()) - 1);
    NodeShare share{0, node, {}, 1, Bytes(Between<std::uint64_t>(0, 1)), 0};
    const std::uint32_t end =
        std::min(c.topology.nodes[node].cores, next[node] + Between<std::uint32_t>(1, 20));
    for (; next[node] < end; ++next[node]) share.cores.push_back(static_cast<std::uint16_t>(next[node]));
    const Instant until = Between(0, 4) == 0 ? kNever : kNow + Millis(Between<std::int64_t>(1000, 60000));
    c.view.running.push_back({JobId(1000 + static_cast<std::uint64_t>(r)), until, {share}});
    if (Between(0, 2) == 0) c.view.running.back().nam = Bytes(Between<std::uint64_t>(1, 3));
    c.view.nam_capacity.value += c.view.running.back().nam.value;
    if (Between(0, 2) == 0) c.view.running.back().gateways = Between<std::uint32_t>(1, 2);
    c.view.gateway_capacity += c.view.running.back().gateways;
  }
  c.topology.nodes.back().nam = Bytes(12);
  c.view.nam_capacity.value = std::max(c.view.nam_capacity.value, Between<std::uint64_t>(0, 12));
  const int jobs = Between(0, 8);
  for (int j = 0; j < jobs; ++j) {
    PendingJob job;
    job.id = JobId(static_cast<std::uint64_t>(j) + 1);
    const int components = Between(1, 3);
    for (int k = 0; k < components; ++k) job.request.components.push_back(RandomComponent(c.topology));
    if (Between(0, 3) != 0) job.request.time_limit = Millis(Between<std::int64_t>(1000, 60000));
    job.request.oversubscribe = Between(0, 5) == 0;
    if (Between(0, 2) == 0) job.request.nam = Bytes(Between<std::uint64_t>(1, 12));
    if (Between(0, 2) == 0) job.request.gateways = Between<std::uint32_t>(1, 3);
    if (components_are == Components::kOnDifferentModules) {
      std::set<std::string> modules;
      std::erase_if(job.request.components, [&](const auto& k) { return !modules.insert(k.module).second; });
    }
    if (FillDefaults(job.request, c.topology).ok() && CheckCanEver(job.request, c.topology).ok())
      c.pending.push_back(std::move(job));
  }
  return c;
}

const PendingJob& JobOf(const Case& c, JobId id) {
  for (const PendingJob& job : c.pending)
    if (job.id == id) return job;
  RC_FAIL("the plan names a job that was not asked for");
}

// Everything that one placement must be.
void CheckPlacement(const Case& c, const PendingJob& job, const Placement& placement) {
  for (std::size_t k = 0; k < job.request.components.size(); ++k) {
    const ComponentRequest& ask = job.request.components[k];
    std::set<std::uint32_t> nodes;
    std::uint32_t tasks = 0;
    for (const NodeShare& share : placement) {
      if (share.component != k) continue;
      RC_ASSERT(nodes.insert(share.node).second);
      RC_ASSERT(c.view.usable[share.node]);
      RC_ASSERT(c.topology.FindModule(c.topology.nodes[share.node].module)->name == ask.module);
      RC_ASSERT(share.tasks >= 1u);
      if (ask.ntasks_per_node != 0) RC_ASSERT(share.tasks <= ask.ntasks_per_node);
      if (job.request.oversubscribe) {
        RC_ASSERT(!share.cores.empty());
      } else if (ask.exclusive) {
        RC_ASSERT(share.cores.size() >= share.tasks * ask.cpus_per_task);
      } else {
        RC_ASSERT(share.cores.size() == share.tasks * ask.cpus_per_task);
      }
      tasks += share.tasks;
    }
    RC_ASSERT(nodes.size() >= ask.min_nodes);
    RC_ASSERT(nodes.size() <= ask.max_nodes);
    if (ask.ntasks != 0) RC_ASSERT(tasks == ask.ntasks);
    if (ask.ntasks == 0) RC_ASSERT(tasks == nodes.size() * std::max(1u, ask.ntasks_per_node));
  }
}

TEST(SchedulerProperty, NoCoreIsUsedTwiceAndEveryStartIsWhole) {
  RC_ASSERT(rc::check("placements", [] {
    Case c = RandomCase();
    c.view.topology = &c.topology;
    const Plan plan = Schedule(c.view, c.pending, kNow, c.options);
    RC_ASSERT(plan.starts.size() + plan.waiting.size() == c.pending.size());
    std::set<std::pair<std::uint32_t, std::uint16_t>> used;
    std::map<std::uint32_t, std::uint64_t> memory;
    const auto take = [&](const Placement& placement) {
      for (const NodeShare& share : placement) {
        memory[share.node] += share.memory.value;
        for (const std::uint16_t core : share.cores) {
          RC_ASSERT(core < c.topology.nodes[share.node].cores);
          RC_ASSERT(used.insert({share.node, core}).second);
        }
      }
    };
    std::uint64_t nam = 0;
    for (const RunningJob& job : c.view.running) take(job.held);
    for (const RunningJob& job : c.view.running) nam += job.nam.value;
    for (const Start& start : plan.starts) nam += JobOf(c, start.id).request.nam.value;
    RC_ASSERT(nam <= c.view.nam_capacity.value);
    std::uint32_t gateways = 0;
    for (const RunningJob& job : c.view.running) gateways += job.gateways;
    for (const Start& start : plan.starts) gateways += JobOf(c, start.id).request.gateways;
    RC_ASSERT(gateways <= c.view.gateway_capacity);
    for (const Start& start : plan.starts) {
      take(start.placement);
      CheckPlacement(c, JobOf(c, start.id), start.placement);
    }
    for (const auto& [node, bytes] : memory) RC_ASSERT(bytes <= 8u);
  }));
}

TEST(SchedulerProperty, TheSameSnapshotGivesTheSamePlan) {
  RC_ASSERT(rc::check("determinism", [] {
    Case c = RandomCase();
    c.view.topology = &c.topology;
    const Plan a = Schedule(c.view, c.pending, kNow, c.options);
    const Plan b = Schedule(c.view, c.pending, kNow, c.options);
    RC_ASSERT(a.starts.size() == b.starts.size());
    for (std::size_t i = 0; i < a.starts.size(); ++i) {
      RC_ASSERT(a.starts[i].id == b.starts[i].id);
      RC_ASSERT(a.starts[i].placement.size() == b.starts[i].placement.size());
      for (std::size_t s = 0; s < a.starts[i].placement.size(); ++s)
        RC_ASSERT(a.starts[i].placement[s].cores == b.starts[i].placement[s].cores);
    }
    for (std::size_t i = 0; i < a.waiting.size(); ++i)
      RC_ASSERT(a.waiting[i].expected_start == b.waiting[i].expected_start);
  }));
}

// The first waiting job's start, were nothing behind it in the queue.
std::optional<Waiting> HeadAlone(const Case& c, JobId head) {
  std::vector<PendingJob> front;
  for (const PendingJob& job : c.pending) {
    front.push_back(job);
    if (job.id == head) break;
  }
  const Plan plan = Schedule(c.view, front, kNow, c.options);
  for (const Waiting& waiting : plan.waiting)
    if (waiting.id == head) return waiting;
  return std::nullopt;
}

TEST(SchedulerProperty, BackfillNeverDelaysTheHead) {
  RC_ASSERT(rc::check("the head's start", [] {
    Case c = RandomCase(Components::kOnDifferentModules);
    c.view.topology = &c.topology;
    const Plan plan = Schedule(c.view, c.pending, kNow, c.options);
    if (plan.waiting.empty()) return;
    const Waiting& head = plan.waiting.front();
    const auto alone = HeadAlone(c, head.id);
    RC_ASSERT(alone.has_value());
    RC_ASSERT(alone->expected_start == head.expected_start);
    if (head.expected_start == kNever) return;
    // Let everything end at its limit: at the promised time the head does start.
    ClusterView later = c.view;
    for (const Start& start : plan.starts) {
      const auto& limit = JobOf(c, start.id).request.time_limit;
      later.running.push_back({start.id, limit ? kNow + *limit : kNever, start.placement});
    }
    std::erase_if(later.running,
                  [&](const RunningJob& job) { return job.expected_end <= head.expected_start; });
    const Plan then = Schedule(later, {JobOf(c, head.id)}, head.expected_start, c.options);
    RC_ASSERT(then.starts.size() == 1u);
  }));
}

// A case with all that a request can ask for.
Case RandomRichCase() {
  Case c = RandomCase();
  for (NodeSpec& node : c.topology.nodes) {
    node.gpus = Between<std::uint32_t>(0, 2);
    if (Between(0, 4) == 0) node.memory = Bytes(0);
  }
  const auto names = [&] {
    std::vector<std::string> out;
    for (const NodeSpec& node : c.topology.nodes)
      if (Between(0, 3) == 0) out.push_back(node.name);
    return out;
  };
  for (PendingJob& job : c.pending) {
    for (ComponentRequest& k : job.request.components) {
      if (Between(0, 3) == 0) k.gpus_per_node = Between<std::uint32_t>(0, 2);
      if (Between(0, 4) == 0) k.exclude = names();
      if (Between(0, 4) != 0) continue;
      k = ComponentRequest{.ntasks = k.ntasks, .cpus_per_task = k.cpus_per_task, .memory = k.memory};
      k.nodelist = names();
    }
  }
  std::erase_if(c.pending, [&](PendingJob& job) {
    return !FillDefaults(job.request, c.topology).ok() || !CheckCanEver(job.request, c.topology).ok();
  });
  c.options.planned = Between<std::size_t>(0, 8);
  return c;
}

TEST(SchedulerProperty, ThePlanIsThatOfThePlainReference) {
  RC_ASSERT(rc::check("reference", [] {
    Case c = RandomRichCase();
    c.view.topology = &c.topology;
    const Plan plan = Schedule(c.view, c.pending, kNow, c.options);
    const Plan plain = scheduler_test::ReferenceSchedule(c.view, c.pending, kNow, c.options);
    RC_ASSERT(plan.starts.size() == plain.starts.size());
    for (std::size_t i = 0; i < plan.starts.size(); ++i) {
      RC_ASSERT(plan.starts[i].id == plain.starts[i].id);
      RC_ASSERT(plan.starts[i].placement.size() == plain.starts[i].placement.size());
      for (std::size_t s = 0; s < plan.starts[i].placement.size(); ++s) {
        const NodeShare& a = plan.starts[i].placement[s];
        const NodeShare& b = plain.starts[i].placement[s];
        RC_ASSERT(std::tie(a.component, a.node, a.cores, a.tasks, a.memory, a.gpus) ==
                  std::tie(b.component, b.node, b.cores, b.tasks, b.memory, b.gpus));
      }
    }
    RC_ASSERT(plan.waiting.size() == plain.waiting.size());
    for (std::size_t i = 0; i < plan.waiting.size(); ++i) {
      RC_ASSERT(plan.waiting[i].id == plain.waiting[i].id);
      RC_ASSERT(plan.waiting[i].expected_start == plain.waiting[i].expected_start);
    }
  }));
}

TEST(SchedulerProperty, AnIdleSystemStartsEveryJobThatCanEverStart) {
  RC_ASSERT(rc::check("no job waits for ever", [] {
    Case c = RandomCase();
    c.view.topology = &c.topology;
    c.view.running.clear();
    c.view.usable.assign(c.topology.nodes.size(), true);
    c.view.nam_capacity = c.topology.nodes.back().nam;
    c.view.gateway_capacity = 3;  // as many as there are
    for (const PendingJob& job : c.pending)
      RC_ASSERT(Schedule(c.view, {job}, kNow, c.options).starts.size() == 1u);
  }));
}

TEST(SchedulerProperty, LendingChangesNoPlannedStart) {
  RC_ASSERT(rc::check("planned starts", [] {
    Case c = RandomCase(Components::kOnDifferentModules);
    c.view.topology = &c.topology;
    c.options.backfill = Backfill::kConservative;
    const Plan before = Schedule(c.view, c.pending, kNow, c.options);
    // What starts now is started; then a job asks for more.
    for (const Start& start : before.starts) {
      const auto& limit = JobOf(c, start.id).request.time_limit;
      c.view.running.push_back({start.id, limit ? kNow + *limit : kNever, start.placement});
    }
    if (c.view.running.empty()) return;
    std::vector<PendingJob> left;
    for (const Waiting& waiting : before.waiting) left.push_back(JobOf(c, waiting.id));
    DynamicRequest request;
    request.job = c.view.running[0].id;
    request.until = c.view.running[0].expected_end;
    request.slots = Between<std::uint32_t>(1, 30);
    const DynamicAnswer answer = FindDynamic(c.view, left, request, kNow, c.options);
    if (!answer.lent) {
      RC_ASSERT(!answer.reason.empty());
      return;
    }
    std::uint32_t lent = 0;
    for (const NodeShare& share : *answer.lent) lent += static_cast<std::uint32_t>(share.cores.size());
    RC_ASSERT(lent == request.slots);
    const Plan without = Schedule(c.view, left, kNow, c.options);
    for (const NodeShare& share : *answer.lent) c.view.running[0].held.push_back(share);
    const Plan with = Schedule(c.view, left, kNow, c.options);
    if (left.empty() || without.waiting.empty()) return;
    RC_ASSERT(with.starts.size() >= without.starts.size());
    if (!with.waiting.empty() && with.waiting[0].id == without.waiting[0].id)
      RC_ASSERT(with.waiting[0].expected_start <= without.waiting[0].expected_start);
  }));
}

}  // namespace
}  // namespace msa
