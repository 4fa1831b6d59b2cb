#pragma once
// What a companion asks of slurmctld, as data: companion.h decides, slurm_calls.h does.

#include <string>
#include <variant>
#include <vector>

#include "msa/base/companion_messages.h"
#include "msa/base/status.h"

#include "companion_mark.h"
#include "size_choice.h"

namespace msa::companion {

struct AskParent {
  JobId job;
};
struct AskPartition {
  std::string partition;  // "a,b"
};
// The queued or running job of this mark, if there is one.
struct AskMine {
  Mark mark;
};
struct Submit {
  Mark mark;
  std::string account;  // empty: Slurm's default, as for the two below
  std::string qos;
  std::string partition;
  std::string features;
  std::vector<std::string> exclude;
  SizeRequest size;
  std::uint32_t time_limit_min = 0;  // 0: the partition's default
};
struct Look {
  JobId job;
};
struct Cancel {
  JobId job;
};
struct Keep {
  JobId job;
  std::vector<std::string> nodes;
};
struct SetEnd {
  JobId job;
  std::uint64_t end = 0;
};
using Call = std::variant<AskParent, AskPartition, AskMine, Submit, Look, Cancel, Keep, SetEnd>;

struct ParentFacts {
  std::string account;
  std::string qos;
  std::string partition;
  std::string state;
  bool running = false;
  std::uint64_t end = 0;  // 0: no limit
  std::uint32_t restarts = 0;
};
struct PartitionFacts {
  std::vector<NodeFacts> nodes;
};
struct JobFacts {
  JobId job;  // 0: none was found
  bool pending = false;
  bool preparing = false;  // its nodes boot, or a prolog runs
  bool over = false;
  std::string state;
  std::string reason;
  std::string detail;  // what slurmctld wrote beside the reason
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint32_t time_limit_s = 0;
  std::string partition;
  std::string account;
  std::string qos;
  std::vector<wire::SlurmNodeCores> nodes;
};
// monostate: done (Cancel, Keep, SetEnd). Status: kUnavailable: slurmctld did not answer, what was asked may
// yet have been done; kNotFound: no such job, node or partition; else Slurm's refusal.
using Answer = std::variant<std::monostate, ParentFacts, PartitionFacts, JobFacts>;
using Reply = Result<Answer>;

}  // namespace msa::companion
