#include "commands/slurm_queries.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "backend/accounting.h"
#include "backend/job_detail.h"
#include "backend/records.h"
#include "backend/slurm_nodes.h"
#include "client/client_file.h"
#include "commands/slurm.h"
#include "output/slurm_texts.h"
#include "output/text.h"
#include "run/token.h"

namespace msa::cli {
namespace {

// A controller that does not answer at once is left out.
constexpr Millis kPatience{3'000};

using Records = std::vector<std::vector<std::string>>;

Result<SlurmSays<Records>> Ask(const BackendChoice& choice, std::vector<std::string> words,
                               std::span<const std::string_view> fields, const Asking& asking) {
  MSA_ASSIGN_OR_RETURN(const std::string token, MakeToken());
  const RecordFormat format(token);
  words.emplace_back("-O");
  words.push_back(format.Ask(fields));
  const std::string name = words[0];
  SlurmCall call;
  call.words = std::move(words);
  call.errors = asking.errors;
  call.patience = asking.patience;
  MSA_ASSIGN_OR_RETURN(const SlurmAnswer answer, RunSlurm(choice, call));
  SlurmSays<Records> out;
  out.exit_code = answer.exit_code;
  out.error = answer.err;
  if (out.exit_code != 0) return out;
  Result<Records> records = format.Read(answer.out, fields.size());
  if (!records.ok()) return records.status().WithContext(name);
  out.value = *std::move(records);
  return out;
}

std::string Numbers(const std::vector<std::uint64_t>& ids) { return fmt::format("{}", fmt::join(ids, ",")); }

// squeue that is asked for one job fails where there is none, and leaves it out of several.
bool IsUnknownJob(const SlurmSays<Records>& says) {
  return says.exit_code != 0 && says.error.find("Invalid job id") != std::string::npos;
}

}  // namespace

int PassOn(std::string_view error, int exit_code) {
  while (!error.empty()) {
    const ssize_t n = ::write(STDERR_FILENO, error.data(), error.size());
    if (n < 0) break;
    error.remove_prefix(static_cast<std::size_t>(n));
  }
  return exit_code;
}

Result<BackendChoice> ChoiceFor(const std::string& option, const std::string& dir) {
  const char* environment = ::getenv("MSA_BACKEND");
  BackendWords words{.option = option, .environment = environment == nullptr ? "" : environment, .file = ""};
  MSA_ASSIGN_OR_RETURN(const BackendChoice said, ChooseBackend(words));
  if (!said.because.empty()) return said;
  const Result<Endpoint> endpoint = FindEndpoint(dir);
  // The command itself meets that error.
  if (!endpoint.ok() || !endpoint->dir.empty()) return said;
  MSA_ASSIGN_OR_RETURN(const ClientFile file, LoadClientFile());
  const bool elsewhere = endpoint->socket.starts_with("tls:") && endpoint->socket != file.server;
  if (!elsewhere) words.file = file.backend;
  return ChooseBackend(words);
}

Result<SlurmSays<std::vector<SlurmRow>>> AskForJobs(const BackendChoice& choice, const JobsWanted& wanted) {
  std::vector<std::string> words = {"squeue", "--noheader", "--all"};
  if (wanted.ended) words.emplace_back("--states=all");
  if (!wanted.user.empty()) words.push_back("--user=" + wanted.user);
  MSA_ASSIGN_OR_RETURN(const SlurmSays<Records> says,
                       Ask(choice, std::move(words), SlurmJobFields(), wanted.asking));
  SlurmSays<std::vector<SlurmRow>> out;
  out.exit_code = says.exit_code;
  out.error = says.error;
  MSA_ASSIGN_OR_RETURN(out.value, ReadSlurmRows(says.value));
  return out;
}

Result<SlurmSays<std::vector<SlurmRow>>> AskForJobsById(const BackendChoice& choice,
                                                        const std::vector<std::uint64_t>& ids) {
  MSA_ASSIGN_OR_RETURN(
      const SlurmSays<Records> says,
      Ask(choice, {"squeue", "--noheader", "--all", "--states=all", "--jobs=" + Numbers(ids)},
          SlurmJobFields(), {.errors = Errors::kKept, .patience = {}}));
  SlurmSays<std::vector<SlurmRow>> out;
  if (IsUnknownJob(says)) return out;
  out.exit_code = says.exit_code;
  out.error = says.error;
  MSA_ASSIGN_OR_RETURN(out.value, ReadSlurmRows(says.value));
  return out;
}

Result<SlurmSays<std::vector<SlurmRow>>> AskForJob(const BackendChoice& choice, const SlurmJobName& name) {
  MSA_ASSIGN_OR_RETURN(auto says, AskForJobsById(choice, {name.job}));
  const bool part = says.value.size() == 1 && says.value[0].leader != name.job && says.value[0].het;
  if (!part) return says;
  return AskForJobsById(choice, {says.value[0].leader});
}

Result<SlurmSays<std::vector<SlurmStep>>> AskForSteps(const BackendChoice& choice,
                                                      const std::vector<std::uint64_t>& ids) {
  MSA_ASSIGN_OR_RETURN(const SlurmSays<Records> says,
                       Ask(choice, {"squeue", "--noheader", "--all", "--steps", "--jobs=" + Numbers(ids)},
                           SlurmStepFields(), {.errors = Errors::kKept, .patience = {}}));
  SlurmSays<std::vector<SlurmStep>> out;
  if (IsUnknownJob(says)) return out;
  out.exit_code = says.exit_code;
  out.error = says.error;
  MSA_ASSIGN_OR_RETURN(out.value, ReadSlurmSteps(says.value));
  return out;
}

Result<SlurmSays<Records>> AskForNodes(const BackendChoice& choice, const Asking& asking) {
  return Ask(choice, {"sinfo", "--noheader", "--all", "--Node"}, SlurmNodeFields(), asking);
}

Result<ShownPairs> AskForRecord(const BackendChoice& choice, const std::string& kind,
                                const std::string& name) {
  SlurmCall call;
  call.words = {"scontrol", "--all", "--details", "show", kind, name};
  call.errors = Errors::kKept;
  call.times = Times::kLocal;
  MSA_ASSIGN_OR_RETURN(const SlurmAnswer answer, RunSlurm(choice, call));
  return answer.exit_code == 0 ? ReadShownRecord(answer.out) : ShownPairs();
}

Result<AccountingSays> AskAccounting(const BackendChoice& choice, const HistoryWanted& wanted) {
  MSA_ASSIGN_OR_RETURN(const std::string token, MakeToken());
  const RecordFormat format(token);
  SlurmCall call;
  call.words = {"sacct",
                "--noheader",
                "--allocations",
                "--parsable",
                "--delimiter=" + format.delimiter(),
                fmt::format("--format={}", fmt::join(SacctFields(), ",")),
                wanted.user.empty() ? "--allusers" : "--user=" + wanted.user};
  if (wanted.job != 0) call.words.push_back(fmt::format("--jobs={}", wanted.job));
  if (wanted.job == 0) call.words.push_back("--starttime=" + SacctTime(wanted.since_ms));
  call.errors = Errors::kKept;
  MSA_ASSIGN_OR_RETURN(const SlurmAnswer answer, RunSlurm(choice, call));
  AccountingSays out;
  out.jobs.exit_code = answer.exit_code;
  out.jobs.error = answer.err;
  if (answer.exit_code != 0) {
    out.kept = !SaysNoAccounting(answer.err);
    return out;
  }
  Result<Records> records = format.ReadParsable(answer.out, SacctFields().size());
  if (!records.ok()) return records.status().WithContext("sacct");
  MSA_ASSIGN_OR_RETURN(out.jobs.value, ReadSacct(*records));
  return out;
}

Status NoSuchJob(std::string_view word) {
  return Error(
      Code::kNotFound,
      "job {}: slurmctld knows no such job; it forgets those that have ended after a while (MinJobAge), then "
      "'sacct -j {}' may know it; see 'msactl job list --all'",
      word, word);
}

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

Result<std::unique_ptr<SystemClient>> ControllerBeside(const std::string& dir) {
  MSA_ASSIGN_OR_RETURN(const Endpoint endpoint, FindEndpoint(dir));
  if (dir.empty() && !endpoint.dir.empty())
    return Status(Code::kFailedPrecondition,
                  "no controller of msa is known here; name one with --server or in "
                  "/etc/msa/client.conf");
  return SystemClient::TryConnect(endpoint, kPatience);
}

}  // namespace msa::cli
