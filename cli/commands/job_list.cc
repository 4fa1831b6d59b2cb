#include "msa/base/clock.h"

#include "commands/invocation.h"
#include "commands/slurm.h"
#include "options/values.h"
#include "output/job_texts.h"

namespace msa::cli {

Result<int> JobList(const Args& args) {
  Invocation call(
      {"msactl job list", "[OPTIONS] [JOB...]", "List jobs that wait or run, or the jobs named."});
  call.WithFormat();
  JobQuery query;
  call.options()
      .Flag('a', "all", "also jobs that have ended", &query.ended)
      .Text('u', "user", "USER", "jobs of one user, by name or uid", &query.user)
      .Add({.letter = 'n',
            .name = "limit",
            .takes = Takes::kValue,
            .value_name = "N",
            .help = "at most so many jobs that have ended, the newest (default: 100)",
            .set = [&query](std::string_view value) -> Status {
              MSA_ASSIGN_OR_RETURN(const std::uint64_t limit, ParseNumber(value, {1, 10000}));
              query.limit = static_cast<std::uint32_t>(limit);
              return Status::Ok();
            }});
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.max = 1000}));
  if (!go) return 0;
  MSA_ASSIGN_OR_RETURN(const BackendChoice choice, call.Choice());
  if (choice.slurm()) return SlurmJobList(call, choice, query);
  for (const std::string& word : call.operands()) {
    MSA_ASSIGN_OR_RETURN(const JobId id, ParseJobId(word));
    query.ids.push_back(id);
  }
  MSA_ASSIGN_OR_RETURN(const auto client, call.Connect());
  MSA_ASSIGN_OR_RETURN(const std::vector<JobInfo> jobs, client->ListJobs(query));
  MSA_RETURN_IF_ERROR(call.Show(JobListing(jobs, ToUnixMillis(Now()))));
  return 0;
}

}  // namespace msa::cli
