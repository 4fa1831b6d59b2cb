#include "backend/why.h"
#include "commands/invocation.h"
#include "commands/slurm.h"
#include "options/values.h"

namespace msa::cli {

Result<int> JobWhy(const Args& args) {
  Invocation call({"msactl job why", "[OPTIONS] JOB",
                   "Tell why a job waits, what is before it, when it may start, and what can be done."});
  call.WithFormat(Shows::kOne);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.min = 1, .max = 1, .what = "a job's id"}));
  if (!go) return 0;
  MSA_ASSIGN_OR_RETURN(const BackendChoice choice, call.Choice());
  if (choice.slurm()) return SlurmJobWhy(call, choice);
  MSA_ASSIGN_OR_RETURN(const JobId id, ParseJobId(call.operands()[0]));
  MSA_ASSIGN_OR_RETURN(const auto client, call.Connect());
  MSA_ASSIGN_OR_RETURN(const JobInfo job, client->GetJob(id));
  MSA_RETURN_IF_ERROR(call.Show(WhyDetails(job, ExplainMsa(job))));
  return 0;
}

}  // namespace msa::cli
