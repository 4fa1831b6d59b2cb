#include "output/text.h"

#include <algorithm>
#include <array>
#include <ctime>

#include <fmt/format.h>

namespace msa::cli {
namespace {

constexpr char32_t kReplacement = 0xfffd;

// Length of the character whose first byte is `lead`, 0 if none starts so.
std::size_t SequenceLength(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return 2;
  if (lead >= 0xe0 && lead < 0xf0) return 3;
  if (lead >= 0xf0 && lead < 0xf5) return 4;
  return 0;
}

bool IsValid(char32_t c, std::size_t length) {
  constexpr std::array<char32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  return c >= kLeast[length] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
}

// Wide in every terminal: Hangul, CJK, full-width forms, emoji.
bool IsWide(char32_t c) {
  return (c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) || (c >= 0xac00 && c <= 0xd7a3) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
         (c >= 0xffe0 && c <= 0xffe6) || (c >= 0x1f300 && c <= 0x1faff) || (c >= 0x20000 && c <= 0x3fffd);
}

bool IsCombining(char32_t c) {
  return (c >= 0x300 && c <= 0x36f) || (c >= 0x200b && c <= 0x200f) || c == 0xfe0f;
}

}  // namespace

std::u32string DecodeUtf8(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = SequenceLength(lead);
    char32_t c = length <= 1 ? lead : lead & (0xffU >> (length + 1));
    std::size_t have = 1;
    while (have < length && i + have < text.size() &&
           (static_cast<unsigned char>(text[i + have]) & 0xc0) == 0x80)
      c = c << 6 | (static_cast<unsigned char>(text[i + have++]) & 0x3f);
    const bool valid = length > 0 && have == length && IsValid(c, length);
    out.push_back(valid ? c : kReplacement);
    i += valid ? length : 1;
  }
  return out;
}

void AppendUtf8(std::string& out, char32_t c) {
  const auto byte = [&out](char32_t value) { out += static_cast<char>(value); };
  if (c < 0x80) {
    byte(c);
  } else if (c < 0x800) {
    byte(0xc0 | c >> 6);
    byte(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    byte(0xe0 | c >> 12);
    byte(0x80 | (c >> 6 & 0x3f));
    byte(0x80 | (c & 0x3f));
  } else {
    byte(0xf0 | c >> 18);
    byte(0x80 | (c >> 12 & 0x3f));
    byte(0x80 | (c >> 6 & 0x3f));
    byte(0x80 | (c & 0x3f));
  }
}

std::string Printable(std::string_view text) {
  std::string out;
  for (const char32_t c : DecodeUtf8(text)) {
    const bool control =
        c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
    AppendUtf8(out, control ? U'?' : c);
  }
  return out;
}

std::size_t DisplayWidth(std::string_view text) {
  std::size_t width = 0;
  for (const char32_t c : DecodeUtf8(text)) width += IsCombining(c) ? 0 : IsWide(c) ? 2 : 1;
  return width;
}

std::string ShowDuration(Millis duration) {
  const std::int64_t ms = std::max<std::int64_t>(duration.count(), 0);
  const std::int64_t s = ms / 1000;
  // Two units, the second one only if it says something.
  const auto show = [](std::int64_t big, char unit, std::int64_t small, char small_unit) {
    return small == 0 ? fmt::format("{}{}", big, unit)
                      : fmt::format("{}{} {}{}", big, unit, small, small_unit);
  };
  if (ms < 1000) return fmt::format("{}ms", ms);
  if (s < 60) return ms % 1000 < 100 ? fmt::format("{}s", s) : fmt::format("{}.{}s", s, ms % 1000 / 100);
  if (s < 3600) return show(s / 60, 'm', s % 60, 's');
  if (s < 86400) return show(s / 3600, 'h', s % 3600 / 60, 'm');
  return show(s / 86400, 'd', s % 86400 / 3600, 'h');
}

std::string ShowTimeLimit(std::uint32_t seconds) {
  if (seconds == 0) return "unlimited";
  const std::uint32_t days = seconds / 86400;
  const std::uint32_t hours = seconds % 86400 / 3600;
  const std::string rest = fmt::format("{:02}:{:02}", seconds % 3600 / 60, seconds % 60);
  if (days > 0) return fmt::format("{}-{:02}:{}", days, hours, rest);
  return hours > 0 ? fmt::format("{:02}:{}", hours, rest) : rest;
}

std::string ShowBytes(std::uint64_t bytes) {
  constexpr std::string_view kUnits = "BKMGTPE";
  std::size_t unit = 0;
  std::uint64_t whole = bytes;
  std::uint64_t tenths = 0;
  while (whole >= 1024 && unit + 1 < kUnits.size()) {
    tenths = whole % 1024 * 10 / 1024;
    whole /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{}", bytes);
  return whole < 10 && tenths > 0 ? fmt::format("{}.{}{}", whole, tenths, kUnits[unit])
                                  : fmt::format("{}{}", whole, kUnits[unit]);
}

std::string ShowTime(std::int64_t unix_ms) {
  if (unix_ms == 0) return "-";
  const std::time_t seconds = unix_ms / 1000;
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string UtcTime(std::int64_t unix_ms) {
  if (unix_ms == 0) return "";
  const std::time_t seconds = unix_ms / 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, unix_ms % 1000);
}

std::string Count(std::uint64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string ShellWords(const std::vector<std::string>& words) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      out += word;
      continue;
    }
    out += '\'';
    for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    out += '\'';
  }
  return out;
}

}  // namespace msa::cli
