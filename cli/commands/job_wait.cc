#include <algorithm>

#include "commands/invocation.h"
#include "commands/job_waiter.h"
#include "commands/slurm.h"
#include "options/values.h"

namespace msa::cli {

Result<int> JobWait(const Args& args) {
  Invocation call(
      {"msactl job wait", "[OPTIONS] JOB...",
       "Wait for the end of jobs and return the highest of their exit codes. Where Slurm schedules, "
       "jobs that it has forgotten have none unless it keeps accounting."});
  std::optional<Millis> timeout;
  bool quiet = false;
  call.options()
      .Add({.name = "timeout",
            .takes = Takes::kValue,
            .value_name = "TIME",
            .help = "give up with exit code 6 after so many seconds (or 5m, 2h); the jobs go on",
            .set = [&timeout](std::string_view value) -> Status {
              MSA_ASSIGN_OR_RETURN(timeout, ParseDuration(value));
              return Status::Ok();
            }})
      .Flag('q', "quiet", "no text about how a job ended", &quiet);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.min = 1, .max = 1000, .what = "a job's id"}));
  if (!go) return 0;
  std::optional<SteadyTime> give_up;
  if (timeout) give_up = SteadyNow() + *timeout;
  MSA_ASSIGN_OR_RETURN(const BackendChoice choice, call.Choice());
  if (choice.slurm()) return SlurmJobWait(call, choice, {.give_up = give_up, .quiet = quiet});
  std::vector<JobId> ids;
  for (const std::string& word : call.operands()) {
    MSA_ASSIGN_OR_RETURN(const JobId id, ParseJobId(word));
    ids.push_back(id);
  }
  MSA_ASSIGN_OR_RETURN(const Endpoint endpoint, FindEndpoint(call.dir()));
  int code = 0;
  for (const JobId id : ids) {
    MSA_ASSIGN_OR_RETURN(const int one, WaitForJob(endpoint, id, {.give_up = give_up, .quiet = quiet}));
    code = std::max(code, one);
  }
  return code;
}

}  // namespace msa::cli
