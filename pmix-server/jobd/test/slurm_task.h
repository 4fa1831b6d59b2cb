#pragma once
// A task between slurmstepd's fork and its program, as msa's plugin makes it one of a world.

#include <string>
#include <vector>

#include "msa/base/slurm_messages.h"

namespace msa::jobd {

struct SlurmTaskWorld {
  std::string job_socket;
  std::vector<std::string> env;  // besides this process's own, and Slurm's
  std::string joined_file;       // made once the join is sent; empty: none
};

// Joins, takes over the environment, and becomes the program. A refusal goes to stderr, and the process ends
// with 1.
[[noreturn]] void BeSlurmTask(wire::SlurmTaskJoin join, const SlurmTaskWorld& world);

}  // namespace msa::jobd
