#pragma once
// The traps of batch scripts on a modular system that Slurm does not tell of: it takes them, and the job
// waits for ever, runs elsewhere, or without msa. Pure; any thread.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msa/topology/topology.h"

#include "output/listing.h"

namespace msa::cli {

struct LintFinding {
  std::size_t line = 0;
  std::string trap;     // one word, for machines: "missing-het-group"
  std::string what;     // with the value
  std::string why;      // what would happen
  std::string instead;  // what to write
};

// In the order of lines. `topology` null: node counts and names of modules are not judged.
std::vector<LintFinding> FindTraps(std::string_view script, const SystemTopology* topology);

// For people: "FILE:LINE: what, why; write: instead", one a line.
std::string ShowLint(const std::string& file, const std::vector<LintFinding>& findings);
Listing LintListing(const std::string& file, const std::vector<LintFinding>& findings);

}  // namespace msa::cli
