#pragma once
// A `msactl run` inside a batch job or an allocation: which job it means, and the step that it asks for.
// Pure.

#include <optional>

#include "msa/base/messages.h"
#include "msa/base/status.h"

#include "client/types.h"
#include "options/run_options.h"

namespace msa::cli {

// The job in which this process runs (MSA_JOB_ID); nullopt: none. kInvalidArgument: it is not a number.
Result<std::optional<JobId>> SurroundingJob(const std::vector<std::string>& env);

// Whether a run by somebody whose environment names `job` is a step of it: of a batch job and of an
// allocation; a run inside an ordinary run is a job of its own. kFailedPrecondition: it has ended.
Result<bool> IsStepOf(const JobInfo& job);

// The step. `token` as StepOpen's. kInvalidArgument: an option that only a job can have.
Result<wire::StepOpen> StepOf(const RunRequest& request, const std::string& token);

// `why` with the way out for one whose MSA_JOB_ID is stale.
Status WithRemedy(const Status& why);

}  // namespace msa::cli
