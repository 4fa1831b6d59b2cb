#include "commands/invocation.h"
#include "commands/node_names.h"
#include "commands/slurm.h"
#include "output/job_texts.h"

namespace msa::cli {

Result<int> NodeList(const Args& args) {
  Invocation call(
      {"msactl node list", "[OPTIONS] [NODES...]", "List nodes with their state and what is in use."});
  call.WithFormat();
  std::string module;
  call.options().Text('m', "module", "MODULE", "nodes of one module, by name, kind or id", &module);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.max = kAnyNumber}));
  if (!go) return 0;
  MSA_ASSIGN_OR_RETURN(const BackendChoice choice, call.Choice());
  if (choice.slurm()) return SlurmNodeList(call, choice, module);
  MSA_ASSIGN_OR_RETURN(const std::vector<std::string> names, ExpandNodeNames(call.operands()));
  MSA_ASSIGN_OR_RETURN(const auto client, call.Connect());
  MSA_ASSIGN_OR_RETURN(const std::vector<NodeInfo> nodes, client->ListNodes(module, names));
  MSA_RETURN_IF_ERROR(call.Show(NodeListing(nodes)));
  return 0;
}

}  // namespace msa::cli
