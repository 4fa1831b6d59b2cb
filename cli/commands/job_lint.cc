#include "msa/adapters/config/topology_file.h"

#include "batch/script_file.h"
#include "commands/invocation.h"
#include "commands/print.h"
#include "lint/traps.h"

namespace msa::cli {

Result<int> JobLint(const Args& args) {
  Invocation call(
      {"msactl job lint", "[OPTIONS] SCRIPT",
       "Look through a batch script for sbatch for what Slurm takes and does not do: options of the "
       "wrong\ncomponent, steps on the first component alone, jobs that wait for ever. Reads the text "
       "alone; '-' is\nstandard input. Exit code 1 if something is found."});
  call.WithFormat();
  std::string topology_file;
  call.options().Text(0, "topology", "FILE", "judge modules and numbers of nodes by this topology file",
                      &topology_file);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.min = 1, .max = 1, .what = "a script"}));
  if (!go) return 0;
  std::optional<SystemTopology> topology;
  if (!topology_file.empty()) {
    MSA_ASSIGN_OR_RETURN(topology, LoadTopologyFile(topology_file));
  }
  const std::string& path = call.operands().front();
  MSA_ASSIGN_OR_RETURN(const std::string script, ReadScriptFile(path));
  const std::vector<LintFinding> findings = FindTraps(script, topology ? &*topology : nullptr);
  if (call.people()) {
    MSA_RETURN_IF_ERROR(Print(ShowLint(path, findings)));
  } else {
    MSA_RETURN_IF_ERROR(call.Show(LintListing(path, findings)));
  }
  return findings.empty() ? 0 : 1;
}

}  // namespace msa::cli
