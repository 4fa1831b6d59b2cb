#include "commands/submit_file.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <map>
#include <system_error>
#include <vector>

#include "msa/adapters/process/child_process.h"
#include "msa/adapters/process/files.h"

#include "client/bulk_submitter.h"
#include "commands/command.h"
#include "commands/print.h"
#include "options/command_line.h"
#include "options/resource_limits.h"
#include "options/run_options.h"
#include "run/token.h"

namespace msa::cli {
namespace {

// A hundred thousand lines, the limit of the queue, of 640 bytes.
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

Result<std::string> ReadInput() {
  std::string text;
  std::array<char, 64 * 1024> buffer;
  for (;;) {
    const ssize_t n = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, "read standard input");
    if (n == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(n));
    if (text.size() > kMostBytes)
      return Error(Code::kResourceExhausted, "standard input has more than {} bytes; submit it in parts",
                   kMostBytes);
  }
}

struct Lines {
  std::vector<Submission> submissions;
  std::vector<std::size_t> number;  // of the line of each
};

Result<JobSpec> ParseLine(std::vector<std::string> words, const RunSurroundings& surroundings) {
  MSA_ASSIGN_OR_RETURN(RunRequest request, ParseRun(words, surroundings));
  if (request.help_asked)
    return Status(Code::kInvalidArgument, "--help is not for a line of a file; see 'msactl run --help'");
  bool groups = false;
  for (const auto& list : request.het_groups) groups = groups || !list.empty();
  if (request.job.value != 0 || request.overlap || groups)
    return Error(Code::kInvalidArgument,
                 "{} is for a step inside a job, and each line is a job of its own; leave it out",
                 groups            ? "--het-group"
                 : request.overlap ? "--overlap"
                                   : "--job");
  if (!request.dir.empty())
    return Error(Code::kInvalidArgument, "--dir {} belongs to 'msactl submit', for all lines; put it there",
                 request.dir);
  return std::move(request.spec);
}

Result<Lines> ParseLines(const std::string& text, const std::string& name) {
  RunSurroundings surroundings{.env = CurrentEnvironment(), .limits = OwnLimits(), .queued = true};
  std::error_code error;
  surroundings.cwd = std::filesystem::current_path(error).string();
  if (error) return ErrnoError(error.value(), "find the working directory; change to one that exists");
  Lines out;
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    ++number;
    auto words = SplitCommandLine(line);
    Result<JobSpec> spec = words.status();
    if (words.ok() && words->empty()) continue;
    if (words.ok()) spec = ParseLine(*std::move(words), surroundings);
    if (!spec.ok())
      return Error(spec.status().code(), "{}:{}: {}; nothing was submitted", name, number,
                   spec.status().message());
    // The lines of one file share an environment.
    if (!out.submissions.empty() && out.submissions.back().spec.env == spec->env)
      spec->env = out.submissions.back().spec.env;
    MSA_ASSIGN_OR_RETURN(std::string token, MakeToken());
    out.submissions.push_back({*std::move(spec), std::move(token)});
    out.number.push_back(number);
  }
  if (out.submissions.empty())
    return Error(Code::kInvalidArgument,
                 "{} holds no submission; write the options and the program of 'msactl run' on a line each",
                 name);
  return out;
}

// "5-80,82"
std::string Ranges(std::vector<std::uint64_t> ids) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  std::sort(ids.begin(), ids.end());
  for (const std::uint64_t id : ids) {
    if (!ranges.empty() && ranges.back().second + 1 == id)
      ranges.back().second = id;
    else
      ranges.emplace_back(id, id);
  }
  std::string out;
  for (const auto& [first, last] : ranges)
    out += (out.empty() ? "" : ",") +
           (first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last));
  return out;
}

std::string Summary(const std::map<std::size_t, JobId>& jobs) {
  if (jobs.empty()) return "no job was submitted";
  std::vector<std::uint64_t> ids;
  for (const auto& [index, id] : jobs) ids.push_back(id.value);
  return fmt::format("submitted {} job{} (id{} {})", jobs.size(), jobs.size() == 1 ? "" : "s",
                     jobs.size() == 1 ? "" : "s", Ranges(std::move(ids)));
}

Status PrintJobs(const std::map<std::size_t, JobId>& jobs, bool parsable) {
  std::string text;
  if (parsable) {
    for (const auto& [index, id] : jobs) text += fmt::format("{}\n", id);
  } else if (!jobs.empty()) {
    text = Summary(jobs) + "\n";
  }
  return Print(text);
}

}  // namespace

Result<int> SubmitFile(const SubmitFileOptions& options) {
  const bool from_input = options.file == "-";
  const std::string name = from_input ? "standard input" : options.file;
  MSA_ASSIGN_OR_RETURN(const std::string text, from_input ? ReadInput() : ReadFile(options.file, kMostBytes));
  MSA_ASSIGN_OR_RETURN(const Lines lines, ParseLines(text, name));
  MSA_ASSIGN_OR_RETURN(const Endpoint endpoint, FindEndpoint(options.dir));

  std::map<std::size_t, JobId> jobs;      // by place in the file
  std::map<std::size_t, Status> refused;  // likewise
  const Status sent =
      SubmitAll(endpoint, lines.submissions, [&](std::size_t index, const Result<JobId>& job) {
        if (job.ok())
          jobs.emplace(index, *job);
        else
          refused.emplace(index, job.status());
      });
  MSA_RETURN_IF_ERROR(PrintJobs(jobs, options.parsable));
  if (sent.ok() && refused.empty()) return 0;
  Status told = sent;
  const std::string of = fmt::format("{} of {} jobs were submitted", jobs.size(), lines.submissions.size());
  if (!refused.empty()) {
    const auto& [index, why] = *refused.begin();
    const auto before = static_cast<std::size_t>(std::distance(jobs.begin(), jobs.lower_bound(index)));
    std::vector<std::uint64_t> left;
    for (std::size_t i = 0; i < lines.number.size(); ++i)
      if (!jobs.contains(i)) left.push_back(lines.number[i]);
    told = Error(why.code(), "{}:{}: {}; {}, {} of them from lines before it; not submitted: line{} {}", name,
                 lines.number[index], why.message(), of, before, left.size() == 1 ? "" : "s", Ranges(left));
  } else {
    told = Status(sent.code(), fmt::format("{}; {}", sent.message(), of));
  }
  if (jobs.empty()) return told;
  PrintError(told);
  return kPartialExitCode;
}

}  // namespace msa::cli
