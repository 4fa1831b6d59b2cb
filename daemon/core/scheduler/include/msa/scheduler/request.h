#pragma once
// What a job asks of the scheduler. Counts are 0 where the user gave none; FillDefaults completes them as
// srun does.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "msa/base/ids.h"
#include "msa/base/status.h"
#include "msa/topology/topology.h"

namespace msa {

// Limits of one request from outside.
inline constexpr std::uint32_t kMaxTasksPerJob = 1u << 20;  // wire::kMaxListItems: one rank_member entry each
inline constexpr std::uint32_t kMaxComponents = 1024;

// The resources of one component.
struct ComponentRequest {
  std::string module;  // name, kind or id; empty: the default module
  std::uint32_t min_nodes = 0;
  std::uint32_t max_nodes = 0;  // 0: as min_nodes
  std::uint32_t ntasks = 0;     // 0 with a node range: nodes * max(1, ntasks_per_node), known when it starts
  std::uint32_t ntasks_per_node = 0;  // at most this many
  std::uint32_t cpus_per_task = 0;    // 0: 1
  Bytes memory;                       // per node; 0: no demand
  std::uint32_t gpus_per_node = 0;
  std::vector<std::string> nodelist;  // exactly these nodes are used
  std::vector<std::string> exclude;
  bool exclusive = false;     // nodes are not shared with other jobs
  bool fewest_nodes = false;  // set by FillDefaults: no node count was asked, as few as hold the tasks
  template <class A>
  void Fields(A& a) {
    a(module, min_nodes, max_nodes, ntasks, ntasks_per_node, cpus_per_task, memory, gpus_per_node, nodelist,
      exclude, exclusive, fewest_nodes);
  }
};

struct JobRequest {
  std::vector<ComponentRequest> components;
  std::optional<Millis> time_limit;  // nullopt: none; the scheduler takes it as endless
  bool oversubscribe = false;  // tasks need no core of their own: one core a node and component is enough
  Bytes nam;                   // of the system's network attached memory, while the job runs
  std::uint32_t gateways = 0;  // of the system's gateway nodes, for this job alone
};

// Fills module (by its name), node counts, tasks and cpus_per_task in as srun does: no nodes: as many as the
// tasks need, from 1 on (max_nodes = the number of tasks, bounded by the module), or the length of nodelist;
// no tasks: one a node, or nodes * ntasks_per_node (stays 0 for a node range); more nodes than tasks: as many
// nodes as tasks. Errors name the value and the remedy. kInvalidArgument: contradictory counts, an ambiguous
// kind, no component; kNotFound: a module or node that does not exist, with the nearest name.
Status FillDefaults(JobRequest& request, const SystemTopology& topology);

// Could it ever start if the whole system were free and up? `request` is filled in. kOutOfRange: it asks more
// than exists, numbers named
// ("module 'booster': 12 nodes requested, 2 exist; reduce --nodes or see 'msactl module list'").
Status CheckCanEver(const JobRequest& request, const SystemTopology& topology);

// How many nodes it would get if the whole system were free and up; 0: it does not fit. `request` is filled
// in.
std::uint32_t NodesAlone(const JobRequest& request, const SystemTopology& topology);

}  // namespace msa
