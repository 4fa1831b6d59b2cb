#pragma once
// The environment of a task (DESIGN section 5). Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "msa/base/ids.h"
#include "msa/base/messages.h"
#include "msa/base/slurm_messages.h"
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

// What a task that Slurm starts is to change in its environment. `lines`: TaskEnvironment of an empty base,
// or ScriptEnvironment. `own`: what the task has of kSlurmJoinVariables. To be unset is what names another
// launch and is not set anew.
wire::SlurmTaskReady SlurmEnvironment(const std::vector<std::string>& lines,
                                      const std::vector<std::string>& own);

// What a spawned child inherits of its parent's environment under Slurm: not SLURM_*, which srun gives it
// anew, nor what names the parent.
std::vector<std::string> InheritedEnvironment(const std::vector<std::string>& parents);

}  // namespace msa::jobd
