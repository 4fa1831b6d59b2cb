#pragma once
// How a step of Slurm becomes a step of msa: what the SPANK plugin, the node daemon, the controller and the
// job daemons say to each other. Local wire format (msa/base/wire.h); type numbers are never reused, fields
// are only appended.
//
//   slurmstepd (root) --SlurmStepBegin-->   node daemon --> controller   from init_post_opt; the connection
//                                                                        lasts as long as the step here
//                     <--SlurmStepVerdict-- node daemon <-- controller   awaited in user_init
//   slurmstepd        --SlurmTaskBegin-->   node daemon                  from task_post_fork
//   task (the user)   --SlurmTaskJoin-->    its job daemon               from task_init, over MSA_JOB_SOCKET
//                     <--SlurmTaskReady--                                once the whole world is known
//   slurmstepd        --SlurmTaskEnd-->     node daemon --> job daemon   from task_exit
//                     <--SlurmStepAbort--   node daemon                  its job daemon is gone
//                     closes                node daemon --SlurmStepEnd--> controller, job daemon
//   slurmd's epilog   --SlurmJobEnd-->      node daemon --> controller
//
// A step like one that the controller has accepted for the same job is accepted by the node daemons at once
// (SlurmStepBegin::accepted_here); the controller judges it all the same, and may withdraw it.
//
// "Job" is the leader's id, the one that a user knows (SLURM_JOB_ID), where not said otherwise; a component
// of a heterogeneous job has an id of its own.

#include <cstdint>
#include <string>
#include <vector>

#include "msa/base/ids.h"

