#pragma once
// What a batch script, the command of an allocation and their steps are told of their job by MSA_*.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "msa/base/nam_region.h"

namespace msa {

struct JobVariables {
  struct Component {
    std::string module;
    std::vector<std::string> nodes;
    std::uint32_t ntasks = 0;
  };
  std::string name;        // of the job
  std::string submit_dir;  // absolute
  std::uint32_t nnodes = 0;
  std::vector<Component> components;
  std::string nam_regions;  // NamRegionsText of --nam-region
  std::string gateways;     // "gw0,gw1"
};

// "field:ro,mesh:rw": MSA_NAM_REGIONS. Empty if there is none.
inline constexpr std::string_view kNamRegionsVariable = "MSA_NAM_REGIONS";
// "gw0,gw1": the nodes that a job has by --gateways.
inline constexpr std::string_view kGatewaysVariable = "MSA_GATEWAYS";
std::string NamRegionsText(const std::vector<wire::NamRegionBinding>& regions);

// "MSA_JOB_NAME=...", MSA_SUBMIT_DIR, MSA_NNODES, MSA_NTASKS, MSA_MODULES, MSA_HET_SIZE and, for each
// component i, MSA_NODELIST_HET_GROUP_i and MSA_NTASKS_HET_GROUP_i; MSA_NAM_REGIONS and MSA_GATEWAYS if there
// are any. Lists are separated by commas.
std::vector<std::string> JobVariableLines(const JobVariables& job);

// True if the line "K=V" sets one of these: of an outer job, in the environment of a submission.
bool IsJobVariable(std::string_view line);

}  // namespace msa
