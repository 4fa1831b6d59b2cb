#include "msa/pmi1/line.h"

#include <algorithm>

namespace msa::pmi1 {

std::optional<std::string_view> Line::Find(std::string_view key) const {
  const auto it = std::find_if(fields.begin(), fields.end(), [&](const auto& f) { return f.first == key; });
  if (it == fields.end()) return std::nullopt;
  return it->second;
}

Result<Line> ParseLine(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return Error(Code::kInvalidArgument, "a line holds a NUL");
  Line line;
  bool first = true;
  while (!text.empty()) {
    if (text.front() == ' ') {
      text.remove_prefix(1);
      continue;
    }
    const std::size_t equals = text.find('=');
    const std::size_t space = text.find(' ');
    if (equals == std::string_view::npos || equals == 0 || space < equals)
      return Error(Code::kInvalidArgument, "expected words of the form key=value, found '{}'",
                   text.substr(0, std::min<std::size_t>(space, 40)));
    const std::string_view key = text.substr(0, equals);
    const bool to_the_end = key == "value" || key == "port";
    const std::string_view value =
        text.substr(equals + 1, to_the_end || space == std::string_view::npos ? std::string_view::npos
                                                                              : space - equals - 1);
    if (first && key != "cmd")
      return Error(Code::kInvalidArgument, "expected 'cmd=' first, found '{}'", key.substr(0, 40));
    if (first)
      line.command = value;
    else
      line.fields.emplace_back(key, value);
    first = false;
    text.remove_prefix(equals + 1 + value.size());
  }
  if (first) return Error(Code::kInvalidArgument, "expected 'cmd=' first, found an empty line");
  return line;
}

}  // namespace msa::pmi1
