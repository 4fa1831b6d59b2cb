#include "commands/invocation.h"
#include "commands/launch.h"
#include "commands/print.h"
#include "commands/slurm.h"
#include "options/values.h"

namespace msa::cli {
namespace {

// Where the output is that this will not show.
Status Explain(const Invocation& call, JobId id) {
  MSA_ASSIGN_OR_RETURN(const auto client, call.Connect());
  const Result<JobInfo> job = client->GetJob(id);
  if (!job.ok()) return Status::Ok();  // the session tells
  if (job->mode == wire::JobMode::kBatch && !job->stdout_path.empty())
    PrintNote(
        fmt::format("job {} is a batch job: all of its script's output is in '{}', see 'msactl job logs "
                    "{}'; that of its steps goes to those who run them",
                    id, job->stdout_path, id));
  if (job->mode == wire::JobMode::kAlloc)
    PrintNote(
        fmt::format("job {} is an allocation and has no output: that of its steps goes to those who run "
                    "them",
                    id));
  return Status::Ok();
}

}  // namespace

Result<int> JobAttach(const Args& args) {
  Invocation call({"msactl job attach", "[OPTIONS] JOB",
                   "Watch the output of a running job from now on and return its exit code. Ctrl-C detaches; "
                   "the job goes on. Where Slurm schedules, JOB may name one of several steps (7.0)."});
  RunSession::Options options;
  call.options()
      .Flag('l', "label", "put 'RANK: ' before each line", &options.label)
      .Flag('q', "quiet", "only errors", &options.quiet);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.min = 1, .max = 1, .what = "a job's id"}));
  if (!go) return 0;
  MSA_ASSIGN_OR_RETURN(const BackendChoice choice, call.Choice());
  if (choice.slurm()) return SlurmJobAttach(call, choice, {.label = options.label, .quiet = options.quiet});
  MSA_ASSIGN_OR_RETURN(options.watch, ParseJobId(call.operands()[0]));
  MSA_ASSIGN_OR_RETURN(options.endpoint, FindEndpoint(call.dir()));
  if (!options.quiet) MSA_RETURN_IF_ERROR(Explain(call, options.watch));
  RunToEnd(std::move(options));
}

}  // namespace msa::cli
