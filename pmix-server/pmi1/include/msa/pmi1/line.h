#pragma once
// The lines of PMI-1: "cmd=put kvsname=k key=a value=b\n". The protocol has no standard; the closest to one
// is Flux RFC 13 (https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_13.html). Pure.

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "msa/base/status.h"

namespace msa::pmi1 {

// What hydra announces (get_maxes), and so what MPICH's buffers are known to hold.
inline constexpr std::size_t kMaxKvsName = 256;
inline constexpr std::size_t kMaxKey = 64;
inline constexpr std::size_t kMaxValue = 1024;
// Of a line with its newline. The longest are a put (some 1.4 KiB) and an argument of a spawn.
inline constexpr std::size_t kMaxLine = 8192;

// A command. The views are into the parsed text.
struct Line {
  std::string_view command;
  std::vector<std::pair<std::string_view, std::string_view>> fields;
  // The first field of that name.
  std::optional<std::string_view> Find(std::string_view key) const;
};

// `text` is without its newline. Fields are separated by spaces; "value" and "port", which come last, reach
// to the end of the line. kInvalidArgument: it does not begin with "cmd=", a word has no '=' or no name, or
// it holds a NUL.
Result<Line> ParseLine(std::string_view text);

}  // namespace msa::pmi1
