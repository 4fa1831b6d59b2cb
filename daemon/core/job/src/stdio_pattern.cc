#include "msa/job/stdio_pattern.h"

namespace msa {

Result<std::string> ExpandPattern(const std::string& pattern, const PatternValues& values) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      out.push_back(pattern[i]);
      continue;
    }
    const char letter = ++i < pattern.size() ? pattern[i] : '\0';
    switch (letter) {
      case 'j':
        out += fmt::format("{}", values.job);
        break;
      case 'J':
        out += fmt::format("{}.{}", values.job, values.step);
        break;
      case 's':
        out += fmt::format("{}", values.step);
        break;
      case 't':
        out += fmt::format("{}", values.rank);
        break;
      case 'n':
        out += fmt::format("{}", values.node_index);
        break;
      case 'N':
        out += values.node;
        break;
      case 'u':
        out += values.user;
        break;
      case 'x':
        out += values.job_name;
        break;
      case '%':
        out.push_back('%');
        break;
      default:
        return Error(Code::kInvalidArgument,
                     "file pattern '{}': '%{}' is not known; use %j job, %J job.step, %s step, %t rank, %n "
                     "node number, %N node "
                     "name, %u user, %x job name or %% for a percent sign",
                     pattern, letter == '\0' ? std::string() : std::string(1, letter));
    }
  }
  return out;
}

bool IsPerTask(const std::string& pattern) {
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] != '%') continue;
    ++i;
    if (pattern[i] == 't' || pattern[i] == 'n' || pattern[i] == 'N') return true;
  }
  return false;
}

}  // namespace msa
