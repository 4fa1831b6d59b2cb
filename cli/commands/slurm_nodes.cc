#include "backend/slurm_nodes.h"

#include <algorithm>

#include "msa/topology/suggest.h"

#include "commands/node_names.h"
#include "commands/print.h"
#include "commands/slurm.h"
#include "commands/slurm_queries.h"
#include "output/job_texts.h"

namespace msa::cli {
namespace {

Result<MsaNodes> AskMsa(const std::string& dir) {
  MSA_ASSIGN_OR_RETURN(const auto client, ControllerBeside(dir));
  MsaNodes out;
  out.answers = true;
  MSA_ASSIGN_OR_RETURN(out.nodes, client->ListNodes("", {}));
  MSA_ASSIGN_OR_RETURN(out.modules, client->ListModules());
  return out;
}

Result<SlurmSays<SlurmNodes>> AskBoth(const Invocation& call, const BackendChoice& choice) {
  SlurmSays<SlurmNodes> out;
  MSA_ASSIGN_OR_RETURN(const auto nodes, AskForNodes(choice));
  out.exit_code = nodes.exit_code;
  if (out.exit_code != 0) return out;
  MSA_ASSIGN_OR_RETURN(const auto jobs, AskForJobs(choice, {}));
  out.exit_code = jobs.exit_code;
  if (out.exit_code != 0) return out;
  Result<MsaNodes> msa = AskMsa(call.dir());
  if (!msa.ok() && msa.status().code() != Code::kFailedPrecondition && call.people())
    PrintNote(fmt::format("shown without what msa itself knows: {}", msa.status().message()));
  MSA_ASSIGN_OR_RETURN(out.value, ReadSlurmNodes(nodes.value, jobs.value, msa.ok() ? *msa : MsaNodes{}));
  return out;
}

bool IsIn(const NodeInfo& node, const ModuleInfo& module) {
  const std::vector<std::string>& in = node.slurm->partitions;
  return node.module == module.name || std::find(in.begin(), in.end(), module.name) != in.end();
}

// Modules that a name, a kind or an id means.
Result<std::vector<ModuleInfo>> Chosen(const std::vector<ModuleInfo>& modules, const std::string& selector) {
  std::vector<ModuleInfo> out;
  std::vector<std::string> names;
  for (const ModuleInfo& module : modules) {
    names.push_back(module.name);
    if (module.name == selector) return std::vector<ModuleInfo>{module};
    const bool known = module.slurm->known_to_msa;
    if (known && (module.kind == selector || fmt::format("{}", module.id) == selector)) out.push_back(module);
  }
  if (out.empty())
    return Error(Code::kNotFound, "no module '{}'; {}there are {}", selector, DidYouMean(selector, names),
                 ListNames(names));
  return out;
}

Status KeepNamed(std::vector<NodeInfo>& nodes, const std::vector<std::string>& names) {
  std::vector<NodeInfo> out;
  for (const std::string& name : names) {
    const auto it =
        std::find_if(nodes.begin(), nodes.end(), [&](const NodeInfo& node) { return node.name == name; });
    if (it == nodes.end()) return Error(Code::kNotFound, "no node '{}'; see 'msactl node list'", name);
    out.push_back(*it);
  }
  if (!names.empty()) nodes = std::move(out);
  return Status::Ok();
}

}  // namespace

Result<int> SlurmModuleList(const Invocation& call, const BackendChoice& choice) {
  MSA_ASSIGN_OR_RETURN(const auto says, AskBoth(call, choice));
  if (says.exit_code != 0) return says.exit_code;
  MSA_RETURN_IF_ERROR(call.Show(ModuleListing(says.value.modules)));
  return 0;
}

Result<int> SlurmNodeList(const Invocation& call, const BackendChoice& choice, const std::string& module) {
  MSA_ASSIGN_OR_RETURN(const std::vector<std::string> names, ExpandNodeNames(call.operands()));
  MSA_ASSIGN_OR_RETURN(const auto says, AskBoth(call, choice));
  if (says.exit_code != 0) return says.exit_code;
  std::vector<NodeInfo> nodes = says.value.nodes;
  if (!module.empty()) {
    MSA_ASSIGN_OR_RETURN(const std::vector<ModuleInfo> chosen, Chosen(says.value.modules, module));
    std::erase_if(nodes, [&](const NodeInfo& node) {
      return std::none_of(chosen.begin(), chosen.end(),
                          [&](const ModuleInfo& one) { return IsIn(node, one); });
    });
  }
  MSA_RETURN_IF_ERROR(KeepNamed(nodes, names));
  MSA_RETURN_IF_ERROR(call.Show(NodeListing(nodes)));
  return 0;
}

}  // namespace msa::cli
