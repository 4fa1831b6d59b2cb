#pragma once
// The tasks of a step of Slurm as they become known, in any order, until they are a world. Pure.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "msa/base/ids.h"
#include "msa/base/messages.h"
#include "msa/base/status.h"

#include "slurm_peer_messages.h"

namespace msa::jobd {

class SlurmWorld {
 public:
  SlurmWorld(StepId step, std::uint32_t ntasks) : step_(step), ntasks_(ntasks) {}

  // Of `member`; said again, it changes nothing. Not taken, with a text for the user: kInvalidArgument, the
  // task counts another number of tasks or none, or names no command; kOutOfRange, its rank is not one of
  // them; kAlreadyExists, another task has its rank.
  Status Add(std::uint32_t member, const SlurmJoined& joined, const SlurmTask& task);
  bool complete() const noexcept { return !ranks_.empty() && ranks_.size() == ntasks_; }
  bool empty() const noexcept { return ranks_.empty(); }
  bool Uses(std::uint32_t member) const;
  // "3 of 8 tasks have come; missing: 0,4-7".
  std::string Missing() const;
  // Apps, rank_member, cwd and, if the tasks say it, on_child_failure of a complete one. An app is a run of
  // ranks of one component; its program is that of its lowest rank.
  void Describe(wire::StepSpec& spec) const;

 private:
  struct Known {
    std::uint32_t member = 0;
    std::int32_t pid = 0;
    JobId component_job;
    std::uint32_t cpus_per_task = 1;
    std::size_t command = 0;  // of commands_
  };
  std::size_t Remember(const SlurmCommand& command);

  StepId step_;
  std::uint32_t ntasks_;
  std::map<std::uint32_t, Known> ranks_;
  std::vector<SlurmCommand> commands_;
  std::string on_child_failure_;  // one srun started them all: the first's is all's
};

}  // namespace msa::jobd
