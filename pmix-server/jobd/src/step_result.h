#pragma once
// How the tasks of a namespace ended: the code and the lines that srun would print. Pure.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "msa/base/messages.h"

namespace msa::jobd {

// 128 + N for a death by signal N, else the exit code.
std::int32_t CodeOf(const wire::TaskEnd& end);

// "0-3,7" of sorted or unsorted ranks.
std::string RankList(std::vector<std::uint32_t> ranks);

// Whether an end decides about the namespace's code: those that msa itself brought about do not. kLost: it
// does, and has no line: the node or its job daemon was lost, which another text says.
enum class Counted : std::uint8_t { kYes, kNo, kLost };

class StepResult {
 public:
  // `label` distinguishes a spawn in the lines: "" or " of spawn 2"; kScript says so instead of naming tasks.
  explicit StepResult(std::string label = {}) : label_(std::move(label)) {}
  static constexpr std::string_view kScript = "the batch script";

  void Add(const wire::TaskEnd& end, Counted counted);
  // Fixes the code, whatever the tasks' are (an abort's); the first one stays.
  void Force(std::int32_t code);

  // Highest of the counted tasks' codes, or the forced one.
  std::int32_t code() const noexcept { return forced_ ? forced_code_ : highest_; }
  std::uint32_t failed_count() const noexcept { return failed_count_; }
  // At most kMaxFailed, lowest ranks first.
  std::vector<wire::TaskEnd> failed() const;

  // Lines for failed tasks since the last call, equal ones of a node in one: "bn0: tasks 1-3: exited with
  // exit code 3", "cn0: task 3: Segmentation fault (core dumped)".
  std::vector<std::string> TakeLines();
  bool has_lines() const noexcept { return !open_.empty(); }

  static constexpr std::size_t kMaxFailed = 64;

 private:
  std::string label_;
  std::int32_t highest_ = 0;
  bool forced_ = false;
  std::int32_t forced_code_ = 0;
  std::uint32_t failed_count_ = 0;
  std::map<std::uint32_t, wire::TaskEnd> failed_;
  std::map<std::pair<std::string, std::string>, std::vector<std::uint32_t>>
      open_;  // (node, what happened) -> ranks
};

}  // namespace msa::jobd
