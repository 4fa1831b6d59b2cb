// Any text is a script that 'msactl job lint' reads to its end: findings stand in its lines, with all their
// texts, in the order of lines.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "lint/traps.h"

namespace {

msa::SystemTopology Topology() {
  msa::SystemTopology out;
  out.modules = {{msa::ModuleId(0), "cluster", "cluster"}, {msa::ModuleId(1), "booster", "booster"}};
  msa::NodeSpec node;
  node.name = "cn0";
  node.nam = msa::Bytes(1 << 20);
  out.nodes = {node};
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const msa::SystemTopology topology = Topology();
  const std::string_view script(reinterpret_cast<const char*>(data), size);
  const auto lines = static_cast<std::size_t>(std::count(script.begin(), script.end(), '\n')) + 1;
  for (const msa::SystemTopology* known : {static_cast<const msa::SystemTopology*>(nullptr), &topology}) {
    std::size_t last = 1;
    const auto findings = msa::cli::FindTraps(script, known);
    for (const msa::cli::LintFinding& finding : findings) {
      if (finding.line < last || finding.line > lines) std::abort();
      last = finding.line;
      if (finding.trap.empty() || finding.what.empty() || finding.why.empty() || finding.instead.empty())
        std::abort();
    }
    if (msa::cli::ShowLint("job.sh", findings).empty()) std::abort();
  }
  return 0;
}
