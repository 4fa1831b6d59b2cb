#pragma once
// What the agent has told the controller of Slurm's jobs. Pure.

#include <map>
#include <vector>

#include "msa/base/slurm_agent_messages.h"

namespace msa::companion {

class JobBook {
 public:
  // All jobs as slurmctld has them now. The frames to send: every job after Forget(), else what differs from
  // the list before; none if nothing does. At most `per_frame` jobs each.
  std::vector<wire::SlurmJobsChanged> Update(std::vector<wire::SlurmJob> jobs, std::size_t per_frame);

  // The next Update tells everything again.
  void Forget() { complete_ = true; }

  // Companions that have not ended and whose parent is over, has run on after a requeue, belongs to another
  // user, is unknown to slurmctld, or was theirs in an incarnation up to that in `over`. kUnavailable: what
  // slurmctld has is not known, after Forget() or before the first list.
  Result<std::vector<JobId>> Orphans(const std::map<JobId, Incarnation>& over) const;

 private:
  std::map<JobId, wire::SlurmJob> jobs_;
  bool complete_ = true;
};

}  // namespace msa::companion
