#pragma once
// The controller's state machine: modules, nodes, queue, running jobs, grants. Pure: time, ids of sessions
// and random bytes enter as arguments, everything that happens outside comes out as effects. One thread.
//
//   effects = controller.On(event, now);  commit the Put/Delete effects;  then send, reply and tell watchers
//
// If a commit fails: after a Submit call ForgetJob(id) and reply the error; after any other event keep the
// effects and try again before the next event (the machine has moved on and must not be left ahead of the
// disk), or exit.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msa/base/ids.h"
#include "msa/base/status.h"
#include "msa/job/events.h"
#include "msa/job/records.h"
#include "msa/scheduler/scheduler.h"
#include "msa/topology/topology.h"

namespace msa {

struct ControllerOptions {
  Millis node_timeout{10000};  // without a sign of life a node is down and its jobs end
  Millis owner_grace{10000};   // after a restart: how long a job waits for its msactl
  Millis kill_grace{5000};     // between SIGTERM and SIGKILL of a cancelled job
  Millis exit_wait{10000};     // beyond the grace: without an exit record the job is ended from here
  // A job daemon that a registering node does not name: its exit record, or the daemon itself, may follow at
  // once.
  Millis missing_jobd_wait{2000};
  std::size_t max_queued = 100000;
  std::size_t keep_ended = 10000;
  std::uint32_t operator_uid = 0;  // besides root: the controller's own user
  SchedulerOptions scheduler;
  bool slurm = false;            // Slurm schedules: steps come by its plugin, submissions are refused
  std::uint64_t nam_system = 0;  // random, of this system's store: whose extents a namd holds
  std::string nam_key;           // 32 random bytes: what leases are signed with
  // HMAC-SHA256 of `lease` under nam_key. The same arguments give the same result.
  std::function<std::string(std::string_view lease)> sign_lease;
  // Supplementary groups of a user, as the system's user database has them now; for jobs with --nam-region.
  // None: no groups.
  std::function<std::vector<std::uint32_t>(const UserIdentity&)> groups_of;
};

enum class NodeState : std::uint8_t { kUnknown = 0, kUp = 1, kDown = 2 };

struct JobView {
  const JobRecord* record = nullptr;  // valid until the next On()
  std::string reason;                 // why it waits, or how it ended
  Instant expected_start;             // of a waiting job; epoch: not known
  std::uint32_t expected_nodes = 0;   // of a waiting job: as last planned, else of the whole system
  std::string head_node;              // from STARTING on, else empty
  std::string attach_address;         // of the head's node daemon
};

struct NodeView {
  std::string name;
  const Module* module = nullptr;
  NodeState state = NodeState::kUnknown;
  bool drained = false;
  std::string reason;  // of down or drained
  std::uint32_t cores = 0;
  std::uint32_t cores_used = 0;
  NodeFacts facts;  // as registered; before: as configured
  std::vector<JobId> jobs;
  Instant last_heartbeat;
  Instant up_since;
  double load = 0;
  std::uint32_t jobd_warm = 0;
  std::string daemon_version;
  Millis clock_offset{0};  // its clock less ours
  bool clock_off = false;  // by more than kClockTolerance
};
inline constexpr Millis kClockTolerance{5000};

struct ModuleView {
  const Module* module = nullptr;
  std::uint32_t nodes = 0;
  std::uint32_t nodes_up = 0;  // up and not drained
  std::uint32_t cores = 0;
  std::uint32_t cores_free = 0;  // of nodes up and not drained
  Bytes nam;
};

struct SystemView {
  std::uint32_t modules = 0;
  std::uint32_t nodes = 0;
  std::uint32_t nodes_up = 0;
  std::uint32_t cores = 0;
  std::uint32_t cores_used = 0;
  std::uint32_t jobs_pending = 0;
  std::uint32_t jobs_running = 0;  // starting and ending ones too
  std::uint64_t jobs_ended = 0;    // kept ones
};

struct JobFilter {
  bool ended = false;  // also jobs that have ended, the newest `limit` of those that the rest lets through
  std::size_t limit = 100;
  std::vector<JobId> ids;        // empty: all; with ids, ended jobs are found too
  std::string user;              // name or uid; empty: all
  Instant since;                 // ended jobs: that ended then or later
  Instant until = kNever;        // ended jobs: that were submitted before
  std::vector<JobState> states;  // empty: all
  std::string name;              // of the job; empty: all
};

enum class GrantState : std::uint8_t { kWaiting = 0, kHeld = 1, kReleased = 2 };

// Nodes lent to a running job, or asked for.
struct GrantView {
  GrantId id;                      // 0: it waits
  const JobRecord* job = nullptr;  // valid until the next On()
  std::uint64_t request = 0;
  GrantState state = GrantState::kHeld;
  std::vector<Allocation> shares;
  std::uint32_t slots = 0;  // lent, or asked for
  std::string module;       // asked for; empty: any
  Instant asked_at;
  Instant since;                        // lent since; epoch: not yet
  Instant until;                        // given back by then, or waits until then; epoch: open
  std::vector<std::string> namespaces;  // that run on it
  std::string reason;                   // why it waits, or who releases it
  JobId slurm_job;                      // of Slurm, that holds it or is queued for it; 0: none
};

struct GrantFilter {
  JobId job;                 // 0: all
  std::string user;          // name or uid; empty: all
  bool released = false;     // also released ones of jobs that still run
  std::vector<GrantId> ids;  // empty: all; with ids, released ones are found too
};

class Controller {
 public:
  // `topology` has passed SystemTopology::Check.
  Controller(SystemTopology topology, ControllerOptions options);
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // Takes up what the store held, once, before the first event. Nodes are unknown until they register; their
  // jobs wait for node_timeout. Jobs on nodes that the topology no longer has end. The effects are handled as
  // those of On(). kInvalidArgument: records that contradict each other.
  Result<std::vector<Effect>> Restore(StoredState state, Instant now);

  // Never fails: what is wrong with an event is said in its Reply, or in a Log effect.
  std::vector<Effect> On(Event event, Instant now);

  // Undoes a Submit whose commit failed, before any other event. No effect if there is no such pending job.
  void ForgetJob(JobId job);

  // kNotFound: "no job 12; ...".
  Result<JobView> GetJob(JobId job) const;
  // Ascending ids.
  std::vector<JobView> ListJobs(const JobFilter& filter) const;
  // By job, those that wait last. kNotFound: no such job, or no such grant of a job that still runs.
  Result<std::vector<GrantView>> ListGrants(const GrantFilter& filter) const;
  // kNotFound: a module or node that does not exist, with the nearest name. In file order.
  Result<std::vector<NodeView>> ListNodes(const std::string& module,
                                          const std::vector<std::string>& names) const;
  std::vector<ModuleView> ListModules() const;
  SystemView System() const;
  const SystemTopology& topology() const;
  // The job's owner, root and the operator may see and change a job. kNotFound, kPermissionDenied.
  Status CheckAccess(JobId job, const UserIdentity& caller) const;

  // kInternal names the first invariant that does not hold: no core used twice, no core held by a job that
  // has ended, a member for each node held, grants of running jobs only, queue and tables consistent. For
  // tests; O(everything).
  Status CheckInvariants() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace msa
