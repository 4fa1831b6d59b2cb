#pragma once
// What the commands on Slurm's jobs and nodes ask Slurm and the controller.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/shown_record.h"
#include "backend/slurm_command.h"
#include "backend/slurm_jobs.h"
#include "backend/slurm_steps.h"
#include "client/system_client.h"

namespace msa::cli {

template <class T>
struct SlurmSays {
  int exit_code = 0;  // of Slurm's command; if it is not 0 there is no value
  T value{};
  std::string error = {};  // its standard error, if it was kept
};
// Prints what Slurm's command has written to its standard error, and gives its exit code.
int PassOn(std::string_view error, int exit_code);
template <class T>
int PassOn(const SlurmSays<T>& says) {
  return PassOn(says.error, says.exit_code);
}

// How long to wait for an answer, and whether Slurm's command itself may speak.
struct Asking {
  Errors errors = Errors::kShown;
  std::optional<Millis> patience;
};

struct JobsWanted {
  bool ended = false;  // also those that have, as long as slurmctld remembers them
  std::string user;    // by name or uid; empty: all
  Asking asking = {};
};
Result<SlurmSays<std::vector<SlurmRow>>> AskForJobs(const BackendChoice& choice, const JobsWanted& wanted);
// Those jobs by their numbers, whatever their state; components and tasks of arrays come with the leader's
// and the array's number. Slurm is asked for no others where it is one. What it does not know is left out;
// errors are kept.
Result<SlurmSays<std::vector<SlurmRow>>> AskForJobsById(const BackendChoice& choice,
                                                        const std::vector<std::uint64_t>& ids);
// All of the job that `name` means, also where it is the number of a component: of AskForJobsById.
Result<SlurmSays<std::vector<SlurmRow>>> AskForJob(const BackendChoice& choice, const SlurmJobName& name);
// Of the jobs of these numbers; components have numbers of their own.
Result<SlurmSays<std::vector<SlurmStep>>> AskForSteps(const BackendChoice& choice,
                                                      const std::vector<std::uint64_t>& ids);
// One for each node and partition: SlurmNodeFields().
Result<SlurmSays<std::vector<std::vector<std::string>>>> AskForNodes(const BackendChoice& choice,
                                                                     const Asking& asking = {});
// `scontrol show KIND NAME`, times as people read them; nothing if Slurm knows none.
Result<ShownPairs> AskForRecord(const BackendChoice& choice, const std::string& kind,
                                const std::string& name);

struct HistoryWanted {
  std::uint64_t job = 0;      // one job with its components or tasks; 0: all
  std::string user;           // by name or uid; empty: all
  std::int64_t since_ms = 0;  // that ended then or later
};
// Of sacct, its errors kept.
struct AccountingSays {
  bool kept = true;  // else this Slurm keeps no accounting
  SlurmSays<std::vector<SlurmRow>> jobs;
};
Result<AccountingSays> AskAccounting(const BackendChoice& choice, const HistoryWanted& wanted);

// The one job that `word` means. kNotFound; kInvalidArgument: several tasks of an array.
Result<JobInfo> OneJob(const std::vector<JobInfo>& jobs, const std::string& word);
Status NoSuchJob(std::string_view word);
// Adds cores and files, which squeue does not tell; nothing if scontrol does not answer.
void AddDetail(const BackendChoice& choice, const std::vector<SlurmRow>& rows, JobInfo& job);

// The controller of the system that `dir` names, or that of this host; one attempt. kUnavailable: it does not
// answer; kFailedPrecondition: there is none but that of a local system of this user's, which has nothing to
// do with Slurm.
Result<std::unique_ptr<SystemClient>> ControllerBeside(const std::string& dir);

}  // namespace msa::cli
