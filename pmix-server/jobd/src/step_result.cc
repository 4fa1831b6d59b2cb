#include "step_result.h"

#include <string.h>

#include <algorithm>

#include <fmt/format.h>

namespace msa::jobd {

std::int32_t CodeOf(const wire::TaskEnd& end) {
  // A wait status holds seven bits of the signal; the report came over the wire.
  return end.signal != 0 ? 128 + (end.signal & 0x7f) : end.exit_code;
}

std::string RankList(std::vector<std::uint32_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  std::string out;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!out.empty()) out += ',';
    out += last == i ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  return out;
}

void StepResult::Add(const wire::TaskEnd& end, Counted counted) {
  const std::int32_t code = CodeOf(end);
  if (code == 0) return;
  if (counted != Counted::kNo) highest_ = std::max(highest_, code);
  ++failed_count_;
  failed_.emplace(end.rank.value, end);
  if (failed_.size() > kMaxFailed) failed_.erase(std::prev(failed_.end()));
  if (counted == Counted::kLost) return;
  std::string what = end.signal != 0 ? std::string(strsignal(end.signal))
                                     : fmt::format("exited with exit code {}", end.exit_code);
  if (end.core_dumped) what += " (core dumped)";
  open_[{end.node, what}].push_back(end.rank.value);
}

void StepResult::Force(std::int32_t code) {
  if (forced_) return;
  forced_ = true;
  forced_code_ = code;
}

std::vector<wire::TaskEnd> StepResult::failed() const {
  std::vector<wire::TaskEnd> out;
  for (const auto& [rank, end] : failed_) out.push_back(end);
  return out;
}

std::vector<std::string> StepResult::TakeLines() {
  std::vector<std::string> lines;
  for (const auto& [key, ranks] : open_)
    if (label_ == kScript)
      lines.push_back(fmt::format("{}: {} {}", key.first, kScript, key.second));
    else
      lines.push_back(fmt::format("{}: {} {}{}: {}", key.first, ranks.size() == 1 ? "task" : "tasks",
                                  RankList(ranks), label_, key.second));
  open_.clear();
  return lines;
}

}  // namespace msa::jobd
