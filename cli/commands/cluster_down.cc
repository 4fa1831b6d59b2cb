#include "commands/cluster_directory.h"
#include "commands/invocation.h"
#include "commands/print.h"
#include "local/take_down.h"
#include "output/text.h"

namespace msa::cli {

Result<int> ClusterDown(const Args& args) {
  Invocation call({"msactl cluster down", "[OPTIONS]",
                   "Stop a local system: cancel its jobs, end its daemons, remove sockets and run "
                   "directories. Its state and logs stay."});
  DownOptions options;
  call.options()
      .Flag(0, "now", "give jobs no time to end by themselves", &options.now)
      .Flag(0, "purge", "remove state and logs too", &options.purge);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {}));
  if (!go) return 0;
  options.dir = WhichDirectory(call.dir()).path;
  MSA_ASSIGN_OR_RETURN(const DownReport report, TakeDown(options));
  for (const std::string& what : report.killed) PrintNote(what + " did not end by itself and was killed");
  if (!report.was_running) {
    MSA_RETURN_IF_ERROR(Print(fmt::format("nothing runs in {}\n", options.dir)));
    return 0;
  }
  const std::string jobs =
      report.jobs_cancelled == 0 ? "" : fmt::format(", {} cancelled", Count(report.jobs_cancelled, "job"));
  MSA_RETURN_IF_ERROR(Print(fmt::format("the system in {} is stopped{}\n", options.dir, jobs)));
  return 0;
}

}  // namespace msa::cli
