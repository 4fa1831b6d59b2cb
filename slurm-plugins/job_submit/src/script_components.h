#pragma once
// What a batch script of a heterogeneous job says of msa's options by component. Slurm hands the options of a
// plugin over from the first component alone; those of the others are seen in the text only. Pure.

#include <string>
#include <string_view>
#include <vector>

namespace msa::job_submit {

struct ScriptOption {
  std::size_t component = 0;
  std::string name;  // "--module"
  std::string value;
};

// --module, --nam and --gateways of "#SBATCH" lines before the first command, in their order.
std::vector<ScriptOption> ReadScriptOptions(std::string_view script);

}  // namespace msa::job_submit
