#include "commands/invocation.h"
#include "commands/node_names.h"
#include "commands/slurm.h"
#include "output/job_texts.h"

namespace msa::cli {

Result<int> NodeDrain(const Args& args) {
  Invocation call(
      {"msactl node drain", "--reason TEXT [OPTIONS] NODES...",
       "Take nodes out: jobs that run there go on, no new ones start. 'msactl node resume' ends it. "
       "Where Slurm schedules: by 'scontrol update', which Slurm allows operators."});
  call.WithFormat();
  std::string reason;
  call.options().Text('r', "reason", "TEXT", "why, for others to read; required", &reason);
  MSA_ASSIGN_OR_RETURN(const bool go,
                       call.Parse(args, {.min = 1, .max = kAnyNumber, .what = "names of nodes"}));
  if (!go) return 0;
  if (reason.empty())
    return Status(Code::kInvalidArgument, "msactl node drain needs a reason: --reason 'bad fan'");
  MSA_ASSIGN_OR_RETURN(const BackendChoice choice, call.Choice());
  if (choice.slurm()) return SlurmNodeDrain(call, choice, reason);
  MSA_ASSIGN_OR_RETURN(const std::vector<std::string> names, ExpandNodeNames(call.operands()));
  MSA_ASSIGN_OR_RETURN(const auto client, call.Connect());
  MSA_ASSIGN_OR_RETURN(const std::vector<NodeInfo> nodes, client->DrainNodes(names, reason));
  MSA_RETURN_IF_ERROR(call.Show(NodeListing(nodes)));
  return 0;
}

}  // namespace msa::cli
