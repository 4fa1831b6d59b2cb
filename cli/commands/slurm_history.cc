#include <algorithm>

#include "msa/base/clock.h"
#include "msa/job/records.h"

#include "commands/slurm.h"
#include "commands/slurm_queries.h"
#include "output/job_texts.h"

namespace msa::cli {
namespace {

constexpr std::int64_t kDay = 86'400'000;
// Without --since: a day, and where that holds too few a month. All of a large site's history is no answer to
// a question without one.
constexpr std::int64_t kWindows[] = {kDay, 30 * kDay};

bool IsWanted(const JobInfo& job, const JobQuery& query, std::int64_t since_ms) {
  if (!wire::IsFinal(job.state) || job.ended_at_ms < since_ms) return false;
  if (query.until_ms != 0 && job.submitted_at_ms >= query.until_ms) return false;
  if (!query.name.empty() && job.name != query.name) return false;
  return query.states.empty() ||
         std::find(query.states.begin(), query.states.end(), job.state) != query.states.end();
}

// The newest `limit`, the oldest first.
void KeepNewest(std::vector<JobInfo>& jobs, std::size_t limit) {
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const JobInfo& a, const JobInfo& b) { return a.ended_at_ms < b.ended_at_ms; });
  if (jobs.size() > limit) jobs.erase(jobs.begin(), jobs.end() - static_cast<std::ptrdiff_t>(limit));
}

}  // namespace

Result<int> SlurmJobHistory(const Invocation& call, const BackendChoice& choice, const JobQuery& query) {
  std::vector<JobInfo> jobs;
  for (const std::int64_t window : kWindows) {
    const std::int64_t since = query.since_ms != 0 ? query.since_ms : ToUnixMillis(Now()) - window;
    MSA_ASSIGN_OR_RETURN(const AccountingSays says,
                         AskAccounting(choice, {.job = 0, .user = query.user, .since_ms = since}));
    if (!says.kept)
      return Status(
          Code::kNotFound,
          "Slurm keeps no history here (AccountingStorageType=accounting_storage/none); 'msactl job "
          "list --all' shows the jobs that slurmctld still remembers");
    if (says.jobs.exit_code != 0) return PassOn(says.jobs);
    jobs = FoldJobs(says.jobs.value, Companions::kRows);
    std::erase_if(jobs, [&](const JobInfo& job) { return !IsWanted(job, query, since); });
    if (query.since_ms != 0 || jobs.size() >= query.limit) break;
  }
  KeepNewest(jobs, query.limit);
  Listing listing = HistoryListing(jobs);
  if (query.since_ms == 0)
    listing.empty_text = "no jobs have ended in the last 30 days; --since goes further back";
  MSA_RETURN_IF_ERROR(call.Show(listing));
  return 0;
}

}  // namespace msa::cli
