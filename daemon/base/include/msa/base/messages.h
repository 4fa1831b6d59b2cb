#pragma once
// The messages of the local wire format (msa/base/wire.h) that cross a process's edge between the controller,
// the job daemons and msactl. The node daemon relays them unread. Messages between the job daemons of one job
// are pmix-server's own. Type numbers are never reused; fields are only appended.
//
//   0x01xx  job daemon <-> its node daemon, on this connection only
//   0x02xx  controller -> job daemon (through the node daemon)
//   0x03xx  job daemon -> controller (through the node daemon)
//           0x0207-0x020a and 0x0308-0x030b: connect_messages.h; 0x020c, 0x020d, 0x0310-0x0312: nam_relay.h;
//           0x020e, 0x0313: companion_messages.h
//   0x04xx  msactl <-> head job daemon (through the node daemon's Attach stream)
//   0x05xx  job daemon <-> job daemon (pmix-server)
//   0x06xx  task <-> its job daemon over MSA_JOB_SOCKET
//   0x0Axx  enrolment: enrol_messages.h; 0x0Bxx  Slurm's plugin: slurm_messages.h
//   0x07xx, 0x08xx, 0x09xx  network attached memory: nam_messages.h

#include <cstdint>
#include <string>
#include <vector>

#include "msa/base/connect_messages.h"
#include "msa/base/ids.h"
#include "msa/base/nam_relay.h"
#include "msa/base/step_spec.h"

