#include "msa/base/clock.h"
#include "msa/job/records.h"
#include "msa/topology/suggest.h"

#include "batch/wait_options.h"
#include "commands/invocation.h"
#include "commands/slurm.h"
#include "options/values.h"
#include "output/job_texts.h"

namespace msa::cli {
namespace {

std::vector<std::string> FinalStateNames() {
  std::vector<std::string> out;
  for (int state = static_cast<int>(JobState::kCompleted); state <= static_cast<int>(JobState::kNodeFail);
       ++state)
    out.emplace_back(StateName(static_cast<JobState>(state)));
  return out;
}

// "FAILED,TIMEOUT", any case.
Result<std::vector<JobState>> ParseStates(std::string_view text) {
  const std::vector<std::string> names = FinalStateNames();
  std::vector<JobState> out;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    std::string name(rest.substr(0, comma));
    for (char& c : name)
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    const auto it = std::find(names.begin(), names.end(), name);
    if (it == names.end())
      return Error(Code::kInvalidArgument, "'{}' is no state in which a job has ended; {}expected {}",
                   rest.substr(0, comma), DidYouMean(name, names), ListNames(names));
    out.push_back(static_cast<JobState>(static_cast<int>(JobState::kCompleted) + (it - names.begin())));
    if (comma == std::string_view::npos) return out;
    rest.remove_prefix(comma + 1);
  }
}

void AddFilters(OptionParser& options, JobQuery& query) {
  const auto add = [&options](OptionSpec option, std::function<Status(std::string_view)> set) {
    option.takes = Takes::kValue;
    option.set = std::move(set);
    options.Add(std::move(option));
  };
  const auto past = [](std::int64_t* to) {
    return [to](std::string_view value) -> Status {
      MSA_ASSIGN_OR_RETURN(*to, ParsePast(value, Now()));
      return Status::Ok();
    };
  };
  add({.letter = 'S',
       .name = "since",
       .value_name = "WHEN",
       .help = "that ended then or later: now-2hours, 16:00, yesterday, 2026-11-20T16:00"},
      past(&query.since_ms));
  add({.letter = 'E', .name = "until", .value_name = "WHEN", .help = "that were submitted before"},
      past(&query.until_ms));
  options.Text('u', "user", "USER", "of one user, by name or uid", &query.user);
  add({.letter = 's', .name = "state", .value_name = "STATES", .help = "that ended so, as FAILED,TIMEOUT"},
      [&query](std::string_view value) -> Status {
        MSA_ASSIGN_OR_RETURN(query.states, ParseStates(value));
        return Status::Ok();
      });
  options.Text(0, "name", "NAME", "of this name", &query.name);
  add({.letter = 'n',
       .name = "limit",
       .value_name = "N",
       .help = "at most so many, the newest (default: 100)"},
      [&query](std::string_view value) -> Status {
        MSA_ASSIGN_OR_RETURN(const std::uint64_t limit, ParseNumber(value, {1, 10000}));
        query.limit = static_cast<std::uint32_t>(limit);
        return Status::Ok();
      });
}

}  // namespace

Result<int> JobHistory(const Args& args) {
  Invocation call(
      {"msactl job history", "[OPTIONS]",
       "List jobs that have ended, the oldest first. Where Slurm schedules: those of its accounting, without "
       "--since of the last 30 days."});
  call.WithFormat();
  JobQuery query;
  query.ended = true;
  query.limit = 100;
  AddFilters(call.options(), query);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {}));
  if (!go) return 0;
  if (query.states.empty()) query.states = *ParseStates(fmt::format("{}", fmt::join(FinalStateNames(), ",")));
  MSA_ASSIGN_OR_RETURN(const BackendChoice choice, call.Choice());
  if (choice.slurm()) return SlurmJobHistory(call, choice, query);
  MSA_ASSIGN_OR_RETURN(const auto client, call.Connect());
  MSA_ASSIGN_OR_RETURN(std::vector<JobInfo> jobs, client->ListJobs(query));
  std::erase_if(jobs, [](const JobInfo& job) { return !wire::IsFinal(job.state); });
  MSA_RETURN_IF_ERROR(call.Show(HistoryListing(jobs)));
  return 0;
}

}  // namespace msa::cli
