#pragma once
// What `scontrol show node` and `show partition` say of one thing. Pure; any thread.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace msa::cli {

using ShownPairs = std::vector<std::pair<std::string, std::string>>;

// "Key=value" by "Key=value", in Slurm's order, without what has no value there. Of lines that begin with
// what operators write (Reason, Comment, Extra) or that hold blanks (OS) all of the line is the value.
ShownPairs ReadShownRecord(std::string_view text);

}  // namespace msa::cli
