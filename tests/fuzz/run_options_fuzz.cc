// Any words (the input's lines) are a job that has a program in each component, or are refused as wrong
// usage.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "options/command_line.h"
#include "options/run_options.h"
#include "options/values.h"

// Words that were split come out the same when each stands in quotes.
static void CheckQuoted(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    line += " '";
    for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  const auto again = msa::cli::SplitCommandLine(line);
  if (!again.ok() || *again != words) std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> words;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    const auto split = msa::cli::SplitCommandLine(line);
    if (!split.ok() && split.status().code() != msa::Code::kInvalidArgument) std::abort();
    if (split.ok()) CheckQuoted(*split);
    words.emplace_back(line);
    rest.remove_prefix(line.size() < rest.size() ? line.size() + 1 : rest.size());
  }
  const auto request = msa::cli::ParseRun(words, {"/here", {"PATH=/bin", "A=1"}});
  if (!request.ok()) {
    if (request.status().code() != msa::Code::kInvalidArgument || request.status().message().empty())
      std::abort();
  } else if (!request->help_asked) {
    if (request->spec.components.empty() || request->spec.cwd.empty()) std::abort();
    for (const msa::Component& component : request->spec.components) {
      const msa::ComponentRequest& ask = component.resources;
      if (component.argv.empty() || ask.max_nodes < ask.min_nodes) std::abort();
    }
  }
  for (const std::string& word : words) {
    const auto limit = msa::cli::ParseTimeLimit(word);
    const auto range = msa::cli::ParseNodeRange(word);
    if (range.ok() && (range->min == 0 || range->max < range->min)) std::abort();
    if (limit.ok() && word.find_first_not_of("0123456789:-UNLIMTEDFunlimtedf") != std::string::npos)
      std::abort();
  }
  return 0;
}
