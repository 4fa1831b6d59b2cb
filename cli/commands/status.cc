#include "msa/base/clock.h"

#include "commands/invocation.h"
#include "commands/print.h"
#include "output/text.h"

namespace msa::cli {
namespace {

Details StatusDetails(const SystemInfo& system) {
  const std::int64_t up_ms = ToUnixMillis(Now()) - system.started_at_ms;
  return {.kind = "Status",
          .name = system.system_name,
          .lines = {{"system", system.system_name},
                    {"directory", system.directory.empty() ? "-" : system.directory},
                    {"controller", fmt::format("version {}, pid {}, up for {}", system.version, system.pid,
                                               ShowDuration(Millis(up_ms)))},
                    {"modules", fmt::format("{}", system.modules)},
                    {"nodes", fmt::format("{}, {} up and not drained", system.nodes, system.nodes_up)},
                    {"cores", fmt::format("{}, {} used", system.cores, system.cores_used)},
                    {"jobs", fmt::format("{} running, {} waiting, {} ended", system.jobs_running,
                                         system.jobs_pending, system.jobs_ended)},
                    {"store", ShowBytes(static_cast<std::uint64_t>(system.store_bytes))}},
          .fields = {{"system", system.system_name},
                     {"directory", system.directory},
                     {"version", system.version},
                     {"client_version", MSA_VERSION},
                     {"pid", system.pid},
                     {"started_at", UtcTime(system.started_at_ms)},
                     {"modules", system.modules},
                     {"nodes", system.nodes},
                     {"nodes_up", system.nodes_up},
                     {"cores", system.cores},
                     {"cores_used", system.cores_used},
                     {"jobs_running", system.jobs_running},
                     {"jobs_pending", system.jobs_pending},
                     {"jobs_ended", system.jobs_ended},
                     {"store_bytes", system.store_bytes}}};
}

}  // namespace

Result<int> SystemStatus(const Args& args) {
  Invocation call({"msactl status", "[OPTIONS]", "Show the system at a glance."});
  call.WithFormat(Shows::kOne);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {}));
  if (!go) return 0;
  MSA_ASSIGN_OR_RETURN(const auto client, call.Connect());
  MSA_ASSIGN_OR_RETURN(const SystemInfo system, client->GetStatus());
  MSA_RETURN_IF_ERROR(call.Show(StatusDetails(system)));
  MSA_ASSIGN_OR_RETURN(const BackendChoice choice, call.Choice());
  if (choice.slurm() && call.people())
    PrintNote(fmt::format(
        "{}: jobs and cores are those of steps that msa runs; 'msactl job list' and 'msactl module "
        "list' show Slurm's",
        choice.because));
  return 0;
}

}  // namespace msa::cli