namespace msa::wire {

inline constexpr std::uint32_t kSlurmPluginVersion = 1;
// Where the node daemons of a system that Slurm schedules listen for its plugin.
inline constexpr char kSlurmPluginSocket[] = "/run/msa/plugin.sock";
// What the node daemon takes from a plugin, and a job daemon from a task, in one frame.
inline constexpr std::size_t kMaxSlurmPayload = std::size_t{4} << 20;

// Where a part of the step of one component runs, as Slurm counts it.
struct SlurmNodeTasks {
  std::string node;
  std::uint32_t tasks = 0;
  template <class A>
  void Fields(A& a) {
    a(node, tasks);
  }
};

// Options as the user wrote them; the controller judges them, so that all plugins need not be of one version.
struct SlurmOptions {
  std::string module;            // --module
  std::string nam;               // --nam: "4G", or by component "0:1G,1:2G"
  std::string nam_region;        // --nam-region: "NAME[:ro|rw],..."
  std::string gateways;          // --gateways
  std::string on_child_failure;  // --on-child-failure: "kill", "event"
  template <class A>
  void Fields(A& a) {
    a(module, nam, nam_region, gateways, on_child_failure);
  }
  friend bool operator==(const SlurmOptions&, const SlurmOptions&) = default;
};

// Of one component on one node. Believed from root alone (SO_PEERCRED). The node daemon passes it on with its
// own name known by its session.
struct SlurmStepBegin {
  static constexpr std::uint16_t kType = 0x0B01;
  std::uint32_t version = kSlurmPluginVersion;
  std::string slurm_version;  // "22.05.8"
  JobId job;
  JobId component_job;
  StepId step;  // Slurm's; the batch script's is kBatchStep, as in Slurm
  UserIdentity user;
  std::string user_name;
  std::string job_name;
  std::string partition;              // of the component
  std::string node;                   // SLURMD_NODENAME, which need not be the host's name
  std::uint32_t ntasks = 0;           // of the whole step, over all components
  std::uint32_t ntasks_here = 0;      // of this component on this node
  std::vector<SlurmNodeTasks> nodes;  // of the whole step; sums up to ntasks
  std::vector<std::uint16_t> cores;   // of this node, that the component's job holds
  std::uint32_t restart_count = 0;    // of a requeued job
  bool required = false;              // --msa=yes
  std::uint64_t start_time = 0;       // Unix seconds of the job's start, 0: not known
  SlurmOptions options;
  std::int32_t daemon_pid = 0;  // slurmstepd's
  // Filled in by the node daemon where it tells of a step again: of the job that has accepted it. 0: none
  // yet.
  Incarnation incarnation{0};
  // With an incarnation: it was the node daemon that has just accepted it; the controller has still to judge.
  bool accepted_here = false;
  template <class A>
  void Fields(A& a) {
    a(version, slurm_version, job, component_job, step, user.uid, user.gid, user_name, job_name, partition,
      node, ntasks, ntasks_here, nodes, cores, restart_count, required, start_time, options, daemon_pid,
      incarnation, accepted_here);
  }
};

// The answer, to every node of the step alike. `message` is what the user reads: which node, what to do.
struct SlurmStepVerdict {
  static constexpr std::uint16_t kType = 0x0B02;
  JobId job;
  StepId step;
  bool accepted = false;
  std::string message;         // of a refusal
  std::string job_socket;      // MSA_JOB_SOCKET of this node; filled in by the node daemon
  Incarnation incarnation{0};  // of the job, if accepted
  JobId parent;                // whose companion `job` is: the step is of its job daemon; 0: it is none
  // A refusal that holds also where the node daemon has accepted the step, unless all its tasks have come.
  bool withdrawn = false;
  template <class A>
  void Fields(A& a) {
    a(job, step, accepted, message, job_socket, incarnation, parent, withdrawn);
  }
};

// A task was forked and waits in slurmstepd's hand; it is killed if its job daemon dies.
struct SlurmTaskBegin {
  static constexpr std::uint16_t kType = 0x0B06;
  JobId job;
  StepId step;
  std::uint32_t local_id = 0;
  std::int32_t pid = 0;
  template <class A>
  void Fields(A& a) {
    a(job, step, local_id, pid);
  }
};

// The job daemon of an accepted step is gone, and the step's tasks here are being killed. `message` is what
// the user reads.
struct SlurmStepAbort {
  static constexpr std::uint16_t kType = 0x0B07;
  JobId job;
  StepId step;
  std::string message;
  template <class A>
  void Fields(A& a) {
    a(job, step, message);
  }
};

// A task ended: wait(2)'s status. The job daemon knows the process by its TaskJoin; one that never joined is
// not of its world.
struct SlurmTaskEnd {
  static constexpr std::uint16_t kType = 0x0B03;
  JobId job;
  StepId step;
  std::int32_t pid = 0;
  std::int32_t status = 0;
  bool first = false;  // task 0 of its component: the streams of rank 0 are held until its end is known
  template <class A>
  void Fields(A& a) {
    a(job, step, pid, status, first);
  }
};

// The slurmstepd of the step is gone here, with every task of it.
struct SlurmStepEnd {
  static constexpr std::uint16_t kType = 0x0B04;
  JobId job;
  JobId component_job;
  StepId step;
  template <class A>
  void Fields(A& a) {
    a(job, component_job, step);
  }
};

// The job (a component) has ended on this node: Slurm's epilog runs. Believed from root alone.
struct SlurmJobEnd {
  static constexpr std::uint16_t kType = 0x0B05;
  JobId component_job;
  template <class A>
  void Fields(A& a) {
    a(component_job);
  }
};

// Variables that the job daemon must know of a task: it adds to the first, and leaves the others as the user
// set them.
inline constexpr const char* kSlurmJoinVariables[] = {"LD_PRELOAD", "OMPI_MCA_mpi_yield_when_idle",
                                                      "OMPI_MCA_btl_tcp_if_include"};

// First frame of a task's connection to its job daemon, with the descriptors 1 and 2 of the task beside it
// (SCM_RIGHTS): where msa's own words to the user go, and what spawned children write.
struct SlurmTaskJoin {
  static constexpr std::uint16_t kType = 0x0B10;
  std::uint32_t version = kSlurmPluginVersion;
  JobId job;
  StepId step;
  std::uint32_t rank = 0;  // SLURM_PROCID
  std::uint32_t local_id = 0;
  std::uint32_t ntasks = 0;
  std::vector<std::string> argv;
  std::string cwd;
  // Of a spawned child instead (MSA_SPAWN_TICKET in its environment): which permission, which srun of it, and
  // its number there. Job, step and ntasks are those of that srun.
  std::string ticket;
  std::uint32_t part = 0;
  JobId component_job;
  std::uint32_t cpus_per_task = 1;
  std::vector<std::string> environment;  // "K=V", of kSlurmJoinVariables those that are set
  std::string on_child_failure;  // of the step: "kill", "event"; empty, from an older plugin: the job's
  template <class A>
  void Fields(A& a) {
    a(version, job, step, rank, local_id, ntasks, argv, cwd, ticket, part, component_job, cpus_per_task,
      environment, on_child_failure);
  }
};

// The answer once every process of the world is known on all nodes. With a descriptor beside it where `fd` is
// not negative: to be kept open in the task under that number (PMI-1).
struct SlurmTaskReady {
  static constexpr std::uint16_t kType = 0x0B11;
  std::string refusal;           // for the user; empty: go
  std::vector<std::string> set;  // "K=V", to be set over what the task has
  std::vector<std::string> unset;
  std::int32_t fd = -1;
  template <class A>
  void Fields(A& a) {
    a(refusal, set, unset, fd);
  }
};

}  // namespace msa::wire
