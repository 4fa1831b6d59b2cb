#include <time.h>

#include <array>
#include <charconv>
#include <optional>

#include "msa/base/clock.h"

#include "batch/wait_options.h"

namespace msa::cli {
namespace {

constexpr std::int64_t kSecond = 1000;
constexpr std::int64_t kDay = 24 * 3600;

// A number of `min` to `max` digits at the front of `text`, which is taken off.
std::optional<int> TakeNumber(std::string_view& text, std::size_t min, std::size_t max) {
  std::size_t digits = 0;
  while (digits < text.size() && digits < max && text[digits] >= '0' && text[digits] <= '9') ++digits;
  if (digits < min) return std::nullopt;
  int value = 0;
  std::from_chars(text.data(), text.data() + digits, value);
  text.remove_prefix(digits);
  return value;
}

bool Take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

struct Clock {
  int hour = 0;
  int minute = 0;
  int second = 0;
};
struct Day {
  int year = 0;
  int month = 0;  // 1 to 12
  int day = 0;
};

std::optional<Clock> TakeClock(std::string_view& text) {
  struct Named {
    std::string_view name;
    int hour;
  };
  for (const Named& named :
       {Named{"midnight", 0}, Named{"noon", 12}, Named{"fika", 15}, Named{"teatime", 16}})
    if (Take(text, named.name)) return Clock{named.hour, 0, 0};
  Clock out;
  const auto hour = TakeNumber(text, 1, 2);
  if (!hour || !Take(text, ":")) return std::nullopt;
  const auto minute = TakeNumber(text, 2, 2);
  if (!minute) return std::nullopt;
  out = {*hour, *minute, 0};
  if (Take(text, ":")) {
    const auto second = TakeNumber(text, 2, 2);
    if (!second) return std::nullopt;
    out.second = *second;
  }
  Take(text, " ");
  const bool morning = Take(text, "am");
  const bool afternoon = !morning && Take(text, "pm");
  if ((morning || afternoon) && (out.hour < 1 || out.hour > 12)) return std::nullopt;
  if (morning || afternoon) out.hour = out.hour % 12 + (afternoon ? 12 : 0);
  if (out.hour > 23 || out.minute > 59 || out.second > 59) return std::nullopt;
  return out;
}

bool Exists(const Day& day) {
  constexpr std::array<int, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (day.month < 1 || day.month > 12 || day.day < 1 || day.year < 1970 || day.year > 2199) return false;
  const bool leap = (day.year % 4 == 0 && day.year % 100 != 0) || day.year % 400 == 0;
  return day.day <= kDays[static_cast<std::size_t>(day.month - 1)] + (day.month == 2 && leap ? 1 : 0);
}

Day DayOf(std::time_t at) {
  std::tm tm{};
  ::localtime_r(&at, &tm);
  return {tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday};
}

// "2026-12-24", "12/24", "12/24/26", "today", "tomorrow".
std::optional<Day> TakeDay(std::string_view& text, std::time_t now) {
  if (Take(text, "today")) return DayOf(now);
  if (Take(text, "yesterday")) {
    Day day = DayOf(now);
    --day.day;
    return day;
  }
  if (Take(text, "tomorrow")) {
    Day day = DayOf(now);
    ++day.day;  // mktime carries it
    return day;
  }
  std::string_view rest = text;
  if (const auto year = TakeNumber(rest, 4, 4); year && Take(rest, "-")) {
    const auto month = TakeNumber(rest, 1, 2);
    if (!month || !Take(rest, "-")) return std::nullopt;
    const auto day = TakeNumber(rest, 1, 2);
    if (!day || !Exists({*year, *month, *day})) return std::nullopt;
    text = rest;
    return Day{*year, *month, *day};
  }
  rest = text;
  const auto month = TakeNumber(rest, 1, 2);
  if (!month || !Take(rest, "/")) return std::nullopt;
  const auto day = TakeNumber(rest, 1, 2);
  if (!day) return std::nullopt;
  Day out{DayOf(now).year, *month, *day};
  if (Take(rest, "/")) {
    const std::string_view before = rest;
    const auto year = TakeNumber(rest, 2, 4);
    if (!year) return std::nullopt;
    out.year = before.size() - rest.size() == 2 ? 2000 + *year : *year;
  }
  if (!Exists(out)) return std::nullopt;
  text = rest;
  return out;
}

std::optional<std::time_t> Moment(const Day& day, const Clock& clock, bool utc) {
  std::tm tm{};
  tm.tm_year = day.year - 1900;
  tm.tm_mon = day.month - 1;
  tm.tm_mday = day.day;
  tm.tm_hour = clock.hour;
  tm.tm_min = clock.minute;
  tm.tm_sec = clock.second;
  tm.tm_isdst = -1;
  const std::time_t at = utc ? ::timegm(&tm) : ::mktime(&tm);
  if (at < 0) return std::nullopt;
  return at;
}

// "+1hour", "+30", "-2days"; seconds.
std::optional<std::int64_t> TakeOffset(std::string_view text) {
  if (text.empty()) return 0;
  const std::int64_t sign = text[0] == '-' ? -1 : 1;
  if (!Take(text, "+") && !Take(text, "-")) return std::nullopt;
  const auto count = TakeNumber(text, 1, 8);
  if (!count) return std::nullopt;
  struct Unit {
    std::string_view name;
    std::int64_t seconds;
  };
  if (text.ends_with("s") && text.size() > 1) text.remove_suffix(1);
  for (const Unit& unit : {Unit{"", 1}, Unit{"second", 1}, Unit{"minute", 60}, Unit{"hour", 3600},
                           Unit{"day", kDay}, Unit{"week", 7 * kDay}})
    if (text == unit.name) return sign * *count * unit.seconds;
  return std::nullopt;
}

enum class Near { kFuture, kPast };

// Unix milliseconds.
std::optional<std::int64_t> Parse(std::string_view text, Instant now, Near near) {
  const std::time_t seconds = static_cast<std::time_t>(ToUnixMillis(now) / kSecond);
  if (Take(text, "now")) {
    const auto offset = TakeOffset(text);
    if (!offset) return std::nullopt;
    return ToUnixMillis(now) + *offset * kSecond;
  }
  std::optional<Day> day = TakeDay(text, seconds);
  if (day && text.size() > 1 && !Take(text, "t") && !Take(text, "-")) Take(text, " ");
  const bool has_day = day.has_value();
  Clock clock;
  if (!text.empty() || !has_day) {
    const auto taken = TakeClock(text);
    if (!taken) return std::nullopt;
    clock = *taken;
  }
  const bool utc = has_day && Take(text, "z");
  if (!text.empty()) return std::nullopt;
  if (!has_day) day = DayOf(seconds);
  auto at = Moment(*day, clock, utc);
  // Of a time of day the nearest in that direction.
  if (at && !has_day && (near == Near::kFuture ? *at <= seconds : *at > seconds)) {
    day->day += near == Near::kFuture ? 1 : -1;
    at = Moment(*day, clock, utc);
  }
  if (!at) return std::nullopt;
  return *at * kSecond;
}

}  // namespace

Result<std::int64_t> ParseBegin(std::string_view text, Instant now) {
  const std::string lower = Lower(text);
  if (const auto at = Parse(lower, now, Near::kFuture)) return *at <= ToUnixMillis(now) ? 0 : *at;
  return Error(
      Code::kInvalidArgument,
      "'{}' is no time to begin at; expected as now+1hour (seconds, minutes, hours, days, weeks), 16:00, "
      "noon, tomorrow, 12/24 or 2026-12-24T16:00",
      text);
}

Result<std::int64_t> ParsePast(std::string_view text, Instant now) {
  const std::string lower = Lower(text);
  if (const auto at = Parse(lower, now, Near::kPast); at && *at >= 0) return *at;
  return Error(
      Code::kInvalidArgument,
      "'{}' is no time; expected as now-2hours (seconds, minutes, hours, days, weeks), 16:00, yesterday, "
      "11/20 or 2026-11-20T16:00",
      text);
}

}  // namespace msa::cli
