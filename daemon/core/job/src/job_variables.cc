#include "msa/job/job_variables.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace msa {

std::vector<std::string> JobVariableLines(const JobVariables& job) {
  std::vector<std::string> modules;
  std::uint32_t tasks = 0;
  for (const JobVariables::Component& component : job.components) {
    tasks += component.ntasks;
    if (std::find(modules.begin(), modules.end(), component.module) == modules.end())
      modules.push_back(component.module);
  }
  std::vector<std::string> lines = {"MSA_JOB_NAME=" + job.name,
                                    "MSA_SUBMIT_DIR=" + job.submit_dir,
                                    fmt::format("MSA_NNODES={}", job.nnodes),
                                    fmt::format("MSA_NTASKS={}", tasks),
                                    fmt::format("MSA_MODULES={}", fmt::join(modules, ",")),
                                    fmt::format("MSA_HET_SIZE={}", job.components.size())};
  for (std::size_t i = 0; i < job.components.size(); ++i) {
    const JobVariables::Component& component = job.components[i];
    lines.push_back(fmt::format("MSA_NODELIST_HET_GROUP_{}={}", i, fmt::join(component.nodes, ",")));
    lines.push_back(fmt::format("MSA_NTASKS_HET_GROUP_{}={}", i, component.ntasks));
  }
  if (!job.nam_regions.empty()) lines.push_back(fmt::format("{}={}", kNamRegionsVariable, job.nam_regions));
  if (!job.gateways.empty()) lines.push_back(fmt::format("{}={}", kGatewaysVariable, job.gateways));
  return lines;
}

std::string NamRegionsText(const std::vector<wire::NamRegionBinding>& regions) {
  std::string out;
  for (const wire::NamRegionBinding& binding : regions)
    out += fmt::format("{}{}:{}", out.empty() ? "" : ",", binding.region,
                       Has(binding.rights, NamRights::kWrite) ? "rw" : "ro");
  return out;
}

bool IsJobVariable(std::string_view line) {
  static constexpr std::string_view kNames[] = {"MSA_JOB_NAME=",
                                                "MSA_SUBMIT_DIR=",
                                                "MSA_NNODES=",
                                                "MSA_NTASKS=",
                                                "MSA_MODULES=",
                                                "MSA_HET_SIZE=",
                                                "MSA_NODELIST_HET_GROUP_",
                                                "MSA_NTASKS_HET_GROUP_",
                                                "MSA_NAM_REGIONS=",
                                                "MSA_GATEWAYS="};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](std::string_view name) { return line.starts_with(name); });
}

}  // namespace msa
