#include <algorithm>

#include "msa/adapters/process/lock_file.h"
#include "msa/base/clock.h"

#include "commands/cluster_directory.h"
#include "commands/invocation.h"
#include "local/daemon_table.h"
#include "local/local_paths.h"
#include "output/text.h"

namespace msa::cli {
namespace {

Listing::Row DaemonRow(const DaemonEntry& entry, const LocalPaths& paths) {
  const bool alive = IsAlive(entry);
  const std::uint64_t memory = alive ? ResidentBytes(entry.pid) : 0;
  const std::string state = alive ? "RUNNING" : "DOWN";
  const std::string log = paths.log(entry.name);
  return {entry.name,
          {entry.name, state, alive ? fmt::format("{}", entry.pid) : "",
           Cell(alive ? ShowTime(entry.started_at_ms) : "", alive ? UtcTime(entry.started_at_ms) : ""),
           fmt::format("{}", entry.restarts), Cell(alive ? ShowBytes(memory) : "", fmt::format("{}", memory)),
           log},
          Document::Object{{"name", entry.name},
                           {"state", state},
                           {"pid", alive ? Document(static_cast<std::int64_t>(entry.pid)) : Document()},
                           {"started_at", alive ? Document(UtcTime(entry.started_at_ms)) : Document()},
                           {"restarts", entry.restarts},
                           {"resident_bytes", memory},
                           {"log", log}}};
}

}  // namespace

Result<int> ClusterStatus(const Args& args) {
  Invocation call({"msactl cluster status", "[OPTIONS]",
                   "List the daemons of a local system: pid, up since, restarts, memory."});
  call.WithFormat();
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {}));
  if (!go) return 0;
  const ClusterDirectory directory = WhichDirectory(call.dir());
  const LocalPaths paths(directory.path);
  const pid_t supervisor = LockHolder(paths.supervisor_lock());
  const std::vector<DaemonEntry> entries = LoadDaemonTable(paths.daemon_table());
  if (supervisor == 0 && std::none_of(entries.begin(), entries.end(), IsAlive))
    return NothingThere(directory);
  Listing listing;
  listing.kind = "DaemonList";
  listing.columns = {{"DAEMON"},
                     {"STATE"},
                     {"PID", false, true},
                     {"UP SINCE"},
                     {"RESTARTS", false, true},
                     {"MEMORY", false, true},
                     {"LOG", true}};
  DaemonEntry own{.name = "supervisor",
                  .pid = supervisor,
                  .start_ticks = ProcessStartTicks(supervisor),
                  .started_at_ms = 0,
                  .restarts = 0};
  if (supervisor != 0) own.started_at_ms = StartedAtMillis(supervisor);
  listing.rows.push_back(DaemonRow(own, paths));
  bool all = IsAlive(own);
  for (const DaemonEntry& entry : entries) {
    listing.rows.push_back(DaemonRow(entry, paths));
    all = all && IsAlive(entry);
  }
  MSA_RETURN_IF_ERROR(call.Show(listing));
  return all ? 0 : kPartialExitCode;
}

}  // namespace msa::cli
