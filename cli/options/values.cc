#include "options/values.h"

#include <signal.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

namespace msa::cli {
namespace {

constexpr std::uint64_t kMinute = 60;
constexpr std::uint64_t kHour = 60 * kMinute;
constexpr std::uint64_t kDay = 24 * kHour;
// 100 years: what fits into JobSpec.time_limit_s with room for sums.
constexpr std::uint64_t kMaxTimeLimit = 36500 * kDay;
constexpr std::uint32_t kMaxNodes = 1u << 20;

std::optional<std::uint64_t> Digits(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string Upper(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

// "a:b:c" as numbers; empty if any part is none.
std::vector<std::uint64_t> Fields(std::string_view text) {
  std::vector<std::uint64_t> out;
  for (;;) {
    const std::size_t colon = text.find(':');
    const auto value = Digits(text.substr(0, colon));
    // No field of a time has more than eight digits: sums below cannot overflow.
    if (!value || *value > 99'999'999) return {};
    out.push_back(*value);
    if (colon == std::string_view::npos) return out;
    text.remove_prefix(colon + 1);
  }
}

std::optional<std::uint64_t> TimeSeconds(std::string_view text) {
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    const auto days = Digits(text.substr(0, dash));
    const auto rest = Fields(text.substr(dash + 1));
    if (!days || *days > 99'999 || rest.empty() || rest.size() > 3) return std::nullopt;
    std::uint64_t seconds = *days * kDay + rest[0] * kHour;
    if (rest.size() > 1) seconds += rest[1] * kMinute;
    if (rest.size() > 2) seconds += rest[2];
    return seconds;
  }
  const auto fields = Fields(text);
  switch (fields.size()) {
    case 1:
      return fields[0] * kMinute;
    case 2:
      return fields[0] * kMinute + fields[1];
    case 3:
      return fields[0] * kHour + fields[1] * kMinute + fields[2];
    default:
      return std::nullopt;
  }
}

}  // namespace

Result<std::uint64_t> ParseNumber(std::string_view text, NumberRange range) {
  const auto value = Digits(text);
  if (value && *value >= range.min && *value <= range.max) return *value;
  return Error(Code::kInvalidArgument, "'{}' is not a number from {} to {}", text, range.min, range.max);
}

Result<NodeRange> ParseNodeRange(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto min = Digits(text.substr(0, dash));
  const auto max = dash == std::string_view::npos ? min : Digits(text.substr(dash + 1));
  if (!min || !max || *min == 0 || *max < *min || *max > kMaxNodes)
    return Error(Code::kInvalidArgument,
                 "'{}' is not a number of nodes; expected MIN or MIN-MAX with 1 <= MIN <= MAX <= {}", text,
                 kMaxNodes);
  return NodeRange{static_cast<std::uint32_t>(*min), static_cast<std::uint32_t>(*max)};
}

Result<std::uint32_t> ParseTimeLimit(std::string_view text) {
  const std::string upper = Upper(text);
  if (upper == "UNLIMITED" || upper == "INFINITE") return std::uint32_t{0};
  const auto seconds = TimeSeconds(text);
  if (!seconds || *seconds > kMaxTimeLimit)
    return Error(
        Code::kInvalidArgument,
        "'{}' is not a time limit; expected minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM, D-HH:MM:SS or UNLIMITED",
        text);
  return static_cast<std::uint32_t>(*seconds);
}

Result<Millis> ParseDuration(std::string_view text) {
  struct Unit {
    std::string_view name;
    std::uint64_t millis;
  };
  // "ms" before "s": the longer suffix is tried first.
  constexpr Unit kUnits[] = {{"ms", 1}, {"s", 1000}, {"m", kMinute * 1000}, {"h", kHour * 1000}, {"", 1000}};
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.name)) continue;
    const auto value = Digits(text.substr(0, text.size() - unit.name.size()));
    if (!value || *value > kMaxTimeLimit * 1000 / unit.millis) break;
    return Millis(static_cast<std::int64_t>(*value * unit.millis));
  }
  return Error(Code::kInvalidArgument,
               "'{}' is not a duration; expected seconds, or a number with ms, s, m or h, as 30 or 5m", text);
}

Result<int> ParseSignal(std::string_view text) {
  if (const auto number = Digits(text)) {
    if (*number >= 1 && *number <= static_cast<std::uint64_t>(SIGRTMAX)) return static_cast<int>(*number);
  } else {
    std::string name = Upper(text);
    if (name.starts_with("SIG")) name.erase(0, 3);
    for (int signal = 1; signal < NSIG; ++signal) {
      const char* abbreviation = ::sigabbrev_np(signal);
      if (abbreviation != nullptr && name == abbreviation) return signal;
    }
  }
  return Error(Code::kInvalidArgument,
               "'{}' is not a signal; expected a name or number, as TERM, SIGUSR1 or 9", text);
}

Result<JobId> ParseJobId(std::string_view text) {
  const auto value = Digits(text);
  if (value && *value > 0) return JobId(*value);
  return Error(Code::kInvalidArgument,
               "'{}' is not a job's id; expected a number from 1 on, see 'msactl job list'", text);
}

Result<std::uint64_t> ParseGrantId(std::string_view text) {
  const auto value = Digits(text);
  if (value && *value > 0) return *value;
  return Error(Code::kInvalidArgument,
               "'{}' is not a grant's id; expected a number from 1 on, see 'msactl alloc list'", text);
}

}  // namespace msa::cli
