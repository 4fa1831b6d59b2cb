#include <poll.h>

#include <algorithm>
#include <map>
#include <set>

#include "commands/job_waiter.h"
#include "commands/print.h"
#include "commands/slurm.h"
#include "commands/slurm_queries.h"
#include "output/slurm_texts.h"

namespace msa::cli {
namespace {

// A look costs slurmctld one request. Short jobs are seen soon, and a thousand waits of hours ask 200 times a
// second.
constexpr Millis kFirstPause{250};
constexpr Millis kLongestPause{5'000};
// A slurmctld that is restarted, as msa's own controller.
constexpr std::chrono::seconds kPatience{60};

struct Awaited {
  std::string word;
  SlurmJobName name;
  std::uint64_t ask = 0;  // of the leader, or of the array
  bool done = false;
  std::set<std::string> met;  // by label, what slurmctld has told of: tasks of an array are several
  std::map<std::string, JobInfo> ended;  // likewise
};

bool IsEnded(const JobInfo& job) { return wire::IsFinal(job.state); }

class Waiter {
 public:
  Waiter(const BackendChoice& choice, const WaitOptions& options) : choice_(choice), options_(options) {}

  Result<int> Wait(const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      MSA_ASSIGN_OR_RETURN(const SlurmJobName name, ParseSlurmJob(word));
      awaited_.push_back({.word = word, .name = name, .ask = name.job, .met = {}, .ended = {}});
    }
    for (Millis pause = kFirstPause;;) {
      again_ = false;
      MSA_ASSIGN_OR_RETURN(const int failed, Look());
      if (failed != 0) return failed;
      const auto open =
          std::find_if(awaited_.begin(), awaited_.end(), [](const Awaited& one) { return !one.done; });
      if (open == awaited_.end()) return code_;
      if (again_) continue;
      if (options_.give_up && SteadyNow() >= *options_.give_up)
        return Error(Code::kDeadlineExceeded, "job {} has not ended in time; it goes on", open->word);
      Millis round = pause;
      if (options_.give_up)
        round = std::min(round, std::chrono::ceil<Millis>(*options_.give_up - SteadyNow()));
      if (round > Millis(0)) ::poll(nullptr, 0, static_cast<int>(round.count()));
      pause = std::min(pause * 2, kLongestPause);
    }
  }

 private:
  // Not 0: squeue's exit code, with which the wait ends.
  Result<int> Look() {
    std::vector<std::uint64_t> ids;
    for (const Awaited& one : awaited_)
      if (!one.done) ids.push_back(one.ask);
    MSA_ASSIGN_OR_RETURN(const auto says, AskForJobsById(choice_, ids));
    if (says.exit_code != 0) return Away(says);
    away_since_.reset();
    answered_ = true;
    const std::vector<JobInfo> jobs = FoldJobs(says.value, Companions::kRows);
    for (Awaited& one : awaited_) {
      if (one.done) continue;
      const Status status = LookAt(one, JobsNamed(jobs, one.name));
      if (status.ok()) continue;
      if (awaited_.size() == 1) return status;
      PrintError(status);
      End(one, ExitCodeOf(status.code()));
    }
    return 0;
  }

  Status LookAt(Awaited& one, const std::vector<JobInfo>& jobs) {
    if (jobs.empty()) return LookBack(one);
    if (jobs[0].slurm->components[0].job != jobs[0].id.value && one.ask != jobs[0].id.value) {
      // The number of a component: all of the job is waited for.
      one.ask = jobs[0].id.value;
      again_ = true;
      return Status::Ok();
    }
    for (const JobInfo& job : jobs) {
      const std::string label = ShownJobId(job);
      // Tasks of an array that wait are one record, whose name changes.
      if (!label.ends_with(']')) one.met.insert(label);
      if (IsEnded(job)) one.ended.insert_or_assign(label, job);
    }
    if (!std::all_of(jobs.begin(), jobs.end(), IsEnded)) return Status::Ok();
    const bool all = std::all_of(one.met.begin(), one.met.end(),
                                 [&](const std::string& label) { return one.ended.contains(label); });
    if (!all) return LookBack(one);
    Tell(one);
    return Status::Ok();
  }

  // slurmctld does not know it, or has forgotten a part of it.
  Status LookBack(Awaited& one) {
    const Result<AccountingSays> says = AskAccounting(choice_, {.job = one.ask, .user = "", .since_ms = 0});
    // Without sacct in PATH there is nobody to ask, either.
    if (!says.ok() && says.status().code() != Code::kNotFound) return says.status();
    if (!says.ok() || !says->kept) return Unknown(one, "Slurm keeps no accounting here that could tell it");
    if (says->jobs.exit_code != 0) {
      PassOn(says->jobs);
      return Unknown(one, "sacct does not answer");
    }
    const std::vector<JobInfo> jobs = JobsNamed(FoldJobs(says->jobs.value, Companions::kRows), one.name);
    if (jobs.empty()) return Unknown(one, "Slurm's accounting knows no such job, either");
    for (const JobInfo& job : jobs) {
      if (!IsEnded(job))
        return Unknown(one, fmt::format("Slurm's accounting knows of no end (it says {})", job.slurm->state));
      one.ended.insert_or_assign(ShownJobId(job), job);
    }
    Tell(one);
    return Status::Ok();
  }

  static Status Unknown(const Awaited& one, std::string_view why) {
    if (one.met.empty())
      return Error(
          Code::kNotFound,
          "job {}: slurmctld knows no such job, or has forgotten it (MinJobAge after its end), and {}; "
          "see 'msactl job list --all'",
          one.word, why);
    return Error(Code::kDataLoss,
                 "job {} is gone, and its exit code cannot be known: slurmctld knows it no longer (MinJobAge "
                 "after its end), and {}",
                 one.word, why);
  }

  void Tell(Awaited& one) {
    int code = 0;
    for (const auto& [label, job] : one.ended) {
      if (!options_.quiet) NoteEnd(label, job);
      code = std::max(code, CodeOf(job));
    }
    End(one, code);
  }

  void End(Awaited& one, int code) {
    one.done = true;
    code_ = std::max(code_, code);
  }

  int Away(const SlurmSays<std::vector<SlurmRow>>& says) {
    const SteadyTime now = SteadyNow();
    if (!answered_ || (away_since_ && now - *away_since_ > kPatience)) return PassOn(says);
    if (!away_since_ && !options_.quiet)
      PrintNote(fmt::format("Slurm does not answer; for {} s it is asked again", kPatience.count()));
    if (!away_since_) away_since_ = now;
    return 0;
  }

  const BackendChoice& choice_;
  const WaitOptions options_;
  std::vector<Awaited> awaited_;
  int code_ = 0;
  bool again_ = false;
  bool answered_ = false;
  std::optional<SteadyTime> away_since_;
};

}  // namespace

Result<int> SlurmJobWait(const Invocation& call, const BackendChoice& choice, const WaitOptions& options) {
  return Waiter(choice, options).Wait(call.operands());
}

}  // namespace msa::cli
