#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "msa/base/messages.h"

namespace msa::cli {

// Keeps the lines of several tasks whole: a record that ends within a line has its last part held back until
// the rest comes. With labels, "RANK: " (spawned tasks: "s1.RANK: ") stands before each line. One thread.
class LineSplitter {
 public:
  enum class Labels { kNo, kYes };
  // `tasks`: of the step, 0 if not known. One task alone has nothing held back unless it is labelled. Ranks
  // are padded with blanks to the width of the highest, as srun does.
  LineSplitter(Labels labels, std::uint32_t tasks);

  // What can be written now. A line longer than kMaxHeld is cut there.
  std::string Add(const wire::Output& record);
  // Parts of one stream that were there at the last call already and have not grown: a prompt, not a line
  // under way. Where other tasks have written meanwhile, parts that have not grown for kBusyRounds calls: the
  // rest of a line stands in a queue then. Never a part that ends at a multiple of kStdioBuffer, where stdio
  // has cut it. Nothing with labels.
  std::string Idle(wire::Stream stream);
  // All that is held of one stream; with labels each part gets a newline.
  std::string Rest(wire::Stream stream);
  // Parts are held that Idle would give out in time.
  bool waits_for_idle() const noexcept { return labels_ == Labels::kNo && prompts_ > 0; }

  static constexpr std::size_t kMaxHeld = std::size_t{1} << 20;
  static constexpr std::uint32_t kBusyRounds = 20;
  // Of glibc's stdio, on a pipe.
  static constexpr std::uint64_t kStdioBuffer = 4096;

 private:
  using Source = std::tuple<wire::Stream, std::uint32_t, std::uint32_t>;  // stream, spawn, rank
  struct Task {
    std::map<wire::Stream, std::uint64_t> bytes;
    std::uint64_t records = 0;
  };
  struct Part {
    std::string text;
    bool prompt = false;       // may be one; counted in prompts_
    std::uint32_t rounds = 0;  // calls of Idle since it has grown
    const Task* task = nullptr;
    std::uint64_t of_others = 0;  // records, when it has grown
  };
  using Held = std::map<Source, Part>;
  std::string Label(const Source& source) const;
  void MayBePrompt(Part& part, bool prompt);
  Held::iterator Drop(Held::iterator it);

  const Labels labels_;
  const std::size_t width_;
  bool alone_;
  Held held_;
  std::size_t prompts_ = 0;
  std::uint64_t records_ = 0;                                      // of all tasks
  std::map<std::pair<std::uint32_t, std::uint32_t>, Task> tasks_;  // by spawn and rank
};

}  // namespace msa::cli
