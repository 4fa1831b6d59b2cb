#pragma once
// Slurm's nodes and partitions, as sinfo lists them, turned into nodes and modules as msactl shows them.
// Pure; any thread.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msa/base/status.h"

#include "backend/slurm_jobs.h"
#include "client/types.h"

namespace msa::cli {

// The names of sinfo's fields (-N -O), in the order in which records are read. One record for each node and
// partition of it.
std::span<const std::string_view> SlurmNodeFields();

struct SlurmNodes {
  std::vector<NodeInfo> nodes;      // in sinfo's order
  std::vector<ModuleInfo> modules;  // partitions, likewise
};
// What msa's controller knows, so that names of modules are its own; nothing if it does not answer.
struct MsaNodes {
  bool answers = false;
  std::vector<NodeInfo> nodes;
  std::vector<ModuleInfo> modules;
};
// `rows`: jobs that hold nodes. Nodes and modules that msa alone knows (network attached memory) stand last.
// kDataLoss: a record without a node's name.
Result<SlurmNodes> ReadSlurmNodes(const std::vector<std::vector<std::string>>& records,
                                  const std::vector<SlurmRow>& rows, const MsaNodes& msa);

}  // namespace msa::cli
