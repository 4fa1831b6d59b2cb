#include "commands/invocation.h"
#include "commands/slurm.h"
#include "options/values.h"

namespace msa::cli {

Result<int> JobSignal(const Args& args) {
  Invocation call(
      {"msactl job signal", "[OPTIONS] SIGNAL JOB",
       "Send a signal, by name or number, to every task of a running job. Where Slurm schedules: to the "
       "tasks of its steps, or of the component or array task that is named (7+1, 7_3)."});
  MSA_ASSIGN_OR_RETURN(const bool go,
                       call.Parse(args, {.min = 2, .max = 2, .what = "a signal and a job's id"}));
  if (!go) return 0;
  MSA_ASSIGN_OR_RETURN(const int signal, ParseSignal(call.operands()[0]));
  MSA_ASSIGN_OR_RETURN(const BackendChoice choice, call.Choice());
  if (choice.slurm()) return SlurmJobSignal(call, choice, signal);
  MSA_ASSIGN_OR_RETURN(const JobId id, ParseJobId(call.operands()[1]));
  MSA_ASSIGN_OR_RETURN(const auto client, call.Connect());
  MSA_RETURN_IF_ERROR(client->SignalJob(id, signal));
  return 0;
}

}  // namespace msa::cli
