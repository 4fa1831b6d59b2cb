#include "msa/topology/suggest.h"

#include "commands/cluster_directory.h"
#include "commands/invocation.h"
#include "commands/print.h"
#include "local/take_down.h"
#include "output/text.h"

namespace msa::cli {

namespace {

Status Say(const DownReport& report, const DownOptions& options) {
  for (const std::string& what : report.killed) PrintNote(what + " did not end by itself and was killed");
  if (report.strays > 0)
    PrintNote(fmt::format("{} that killed daemons had left {} ended", Count(report.strays, "daemon"),
                          report.strays == 1 ? "is" : "are"));
  if (!report.kept.empty())
    PrintNote(fmt::format("'{}' stays, it holds what is not msa's: {}", options.dir, ListNames(report.kept)));
  const std::string jobs =
      report.jobs_cancelled == 0 ? "" : fmt::format(", {} cancelled", Count(report.jobs_cancelled, "job"));
  return Print(report.was_running ? fmt::format("the system in {} is stopped{}\n", options.dir, jobs)
                                  : fmt::format("nothing runs in {}{}\n", options.dir, jobs));
}

}  // namespace

Result<int> ClusterDown(const Args& args) {
  Invocation call({"msactl cluster down", "[OPTIONS]",
                   "Stop a local system: cancel its jobs, end its daemons, remove sockets and run "
                   "directories. Its state and logs stay."});
  DownOptions options;
  bool quiet = false;
  call.options()
      .Flag(0, "now", "give jobs no time to end by themselves", &options.now)
      .Flag(0, "purge", "remove state and logs too", &options.purge)
      .Flag('q', "quiet", "print nothing but errors", &quiet);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {}));
  if (!go) return 0;
  options.dir = WhichDirectory(call.dir()).path;
  MSA_ASSIGN_OR_RETURN(const DownReport report, TakeDown(options));
  if (!quiet) MSA_RETURN_IF_ERROR(Say(report, options));
  return 0;
}

}  // namespace msa::cli
