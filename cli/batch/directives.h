#pragma once
// The lines of a batch script that are options for its submission, as sbatch reads them. Pure; any thread.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "msa/base/status.h"

namespace msa::cli {

enum class Dialect { kMsa, kSbatch };

// One "#MSA" or "#SBATCH" line before the first command.
struct Directive {
  std::size_t line = 0;  // from 1
  Dialect dialect = Dialect::kMsa;
  std::vector<std::string> words;
};

struct ScriptHead {
  std::vector<Directive> directives;
  // "FILE:LINE: ..." for lines that look like options and are none of ours: #BB, #DW, #NAM, or ones that
  // stand behind the first command.
  std::vector<std::string> warnings;
};

// `file` is the script's name in messages. kInvalidArgument: an empty text, no "#!" line, line ends of
// Windows, a zero byte, a text beyond kMaxScriptBytes, a quote that is not closed.
Result<ScriptHead> ReadDirectives(std::string_view file, std::string_view text);

// Words separated by blanks; '...' holds everything as it is, a backslash takes the meaning from the next
// character elsewhere, also in "..."; a '#' that begins a word begins a comment. kInvalidArgument: a quote
// that is not closed, a backslash at the end.
Result<std::vector<std::string>> SplitDirective(std::string_view text);

}  // namespace msa::cli