namespace msa::wire {

// Raised when a change is not covered by "fields are only appended". Both sides of a connection must agree.
inline constexpr std::uint32_t kProtocolVersion = 4;

// ------------------------------------------------------------------------------- 0x01xx job daemon <-> node
// daemon

// First frame of a connection, jobd -> noded. noded checks SO_PEERCRED and the cookie that it gave in the
// environment. After a restart of noded every jobd connects again and says what it runs.
struct JobdHello {
  static constexpr std::uint16_t kType = 0x0101;
  std::uint32_t version = kProtocolVersion;
  std::uint32_t pid = 0;
  std::string cookie;
  JobId job;  // 0: warm, not assigned
  Incarnation incarnation;
  std::uint32_t member_index = 0;
  bool is_head = false;
  bool ended = false;     // the job has ended; its exit record waits for ExitAck
  std::string directory;  // its run directory, removed by noded if the jobd dies
  template <class A>
  void Fields(A& a) {
    a(version, pid, cookie, job, incarnation, member_index, is_head, ended, directory);
  }
};

// noded -> jobd: accepted. A refused hello gets its connection closed.
struct JobdWelcome {
  static constexpr std::uint16_t kType = 0x0102;
  std::uint32_t version = kProtocolVersion;
  template <class A>
  void Fields(A& a) {
    a(version);
  }
};

// noded -> jobd: leave now (pool shrinks, job unknown to the controller, cluster down). Tasks are killed
// first.
struct JobdQuit {
  static constexpr std::uint16_t kType = 0x0103;
  std::string reason;
  template <class A>
  void Fields(A& a) {
    a(reason);
  }
};

// ---------------------------------------------------------------------------------- 0x02xx controller -> job
// daemon

// One node's share of a component of a batch job or an allocation.
struct ComponentShare {
  std::uint32_t member = 0;
  std::vector<std::uint16_t> cores;
  std::uint32_t tasks = 0;
  template <class A>
  void Fields(A& a) {
    a(member, cores, tasks);
  }
};

// One component of a batch job or an allocation, as it was placed: what a step takes that says no counts.
struct PlacedComponent {
  std::string module;  // name
  std::uint32_t ntasks = 0;
  std::uint32_t ntasks_per_node = 0;
  std::uint32_t cpus_per_task = 1;
  std::vector<ComponentShare> shares;  // by rank
  template <class A>
  void Fields(A& a) {
    a(module, ntasks, ntasks_per_node, cpus_per_task, shares);
  }
};

// The first message of a job, to every node of it. A jobd that already runs (job, incarnation) ignores it.
//
// mode kBatch: `step` is the script's: id kBatchStep, nspace "msa.<job>.<incarnation>.batch", one app of one
// task on the head member whose argv[0] is the script's name; the head's jobd writes `script` to a file of
// its run directory (mode 0700) and starts that under argv. It holds no slot. mode kAlloc: `step` has no
// apps; the head reports JobStarted at once. In both `components` is filled in and steps come by StepOpen.
struct LaunchJob {
  static constexpr std::uint16_t kType = 0x0201;
  JobId job;
  Incarnation incarnation;
  Epoch epoch;
  std::string secret;  // 32 random bytes, hex; TLS-PSK of the job's jobds
  UserIdentity user;
  std::string user_name;
  std::string job_name;
  std::uint32_t self_index = 0;  // which member the receiver is
  std::uint32_t head_index = 0;  // the member that runs rank 0 of the first step
  bool interactive = false;      // a `msactl run` owns the job and attaches to it
  std::vector<Member> members;
  bool has_step = true;  // false: a member that joins a running job (a grant)
  StepSpec step;
  JobMode mode = JobMode::kStep;
  std::string script;
  std::vector<PlacedComponent> components;
  bool slurms = false;  // Slurm started it and starts its tasks, see slurm_messages.h
  template <class A>
  void Fields(A& a) {
    a(job, incarnation, epoch, secret, user.uid, user.gid, user_name, job_name, self_index, head_index,
      interactive, members, has_step, step, mode, script, components, slurms);
  }
};

// The membership changed: to all members. Nodes that are gone keep their index and are absent from the list.
struct MembersChanged {
  static constexpr std::uint16_t kType = 0x0202;
  Epoch epoch;
  std::vector<Member> members;
  std::string reason;  // why nodes are gone: "node bn1 is down: no heartbeat for 10 s"
  template <class A>
  void Fields(A& a) {
    a(epoch, members, reason);
  }
};

// End the job: SIGTERM (and SIGCONT) to all tasks, SIGKILL after `grace_ms`. To the head, which tells the
// others; if the head's node is gone, to every member. Idempotent; a second one with a smaller grace shortens
// it.
struct CancelJob {
  static constexpr std::uint16_t kType = 0x0203;
  JobState final_state = JobState::kCancelled;  // kCancelled, kTimeout or kNodeFail; of kAlloc also
                                                // kCompleted, kFailed: its owner has ended it
  std::uint32_t grace_ms = 0;
  std::string reason;          // shown to the user
  bool owner_gone = false;     // nobody will attach to hear of it
  std::int32_t exit_code = 0;  // of kCompleted and kFailed
  template <class A>
  void Fields(A& a) {
    a(final_state, grace_ms, reason, owner_gone, exit_code);
  }
};

// Deliver a signal to every task of the job. To the head.
struct SignalJob {
  static constexpr std::uint16_t kType = 0x0204;
  std::int32_t signal = 0;
  template <class A>
  void Fields(A& a) {
    a(signal);
  }
};

// The controller has JobExit on disk. The head tells the other members, all jobds leave.
struct ExitAck {
  static constexpr std::uint16_t kType = 0x0205;
  template <class A>
  void Fields(A& a) {
    (void)a;
  }
};

// Cores of a node that were lent.
struct GrantShare {
  std::uint32_t member = 0;
  std::vector<std::uint16_t> cores;
  template <class A>
  void Fields(A& a) {
    a(member, cores);
  }
};

// Answer to GrantAsk with the same `request`. On success a MembersChanged with the new nodes was sent before
// it, and a LaunchJob without step to each of them.
struct GrantAnswer {
  static constexpr std::uint16_t kType = 0x0206;
  std::uint64_t request = 0;
  GrantId grant;                       // 0: refused; and no reason: ask again, the job had more than it knew
  Epoch epoch;                         // of the membership that contains the grant
  std::vector<std::uint32_t> members;  // indices of the nodes lent
  std::string reason;                  // of a refusal: what is free, what was asked, when it could start
  std::uint32_t slots = 0;             // lent: GrantAsk::slots or one of its alternatives
  std::vector<GrantShare> shares;      // what was lent: of nodes that the job had before, too
  JobId slurm_job;                     // of Slurm, that holds them; 0: lent by ourselves
  template <class A>
  void Fields(A& a) {
    a(request, grant, epoch, members, reason, slots, shares, slurm_job);
  }
};

// To the head: end the namespaces that use slots of the grant, as when a child fails, start no others there,
// and release it (GrantRelease). Idempotent.
struct RecallGrant {
  static constexpr std::uint16_t kType = 0x020b;
  GrantId grant;
  std::string reason;  // shown to the user: "grant 3 is released by ada"
  template <class A>
  void Fields(A& a) {
    a(grant, reason);
  }
};

// ---------------------------------------------------------------------------------- 0x03xx job daemon ->
// controller

// From the head: every task of the first step was started.
struct JobStarted {
  static constexpr std::uint16_t kType = 0x0301;
  std::int64_t at_ms = 0;  // Unix milliseconds
  template <class A>
  void Fields(A& a) {
    a(at_ms);
  }
};

// From the head: a namespace began or ended (steps and spawns), for `job show`.
struct NamespaceReport {
  static constexpr std::uint16_t kType = 0x0302;
  std::string nspace;
  std::string parent;  // empty: a step
  std::uint32_t size = 0;
  std::vector<std::string> nodes;
  std::string command;  // argv[0] of the first app
  bool ended = false;
  std::int32_t exit_code = 0;
  GrantId grant;                // the last of `grants`; 0: none
  std::vector<GrantId> grants;  // whose slots it uses, or has used
  template <class A>
  void Fields(A& a) {
    a(nspace, parent, size, nodes, command, ended, exit_code, grant, grants);
  }
};

// From the head: a spawn needs `slots` more slots than the job has free. Idempotent by (job, incarnation,
// request).
struct GrantAsk {
  static constexpr std::uint16_t kType = 0x0303;
  std::uint64_t request = 0;  // unique in the job
  std::uint32_t slots = 0;
  std::vector<std::string> nodes;  // only on these nodes, by name (the `host` key); empty: any
  std::string module;              // name or kind; empty: any, the asking job's modules first
  std::int64_t wait_ms = 0;        // how long the answer may take
  // Fewer slots that would do as well, descending (the smaller members of MPI's `soft` set). `slots` is tried
  // until wait_ms has passed, then these.
  std::vector<std::uint32_t> alternatives;
  std::uint32_t slots_per_node = 0;  // use at most so many slots of a node; 0: all
  std::uint32_t nodes_exactly = 0;   // lend exactly so many nodes; 0: as few as hold the slots
  std::int64_t time_ms = 0;          // the nodes are given back by then; 0: when the job ends
  template <class A>
  void Fields(A& a) {
    a(request, slots, nodes, module, wait_ms, alternatives, slots_per_node, nodes_exactly, time_ms);
  }
};

// From the head: the last namespace on the grant's nodes has ended. Idempotent.
struct GrantRelease {
  static constexpr std::uint16_t kType = 0x0304;
  GrantId grant;
  template <class A>
  void Fields(A& a) {
    a(grant);
  }
};

// From the head: nobody waits for the answer any more (the asking process has ended). A grant that crosses it
// on the way is released by the head.
struct GrantWithdraw {
  static constexpr std::uint16_t kType = 0x0307;
  std::uint64_t request = 0;
  template <class A>
  void Fields(A& a) {
    a(request);
  }
};

// From the head, once, until ExitAck: the exit record of the job. The same bytes stand, synced, in the file
// "exit" of the head jobd's run directory, so that noded can deliver it for a jobd that died.
struct JobExit {
  static constexpr std::uint16_t kType = 0x0305;
  JobId job;
  Incarnation incarnation;
  JobState state = JobState::kCompleted;
  std::int32_t exit_code = 0;  // as srun: the highest of the tasks' codes, 128 + N for a death by signal N
  std::string message;         // empty for a clean end; else what happened, for people
  std::int64_t started_at_ms = 0;  // 0: never started
  std::int64_t ended_at_ms = 0;
  std::uint32_t tasks_total = 0;
  std::uint32_t tasks_failed = 0;
  std::vector<TaskEnd> failed;  // at most 64, lowest ranks first
  template <class A>
  void Fields(A& a) {
    a(job, incarnation, state, exit_code, message, started_at_ms, ended_at_ms, tasks_total, tasks_failed,
      failed);
  }
};

// From a member: it cannot go on (its peer died, its launch failed before the head was reached).
struct MemberFailed {
  static constexpr std::uint16_t kType = 0x0306;
  std::uint32_t index = 0;
  std::string reason;
  template <class A>
  void Fields(A& a) {
    a(index, reason);
  }
};

// ------------------------------------------------------------------------------- 0x04xx msactl <-> head job
// daemon

// First message of a session. The output of a job is one sequence of records, numbered from 1; the head keeps
// what its owner has not acknowledged (at most kStdioWindowBytes, then tasks block), and a new session
// resumes after `acked`.
struct AttachOpen {
  static constexpr std::uint16_t kType = 0x0401;
  bool owner =
      false;  // the msactl run that owns the job: its acknowledgements count, its stdin goes to rank 0
  std::uint64_t acked = 0;  // last record seen; a viewer starts with what comes next
  bool wants_stdin = false;
  template <class A>
  void Fields(A& a) {
    a(owner, acked, wants_stdin);
  }
};
inline constexpr std::uint32_t kStdioWindowBytes = 4u << 20;
// A record carries at most this much; larger reads are cut.
inline constexpr std::uint32_t kStdioChunkBytes = 64u << 10;

enum class Stream : std::uint8_t { kOut = 1, kErr = 2 };

struct Output {
  static constexpr std::uint16_t kType = 0x0402;
  std::uint64_t seq = 0;
  std::uint32_t spawn = 0;  // 0: the step; else the number of the spawned namespace
  Rank rank;
  Stream stream = Stream::kOut;
  std::string data;
  template <class A>
  void Fields(A& a) {
    a(seq, spawn, rank, stream, data);
  }
};

// msactl -> head: everything up to `seq` is written. At least once each 256 KiB and when the stream is idle.
struct OutputAck {
  static constexpr std::uint16_t kType = 0x0403;
  std::uint64_t seq = 0;
  template <class A>
  void Fields(A& a) {
    a(seq);
  }
};

// msactl -> head: bytes for rank 0, in order. `offset` counts from 0 over the job, so that a resumed session
// repeats none.
struct Input {
  static constexpr std::uint16_t kType = 0x0404;
  std::uint64_t offset = 0;
  std::string data;
  bool eof = false;
  template <class A>
  void Fields(A& a) {
    a(offset, data, eof);
  }
};

// head -> msactl: bytes of stdin up to `offset` were taken; msactl sends at most kStdioWindowBytes beyond it.
// Sent once after AttachOpen with the offset to go on from.
struct InputAck {
  static constexpr std::uint16_t kType = 0x0405;
  std::uint64_t offset = 0;
  bool closed = false;  // rank 0 has closed its stdin or ended: send no more
  template <class A>
  void Fields(A& a) {
    a(offset, closed);
  }
};

// msactl -> head: deliver a signal to every task.
struct ClientSignal {
  static constexpr std::uint16_t kType = 0x0406;
  std::int32_t signal = 0;
  template <class A>
  void Fields(A& a) {
    a(signal);
  }
};

// head -> msactl: a line for the user's stderr (without "msactl: " and newline): a task failed, the step was
// aborted, ...
struct Notice {
  static constexpr std::uint16_t kType = 0x0407;
  std::uint64_t seq = 0;  // numbered and acknowledged as Output is
  std::string text;
  template <class A>
  void Fields(A& a) {
    a(seq, text);
  }
};

// One component of a step inside a job. Counts are 0 where the user gave none: then the placed component's.
struct StepComponent {
  static constexpr std::uint32_t kAnyComponent = 0xffffffff;
  std::uint32_t component = kAnyComponent;  // of the job (--het-group); any: by `module`, else the first
  std::string module;                       // name or kind; empty: the component's
  std::uint32_t min_nodes = 0;
  std::uint32_t max_nodes = 0;
  std::uint32_t ntasks = 0;
  std::uint32_t ntasks_per_node = 0;
  std::uint32_t cpus_per_task = 0;
  std::vector<std::string> nodelist;
  std::vector<std::string> exclude;
  std::vector<std::string> argv;
  std::vector<std::string> env;  // "K=V", for this component only
  std::string cwd;               // absolute; empty: the step's
  template <class A>
  void Fields(A& a) {
    a(component, module, min_nodes, max_nodes, ntasks, ntasks_per_node, cpus_per_task, nodelist, exclude,
      argv, env, cwd);
  }
};

// First message of a session instead of AttachOpen, by the job's owner (uid): run a step in the job's own
// slots. The head waits until they are free, starts it, and the session carries that step's streams alone,
// with sequence numbers of its own; its SessionEnd carries the step's code. A session with the token of a
// step that is known goes on with it (a reconnect). The step is ended when its session stays away for 2 s.
struct StepOpen {
  static constexpr std::uint16_t kType = 0x0409;
  std::string token;  // random, from msactl
  std::string name;
  std::vector<StepComponent> components;
  std::vector<std::string> env;
  std::string cwd;
  StdioSpec stdio;
  KillPolicy kill_policy = KillPolicy::kMpi;
  bool bind = true;
  OnChildFailure on_child_failure = OnChildFailure::kKill;
  bool mpi_library = true;
  std::vector<ResourceLimit> limits;
  bool overlap = false;            // may use slots that other steps use (srun --overlap)
  std::uint32_t time_limit_s = 0;  // of the step; 0: the job's
  std::uint32_t immediate_s = 0;   // refused if not started by then; 0: wait
  std::uint64_t acked = 0;
  bool wants_stdin = false;
  template <class A>
  void Fields(A& a) {
    a(token, name, components, env, cwd, stdio, kill_policy, bind, on_child_failure, mpi_library, limits,
      overlap, time_limit_s, immediate_s, acked, wants_stdin);
  }
};

// head -> msactl: how a StepOpen stands; each change. A refusal is a SessionEnd with
// `refusal`.
struct StepStatus {
  static constexpr std::uint16_t kType = 0x040a;
  StepId step;
  bool running = false;
  std::string reason;  // why it waits
  template <class A>
  void Fields(A& a) {
    a(step, running, reason);
  }
};

// head -> msactl: the job has ended and all its output was sent before this.
struct SessionEnd {
  static constexpr std::uint16_t kType = 0x0408;
  std::uint64_t seq = 0;
  JobState state = JobState::kCompleted;
  std::int32_t exit_code = 0;
  std::string message;
  std::int32_t refusal = 0;  // of a StepOpen: exit code of msactl (2 usage, 5 can never be placed, ...)
  template <class A>
  void Fields(A& a) {
    a(seq, state, exit_code, message, refusal);
  }
};

}  // namespace msa::wire
