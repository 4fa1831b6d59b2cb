#include <unistd.h>

#include "commands/invocation.h"
#include "commands/print.h"
#include "commands/slurm.h"
#include "options/values.h"
#include "output/job_texts.h"

namespace msa::cli {
namespace {

struct CancelRequest {
  bool all = false;
  std::string user;
  SystemClient::CancelOptions options;
};

Result<std::vector<JobId>> WhichJobs(const Args& operands, const CancelRequest& request,
                                     SystemClient& client) {
  std::vector<JobId> ids;
  for (const std::string& word : operands) {
    MSA_ASSIGN_OR_RETURN(const JobId id, ParseJobId(word));
    ids.push_back(id);
  }
  if (!request.all && request.user.empty()) return ids;
  JobQuery query;
  query.user = request.user.empty() ? fmt::format("{}", ::geteuid()) : request.user;
  MSA_ASSIGN_OR_RETURN(const std::vector<JobInfo> jobs, client.ListJobs(query));
  for (const JobInfo& job : jobs) ids.push_back(job.id);
  return ids;
}

}  // namespace

Result<int> JobCancel(const Args& args) {
  Invocation call({"msactl job cancel", "[OPTIONS] JOB...",
                   "End jobs: SIGTERM to their tasks, SIGKILL 5 s later. One that waits leaves the queue."});
  CancelRequest request;
  call.options()
      .Flag(0, "all", "all jobs of yours", &request.all)
      .Text('u', "user", "USER", "all jobs of a user, by name or uid", &request.user)
      .Text(0, "reason", "TEXT", "shown to the job's owner", &request.options.reason)
      .Flag(0, "now", "SIGKILL at once", &request.options.now);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.max = 1000}));
  if (!go) return 0;
  const bool several = request.all || !request.user.empty();
  if (call.operands().empty() != several)
    return Status(Code::kInvalidArgument,
                  several ? "--all and --user take no job ids; leave one of both out"
                          : "msactl job cancel needs ids of jobs, --all or --user; see 'msactl job list'");
  MSA_ASSIGN_OR_RETURN(const BackendChoice choice, call.Choice());
  if (choice.slurm()) {
    if (!request.options.reason.empty())
      return Status(
          Code::kInvalidArgument,
          "--reason has no counterpart in Slurm: scancel keeps no text; leave it out, or write it down "
          "first with 'scontrol update job=N comment=TEXT'");
    return SlurmJobCancel(call, choice, {request.all, request.user, request.options.now});
  }
  MSA_ASSIGN_OR_RETURN(const auto client, call.Connect());
  MSA_ASSIGN_OR_RETURN(const std::vector<JobId> ids, WhichJobs(call.operands(), request, *client));
  if (ids.empty()) PrintNote("no jobs to cancel");
  std::size_t failed = 0;
  Status first;
  for (const JobId id : ids) {
    const Result<JobInfo> job = client->CancelJob(id, request.options);
    if (job.ok()) {
      MSA_RETURN_IF_ERROR(Print(
          fmt::format("job {} is {}\n", id, wire::IsFinal(job->state) ? "cancelled" : "being cancelled")));
      continue;
    }
    // One that has ended meanwhile is what was wanted.
    if (several && job.status().code() == Code::kFailedPrecondition) continue;
    if (failed++ == 0) first = job.status();
    if (ids.size() > 1) PrintError(job.status());
  }
  if (failed == 0) return 0;
  if (ids.size() == 1) return first;
  return failed == ids.size() ? ExitCodeOf(first.code()) : kPartialExitCode;
}

}  // namespace msa::cli
