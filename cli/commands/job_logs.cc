#include <glob.h>

#include "commands/follow.h"
#include "commands/invocation.h"
#include "commands/print.h"
#include "commands/slurm.h"
#include "options/values.h"
#include "output/job_texts.h"

namespace msa::cli {
namespace {

// A pattern with one file for each task or node: what is there of it. Letters that stand for the job are
// known.
std::vector<std::string> FilesOf(const std::string& pattern, const JobInfo& job) {
  std::string glob_pattern;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '%' && i + 1 < pattern.size()) {
      const char letter = pattern[++i];
      if (letter == 'j' || letter == 'J') {
        glob_pattern += fmt::format("{}", job.id);
      } else if (letter == '%') {
        glob_pattern += '%';
      } else {
        glob_pattern += '*';
      }
    } else {
      if (std::string_view("*?[\\").find(c) != std::string_view::npos) glob_pattern += '\\';
      glob_pattern += c;
    }
  }
  glob_t found{};
  std::vector<std::string> out;
  if (::glob(glob_pattern.c_str(), 0, nullptr, &found) == 0)
    out.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return out;
}

Result<std::vector<std::string>> LogFiles(const JobInfo& job, bool errors) {
  const std::string& expanded = errors ? job.stderr_path : job.stdout_path;
  if (!expanded.empty()) return std::vector<std::string>{expanded};
  const std::string own = job.spec ? (errors ? job.spec->stdio.err : job.spec->stdio.out) : "";
  if (own == "none") return Error(Code::kNotFound, "job {} was told to drop this output ('none')", job.id);
  if (!own.empty()) {
    std::vector<std::string> files = FilesOf(own, job);
    if (!files.empty()) return files;
    return Error(Code::kNotFound, "job {} has written no file '{}' yet", job.id, own);
  }
  if (errors && job.spec && !job.spec->stdio.out.empty()) return LogFiles(job, false);
  if (job.interactive && wire::IsFinal(job.state))
    return Error(Code::kNotFound,
                 "job {} has ended, and its output went to its 'msactl run' and is not kept; to keep that of "
                 "the next, give --output FILE or --detach",
                 job.id);
  if (job.interactive)
    return Error(Code::kNotFound,
                 "job {} belongs to a 'msactl run', its output goes there; 'msactl job attach {}' shows what "
                 "comes from now on",
                 job.id, job.id);
  return Error(Code::kNotFound, "job {} has no output file", job.id);
}

}  // namespace

Result<int> JobLogs(const Args& args) {
  Invocation call(
      {"msactl job logs", "[OPTIONS] JOB",
       "Print the output file of a job, or its files. Where Slurm schedules: that of a batch script, if "
       "this host has it."});
  bool follow = false;
  bool errors = false;
  call.options()
      .Flag('F', "follow", "go on until the job has ended", &follow)
      .Flag('e', "error", "the file of standard error", &errors);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.min = 1, .max = 1, .what = "a job's id"}));
  if (!go) return 0;
  MSA_ASSIGN_OR_RETURN(const BackendChoice choice, call.Choice());
  if (choice.slurm())
    return SlurmJobLogs(call, choice,
                        {.follow = follow, .which = errors ? SlurmOutput::kErrors : SlurmOutput::kOutput});
  MSA_ASSIGN_OR_RETURN(const JobId id, ParseJobId(call.operands()[0]));
  MSA_ASSIGN_OR_RETURN(const auto client, call.Connect());
  MSA_ASSIGN_OR_RETURN(JobInfo job, client->GetJob(id));
  if (job.state == JobState::kPending && !follow)
    return Error(Code::kFailedPrecondition, "job {} has not started yet; --follow waits for its output", id);
  while (follow && job.state == JobState::kPending) {
    PauseToFollow();
    MSA_ASSIGN_OR_RETURN(job, client->GetJob(id));
  }
  MSA_ASSIGN_OR_RETURN(const std::vector<std::string> files, LogFiles(job, errors));
  FileFollower follower(files);
  MSA_RETURN_IF_ERROR(follower.PrintNew());
  while (follow) {
    MSA_ASSIGN_OR_RETURN(job, client->GetJob(id));
    MSA_RETURN_IF_ERROR(follower.PrintNew());
    if (wire::IsFinal(job.state)) break;
    PauseToFollow();
  }
  if (!follower.any_found())
    return Error(Code::kNotFound, "job {}: its output file '{}' is not there", id, files[0]);
  return 0;
}

}  // namespace msa::cli
