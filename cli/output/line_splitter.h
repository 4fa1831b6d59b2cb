#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>

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
  // under way. Nothing with labels.
  std::string Idle(wire::Stream stream);
  // All that is held of one stream; with labels each part gets a newline.
  std::string Rest(wire::Stream stream);
  // Parts are held that Idle would give out in time.
  bool waits_for_idle() const noexcept { return labels_ == Labels::kNo && !held_.empty(); }

  static constexpr std::size_t kMaxHeld = std::size_t{1} << 20;

 private:
  using Source = std::tuple<wire::Stream, std::uint32_t, std::uint32_t>;  // stream, spawn, rank
  struct Part {
    std::string text;
    bool grown = true;  // since the last Idle
  };
  std::string Label(const Source& source) const;

  const Labels labels_;
  const std::size_t width_;
  bool alone_;
  std::map<Source, Part> held_;
};

}  // namespace msa::cli
