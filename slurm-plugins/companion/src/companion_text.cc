#include "companion_text.h"

#include <time.h>

#include <fmt/format.h>

#include "reason_text.h"

namespace msa::companion {

std::string SpanText(Millis span) {
  // A wait has lost some on its way here: people know it by the number that they gave.
  if (span.count() >= 1000) span = Millis((span.count() + 50) / 100 * 100);
  if (span.count() % 1000 == 0) return fmt::format("{} s", span.count() / 1000);
  return fmt::format("{} ms", span.count());
}

std::string PendingText(std::string_view reason, std::string_view detail) {
  if (detail.empty()) return ReasonText(reason);
  return fmt::format("{} ({})", ReasonText(reason), detail);
}

std::string ExpectedText(std::uint64_t expected, std::uint64_t now) {
  constexpr std::uint64_t kFar = 60ULL * 24 * 3600;
  if (expected <= now || expected - now > kFar) return "";
  const auto at = static_cast<time_t>(expected);
  tm parts{};
  if (gmtime_r(&at, &parts) == nullptr) return "";
  char text[32];
  strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return fmt::format("; Slurm expects to start it at {}", text);
}

std::string EndText(std::string_view state) {
  if (state == "CANCELLED") return "it was cancelled (scancel)";
  if (state == "TIMEOUT") return "its time limit has passed";
  if (state == "NODE_FAIL") return "a node of it failed";
  if (state == "PREEMPTED") return "it was preempted";
  if (state == "DEADLINE") return "its deadline has passed";
  if (state.empty()) return "Slurm does not know it any more";
  return fmt::format("Slurm ended it as {}", state);
}

}  // namespace msa::companion
