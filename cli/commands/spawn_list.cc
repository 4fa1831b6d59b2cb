#include "commands/invocation.h"
#include "options/values.h"
#include "output/grant_texts.h"

namespace msa::cli {

Result<int> SpawnList(const Args& args) {
  Invocation call(
      {"msactl spawn list", "[OPTIONS] [JOB]",
       "List namespaces that jobs have spawned (MPI_Comm_spawn): their parents, nodes and grants.\n"
       "Those that run, or all of the job that is named, also one that has ended."});
  call.WithFormat(Shows::kList);
  bool all = false;
  JobQuery query;
  query.namespaces = true;
  call.options()
      .Flag('a', "all", "also those that have ended, of jobs that still run", &all)
      .Text('u', "user", "USER", "those of one user's jobs, by name or uid", &query.user);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.max = 1}));
  if (!go) return 0;
  if (!call.operands().empty()) {
    MSA_ASSIGN_OR_RETURN(const JobId id, ParseJobId(call.operands()[0]));
    query.ids.push_back(id);
    all = true;
  }
  MSA_ASSIGN_OR_RETURN(const auto client, call.Connect());
  MSA_ASSIGN_OR_RETURN(const std::vector<JobInfo> jobs, client->ListJobs(query));
  if (!query.ids.empty() && jobs.empty())
    return Error(Code::kNotFound, "job {}: no such job; see 'msactl job list --all'", query.ids[0]);
  MSA_RETURN_IF_ERROR(call.Show(SpawnListing(jobs, all ? SpawnsShown::kAll : SpawnsShown::kRunning)));
  return 0;
}

}  // namespace msa::cli
