#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "msa/base/clock.h"
#include "msa/job/records.h"

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

namespace {

Status NothingToSignal(const std::string& word, const std::vector<JobInfo>& found) {
  const auto pending = [](const JobInfo& job) { return job.state == JobState::kPending; };
  if (found.empty()) return NoSuchJob(word);
  if (std::any_of(found.begin(), found.end(), pending))
    return Error(Code::kFailedPrecondition, "job {} has not started: there are no tasks to signal", word);
  if (!wire::IsFinal(found[0].state)) return NoSuchJob(word);  // "7+9"
  return Error(Code::kFailedPrecondition, "job {} has ended already ({})", word, StateName(found[0].state));
}

Status NoStepToSignal(const std::string& word, const JobInfo& job, int signal) {
  const char* abbreviation = ::sigabbrev_np(signal);
  const std::string name = abbreviation == nullptr ? fmt::format("{}", signal) : abbreviation;
  if (job.mode != wire::JobMode::kBatch)
    return Error(Code::kFailedPrecondition,
                 "job {} is an allocation, and no step of it runs now: there are no tasks to signal", word);
  return Error(Code::kFailedPrecondition,
               "job {} has no step that runs now, and Slurm sends signals to steps alone; 'scancel --full "
               "--signal={} {}' sends it to the batch script and to all that it has started",
               word, name, job.slurm->components.size() > 1 ? fmt::format("{}", job.id) : word);
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

Result<int> SlurmJobSignal(const Invocation& call, const BackendChoice& choice, int signal) {
  const std::string& word = call.operands()[1];
  MSA_ASSIGN_OR_RETURN(const SlurmJobName name, ParseSlurmJob(word));
  MSA_ASSIGN_OR_RETURN(const auto says, AskForJob(choice, name));
  if (says.exit_code != 0) return PassOn(says);
  const std::vector<JobInfo> found = JobsNamed(FoldJobs(says.value, Companions::kRows), name);
  std::vector<std::uint64_t> parts;
  for (const JobInfo& job : found) {
    if (job.state == JobState::kPending || wire::IsFinal(job.state)) continue;
    const std::vector<std::uint64_t> mine = PartsNamed(job, name);
    parts.insert(parts.end(), mine.begin(), mine.end());
  }
  if (parts.empty()) return NothingToSignal(word, found);
  SlurmCall scancel;
  scancel.words = {"scancel", fmt::format("--signal={}", signal)};
  // scancel takes "7+1" for all of job 7.
  const bool part = found.size() == 1 && parts.size() < found[0].slurm->components.size();
  // It succeeds where there is nobody to get it. A job without steps is ended by SIGKILL all the same.
  std::vector<SlurmStep> steps;
  if (part || signal != SIGKILL) {
    MSA_ASSIGN_OR_RETURN(const auto says_steps, AskForSteps(choice, parts));
    if (says_steps.exit_code != 0) return PassOn(says_steps);
    steps = StepsOfSrun(says_steps.value, found.size() == 1 ? ShownJobId(found[0]) : "");
    if (steps.empty()) return NoStepToSignal(word, found[0], signal);
  }
  if (!part) scancel.words.push_back(word);
  for (const SlurmStep& step : steps)
    if (part) scancel.words.push_back(step.id);
  MSA_ASSIGN_OR_RETURN(const SlurmAnswer answer, RunSlurm(choice, scancel));
  return answer.exit_code;
}

}  // namespace msa::cli
