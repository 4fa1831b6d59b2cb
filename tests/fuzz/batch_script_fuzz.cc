// Any command line (the first line's words, separated by tabs) and any script is a job that the controller
// can look at, or is refused as wrong usage with a text.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "batch/submit_options.h"
#include "batch/wait_options.h"

namespace {

constexpr std::int64_t kNowMs = 1'795'012'200'000;

void Check(const msa::Status& status) {
  if (!status.ok() && (status.code() != msa::Code::kInvalidArgument || status.message().empty()))
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string_view line = input.substr(0, input.find('\n'));
  const std::string_view script = input.substr(std::min(size, line.size() + 1));
  std::vector<std::string> words;
  for (std::string_view rest = line; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find('\t'));
    words.emplace_back(word);
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
  }
  const msa::Instant now{msa::Millis(kNowMs)};
  const auto call = msa::cli::ReadSubmitCall(words);
  Check(call.status());
  if (call.ok() && !call->help_asked) {
    const auto request =
        msa::cli::ReadSubmission(*call, "job.sh", script, {"/here", {"PATH=/bin", "A=1"}, {{7, 1, 2}}, now});
    Check(request.status());
    if (request.ok()) {
      const msa::JobSpec& spec = request->spec;
      if (spec.components.empty() || spec.components.size() > msa::kMaxComponents) std::abort();
      if (spec.script != script || !spec.script.starts_with("#!") || spec.cwd.empty()) std::abort();
      for (const msa::Component& component : spec.components)
        if (!component.argv.empty() || component.resources.max_nodes < component.resources.min_nodes)
          std::abort();
      for (const std::string& warning : request->warnings)
        if (warning.empty()) std::abort();
    }
  }
  const auto begin = msa::cli::ParseBegin(line, now);
  Check(begin.status());
  if (begin.ok() && *begin != 0 && *begin <= kNowMs) std::abort();
  const auto past = msa::cli::ParsePast(line, now);
  Check(past.status());
  if (past.ok() && *past < 0) std::abort();
  const auto list = msa::cli::ParseDependencies(line);
  Check(list.status());
  if (list.ok() && (list->dependencies.empty() || list->dependencies.size() > msa::kMaxDependencies))
    std::abort();
  return 0;
}
