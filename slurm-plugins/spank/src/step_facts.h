#pragma once
// What Slurm tells a plugin of a step, in texts, made into SlurmStepBegin. Pure.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msa/base/slurm_messages.h"
#include "msa/base/status.h"

namespace msa::spank {

// A variable of the step's environment; none: not set.
using Lookup = std::function<std::optional<std::string>(const char* name)>;

// What spank_get_item gives.
struct StepItems {
  std::uint32_t component_job = 0;
  std::uint32_t step = 0;
  std::uint32_t local_tasks = 0;
  std::uint32_t restart_count = 0;
  std::string alloc_cores;  // "0-1,4"
  std::string slurm_version;
};

// "2(x2),1" -> 2 2 1. kInvalidArgument.
Result<std::vector<std::uint32_t>> ExpandTaskCounts(std::string_view text);
// "0-1,4" -> 0 1 4. kInvalidArgument.
Result<std::vector<std::uint16_t>> ExpandCores(std::string_view text);

// The node's name as Slurm has it, which need not be the host's: the last part of SLURM_TOPOLOGY_ADDR, whose
// SLURM_TOPOLOGY_ADDR_PATTERN says how many switches stand before it. Empty: not set.
std::string NodeName(const Lookup& environment);

// Scripts (batch, interactive) are steps of one task on this node. kInvalidArgument: Slurm says what is not
// understood; the text names it.
Result<wire::SlurmStepBegin> ReadStep(const StepItems& items, const Lookup& environment,
                                      const std::string& node);

// Step ids as Slurm numbers those that are not a user's (slurm/slurm.h: SLURM_BATCH_SCRIPT,
// SLURM_EXTERN_CONT, SLURM_INTERACTIVE_STEP).
inline constexpr std::uint32_t kBatchScript = 0xfffffffb, kExternStep = 0xfffffffc,
                               kInteractiveStep = 0xfffffffa;
inline bool IsScript(std::uint32_t step) { return step == kBatchScript || step == kInteractiveStep; }

}  // namespace msa::spank
