#pragma once
// How a CompanionAsk becomes a request to Slurm, and which of its sizes the nodes that came hold.

#include <optional>
#include <string>
#include <vector>

#include "msa/base/companion_messages.h"
#include "msa/base/status.h"

namespace msa::companion {

// What a partition has.
struct NodeFacts {
  std::string name;
  std::uint32_t cores = 0;
  bool completing = false;  // a job that has ended is still being cleaned away
};

// Of one job, in Slurm's terms. Zeros: not given.
struct SizeRequest {
  std::uint32_t min_nodes = 1;
  std::uint32_t max_nodes = 0;
  std::uint32_t tasks = 0;  // a core each
  std::uint32_t tasks_per_node = 0;
  bool whole_nodes = false;
  friend bool operator==(const SizeRequest&, const SizeRequest&) = default;
};

// kInvalidArgument names the field, its value and what was expected; kFailedPrecondition: another version.
Status CheckAsk(const wire::CompanionAsk& ask);

// For CompanionAsk::slots and nothing else.
SizeRequest ExactRequest(const wire::CompanionAsk& ask);

// For as many as there are, of slots and its alternatives, which are not empty. `nodes`: of the partition;
// without any the largest range is asked for. Only an exclusive ask is for exclusive nodes: a job that has such
// can give none back (see MayShrink).
SizeRequest RangeRequest(const wire::CompanionAsk& ask, const std::vector<NodeFacts>& nodes);

// Whether nodes of the job may be given back. slurmctld 22.05 goes on counting an exclusive job that has given
// a node back as one that shares it with nobody (no_share_job_cnt): after the node's next exclusive job,
// no shared one starts there until slurmctld is restarted.
inline bool MayShrink(const wire::CompanionAsk& ask) {
  return !ask.exclusive && (ask.nodes_exactly == 0 || ask.slots_per_node > 0);
}

struct Fit {
  std::uint32_t slots = 0;
  std::vector<std::string> keep;  // in the order given
};

// The largest of slots and its alternatives that `nodes` hold, and the fewest of them that do. nullopt: they
// hold none.
std::optional<Fit> ChooseFit(const wire::CompanionAsk& ask, const std::vector<wire::SlurmNodeCores>& nodes);

// Those of `nodes` that the ask does not allow. kNotFound: names of the ask that are not among them.
Result<std::vector<std::string>> ExcludedNodes(const wire::CompanionAsk& ask,
                                               const std::vector<NodeFacts>& nodes);

}  // namespace msa::companion
