#pragma once

#include <string>

#include "msa/base/ids.h"
#include "msa/base/status.h"

namespace msa {

struct PatternValues {
  JobId job;
  StepId step;
  Rank rank;
  std::uint32_t node_index = 0;
  std::string node;
  std::string user;
  std::string job_name;
};

// Expands srun's file name patterns: %j job, %J job.step, %s step, %t rank, %n node number in the job, %N
// node name, %u user, %x job name, %% percent; %4j fills a number with zeros. kInvalidArgument: another
// letter, named, with the list of those that exist.
Result<std::string> ExpandPattern(const std::string& pattern, const PatternValues& values);

// True if the file differs between tasks (%t, %n or %N).
bool IsPerTask(const std::string& pattern);

}  // namespace msa
