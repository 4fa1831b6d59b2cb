#include "msa/base/clock.h"

#include "commands/invocation.h"
#include "commands/slurm.h"
#include "options/values.h"
#include "output/job_texts.h"

namespace msa::cli {

Result<int> JobShow(const Args& args) {
  Invocation call({"msactl job show", "[OPTIONS] JOB",
                   "Show all of one job: components, nodes, cores, and the tree of its namespaces."});
  call.WithFormat(Shows::kOne);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.min = 1, .max = 1, .what = "a job's id"}));
  if (!go) return 0;
  MSA_ASSIGN_OR_RETURN(const BackendChoice choice, call.Choice());
  if (choice.slurm()) return SlurmJobShow(call, choice);
  MSA_ASSIGN_OR_RETURN(const JobId id, ParseJobId(call.operands()[0]));
  MSA_ASSIGN_OR_RETURN(const auto client, call.Connect());
  MSA_ASSIGN_OR_RETURN(const JobInfo job, client->GetJob(id));
  MSA_RETURN_IF_ERROR(call.Show(JobDetails(job, ToUnixMillis(Now()))));
  return 0;
}

}  // namespace msa::cli
