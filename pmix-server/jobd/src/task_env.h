#pragma once
// The environment of a task (DESIGN section 5). Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "msa/base/ids.h"
#include "msa/base/messages.h"
#include "msa/pmix/open_mpi_env.h"

namespace msa::jobd {

struct TaskEnvironmentOptions {
  JobId job;
  StepId step;
  std::vector<std::string> base;         // the submission's, "K=V"
  std::vector<std::string> app;          // the command's own, over it
  const wire::Member* member = nullptr;  // the node
  std::uint32_t component = 0;
  Rank rank;
  std::uint32_t local_rank = 0;  // in its namespace on its node
  std::uint32_t local_size = 1;
  std::uint32_t world_size = 1;
  std::vector<std::string> nodes;  // of the job
  std::string system;              // MSA_DIR; empty: as it is
  std::string job_socket;
  int pmi_fd = -1;                // where the task finds the PMI-1 server
  std::string parent_nspace;      // of a spawn; empty: a step
  std::string mpi_library;        // put first into LD_PRELOAD; empty: none
  std::vector<std::string> pmix;  // of PmixHost::ClientEnvironment, over everything
  pmix::OpenMpiEnvironmentOptions open_mpi;
};

// The whole environment. MSA_*, PMIx and PMI variables of an outer job or of a spawning parent are replaced;
// HOSTNAME, TMPDIR and SLURM_* stay as they are.
std::vector<std::string> TaskEnvironment(const TaskEnvironmentOptions& options);

// That of a batch script: it knows its job and its node, and nothing by which a program that it starts itself
// would take this job daemon for its launcher. `mpi_library` is taken out of LD_PRELOAD.
std::vector<std::string> ScriptEnvironment(const TaskEnvironmentOptions& options);

}  // namespace msa::jobd
