#include <fcntl.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include <climits>

#include "msa/base/clock.h"
#include "msa/base/unique_fd.h"
#include "msa/job/records.h"

#include "backend/job_detail.h"
#include "commands/follow.h"
#include "commands/print.h"
#include "commands/slurm.h"
#include "commands/slurm_queries.h"
#include "output/slurm_texts.h"
#include "output/text.h"

namespace msa::cli {
namespace {

// How often slurmctld is asked while a file is followed, which itself is looked at five times a second.
constexpr Millis kFirstPause{250};
constexpr Millis kLongestPause{5'000};
// A file that a running job writes is there by then, if this host sees it at all.
constexpr Millis kWithoutFile{5'000};

std::string ThisHost() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "this host";
}

std::string ThisUser() {
  const passwd* entry = ::getpwuid(::geteuid());
  return entry == nullptr ? fmt::format("{}", ::geteuid()) : entry->pw_name;
}

// What slurmctld knows of a job, asked more seldom the longer it goes on.
class JobView {
 public:
  JobView(const BackendChoice& choice, const std::string& word) : choice_(choice), word_(word) {}

  // Its value: whether it was asked at all this time, `job` and `rows` being new then.
  Result<SlurmSays<bool>> Look() {
    SlurmSays<bool> out;
    if (SteadyNow() < next_) return out;
    MSA_ASSIGN_OR_RETURN(const SlurmJobName name, ParseSlurmJob(word_));
    MSA_ASSIGN_OR_RETURN(auto says, AskForJob(choice_, name));
    out.exit_code = says.exit_code;
    out.error = says.error;
    if (out.exit_code != 0) return out;
    rows = std::move(says.value);
    MSA_ASSIGN_OR_RETURN(job, OneJob(FoldJobs(rows, Companions::kRows), word_));
    next_ = SteadyNow() + pause_;
    pause_ = std::min(pause_ * 2, kLongestPause);
    out.value = true;
    return out;
  }

  JobInfo job;
  std::vector<SlurmRow> rows;

 private:
  const BackendChoice& choice_;
  const std::string word_;
  SteadyTime next_{};
  Millis pause_ = kFirstPause;
};

Result<std::string> FileOfJob(const JobInfo& job, SlurmOutput which) {
  const std::string name = ShownJobId(job);
  const std::string& path = which == SlurmOutput::kErrors ? job.stderr_path : job.stdout_path;
  if (job.mode != wire::JobMode::kBatch && wire::IsFinal(job.state))
    return Error(Code::kNotFound,
                 "job {} was of an srun or salloc: what its tasks printed went there, or to the files that "
                 "they named; Slurm keeps no word of it",
                 name);
  if (job.mode != wire::JobMode::kBatch)
    return Error(Code::kNotFound,
                 "job {} is of an srun or salloc: what its tasks print goes there, or to the files that they "
                 "named; 'msactl job attach {}' shows it from now on",
                 name, name);
  if (path.empty())
    return Error(Code::kNotFound,
                 "job {}: Slurm does not say where its output goes; see 'scontrol show job {}'", name, name);
  if (path == "/dev/null")
    return Error(Code::kNotFound, "job {} was told to drop this output (/dev/null)", name);
  return BatchFile(path, job);
}

// That this user cannot read the file here, and who can where.
Status CannotRead(const JobInfo& job, const std::string& file, int error) {
  const std::string name = ShownJobId(job);
  if (error == EACCES || error == EPERM)
    return Error(Code::kPermissionDenied,
                 "job {}: user '{}' may not read '{}' on this host ({}); the job is of user '{}'", name,
                 ThisUser(), file, ThisHost(), job.user);
  if (error != ENOENT && error != ENOTDIR)
    return ErrnoError(error, fmt::format("open '{}' of job {}", file, name));
  const std::string out =
      fmt::format("job {}: its file '{}' is not on this host ({})", name, file, ThisHost());
  if (job.head_node.empty()) return Status(Code::kNotFound, out);
  const std::string words = ShellWords({file});
  if (wire::IsFinal(job.state))
    return Error(
        Code::kNotFound,
        "{}; the job ran on {}, which may have it where the directory is not shared: 'ssh {} cat {}'", out,
        job.head_node, job.head_node, words);
  return Error(
      Code::kNotFound,
      "{}; the job runs on {}, which has it where the directory is not shared: 'srun --jobid={} --overlap "
      "--nodes=1 --ntasks=1 --nodelist={} cat {}'",
      out, job.head_node, job.id, job.head_node, words);
}

Status CheckReadable(const JobInfo& job, const std::string& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return fd ? Status::Ok() : CannotRead(job, file, errno);
}

// Prints what there is, and with `follow` goes on until the job has ended.
Result<int> PrintFile(JobView& view, const std::string& file, bool follow) {
  FileFollower follower({file});
  const SteadyTime begin = SteadyNow();
  bool told = false;
  for (;;) {
    // What was there when it had ended is all.
    const bool ended = wire::IsFinal(view.job.state);
    const Status readable = CheckReadable(view.job, file);
    if (!readable.ok() && (!follow || ended || readable.code() != Code::kNotFound)) return readable;
    if (!readable.ok() && !told && SteadyNow() - begin > kWithoutFile) {
      PrintNote(readable.message());
      told = true;
    }
    MSA_RETURN_IF_ERROR(follower.PrintNew());
    if (!follow || ended) return 0;
    PauseToFollow();
    const auto says = view.Look();
    // slurmctld has forgotten it meanwhile.
    if (says.status().code() == Code::kNotFound) {
      view.job.state = JobState::kCompleted;
      continue;
    }
    if (!says.ok()) return says.status();
    if (says->exit_code != 0) return PassOn(*says);
  }
}

}  // namespace

Result<int> SlurmJobLogs(const Invocation& call, const BackendChoice& choice, const SlurmLogs& request) {
  JobView view(choice, call.operands()[0]);
  for (;;) {
    MSA_ASSIGN_OR_RETURN(const auto says, view.Look());
    if (says.exit_code != 0) return PassOn(says);
    if (view.job.state != JobState::kPending) break;
    if (!request.follow)
      return Error(Code::kFailedPrecondition, "job {} has not started yet; --follow waits for its output",
                   call.operands()[0]);
    PauseToFollow();
  }
  if (view.job.started_at_ms == 0 && wire::IsFinal(view.job.state))
    return Error(Code::kNotFound, "job {} ended before it started, and has no output", call.operands()[0]);
  AddDetail(choice, view.rows, view.job);
  MSA_ASSIGN_OR_RETURN(const std::string file, FileOfJob(view.job, request.which));
  return PrintFile(view, file, request.follow);
}

namespace {

// "7.0" -> job and step; a job alone has no step.
struct StepName {
  std::string job;
  std::string step;
};
Result<StepName> ParseStep(const std::string& word) {
  const std::size_t dot = word.find('.');
  StepName out{word.substr(0, dot), dot == std::string::npos ? "" : word.substr(dot + 1)};
  MSA_RETURN_IF_ERROR(ParseSlurmJob(out.job).status());
  const bool digits = out.step.find_first_not_of("0123456789") == std::string::npos;
  if (dot != std::string::npos && (out.step.empty() || !digits))
    return Error(
        Code::kInvalidArgument,
        "'{}' is no step of srun's; expected a number behind the '.', as {}.0; what a batch script itself "
        "prints is shown by 'msactl job logs {} --follow'",
        word, out.job, out.job);
  return out;
}

Status NothingToAttach(const JobInfo& job) {
  const std::string name = ShownJobId(job);
  if (job.state == JobState::kPending)
    return Error(Code::kFailedPrecondition,
                 "job {} has not started; 'msactl job why {}' tells what it waits for", name, name);
  if (wire::IsFinal(job.state))
    return Error(Code::kFailedPrecondition, "job {} has ended already ({})", name, StateName(job.state));
  if (job.mode == wire::JobMode::kBatch)
    return Error(
        Code::kFailedPrecondition,
        "job {} has no step that runs now; what its script prints is shown by 'msactl job logs {} --follow'",
        name, name);
  return Error(Code::kFailedPrecondition, "job {} is an allocation, and no step of it runs now", name);
}

// The one that is meant, by its id as sattach takes it.
Result<SlurmStep> ChooseStep(const JobInfo& job, const std::vector<SlurmStep>& steps, const StepName& name) {
  if (steps.empty()) return NothingToAttach(job);
  std::vector<SlurmStep> out;
  for (const SlurmStep& step : steps) {
    // Of the leader too, where components have steps of the same number.
    if (step.id == name.job + "." + name.step) return step;
    if (name.step.empty() || step.id.ends_with("." + name.step)) out.push_back(step);
  }
  if (out.empty())
    return Error(Code::kNotFound, "job {} has no step {} that runs now; there are {}", name.job, name.step,
                 ListSteps(steps));
  if (out.size() > 1)
    return Error(Code::kInvalidArgument,
                 "job {} has {} running steps: {}; name one, as 'msactl job attach {}'", name.job, out.size(),
                 ListSteps(out), out[0].id);
  return out[0];
}

}  // namespace

Result<int> SlurmJobAttach(const Invocation& call, const BackendChoice& choice, const SlurmAttach& request) {
  MSA_ASSIGN_OR_RETURN(const StepName name, ParseStep(call.operands()[0]));
  MSA_ASSIGN_OR_RETURN(const SlurmJobName job_name, ParseSlurmJob(name.job));
  MSA_ASSIGN_OR_RETURN(const auto says, AskForJob(choice, job_name));
  if (says.exit_code != 0) return PassOn(says);
  MSA_ASSIGN_OR_RETURN(const JobInfo job, OneJob(FoldJobs(says.value, Companions::kRows), name.job));
  if (job.state == JobState::kPending || wire::IsFinal(job.state)) return NothingToAttach(job);
  // sattach itself would say that nothing runs.
  if (::geteuid() != 0 && ::geteuid() != job.uid)
    return Error(Code::kPermissionDenied, "job {} is of user '{}': Slurm lets that user alone attach to it",
                 name.job, job.user);
  const std::vector<std::uint64_t> parts = PartsNamed(job, job_name);
  if (parts.empty()) return NoSuchJob(name.job);
  MSA_ASSIGN_OR_RETURN(const auto steps, AskForSteps(choice, parts));
  if (steps.exit_code != 0) return PassOn(steps);
  MSA_ASSIGN_OR_RETURN(const SlurmStep step,
                       ChooseStep(job, StepsOfSrun(steps.value, ShownJobId(job)), name));
  std::vector<std::string> words = {"sattach"};
  if (request.label) words.emplace_back("--label");
  if (request.quiet) words.emplace_back("--quiet");
  words.push_back(step.id);
  // It would hand our input on to the tasks, and its end.
  return BecomeSlurm(choice, words, Input::kSilent);
}

}  // namespace msa::cli
