#include "offline.h"

#include <unistd.h>

#include <cerrno>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "msa/adapters/config/topology_file.h"
#include "msa/adapters/process/lock_file.h"
#include "msa/adapters/sqlite/sqlite_store.h"
#include "msa/job/controller.h"

namespace msa {
namespace {

// What nodes and clients would be told has nobody to hear it.
void KeepChanges(const std::vector<Effect>& effects, std::vector<StoreChange>& changes) {
  for (const Effect& effect : effects)
    std::visit(
        [&changes](const auto& one) {
          if constexpr (std::is_constructible_v<StoreChange, std::decay_t<decltype(one)>>)
            changes.emplace_back(one);
        },
        effect);
}

}  // namespace

Result<std::size_t> CancelStoredJobs(const DaemonOptions& options, const std::string& reason, Instant now) {
  const std::string path = options.directory + "/state.db";
  if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) return std::size_t{0};
  MSA_ASSIGN_OR_RETURN(const LockFile lock,
                       LockFile::Acquire(options.directory + "/controller.lock", "msa-controllerd"));
  MSA_ASSIGN_OR_RETURN(const std::unique_ptr<JobStore> store, OpenSqliteStore(path));
  MSA_ASSIGN_OR_RETURN(StoredState state, store->LoadAll());
  std::vector<std::pair<JobId, UserIdentity>> open;
  for (const JobRecord& job : state.jobs)
    if (!IsFinal(job.state)) open.emplace_back(job.id, job.user);
  if (open.empty()) return std::size_t{0};
  MSA_ASSIGN_OR_RETURN(SystemTopology topology, LoadTopologyFile(options.topology));
  // No grace, and no wait for job daemons: they are dead. The tick then ends what was running.
  ControllerOptions at_once;
  at_once.kill_grace = Millis(0);
  at_once.exit_wait = Millis(0);
  Controller controller(std::move(topology), at_once);
  std::vector<StoreChange> changes;
  MSA_ASSIGN_OR_RETURN(const std::vector<Effect> restored, controller.Restore(std::move(state), now));
  KeepChanges(restored, changes);
  for (const auto& [job, user] : open)
    KeepChanges(controller.On(event::Cancel{.caller = user, .job = job, .reason = reason, .now = true}, now),
                changes);
  KeepChanges(controller.On(event::Tick{}, now), changes);
  MSA_RETURN_IF_ERROR(store->Commit(changes));
  return open.size();
}

}  // namespace msa
