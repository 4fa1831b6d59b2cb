#include "region/progress.h"

#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "output/text.h"

namespace msa::cli {
namespace {

// Faster is not readable.
constexpr Millis kPause{200};
// Long enough to be calm, short enough to notice that a server has gone.
constexpr Millis kWindow{5000};

}  // namespace

std::string ProgressText(const ProgressView& view) {
  std::string out = view.what + "  " + ShowBytes(view.done);
  if (view.total) {
    // 100 % only when it is.
    const auto percent = *view.total == 0 ? 100U
                                          : static_cast<unsigned>(static_cast<double>(view.done) * 100.0 /
                                                                  static_cast<double>(*view.total));
    out += fmt::format(" of {}  {}%", ShowBytes(*view.total),
                       view.done < *view.total ? std::min(percent, 99U) : 100U);
  }
  if (view.per_second == 0) return out;
  out += fmt::format("  {}/s", ShowBytes(view.per_second));
  if (!view.total || view.done >= *view.total) return out;
  const double seconds = static_cast<double>(*view.total - view.done) / static_cast<double>(view.per_second);
  // Beyond ten years it means nothing.
  const auto left = Millis(static_cast<std::int64_t>(std::min(seconds, 3.2e8) * 1000.0));
  return out + "  " + ShowDuration(left) + " left";
}

void RateWindow::Add(SteadyTime now, std::uint64_t done) {
  samples_.emplace_back(now, done);
  while (samples_.size() > 2 && now - samples_[1].first >= kWindow) samples_.pop_front();
}

std::uint64_t RateWindow::per_second() const {
  if (samples_.size() < 2) return 0;
  const auto& [from, before] = samples_.front();
  const auto& [to, after] = samples_.back();
  const double seconds = std::chrono::duration<double>(to - from).count();
  if (seconds <= 0 || after <= before) return 0;
  return static_cast<std::uint64_t>(static_cast<double>(after - before) / seconds);
}

Progress::Progress(Writer write, std::function<SteadyTime()> now)
    : write_(std::move(write)), now_(std::move(now)) {}

Progress::~Progress() { Clear(); }

void Progress::Begin(std::string what, std::optional<std::uint64_t> total, std::uint64_t done) {
  view_ = {std::move(what), done, total, 0};
  rate_ = {};
  if (!write_) return;
  rate_.Add(now_(), done);
}

void Progress::Advance(std::uint64_t done) {
  view_.done = done;
  if (!write_) return;
  const SteadyTime now = now_();
  if (written_ && now - *written_ < kPause) return;
  written_ = now;
  rate_.Add(now, done);
  view_.per_second = rate_.per_second();
  // Back to the line's begin, and nothing right of the text.
  write_("\r" + Printable(ProgressText(view_)) + "\x1b[K");
}

void Progress::Clear() {
  if (!written_) return;
  written_.reset();
  write_("\r\x1b[K");
}

Progress::Writer TerminalWriter(Quiet quiet) {
  if (quiet == Quiet::kYes || ::isatty(STDERR_FILENO) == 0) return nullptr;
  return [](std::string_view text) {
    // Nobody is harmed if the terminal has gone.
    (void)!::write(STDERR_FILENO, text.data(), text.size());
  };
}

}  // namespace msa::cli
