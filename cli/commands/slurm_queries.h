#pragma once
// What the commands on Slurm's jobs and nodes ask Slurm and the controller.

#include <memory>
#include <string>
#include <vector>

#include "backend/slurm_command.h"
#include "backend/slurm_jobs.h"
#include "client/system_client.h"

namespace msa::cli {

template <class T>
struct SlurmSays {
  int exit_code = 0;  // of Slurm's command; if it is not 0 there is no value
  T value{};
};

struct JobsWanted {
  bool ended = false;  // also those that have, as long as slurmctld remembers them
  std::string user;    // by name or uid; empty: all
};
Result<SlurmSays<std::vector<SlurmRow>>> AskForJobs(const BackendChoice& choice, const JobsWanted& wanted);
// One for each node and partition: SlurmNodeFields().
Result<SlurmSays<std::vector<std::vector<std::string>>>> AskForNodes(const BackendChoice& choice);

// The controller of the system that `dir` names, or that of this host; one attempt. kUnavailable: it does not
// answer; kFailedPrecondition: there is none but that of a local system of this user's, which has nothing to
// do with Slurm.
Result<std::unique_ptr<SystemClient>> ControllerBeside(const std::string& dir);

}  // namespace msa::cli
