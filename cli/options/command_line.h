#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "msa/base/status.h"

namespace msa::cli {

// The words of one line, quoted as in a POSIX shell: '...' holds everything as it is, in "..." a backslash
// takes the meaning from " \ $ and `, elsewhere from any character; a '#' that begins a word begins a
// comment. Nothing is expanded: $ * ? ~ stand for themselves. Empty: a line without a word. kInvalidArgument:
// a quote that is not closed, a backslash at the end, or an unquoted | & ; < >, for which a shell would be
// needed.
Result<std::vector<std::string>> SplitCommandLine(std::string_view line);

}  // namespace msa::cli
