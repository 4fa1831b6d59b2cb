#pragma once
// libslurm's records as msa's: the only place that knows both.

#include <slurm/slurm.h>

#include <memory>
#include <string>
#include <vector>

#include "msa/base/slurm_agent_messages.h"
#include "msa/base/status.h"

#include "calls.h"

namespace msa::companion {

struct FreeJobs {
  void operator()(job_info_msg_t* jobs) const { slurm_free_job_info_msg(jobs); }
};
using JobsPtr = std::unique_ptr<job_info_msg_t, FreeJobs>;
struct FreeNodes {
  void operator()(node_info_msg_t* nodes) const { slurm_free_node_info_msg(nodes); }
};
using NodesPtr = std::unique_ptr<node_info_msg_t, FreeNodes>;

struct FreePartitions {
  void operator()(partition_info_msg_t* partitions) const { slurm_free_partition_info_msg(partitions); }
};
using PartitionsPtr = std::unique_ptr<partition_info_msg_t, FreePartitions>;

inline std::string Text(const char* text) { return text == nullptr ? "" : text; }

JobFacts FactsOf(const slurm_job_info_t& job);
ParentFacts ParentOf(const slurm_job_info_t& job);
wire::SlurmJob RecordOf(const slurm_job_info_t& job);
// No task of it will run any more, unless it is requeued.
bool IsOver(const slurm_job_info_t& job);

// Of a running job, loaded with SHOW_DETAIL. kInternal.
Result<std::vector<wire::SlurmNodeCores>> CoresOf(const slurm_job_info_t& job);

// The nodes of these partitions ("a,b"); slurmctld lists them with the partitions only.
std::vector<NodeFacts> NodesOf(const node_info_msg_t& nodes, const partition_info_msg_t& partitions,
                               std::string_view wanted);

}  // namespace msa::companion
