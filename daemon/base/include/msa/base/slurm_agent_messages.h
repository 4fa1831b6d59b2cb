#pragma once
// What goes to and comes from msa-slurm-agent, the controller's eyes and hands in Slurm. Local wire format
// over a socketpair, whose other end the program has as descriptor kSlurmHelperFd; type numbers are never
// reused, fields are only appended. Ids, times, "reason" and "message" as in companion_messages.h.
//
//   controller --SlurmJobQuestion--> msa-slurm-agent   one process, as SlurmUser
//              <--SlurmAgentState--                    first of all, and when slurmctld goes or comes back
//              <--SlurmJobsChanged--                   all jobs once, then changes, at most once a second
//              <--SlurmJobAnswer--                     with the question's correlation id, as all answers
//              --SlurmCancelOrphans--> <--SlurmOrphansCancelled--
//              --SlurmKillStep--> --SlurmCancelJob--> <--SlurmDone--
//
// Requests are answered in their order. Closing the controller's end ends the agent.

#include <cstdint>
#include <string>
#include <vector>

#include "msa/base/companion_messages.h"
#include "msa/base/ids.h"
#include "msa/base/status.h"

namespace msa::wire {

// --------------------------------------------------------------------------- msa-slurm-agent -> controller

struct SlurmAgentState {
  static constexpr std::uint16_t kType = 0x0B30;
  std::uint32_t version = kSlurmHelperVersion;
  bool slurmctld_up = false;
  std::string message;        // while it is down: what libslurm says
  std::string cluster;        // ClusterName
  std::string slurm_version;  // of libslurm, "22.05.8"
  template <class A>
  void Fields(A& a) {
    a(version, slurmctld_up, message, cluster, slurm_version);
  }
};

struct SlurmJob {
  JobId job;
  JobId leader;              // `job` itself where it is no component of another
  std::uint32_t offset = 0;  // of the component
  JobId array_job;           // 0: not of an array
  std::string array_tasks;   // of an array's record: "7", "8-20%2"
  UserIdentity user;
  std::string user_name;
  std::string account;
  std::string partition;
  std::string qos;
  std::string state;  // Slurm's base state: "PENDING", "RUNNING", "COMPLETED", ...
  bool over =
      false;  // no task of it will run any more, unless it is requeued; its nodes may still be cleaned
  std::string reason;  // why it waits, or ended
  std::string message;
  std::vector<std::string> nodes;
  std::uint32_t num_nodes = 0;
  std::uint32_t num_cpus = 0;
  std::uint64_t submit = 0;
  std::uint64_t start = 0;         // expected, where it waits
  std::uint64_t end = 0;           // expected, where it runs
  std::uint32_t time_limit_s = 0;  // 0: none
  std::string name;
  std::string comment;
  std::string licenses;
  std::uint32_t restarts = 0;
  std::int32_t exit_status = 0;  // wait(2)'s
  friend bool operator==(const SlurmJob&, const SlurmJob&) = default;
  template <class A>
  void Fields(A& a) {
    a(job, leader, offset, array_job, array_tasks, user.uid, user.gid, user_name, account, partition, qos,
      state, over, reason, message, nodes, num_nodes, num_cpus, submit, start, end, time_limit_s, name,
      comment, licenses, restarts, exit_status);
  }
};

// A list too long for one frame comes in several, all but the last with `more`. The list of all jobs
// (`complete`) comes first, and again after slurmctld was away: what is not in it is gone.
struct SlurmJobsChanged {
  static constexpr std::uint16_t kType = 0x0B31;
  bool complete = false;
  bool more = false;
  std::vector<SlurmJob> jobs;
  std::vector<JobId> gone;  // Slurm has forgotten them (MinJobAge)
  template <class A>
  void Fields(A& a) {
    a(complete, more, jobs, gone);
  }
};

// As Slurm has it at this moment. Code kOk, kNotFound (`job` is empty), kUnavailable, kInternal.
struct SlurmJobAnswer {
  static constexpr std::uint16_t kType = 0x0B33;
  Code code = Code::kOk;
  std::string message;
  SlurmJob job;
  std::vector<SlurmNodeCores> cores;  // of the nodes, while the job holds them
  template <class A>
  void Fields(A& a) {
    a(code, message, job, cores);
  }
};

// Answer to SlurmCancelOrphans. Without a correlation id: the agent's own sweep, which runs on every change,
// found these.
struct SlurmOrphansCancelled {
  static constexpr std::uint16_t kType = 0x0B35;
  std::vector<JobId> jobs;
  Code code = Code::kOk;
  std::string message;
  template <class A>
  void Fields(A& a) {
    a(jobs, code, message);
  }
};

// Answer to SlurmKillStep and SlurmCancelJob. kNotFound: over already or never there; kUnavailable,
// kInternal.
struct SlurmDone {
  static constexpr std::uint16_t kType = 0x0B38;
  Code code = Code::kOk;
  std::string message;
  template <class A>
  void Fields(A& a) {
    a(code, message);
  }
};

// --------------------------------------------------------------------------- controller -> msa-slurm-agent

struct SlurmJobQuestion {
  static constexpr std::uint16_t kType = 0x0B32;
  JobId job;
  template <class A>
  void Fields(A& a) {
    a(job);
  }
};

// Cancel every companion whose parent is over or among `parents`, which msa knows to be over.
struct SlurmCancelOrphans {
  static constexpr std::uint16_t kType = 0x0B34;
  std::vector<JobId> parents;
  // Of each of `parents`: that incarnation is over, and those before it.
  std::vector<Incarnation> incarnations;
  template <class A>
  void Fields(A& a) {
    a(parents, incarnations);
  }
};

struct SlurmKillStep {
  static constexpr std::uint16_t kType = 0x0B36;
  JobId job;
  StepId step;
  std::int32_t signal = 9;
  template <class A>
  void Fields(A& a) {
    a(job, step, signal);
  }
};

// With the rights of SlurmUser: who may ask for it is the controller's to judge.
struct SlurmCancelJob {
  static constexpr std::uint16_t kType = 0x0B37;
  JobId job;
  std::int32_t signal = 9;
  template <class A>
  void Fields(A& a) {
    a(job, signal);
  }
};

}  // namespace msa::wire
