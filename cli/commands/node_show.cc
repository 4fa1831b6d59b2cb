#include "msa/base/clock.h"

#include "commands/invocation.h"
#include "commands/slurm.h"
#include "output/job_texts.h"

namespace msa::cli {

Result<int> NodeShow(const Args& args) {
  Invocation call({"msactl node show", "[OPTIONS] NODE", "Show all of one node."});
  call.WithFormat(Shows::kOne);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.min = 1, .max = 1, .what = "a node's name"}));
  if (!go) return 0;
  MSA_ASSIGN_OR_RETURN(const BackendChoice choice, call.Choice());
  if (choice.slurm()) return SlurmNodeShow(call, choice);
  MSA_ASSIGN_OR_RETURN(const auto client, call.Connect());
  MSA_ASSIGN_OR_RETURN(const std::vector<NodeInfo> nodes, client->ListNodes("", {call.operands()[0]}));
  if (nodes.empty())
    return Error(Code::kNotFound, "no node '{}'; see 'msactl node list'", call.operands()[0]);
  MSA_RETURN_IF_ERROR(call.Show(NodeDetails(nodes[0], ToUnixMillis(Now()))));
  return 0;
}

}  // namespace msa::cli
