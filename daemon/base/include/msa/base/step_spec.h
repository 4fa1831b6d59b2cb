#pragma once
// What the messages of the local wire format (msa/base/messages.h) are made of: nodes, programs, steps.
// Nested parts are fixed within one protocol version.

#include <cstdint>
#include <string>
#include <vector>

#include "msa/base/ids.h"

namespace msa::wire {

// One node of a job. `index` is its place in the membership list and never changes during the job.
struct Member {
  std::uint32_t index = 0;
  std::string node;  // "bn0"
  ModuleId module;
  std::string module_name;           // "booster"
  std::string module_kind;           // "booster", "cluster", ... as in the topology file
  std::vector<std::uint16_t> cores;  // logical core indices of the node that the job holds; one slot each
  std::string address;  // where the member's jobd listens for its peers: "unix:PATH" or "tcp:HOST:PORT"
  GrantId grant;        // 0: a node of the job's components; else the grant that lent it
  bool oversubscribed = false;  // the node's description claims more cores than the machine has: do not bind
  template <class A>
  void Fields(A& a) {
    a(index, node, module, module_name, module_kind, cores, address, grant, oversubscribed);
  }
};

// One program of a step: a component of `msactl run`, or one command of MPI_Comm_spawn_multiple.
// Ranks are consecutive: an app's first rank follows the last of the app before it.
struct App {
  std::uint32_t component = 0;  // index in the step, from 0; a spawn's commands count from 0 again
  std::vector<std::string>
      argv;  // argv[0] is looked up in the task's PATH, relative to `cwd`, when it has no '/'
  std::vector<std::string> env;  // "K=V", added to the step's environment for this app
  std::string cwd;               // absolute; empty: the step's
  std::uint32_t ntasks = 1;
  std::uint32_t cpus_per_task = 1;
  template <class A>
  void Fields(A& a) {
    a(component, argv, env, cwd, ntasks, cpus_per_task);
  }
};

// Where the standard streams go. Patterns are srun's: %j job, %s step, %t rank, %n node number in the job, %N
// node name, %u user, %% percent. A pattern without %t, %n or %N is one file, written by the head node's
// jobd.
struct StdioSpec {
  std::string out;     // empty: carried to the attached msactl; "none": dropped; else a pattern
  std::string err;     // empty: as out if out is a file, else carried
  std::string in;      // empty: from the attached msactl to rank 0; "none": /dev/null; else a file for rank 0
  bool label = false;  // lines are prefixed by msactl with "RANK: "
  bool append = false;  // open files with O_APPEND instead of O_TRUNC
  template <class A>
  void Fields(A& a) {
    a(out, err, in, label, append);
  }
};

enum class KillPolicy : std::uint8_t {
  kMpi = 0,     // the step is ended when a task that joined PMIx ends before it finalised, or calls abort
  kAlways = 1,  // also when any task ends with a code other than 0 or by a signal (srun --kill-on-bad-exit)
  kNever = 2,   // only an abort ends it
};

// What becomes of the namespaces still connected to one whose process died (`--on-child-failure`). They get
// the PMIx event PMIX_ERR_PROC_TERM_WO_SYNC first, either way.
enum class OnChildFailure : std::uint8_t { kKill = 0, kEvent = 1 };

// One of setrlimit(2)'s limits, by the kernel's number (RLIMIT_NOFILE, ...); ~0 is RLIM_INFINITY.
struct ResourceLimit {
  std::int32_t resource = 0;
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
  template <class A>
  void Fields(A& a) {
    a(resource, soft, hard);
  }
};

// What a job is.
enum class JobMode : std::uint8_t {
  kStep = 0,   // one step; the job lasts until its last namespace ends
  kBatch = 1,  // a script on the head node, which runs steps in the job; the job lasts as long as the script
  kAlloc = 2,  // nodes for steps that its owner starts; the job lasts until its owner ends it
};

// The script of a batch job has a step id of its own (as Slurm's SLURM_BATCH_SCRIPT); steps count from 0.
inline constexpr StepId kBatchStep{0xfffffffb};

// One launch: a namespace.
struct StepSpec {
  StepId step;
  std::string nspace;  // "msa.<job>.<incarnation>.<step>[.<spawn number>]"
  std::string name;    // for people
  std::vector<App> apps;
  std::vector<std::uint32_t> rank_member;  // member index of each rank; its length is the step's size
  std::vector<std::string> env;            // "K=V", whole environment of the user's submission
  std::string cwd;
  StdioSpec stdio;
  KillPolicy kill_policy = KillPolicy::kMpi;
  bool bind = true;                // bind tasks to their cores where the node is not oversubscribed
  std::uint32_t time_limit_s = 0;  // enforced by the controller; 0: none. Informational here
  OnChildFailure on_child_failure = OnChildFailure::kKill;
  bool mpi_library = true;            // put libmsampi into the tasks' environment
  std::vector<ResourceLimit> limits;  // those of the submission; others are as the node daemon's
  template <class A>
  void Fields(A& a) {
    a(step, nspace, name, apps, rank_member, env, cwd, stdio, kill_policy, bind, time_limit_s,
      on_child_failure, mpi_library, limits);
  }
};

enum class JobState : std::uint8_t {
  kPending = 0,    // in the queue
  kStarting = 1,   // nodes are held, launch sent
  kRunning = 2,    // the tasks of its step were started
  kEnding = 3,     // cancel or time limit under way, nodes still held
  kCompleted = 4,  // all tasks ended with code 0
  kFailed = 5,     // a task failed, or the launch did
  kCancelled = 6,
  kTimeout = 7,
  kNodeFail = 8,  // lost a node
};
constexpr bool IsFinal(JobState s) { return s >= JobState::kCompleted; }

struct TaskEnd {
  Rank rank;
  std::uint32_t component = 0;
  std::string node;
  std::int32_t exit_code = 0;  // of exit(); 0 if ended by a signal
  std::int32_t signal = 0;     // 0 if it exited
  bool core_dumped = false;
  template <class A>
  void Fields(A& a) {
    a(rank, component, node, exit_code, signal, core_dumped);
  }
};

}  // namespace msa::wire
