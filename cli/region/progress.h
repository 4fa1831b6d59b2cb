#pragma once
// How far a transfer is, for people at a terminal.

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "msa/base/clock.h"

namespace msa::cli {

struct ProgressView {
  std::string what;  // "put a.bin"
  std::uint64_t done = 0;
  std::optional<std::uint64_t> total;
  std::uint64_t per_second = 0;  // bytes; 0: not known yet
};
// "put a.bin  512M of 1G  50%  1.2G/s  0.4s left". Pure.
std::string ProgressText(const ProgressView& view);

// Bytes a second over the last seconds.
class RateWindow {
 public:
  void Add(SteadyTime now, std::uint64_t done);
  // 0: not known yet.
  std::uint64_t per_second() const;

 private:
  std::deque<std::pair<SteadyTime, std::uint64_t>> samples_;
};

// One line that is written over and over. One thread.
class Progress {
 public:
  // `write`: to the terminal; none: nothing is ever written.
  using Writer = std::function<void(std::string_view)>;
  explicit Progress(Writer write = nullptr, std::function<SteadyTime()> now = &SteadyNow);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // A new line of progress takes the place of the last. `done` bytes were there before: they do not count for
  // the rate.
  void Begin(std::string what, std::optional<std::uint64_t> total, std::uint64_t done = 0);
  // At most five times a second anything is written.
  void Advance(std::uint64_t done);
  // The line is gone; before other output.
  void Clear();

 private:
  const Writer write_;
  const std::function<SteadyTime()> now_;
  ProgressView view_;
  RateWindow rate_;
  std::optional<SteadyTime> written_;
};

enum class Quiet { kNo, kYes };
// To standard error if that is a terminal and `quiet` is kNo, else nothing.
Progress::Writer TerminalWriter(Quiet quiet);

}  // namespace msa::cli
