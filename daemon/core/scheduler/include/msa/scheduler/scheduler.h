#pragma once
// Snapshot in, plan out. Pure and deterministic: the same arguments give the same plan. A node index is the
// place in SystemTopology::nodes; a core is a logical index on its node, 0 to cores - 1.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "msa/base/ids.h"
#include "msa/scheduler/request.h"
#include "msa/topology/topology.h"

namespace msa {

// A time that does not come.
inline constexpr Instant kNever = Instant::max();

// One node's share of one component.
struct NodeShare {
  std::uint32_t component = 0;
  std::uint32_t node = 0;            // index in the topology
  std::vector<std::uint16_t> cores;  // ascending; no core stands in two shares
  std::uint32_t tasks = 0;  // ranks are consecutive over the shares of a component in the order given
  Bytes memory;
  std::uint32_t gpus = 0;
};

// Shares of a job, by component, then by node index. All of it starts at once.
using Placement = std::vector<NodeShare>;

struct RunningJob {
  JobId id;
  Instant expected_end = kNever;  // start + time limit; kNever: no limit
  Placement held;                 // grants included
  Bytes nam;                      // its allotment
  std::uint32_t gateways = 0;     // its own, those that are not usable left out
};

struct ClusterView {
  const SystemTopology* topology = nullptr;  // outlives the call
  // By node index. False: down, drained or not reporting; nothing new starts there, what runs there stays.
  std::vector<bool> usable;
  std::vector<RunningJob> running;
  Bytes nam_capacity;  // of the NAM nodes that are there, less what regions outside running jobs take
  std::uint32_t gateway_capacity = 0;  // usable gateway nodes
};

struct PendingJob {
  JobId id;
  JobRequest request;  // filled in, see FillDefaults
};

enum class Backfill : std::uint8_t {
  kEasy = 0,          // only the first job that cannot start holds a reservation
  kConservative = 1,  // every waiting job does, in priority order
};

struct SchedulerOptions {
  Backfill backfill = Backfill::kEasy;
  // Jobs looked at in one pass; those behind wait for the next. 1,000 as Slurm's default is 500: a queue of
  // 100,000 must not stall a pass.
  std::size_t depth = 1000;
  // Waiting jobs whose start is computed in one pass (each costs a search over the profile).
  std::size_t planned = 64;
};

struct Start {
  JobId id;
  Placement placement;
};

struct Waiting {
  JobId id;
  Instant expected_start =
      kNever;  // by users' limits; kNever: not known (a limitless job or a node that is away is in front)
  std::string reason;       // for people: what is asked, what is free, who is in front
  std::uint32_t nodes = 0;  // that it is planned on; 0: it is not planned
};

struct Plan {
  std::vector<Start> starts;     // in priority order; start all or none of each
  std::vector<Waiting> waiting;  // in priority order
};

// `pending` in priority order, the most urgent first.
Plan Schedule(const ClusterView& view, const std::vector<PendingJob>& pending, Instant now,
              const SchedulerOptions& options = {});

// ---- nodes lent to a running job

struct DynamicRequest {
  JobId job;                       // who asks
  std::uint32_t slots = 0;         // cores
  std::vector<std::string> nodes;  // only on these; empty: any
  std::string module;              // name, kind or id; empty: any, the modules of `job` first
  Instant until = kNever;          // the end of the job by its limit
  // Node indices that must not be lent: the job's daemon there is still leaving.
  std::vector<std::uint32_t> avoid;
  std::vector<std::uint32_t> own;  // where the job is already: their free cores come first
  // Fewer slots that do as well, descending; tried in this order when `slots` are not to be had.
  std::vector<std::uint32_t> alternatives;
  std::uint32_t slots_per_node = 0;  // at most so many of a node; 0: all
  std::uint32_t nodes_exactly = 0;   // spread evenly over exactly so many nodes; 0: as few as hold the slots
};

struct DynamicAnswer {
  std::optional<Placement> lent;  // component 0, tasks = cores on each node; nullopt: refused
  std::string reason;             // of a refusal: what is free, what is asked, when it could be
  bool possible_later = false;    // of a refusal: false if the system never could
};

// Free cores of whole usable nodes that no planned start of a waiting job needs before `until` (conservative
// plan over `pending`). Fewest nodes first. The whole policy of lending stands in this function: what a site
// allows beyond it (budgets of delay a job or user) comes in by `options` and is decided here.
DynamicAnswer FindDynamic(const ClusterView& view, const std::vector<PendingJob>& pending,
                          const DynamicRequest& request, Instant now, const SchedulerOptions& options = {});

}  // namespace msa
