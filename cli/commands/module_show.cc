#include <algorithm>

#include "msa/topology/suggest.h"

#include "commands/invocation.h"
#include "commands/slurm.h"
#include "output/job_texts.h"

namespace msa::cli {
namespace {

// By name, else by id, else by kind if one module only is of that kind: as the controller reads -m.
Result<ModuleInfo> SelectModule(const std::vector<ModuleInfo>& modules, const std::string& selector) {
  std::vector<std::string> names;
  std::vector<std::string> of_kind;
  const ModuleInfo* found = nullptr;
  for (const ModuleInfo& module : modules) {
    if (module.name == selector) return module;
    if (fmt::format("{}", module.id) == selector) found = &module;
    names.push_back(module.name);
  }
  if (found != nullptr) return *found;
  for (const ModuleInfo& module : modules) {
    if (module.kind != selector) continue;
    of_kind.push_back(module.name);
    found = &module;
  }
  if (of_kind.size() == 1) return *found;
  if (of_kind.size() > 1)
    return Error(Code::kInvalidArgument, "'{}' is the kind of several modules: {}; name one", selector,
                 ListNames(of_kind));
  return Error(Code::kNotFound, "no module '{}'; {}there are {}", selector, DidYouMean(selector, names),
               ListNames(names));
}

}  // namespace

Result<int> ModuleShow(const Args& args) {
  Invocation call(
      {"msactl module show", "[OPTIONS] MODULE", "Show one module, by name, kind or id, with its nodes."});
  call.WithFormat(Shows::kOne);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.min = 1, .max = 1, .what = "a module"}));
  if (!go) return 0;
  MSA_ASSIGN_OR_RETURN(const BackendChoice choice, call.Choice());
  if (choice.slurm()) return SlurmModuleShow(call, choice);
  MSA_ASSIGN_OR_RETURN(const auto client, call.Connect());
  MSA_ASSIGN_OR_RETURN(const std::vector<ModuleInfo> modules, client->ListModules());
  MSA_ASSIGN_OR_RETURN(const ModuleInfo module, SelectModule(modules, call.operands()[0]));
  MSA_ASSIGN_OR_RETURN(const std::vector<NodeInfo> nodes, client->ListNodes(module.name, {}));
  MSA_RETURN_IF_ERROR(call.Show(ModuleDetails(module, nodes)));
  return 0;
}

}  // namespace msa::cli
