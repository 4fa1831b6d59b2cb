#include "backend/shown_record.h"

#include <algorithm>
#include <array>

#include "backend/records.h"

namespace msa::cli {
namespace {

constexpr std::array<std::string_view, 4> kFreeTexts = {"OS", "Reason", "Comment", "Extra"};

bool IsKey(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == ':' || c == '/';
  });
}

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

void Add(std::string_view key, std::string_view value, ShownPairs* out) {
  const std::string_view given = Given(Trimmed(value));
  if (!given.empty() && given != "n/s") out->emplace_back(key, given);
}

// Where the next " Key=" begins, or the end.
std::size_t NextPair(std::string_view line) {
  for (std::size_t blank = line.find(' '); blank != std::string_view::npos;
       blank = line.find(' ', blank + 1)) {
    const std::string_view word = line.substr(blank + 1);
    if (const std::size_t equals = word.find('=');
        equals != std::string_view::npos && IsKey(word.substr(0, equals)))
      return blank;
  }
  return line.size();
}

void ReadLine(std::string_view line, ShownPairs* out) {
  line = Trimmed(line);
  while (!line.empty()) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos || !IsKey(line.substr(0, equals))) return;
    const std::string_view key = line.substr(0, equals);
    const bool free = std::find(kFreeTexts.begin(), kFreeTexts.end(), key) != kFreeTexts.end();
    const std::size_t end = free ? line.size() : NextPair(line);
    Add(key, line.substr(equals + 1, end - equals - 1), out);
    line = Trimmed(line.substr(end));
  }
}

}  // namespace

ShownPairs ReadShownRecord(std::string_view text) {
  ShownPairs out;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    ReadLine(line, &out);
  }
  return out;
}

}  // namespace msa::cli
