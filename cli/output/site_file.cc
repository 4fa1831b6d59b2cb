#include "output/site_file.h"

#include "msa/topology/size_text.h"

namespace msa::cli {
namespace {

// In a unit that srun's sizes have; what does not make a whole KiB cannot be asked for either.
std::string SlurmSize(std::uint64_t bytes) {
  constexpr std::uint64_t kTebi = std::uint64_t{1} << 40;
  if (bytes > 0 && bytes % kTebi == 0) return fmt::format("{}T", bytes / kTebi);
  return SizeText(Bytes(bytes / 1024 * 1024));
}

}  // namespace

std::string SiteFileText(const SystemTopology& topology, Bytes granule) {
  std::string out =
      "# For job_submit_msa.so and job_submit.lua, made by 'msactl admin job-submit'. A module is the "
      "partition of\n"
      "# its name, which holds its nodes and no others; else write partition=NAME, or feature=NAME.\n";
  std::uint64_t nam = 0;
  std::size_t gateways = 0;
  for (const Module& module : topology.modules) {
    const std::vector<std::size_t> nodes = topology.NodesOf(module.id);
    out +=
        fmt::format("module {} id={} kind={} nodes={}\n", module.name, module.id, module.kind, nodes.size());
    if (module.kind == kGatewayKind) gateways += nodes.size();
  }
  for (const NodeSpec& node : topology.nodes) nam += node.nam.value;
  std::string licences;
  if (nam > 0) {
    out += fmt::format("nam bytes={} granule={}\n", SlurmSize(nam), SlurmSize(granule.value));
    if (nam >= granule.value) licences = fmt::format("nam:{}", nam / granule.value);
  }
  if (gateways > 0) {
    out += fmt::format("gateways nodes={}\n", gateways);
    licences += fmt::format("{}gateway:{}", licences.empty() ? "" : ",", gateways);
  }
  out += "#\n# slurm.conf:\n#   JobSubmitPlugins=msa\n";
  if (!licences.empty()) out += fmt::format("#   Licenses={}\n", licences);
  return out;
}

}  // namespace msa::cli
