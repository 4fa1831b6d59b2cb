#pragma once
// What the store keeps. A record is written whole, and records of earlier builds must stay readable: in these
// structs and in all that they hold, fields are only appended, each to the end of its own struct, and keep
// their type and meaning; enums keep their numbers. Anything else needs a migration (adapters/sqlite).

#include <cstdint>
#include <string>
#include <vector>

#include "msa/base/clock.h"
#include "msa/base/messages.h"
#include "msa/job/job_spec.h"
#include "msa/nam/records.h"
#include "msa/scheduler/scheduler.h"

namespace msa {

using wire::JobState;

// "PENDING", "RUNNING", ...
std::string_view StateName(JobState state) noexcept;

// One node's share of one component or grant of a job that was placed. Kept after the end, for `job show`.
struct Allocation {
  std::string node;
  std::string module;
  std::uint32_t component = 0;
  std::vector<std::uint16_t> cores;
  std::uint32_t tasks = 0;
  Bytes memory;
  std::uint32_t gpus = 0;
  GrantId grant;             // 0: of a component
  std::uint32_t member = 0;  // index in JobRecord::members
  bool given_back = false;   // of a grant that was released; its member may hold other shares still
  template <class A>
  void Fields(A& a) {
    a(node, module, component, cores, tasks, memory, gpus, grant, member, given_back);
  }
};

struct JobRecord {
  JobId id;
  Incarnation incarnation{1};
  std::string token;  // of the submission: the same token of one user submits once
  UserIdentity user;
  std::string user_name;
  bool interactive = false;  // owned by a `msactl run`
  JobSpec spec;              // completed
  std::string secret;        // of the job's daemons; empty after the end

  JobState state = JobState::kPending;
  std::string reason;         // of an end, or of the end under way; reasons of waiting are not stored
  Code end_code = Code::kOk;  // kDeadlineExceeded: not started within immediate_s
  JobState ending_as = JobState::kCompleted;  // kEnding: the state that it is being driven to
  Instant submitted_at;
  Instant started_at;  // tasks started; epoch: not yet
  Instant placed_at;   // nodes held from here on; epoch: not yet
  Instant ended_at;
  std::int32_t exit_code = 0;
  std::uint32_t tasks = 0;
  std::uint32_t tasks_failed = 0;
  std::string stdout_path;  // expanded; empty: carried to msactl, or a pattern per task
  std::string stderr_path;

  Epoch epoch;                        // of `members`
  std::vector<wire::Member> members;  // indices never change; nodes that were given back are absent
  std::uint32_t next_member = 0;
  std::uint32_t head = 0;  // member index
  std::vector<Allocation> allocations;
  std::vector<wire::NamespaceReport> namespaces;
  Bytes nam;  // allotment of network attached memory: spec.nam, and what was granted since the start
  // Of a job that Slurm schedules: the jobs of its components, in the order in which their steps were first
  // heard of; Allocation::component counts them. Empty: the job is our own.
  std::vector<JobId> slurm_jobs;
  std::uint32_t slurm_restarts = 0;   // how often Slurm had requeued it
  std::vector<std::string> gateways;  // nodes that it has by --gateways, until it ends; kept after

  bool IsSlurms() const { return !slurm_jobs.empty(); }
  const wire::Member* FindMember(std::uint32_t index) const;
  const wire::Member* MemberOn(std::string_view node) const;
  wire::Member* FindMember(std::uint32_t index);
  bool HoldsShareOf(GrantId grant) const;
  template <class A>
  void Fields(A& a);
};

struct NodeRecord {
  std::string name;
  bool drained = false;
  std::string reason;  // of the drain
};

struct GrantRecord {
  GrantId id;
  JobId job;
  Incarnation incarnation;
  std::uint64_t request = 0;  // of GrantAsk
  std::vector<std::uint32_t> members;
  Epoch epoch;
  Instant since;
  bool released = false;  // kept until the job ends, so that a repeated ask gets its old answer
  std::uint32_t slots = 0;
  std::string module;  // asked for; empty: any
  Instant asked_at;
  Instant until;       // given back by then; epoch: open
  std::string recall;  // "released by ada": its namespaces are being ended; empty: they are not
  JobId slurm_job;     // the companion that holds it in Slurm; 0: lent by ourselves
  template <class A>
  void Fields(A& a) {
    a(id, job, incarnation, request, members, epoch, since, released, slots, module, asked_at, until, recall,
      slurm_job);
  }
};

// Instants travel as Unix milliseconds.
template <class A>
void JobRecord::Fields(A& a) {
  std::int64_t times[4] = {ToUnixMillis(submitted_at), ToUnixMillis(started_at), ToUnixMillis(placed_at),
                           ToUnixMillis(ended_at)};
  a(id, incarnation, token, user.uid, user.gid, user_name, interactive, spec, secret, state, reason, end_code,
    ending_as, times[0], times[1], times[2], times[3], exit_code, tasks, tasks_failed, stdout_path,
    stderr_path, epoch, members, next_member, head, allocations, namespaces, nam, slurm_jobs, slurm_restarts,
    gateways);
  submitted_at = FromUnixMillis(times[0]);
  started_at = FromUnixMillis(times[1]);
  placed_at = FromUnixMillis(times[2]);
  ended_at = FromUnixMillis(times[3]);
}

// All that a store holds.
struct StoredState {
  std::vector<JobRecord> jobs;  // any order
  std::vector<NodeRecord> nodes;
  std::vector<GrantRecord> grants;
  JobId last_job;  // highest id ever given, also of jobs that were pruned
  GrantId last_grant;
  StoredNam nam;
};

}  // namespace msa
