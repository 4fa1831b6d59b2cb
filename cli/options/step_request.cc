#include "options/step_request.h"

#include "msa/job/records.h"

#include "options/values.h"

namespace msa::cli {

Result<std::optional<JobId>> SurroundingJob(const std::vector<std::string>& env) {
  constexpr std::string_view kName = "MSA_JOB_ID=";
  for (const std::string& line : env) {
    if (!line.starts_with(kName) || line.size() == kName.size()) continue;
    Result<JobId> job = ParseJobId(std::string_view(line).substr(kName.size()));
    if (!job.ok()) return WithRemedy(job.status().WithContext("MSA_JOB_ID"));
    return std::optional<JobId>(*job);
  }
  return std::optional<JobId>();
}

Result<bool> IsStepOf(const JobInfo& job) {
  if (wire::IsFinal(job.state))
    return Error(Code::kFailedPrecondition, "job {} has ended ({}) and runs no more steps", job.id,
                 StateName(job.state));
  return job.mode != wire::JobMode::kStep;
}

Status WithRemedy(const Status& why) {
  return Status(why.code(),
                why.message() +
                    "; MSA_JOB_ID in the environment names that job: 'env -u MSA_JOB_ID msactl run "
                    "...' starts a new one");
}

Result<wire::StepOpen> StepOf(const RunRequest& request, const std::string& token) {
  const JobSpec& spec = request.spec;
  if (!request.job_only.empty())
    return Error(Code::kInvalidArgument,
                 "{} is chosen for the whole job, not for a step inside it; leave it out", request.job_only);
  if (spec.oversubscribe)
    return Status(Code::kInvalidArgument,
                  "--oversubscribe is chosen for the whole job; inside it --overlap shares cores");
  wire::StepOpen step;
  step.token = token;
  step.name = spec.name;
  step.env = spec.env;
  step.cwd = spec.cwd;
  step.stdio = spec.stdio;
  step.kill_policy = spec.kill_policy;
  step.bind = !spec.no_bind;
  step.on_child_failure = spec.on_child_failure;
  step.mpi_library = !spec.no_mpi_library;
  step.limits = spec.limits;
  step.overlap = request.overlap;
  step.time_limit_s = spec.time_limit_s;
  step.immediate_s = spec.immediate_s;
  for (std::size_t i = 0; i < spec.components.size(); ++i) {
    const Component& component = spec.components[i];
    const ComponentRequest& ask = component.resources;
    wire::StepComponent out;
    out.module = ask.module;
    out.min_nodes = ask.min_nodes;
    out.max_nodes = ask.max_nodes;
    out.ntasks = ask.ntasks;
    out.ntasks_per_node = ask.ntasks_per_node;
    out.cpus_per_task = ask.cpus_per_task;
    out.nodelist = ask.nodelist;
    out.exclude = ask.exclude;
    out.argv = component.argv;
    out.env = component.env;
    out.cwd = component.cwd;
    if (request.het_groups[i].empty()) step.components.push_back(out);
    for (const std::uint32_t group : request.het_groups[i]) {
      out.component = group;
      step.components.push_back(out);
    }
  }
  return step;
}

}  // namespace msa::cli
