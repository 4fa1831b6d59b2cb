#include "commands/invocation.h"
#include "commands/node_names.h"
#include "commands/slurm.h"
#include "output/job_texts.h"

namespace msa::cli {

Result<int> NodeResume(const Args& args) {
  Invocation call({"msactl node resume", "[OPTIONS] NODES...",
                   "End the drain of nodes. A node that is down comes back when its daemon reports. "
                   "Where Slurm schedules: by 'scontrol update', which Slurm allows operators."});
  call.WithFormat();
  MSA_ASSIGN_OR_RETURN(const bool go,
                       call.Parse(args, {.min = 1, .max = kAnyNumber, .what = "names of nodes"}));
  if (!go) return 0;
  MSA_ASSIGN_OR_RETURN(const BackendChoice choice, call.Choice());
  if (choice.slurm()) return SlurmNodeResume(call, choice);
  MSA_ASSIGN_OR_RETURN(const std::vector<std::string> names, ExpandNodeNames(call.operands()));
  MSA_ASSIGN_OR_RETURN(const auto client, call.Connect());
  MSA_ASSIGN_OR_RETURN(const std::vector<NodeInfo> nodes, client->ResumeNodes(names));
  MSA_RETURN_IF_ERROR(call.Show(NodeListing(nodes)));
  return 0;
}

}  // namespace msa::cli
