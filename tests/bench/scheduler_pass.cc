// How long one scheduler pass takes: scheduler_bench [NODES [RUNNING [PENDING [PASSES]]]], by default 10,000
// nodes, 5,000 running jobs, 1,000 pending jobs of different shapes, 5 passes of each kind.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "msa/scheduler/scheduler.h"

namespace msa {
namespace {

const Instant kNow = Instant(Millis(1'700'000'000'000));
constexpr std::uint32_t kCores = 64;

// The same numbers on every machine, so that runs can be compared.
class Numbers {
 public:
  std::uint32_t Below(std::uint32_t limit) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state_ >> 33) % limit;
  }

 private:
  std::uint64_t state_ = 1;
};

struct Sizes {
  std::uint32_t nodes = 10000;
  std::uint32_t running = 5000;
  std::uint32_t pending = 1000;
  std::uint32_t passes = 5;
};

// Two modules, three nodes of the first for each of the second.
SystemTopology TopologyOf(const Sizes& sizes) {
  SystemTopology t;
  t.modules = {{ModuleId(0), "cluster", "cluster"}, {ModuleId(1), "booster", "booster"}};
  for (std::uint32_t n = 0; n < sizes.nodes; ++n)
    t.nodes.push_back({.name = fmt::format("n{}", n),
                       .module = ModuleId(n % 4 == 3 ? 1 : 0),
                       .cores = kCores,
                       .memory = Bytes(std::uint64_t{256} << 30)});
  return t;
}

// One node each, whole or the half of it, until some time in the next hours.
ClusterView ViewOf(const SystemTopology& topology, const Sizes& sizes) {
  Numbers numbers;
  ClusterView view;
  view.topology = &topology;
  view.usable.assign(topology.nodes.size(), true);
  for (std::uint32_t n = 0; n < std::min(sizes.running, sizes.nodes); ++n) {
    NodeShare share{0, n, {}, kCores, Bytes(std::uint64_t{64} << 30), 0};
    for (std::uint16_t c = 0; c < (n % 3 == 0 ? kCores / 2 : kCores); ++c) share.cores.push_back(c);
    view.running.push_back({JobId(n + 1), kNow + Millis(1000 * (1 + numbers.Below(20000))), {share}});
  }
  return view;
}

// One task a node on 100, 105, 110, ... nodes, all for an hour.
std::vector<PendingJob> WideJobs(const SystemTopology& topology, const Sizes& sizes) {
  std::vector<PendingJob> jobs;
  for (std::uint32_t j = 0; j < sizes.pending; ++j) {
    ComponentRequest c;
    c.module = "cluster";
    c.min_nodes = 100 + j * 5;
    PendingJob job{JobId(100000 + j), {{c}, Millis(3600000), false}};
    if (FillDefaults(job.request, topology).ok()) jobs.push_back(std::move(job));
  }
  return jobs;
}

// What users ask for: few nodes and many, ranges, whole nodes, memory, two modules, some without a limit.
std::vector<PendingJob> MixedJobs(const SystemTopology& topology, const Sizes& sizes) {
  Numbers numbers;
  std::vector<PendingJob> jobs;
  for (std::uint32_t j = 0; j < sizes.pending; ++j) {
    ComponentRequest c;
    c.module = j % 4 == 0 ? "booster" : "cluster";
    const std::uint32_t nodes = 1 + numbers.Below(j % 10 == 0 ? sizes.nodes / 8 : 40);
    if (j % 3 == 0) {
      c.ntasks = nodes * (1 + numbers.Below(kCores));
    } else {
      c.min_nodes = nodes;
      c.ntasks_per_node = 1 + numbers.Below(kCores);
      if (j % 3 == 1) c.max_nodes = nodes * 2;
    }
    c.exclusive = j % 5 == 0;
    if (j % 4 == 1) c.memory = Bytes((1 + numbers.Below(200)) * (std::uint64_t{1} << 30));
    PendingJob job{JobId(100000 + j), {{c}, Millis(1000 * (60 + numbers.Below(86400))), false}};
    if (j % 7 == 0) job.request.components.push_back({.module = "booster", .ntasks = 1 + numbers.Below(500)});
    if (j % 50 == 49) job.request.time_limit.reset();
    if (FillDefaults(job.request, topology).ok() && CheckCanEver(job.request, topology).ok())
      jobs.push_back(std::move(job));
  }
  return jobs;
}

void Measure(const char* name, const ClusterView& view, const std::vector<PendingJob>& pending,
             const Sizes& sizes, Backfill backfill) {
  SchedulerOptions options;
  options.backfill = backfill;
  std::vector<double> times;
  Plan plan;
  for (std::uint32_t i = 0; i < std::max(1u, sizes.passes); ++i) {
    const auto before = std::chrono::steady_clock::now();
    plan = Schedule(view, pending, kNow, options);
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - before).count());
  }
  std::sort(times.begin(), times.end());
  std::printf(
      "%-6s %-12s %6zu nodes %6zu running %5zu pending: median %9.2f ms, least %9.2f ms (%zu start)\n", name,
      backfill == Backfill::kEasy ? "easy" : "conservative", view.topology->nodes.size(), view.running.size(),
      pending.size(), times[times.size() / 2], times.front(), plan.starts.size());
}

int Main(int argc, char** argv) {
  Sizes sizes;
  std::uint32_t* const fields[] = {&sizes.nodes, &sizes.running, &sizes.pending, &sizes.passes};
  for (int i = 1; i < argc && i <= 4; ++i)
    *fields[i - 1] = static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10));
  const SystemTopology topology = TopologyOf(sizes);
  const ClusterView view = ViewOf(topology, sizes);
  const auto wide = WideJobs(topology, sizes);
  const auto mixed = MixedJobs(topology, sizes);
  for (const Backfill backfill : {Backfill::kEasy, Backfill::kConservative}) {
    Measure("wide", view, wide, sizes, backfill);
    Measure("mixed", view, mixed, sizes, backfill);
  }
  return 0;
}

}  // namespace
}  // namespace msa

int main(int argc, char** argv) { return msa::Main(argc, argv); }
