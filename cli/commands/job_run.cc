#include <unistd.h>

#include "msa/adapters/process/child_process.h"

#include "client/system_client.h"
#include "commands/command.h"
#include "commands/launch.h"
#include "commands/print.h"
#include "commands/slurm.h"
#include "options/resource_limits.h"
#include "options/run_options.h"
#include "options/step_request.h"
#include "run/stdin_reader.h"
#include "run/token.h"

namespace msa::cli {
namespace {

// The job that this is to be a step of; 0: none, it is a job of its own.
Result<JobId> JobForStep(const RunRequest& request, const Endpoint& endpoint) {
  const bool named = request.job.value != 0;
  if (named && request.detach)
    return Status(Code::kInvalidArgument, "--detach queues a job of its own; leave out --detach or --job");
  JobId id = request.job;
  if (!named && !request.detach) {
    MSA_ASSIGN_OR_RETURN(const std::optional<JobId> around, SurroundingJob(CurrentEnvironment()));
    id = around.value_or(JobId());
  }
  if (id.value == 0) return id;
  const auto explain = [&](const Status& why) { return named ? why : WithRemedy(why); };
  MSA_ASSIGN_OR_RETURN(const auto client, SystemClient::Connect(endpoint));
  const Result<JobInfo> job = client->GetJob(id);
  if (!job.ok()) return explain(job.status());
  const Result<bool> is_step = IsStepOf(*job);
  if (!is_step.ok()) return explain(is_step.status());
  if (named && !*is_step)
    return Error(
        Code::kFailedPrecondition,
        "job {} is an ordinary run; steps run in batch jobs ('msactl submit') and allocations ('msactl "
        "job alloc')",
        id);
  return *is_step ? id : JobId();
}

Status CheckStepOptions(const RunRequest& request) {
  bool groups = false;
  for (const auto& list : request.het_groups) groups = groups || !list.empty();
  if (!groups && !request.overlap) return Status::Ok();
  return Error(
      Code::kInvalidArgument,
      "{} chooses among the nodes of a batch job or an allocation, and this runs in none; leave it out, or "
      "name the job with --job",
      groups ? "--het-group" : "--overlap");
}

// Options of srun alone are none of msa's own launcher, so they decide nothing before the backend is known.
Result<BackendChoice> ChoiceOf(const Result<RunRequest>& request, const TypedCall& typed) {
  return request.ok() ? ChoiceFor(request->backend, request->dir) : ChoiceFor(typed.backend, typed.dir);
}

}  // namespace

Result<int> JobRun(const Args& args) {
  MSA_ASSIGN_OR_RETURN(std::string cwd, WorkingDirectory());
  Result<RunRequest> read = ParseRun(args, {std::move(cwd), CurrentEnvironment(), OwnLimits()});
  if (read.status().code() == Code::kAborted) return read.status();  // asked for its options only
  if (read.ok() && read->help_asked) {
    MSA_RETURN_IF_ERROR(Print(RunHelp()));
    return 0;
  }
  TypedCall typed;
  const Status typed_well = ReadTypedRun(args, &typed);
  MSA_ASSIGN_OR_RETURN(const BackendChoice choice, ChoiceOf(read, typed));
  if (choice.slurm()) {
    MSA_RETURN_IF_ERROR(typed_well);
    return SlurmRun(choice, typed);
  }
  MSA_ASSIGN_OR_RETURN(RunRequest request, std::move(read));
  MSA_ASSIGN_OR_RETURN(Endpoint endpoint, FindEndpoint(request.dir));
  MSA_ASSIGN_OR_RETURN(const JobId around, JobForStep(request, endpoint));
  if (around.value == 0) MSA_RETURN_IF_ERROR(CheckStepOptions(request));
  if (request.detach) {
    MSA_ASSIGN_OR_RETURN(const JobId id, SubmitSurely(endpoint, request.spec));
    MSA_RETURN_IF_ERROR(Print(fmt::format("submitted job {}\n", id)));
    return 0;
  }
  RunSession::Options options;
  options.endpoint = std::move(endpoint);
  options.label = request.spec.stdio.label;
  options.wants_stdin = request.spec.stdio.in.empty() && CanBringInput(STDIN_FILENO);
  options.quiet = request.quiet;
  options.verbose = request.verbose;
  if (around.value != 0) {
    MSA_ASSIGN_OR_RETURN(const std::string token, MakeToken());
    MSA_ASSIGN_OR_RETURN(options.step, StepOf(request, token));
    options.watch = around;
  } else {
    options.spec = std::move(request.spec);
  }
  RunToEnd(std::move(options));
}

}  // namespace msa::cli
