#pragma once
// Texts for people. Pure unless said; any thread.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "msa/base/ids.h"

namespace msa::cli {

// Each malformed byte becomes U+FFFD.
std::u32string DecodeUtf8(std::string_view text);
void AppendUtf8(std::string& out, char32_t c);

// Fit for a terminal in one line: control characters, which a job's name may hold, become '?', malformed
// bytes U+FFFD.
std::string Printable(std::string_view text);
// Columns that a printable text takes; East Asian wide characters take two.
std::size_t DisplayWidth(std::string_view text);

// "3d 4h", "2h 5m", "4m 10s", "12.3s", "850ms".
std::string ShowDuration(Millis duration);
// "1-02:03:04", "02:03", as srun takes it; "unlimited" for 0.
std::string ShowTimeLimit(std::uint32_t seconds);
// "16G", "1.5M", "0".
std::string ShowBytes(std::uint64_t bytes);
// "2026-11-21 10:15:03" in local time (reads TZ); "-" for 0.
std::string ShowTime(std::int64_t unix_ms);
// "2026-11-21T10:15:03.250Z"; "" for 0.
std::string UtcTime(std::int64_t unix_ms);
// "1 node", "2 nodes".
std::string Count(std::uint64_t n, std::string_view noun);
// A command as it could be typed.
std::string ShellWords(const std::vector<std::string>& words);

}  // namespace msa::cli
