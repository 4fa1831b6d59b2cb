#include <unistd.h>

#include <algorithm>

#include "msa/base/clock.h"
#include "msa/job/records.h"

#include "backend/job_detail.h"
#include "backend/why.h"
#include "commands/print.h"
#include "commands/slurm.h"
#include "commands/slurm_queries.h"
#include "output/job_texts.h"
#include "output/slurm_texts.h"
#include "output/text.h"

namespace msa::cli {
namespace {

constexpr std::uint32_t kEndedShown = 100;

Status NoSuchJob(std::string_view name) {
  return Error(
      Code::kNotFound,
      "job {}: slurmctld knows no such job; it forgets those that have ended after a while (MinJobAge), then "
      "'sacct -j {}' may know it; see 'msactl job list --all'",
      name, name);
}

// The one job that `word` means.
Result<JobInfo> OneJob(const std::vector<JobInfo>& jobs, const std::string& word) {
  MSA_ASSIGN_OR_RETURN(const SlurmJobName name, ParseSlurmJob(word));
  const std::vector<JobInfo> found = JobsNamed(jobs, name);
  if (found.empty()) return NoSuchJob(word);
  if (found.size() == 1) return found[0];
  // Of an array those that still wait, which are one record of Slurm's.
  for (const JobInfo& job : found)
    if (ShownJobId(job).ends_with(']')) return job;
  return Error(Code::kInvalidArgument, "job {} is an array, of which {} are known; name one of them, as {}",
               word, Count(found.size(), "task"), ShownJobId(found[0]));
}

void AddDetail(const BackendChoice& choice, const std::vector<SlurmRow>& rows, JobInfo& job) {
  SlurmCall call;
  call.words = {"scontrol", "--details", "--oneliner", "show", "job", fmt::format("{}", job.id)};
  call.errors = Errors::kKept;
  const Result<SlurmAnswer> answer = RunSlurm(choice, call);
  // squeue has said the rest.
  if (!answer.ok() || answer->exit_code != 0) return;
  for (const SlurmRow& row : rows) {
    if (row.leader != job.id.value) continue;
    const JobDetail detail = ReadJobDetail(answer->out, row);
    for (AllocationInfo& share : job.allocations) {
      const auto it = detail.cores.find(share.node);
      if (it != detail.cores.end() && share.component == row.offset) share.cores = it->second;
    }
    if (!row.batch || row.offset != 0) continue;
    if (!detail.out.empty()) job.stdout_path = detail.out;
    if (!detail.err.empty()) job.stderr_path = detail.err;
  }
}

// Worlds that it has spawned, and what it has borrowed.
Status AddMsa(const std::string& dir, JobInfo& job) {
  MSA_ASSIGN_OR_RETURN(const auto client, ControllerBeside(dir));
  JobQuery query;
  query.ids = {job.id};
  query.namespaces = true;
  MSA_ASSIGN_OR_RETURN(const std::vector<JobInfo> known, client->ListJobs(query));
  if (known.empty()) return Status::Ok();
  job.namespaces = known[0].namespaces;
  job.incarnation = known[0].incarnation;
  if (job.head_node.empty()) job.head_node = known[0].head_node;
  for (const AllocationInfo& share : known[0].allocations)
    if (share.grant != 0) job.allocations.push_back(share);
  return Status::Ok();
}

// Where people look, and a controller is there to ask.
void NoteSilence(const Invocation& call, const Status& asked) {
  if (call.people() && asked.code() == Code::kUnavailable)
    PrintNote(fmt::format("shown without what msa itself knows: {}", asked.message()));
}

}  // namespace

Result<int> SlurmJobList(const Invocation& call, const BackendChoice& choice, const JobQuery& query) {
  std::vector<SlurmJobName> names;
  for (const std::string& word : call.operands()) {
    MSA_ASSIGN_OR_RETURN(const SlurmJobName name, ParseSlurmJob(word));
    names.push_back(name);
  }
  MSA_ASSIGN_OR_RETURN(const auto says,
                       AskForJobs(choice, {.ended = query.ended || !names.empty(), .user = query.user}));
  if (says.exit_code != 0) return says.exit_code;
  std::vector<JobInfo> jobs =
      FoldJobs(says.value, query.ended || !names.empty() ? Companions::kRows : Companions::kFolded);
  if (names.empty()) {
    LimitEnded(jobs, query.limit == 0 ? kEndedShown : query.limit);
  } else {
    std::vector<JobInfo> named;
    for (const SlurmJobName& name : names)
      for (JobInfo& job : JobsNamed(jobs, name)) named.push_back(std::move(job));
    jobs = std::move(named);
  }
  MSA_RETURN_IF_ERROR(call.Show(JobListing(jobs, ToUnixMillis(Now()))));
  return 0;
}

Result<int> SlurmJobShow(const Invocation& call, const BackendChoice& choice) {
  MSA_RETURN_IF_ERROR(ParseSlurmJob(call.operands()[0]).status());
  MSA_ASSIGN_OR_RETURN(const auto says, AskForJobs(choice, {.ended = true, .user = ""}));
  if (says.exit_code != 0) return says.exit_code;
  MSA_ASSIGN_OR_RETURN(JobInfo job, OneJob(FoldJobs(says.value, Companions::kRows), call.operands()[0]));
  AddDetail(choice, says.value, job);
  if (job.state != JobState::kPending && !wire::IsFinal(job.state))
    NoteSilence(call, AddMsa(call.dir(), job));
  MSA_RETURN_IF_ERROR(call.Show(JobDetails(job, ToUnixMillis(Now()))));
  return 0;
}

Result<int> SlurmJobWhy(const Invocation& call, const BackendChoice& choice) {
  MSA_RETURN_IF_ERROR(ParseSlurmJob(call.operands()[0]).status());
  MSA_ASSIGN_OR_RETURN(const auto says, AskForJobs(choice, {.ended = true, .user = ""}));
  if (says.exit_code != 0) return says.exit_code;
  const std::vector<JobInfo> jobs = FoldJobs(says.value, Companions::kRows);
  MSA_ASSIGN_OR_RETURN(const JobInfo job, OneJob(jobs, call.operands()[0]));
  MSA_RETURN_IF_ERROR(call.Show(WhyDetails(job, ExplainSlurm(job, jobs))));
  return 0;
}

namespace {

struct Victim {
  std::string name;  // as scancel takes it
  std::string shown;
  bool pending = false;
};

Result<std::vector<Victim>> VictimsOf(const Invocation& call, const std::vector<JobInfo>& jobs) {
  std::vector<Victim> out;
  for (const std::string& word : call.operands()) {
    MSA_ASSIGN_OR_RETURN(const SlurmJobName name, ParseSlurmJob(word));
    const std::vector<JobInfo> found = JobsNamed(jobs, name);
    if (found.empty()) return NoSuchJob(word);
    const auto alive = [](const JobInfo& job) { return !wire::IsFinal(job.state); };
    if (std::none_of(found.begin(), found.end(), alive))
      return Error(Code::kFailedPrecondition, "job {} has ended already ({})", word,
                   StateName(found[0].state));
    const bool pending = std::all_of(found.begin(), found.end(),
                                     [](const JobInfo& job) { return job.state == JobState::kPending; });
    // Of a heterogeneous job all components end together.
    const std::string whole = name.component ? fmt::format("{}", found[0].id) : word;
    out.push_back({name.list.empty() ? whole : ScancelName(found[0]), whole, pending});
  }
  return out;
}

// scancel's exit code. Nobody waits for a grace of SIGTERM with `now`.
Result<int> CancelOne(const BackendChoice& choice, const Victim& victim, bool now) {
  SlurmCall call;
  if (now && !victim.pending) {
    call.words = {"scancel", "--full", "--signal=KILL", victim.name};
    call.errors = Errors::kKept;  // the second one says the same
    MSA_RETURN_IF_ERROR(RunSlurm(choice, call).status());
  }
  call.words = {"scancel", victim.name};
  call.errors = Errors::kShown;
  MSA_ASSIGN_OR_RETURN(const SlurmAnswer answer, RunSlurm(choice, call));
  return answer.exit_code;
}

}  // namespace

Result<int> SlurmJobCancel(const Invocation& call, const BackendChoice& choice, const SlurmCancel& request) {
  const bool several = request.all || !request.user.empty();
  const std::string user = !several               ? ""
                           : request.user.empty() ? fmt::format("{}", ::geteuid())
                                                  : request.user;
  MSA_ASSIGN_OR_RETURN(const auto says, AskForJobs(choice, {.ended = !several, .user = user}));
  if (says.exit_code != 0) return says.exit_code;
  // A companion ends with its job.
  const std::vector<JobInfo> jobs = FoldJobs(says.value, several ? Companions::kFolded : Companions::kRows);
  std::vector<Victim> victims;
  if (several) {
    for (const JobInfo& job : jobs)
      if (!wire::IsFinal(job.state) && job.state != JobState::kEnding)
        victims.push_back({fmt::format("{}", job.id), ShownJobId(job), job.state == JobState::kPending});
  } else {
    MSA_ASSIGN_OR_RETURN(victims, VictimsOf(call, jobs));
  }
  if (victims.empty()) PrintNote("no jobs to cancel");
  std::size_t failed = 0;
  int first = 0;
  for (const Victim& victim : victims) {
    MSA_ASSIGN_OR_RETURN(const int code, CancelOne(choice, victim, request.now));
    if (code != 0) {
      if (failed++ == 0) first = code;
      continue;
    }
    MSA_RETURN_IF_ERROR(
        Print(fmt::format("job {} is {}\n", victim.shown, victim.pending ? "cancelled" : "being cancelled")));
  }
  return failed == 0 ? 0 : failed == victims.size() ? first : kPartialExitCode;
}

}  // namespace msa::cli
