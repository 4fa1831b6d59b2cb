#include "script_components.h"

#include <algorithm>

#include "site.h"

namespace msa::job_submit {
namespace {

constexpr std::string_view kOptions[] = {"--module", "--nam", "--gateways"};

std::string_view Unquoted(std::string_view word) {
  if (word.size() >= 2 && (word.front() == '"' || word.front() == '\'') && word.back() == word.front())
    return word.substr(1, word.size() - 2);
  return word;
}

void ReadWords(const std::vector<std::string_view>& words, std::size_t component,
               std::vector<ScriptOption>* out) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word.front() == '#') return;  // a comment
    for (const std::string_view name : kOptions) {
      if (word == name && i + 1 < words.size()) {
        out->push_back({component, std::string(name), std::string(Unquoted(words[++i]))});
        break;
      }
      if (word.starts_with(name) && word.substr(name.size()).starts_with('=')) {
        out->push_back({component, std::string(name), std::string(Unquoted(word.substr(name.size() + 1)))});
        break;
      }
    }
  }
}

}  // namespace

std::vector<ScriptOption> ReadScriptOptions(std::string_view script) {
  std::vector<ScriptOption> out;
  std::size_t component = 0;
  while (!script.empty()) {
    const std::string_view line = script.substr(0, script.find('\n'));
    script.remove_prefix(std::min(script.size(), line.size() + 1));
    const std::vector<std::string_view> words = SplitBlanks(line);
    if (words.empty()) continue;
    if (words[0].front() != '#') break;  // the first command
    if (words[0] != "#SBATCH" || line.front() != '#') continue;
    if (words.size() > 1 && (words[1] == "hetjob" || words[1] == "packjob")) {
      ++component;
    } else {
      ReadWords(words, component, &out);
    }
  }
  return out;
}

}  // namespace msa::job_submit
