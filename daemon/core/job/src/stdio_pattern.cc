#include "msa/job/stdio_pattern.h"

#include "msa/base/messages.h"

namespace msa {

namespace {

// A number, with zeros in front up to `width`.
std::string Padded(std::uint64_t number, int width) { return fmt::format("{:0{}}", number, width); }

std::string StepText(StepId step, int width) {
  return step == wire::kBatchStep ? "batch" : Padded(step.value, width);
}

}  // namespace

Result<std::string> ExpandPattern(const std::string& pattern, const PatternValues& values) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      out.push_back(pattern[i]);
      continue;
    }
    int width = 0;
    const std::size_t digit = i + 1;
    if (digit < pattern.size() && pattern[digit] >= '0' && pattern[digit] <= '9') {
      width = pattern[digit] - '0';
      ++i;
    }
    const char letter = ++i < pattern.size() ? pattern[i] : '\0';
    switch (letter) {
      case 'j':
      case 'A':
        out += Padded(values.job.value, width);
        break;
      case 'J':
        out += fmt::format("{}.{}", Padded(values.job.value, width), StepText(values.step, 0));
        break;
      case 's':
        out += StepText(values.step, width);
        break;
      case 't':
        out += Padded(values.rank.value, width);
        break;
      case 'n':
        out += Padded(values.node_index, width);
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
        return Error(
            Code::kInvalidArgument,
            "file pattern '{}': '%{}' is not known; use %j job (%4j: four digits at least), %J "
            "job.step, %s step, %t rank, %n node number, %N node name, %u user, %x job name or %% for "
            "a percent sign",
            pattern, letter == '\0' ? std::string() : std::string(1, letter));
    }
  }
  return out;
}

bool IsPerTask(const std::string& pattern) {
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] != '%') continue;
    ++i;
    if (pattern[i] >= '0' && pattern[i] <= '9' && i + 1 < pattern.size()) ++i;
    if (pattern[i] == 't' || pattern[i] == 'n' || pattern[i] == 'N') return true;
  }
  return false;
}

}  // namespace msa
