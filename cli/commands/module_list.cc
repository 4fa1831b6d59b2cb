#include "commands/invocation.h"
#include "commands/slurm.h"
#include "output/job_texts.h"

namespace msa::cli {

Result<int> ModuleList(const Args& args) {
  Invocation call({"msactl module list", "[OPTIONS]", "List the modules of the system."});
  call.WithFormat();
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {}));
  if (!go) return 0;
  MSA_ASSIGN_OR_RETURN(const BackendChoice choice, call.Choice());
  if (choice.slurm()) return SlurmModuleList(call, choice);
  MSA_ASSIGN_OR_RETURN(const auto client, call.Connect());
  MSA_ASSIGN_OR_RETURN(const std::vector<ModuleInfo> modules, client->ListModules());
  MSA_RETURN_IF_ERROR(call.Show(ModuleListing(modules)));
  return 0;
}

}  // namespace msa::cli
