#pragma once
// Messages between the job daemons of one job (0x05xx of the local wire format), over the peer mesh. The head
// is the member that decides; "member" below is any of them, the head included (it sends to itself through
// the loop).

#include <cstdint>
#include <string>
#include <vector>

#include "msa/base/ids.h"
#include "msa/base/messages.h"
#include "msa/jobd/task_messages.h"
#include "msa/pmix/collective.h"
#include "msa/pmix/types.h"

namespace msa::jobd {

// ---------------------------------------------------------------------------------------------- connection

// First frame of a connection, from the side that connected.
struct PeerHello {
  static constexpr std::uint16_t kType = 0x0501;
  std::uint32_t version = wire::kProtocolVersion;
  JobId job;
  Incarnation incarnation;
  std::uint32_t index = 0;  // the sender's, in the membership
  Epoch epoch;              // of the membership that the sender knows
  template <class A>
  void Fields(A& a) {
    a(version, job, incarnation, index, epoch);
  }
};

struct PeerWelcome {
  static constexpr std::uint16_t kType = 0x0502;
  std::uint32_t index = 0;  // of the side that accepted
  template <class A>
  void Fields(A& a) {
    a(index);
  }
};

// The hello was not believed; the connection is closed after it.
struct PeerRefused {
  static constexpr std::uint16_t kType = 0x0503;
  std::string reason;
  bool retry = false;  // the accepting side's membership is older than the hello's: try again
  template <class A>
  void Fields(A& a) {
    a(reason, retry);
  }
};

// ---------------------------------------------------------------------------------------------- namespaces

// Head -> every member: know this namespace. Sent again to members that join later.
struct NamespaceRegister {
  static constexpr std::uint16_t kType = 0x0510;
  wire::StepSpec spec;
  std::uint32_t spawn = 0;               // 0: a step; else the number of the spawn in its job
  std::vector<std::string> nodes;        // names of the nodes that run ranks
  std::vector<std::uint32_t> rank_node;  // index into nodes, for each rank
  std::string parent;                    // namespace of the task that spawned it; empty: a step
  std::uint32_t parent_rank = 0;
  std::uint32_t universe = 0;  // slots of the job
  template <class A>
  void Fields(A& a) {
    a(spec, spawn, nodes, rank_node, parent, parent_rank, universe);
  }
};

// Member -> head: registered; or not, with the reason.
struct NamespaceReady {
  static constexpr std::uint16_t kType = 0x0511;
  std::string nspace;
  std::string error;  // empty: registered
  template <class A>
  void Fields(A& a) {
    a(nspace, error);
  }
};

struct TaskPlace {
  Rank rank;
  std::vector<std::uint16_t> cores;  // to bind to; empty: not bound
  std::uint32_t part = 0;            // of a child that Slurm starts: which srun, and
  std::uint32_t number = 0;          // its number there
  template <class A>
  void Fields(A& a) {
    a(rank, cores, part, number);
  }
};

// Head -> members with ranks of it: start these.
struct NamespaceStart {
  static constexpr std::uint16_t kType = 0x0512;
  std::string nspace;
  std::vector<TaskPlace> tasks;
  bool want_stdin = false;  // rank 0 reads what the owner's session sends
  template <class A>
  void Fields(A& a) {
    a(nspace, tasks, want_stdin);
  }
};

struct TaskFailure {
  Rank rank;
  std::int32_t exit_code = 127;
  std::string message;
  template <class A>
  void Fields(A& a) {
    a(rank, exit_code, message);
  }
};

// Member -> head: every task of the NamespaceStart has exec'ed, failed to, or is not started any more, since
// the namespace is being ended or another one of it failed. Ends of its tasks may come before it.
struct TasksStarted {
  static constexpr std::uint16_t kType = 0x0513;
  std::string nspace;
  std::uint32_t started = 0;
  std::vector<TaskFailure> failures;
  std::vector<Rank> skipped;  // not started any more
  template <class A>
  void Fields(A& a) {
    a(nspace, started, failures, skipped);
  }
};

// Member -> head: a task ended; all its output was sent before.
struct TaskEnded {
  static constexpr std::uint16_t kType = 0x0514;
  std::string nspace;
  wire::TaskEnd end;
  bool connected = false;  // it reached the PMIx or the PMI-1 server
  bool finalized = false;  // and finalised
  bool singleton = false;  // an MPI program that ran alone, see launch::TaskExit
  std::string mpi_library;
  template <class A>
  void Fields(A& a) {
    a(nspace, end, connected, finalized, singleton, mpi_library);
  }
};

// Head -> member: to every task of the namespace (empty: of all).
struct NamespaceSignal {
  static constexpr std::uint16_t kType = 0x0515;
  std::string nspace;
  std::int32_t signal = 0;
  bool ending = false;         // the head ends it: what is not started yet is not started any more
  std::int32_t exit_code = 0;  // with SIGTERM: the code of the failure that ends it; 0: none
  template <class A>
  void Fields(A& a) {
    a(nspace, signal, ending, exit_code);
  }
};

// Head -> member: SIGKILL to all tasks of the namespace (empty: of all) and to everything that descends from
// them.
struct NamespaceKill {
  static constexpr std::uint16_t kType = 0x0516;
  std::string nspace;
  template <class A>
  void Fields(A& a) {
    a(nspace);
  }
};

// Head -> member: all its tasks have ended everywhere; forget it, kill what they left behind.
struct NamespaceDeregister {
  static constexpr std::uint16_t kType = 0x0517;
  std::string nspace;
  template <class A>
  void Fields(A& a) {
    a(nspace);
  }
};

// ------------------------------------------------------------------------------------- standard streams

// Member -> head. A member sends at most kOutputCredit bytes of a step beyond what OutputCredit returned.
struct TaskOutput {
  static constexpr std::uint16_t kType = 0x0520;
  std::string nspace;
  Rank rank;
  wire::Stream stream = wire::Stream::kOut;
  std::string data;
  template <class A>
  void Fields(A& a) {
    a(nspace, rank, stream, data);
  }
};
// Four chunks: enough to keep the pipe of a local link full, and 64 members stay within 16 MiB at the head.
inline constexpr std::uint64_t kOutputCredit = 4 * wire::kStdioChunkBytes;

struct OutputCredit {
  static constexpr std::uint16_t kType = 0x0521;
  std::uint64_t bytes = 0;
  StepId step;  // whose output, and that of what it spawned: a slow reader of one step stops no other
  template <class A>
  void Fields(A& a) {
    a(bytes, step);
  }
};

// Head -> member of rank 0.
struct TaskInput {
  static constexpr std::uint16_t kType = 0x0522;
  std::string nspace;
  Rank rank;
  std::string data;
  bool eof = false;
  template <class A>
  void Fields(A& a) {
    a(nspace, rank, data, eof);
  }
};

struct InputTaken {
  static constexpr std::uint16_t kType = 0x0523;
  std::uint64_t bytes = 0;
  bool closed = false;
  std::string nspace;
  template <class A>
  void Fields(A& a) {
    a(bytes, closed, nspace);
  }
};

// ------------------------------------------------------------------------------------- PMIx operations
// Requests carry Frame.id (unique at the sender, not 0), replies the same.

struct ModexRequest {
  static constexpr std::uint16_t kType = 0x0531;
  pmix::Proc proc;
  template <class A>
  void Fields(A& a) {
    a(proc);
  }
};

struct ModexReply {
  static constexpr std::uint16_t kType = 0x0532;
  pmix::PmixStatus status = 0;
  std::string data;
  template <class A>
  void Fields(A& a) {
    a(status, data);
  }
};

struct StorePublish {
  static constexpr std::uint16_t kType = 0x0533;
  pmix::Proc proc;
  pmix::Range range = pmix::Range::kSession;
  pmix::Persistence persistence = pmix::Persistence::kApp;
  std::vector<pmix::KeyValue> data;
  template <class A>
  void Fields(A& a) {
    a(proc, range, persistence, data);
  }
};

struct StoreLookup {
  static constexpr std::uint16_t kType = 0x0534;
  pmix::Proc proc;
  std::vector<std::string> keys;
  pmix::Range range = pmix::Range::kSession;
  bool wait = false;
  std::uint32_t timeout_s = 0;
  template <class A>
  void Fields(A& a) {
    a(proc, keys, range, wait, timeout_s);
  }
};

struct StoreUnpublish {
  static constexpr std::uint16_t kType = 0x0535;
  pmix::Proc proc;
  std::vector<std::string> keys;
  pmix::Range range = pmix::Range::kSession;
  template <class A>
  void Fields(A& a) {
    a(proc, keys, range);
  }
};

struct StoreValue {
  pmix::Proc proc;
  pmix::KeyValue value;
  template <class A>
  void Fields(A& a) {
    a(proc, value);
  }
};

// Answer to all three; values only for a lookup.
struct StoreReply {
  static constexpr std::uint16_t kType = 0x0536;
  pmix::PmixStatus status = 0;
  std::vector<StoreValue> values;
  template <class A>
  void Fields(A& a) {
    a(status, values);
  }
};

struct SpawnApp {
  std::vector<std::string> argv;
  std::vector<std::string> env;
  std::string cwd;
  std::uint32_t maxprocs = 1;
  std::vector<std::string> hosts;
  std::vector<std::string> unknown;
  template <class A>
  void Fields(A& a) {
    a(argv, env, cwd, maxprocs, hosts, unknown);
  }
};

struct SpawnRequest {
  static constexpr std::uint16_t kType = 0x0538;
  pmix::Proc proc;
  std::vector<SpawnApp> apps;
  std::uint32_t timeout_s = 0;
  template <class A>
  void Fields(A& a) {
    a(proc, apps, timeout_s);
  }
};

struct SpawnReply {
  static constexpr std::uint16_t kType = 0x0539;
  pmix::PmixStatus status = 0;
  std::string nspace;
  template <class A>
  void Fields(A& a) {
    a(status, nspace);
  }
};

// One command of a planned spawn, its keys parsed.
struct PlanCommand {
  std::string program;                // for texts
  std::vector<std::uint32_t> counts;  // how many processes will do, descending
  std::string module;                 // name, kind or id; empty: any
  std::vector<std::string> hosts;     // as SpawnApp::hosts
  std::uint32_t nodes = 0;            // spread over exactly so many; 0: as few as hold them
  std::uint32_t per_node = 0;         // at most so many on a node; 0: as the slots allow
  template <class A>
  void Fields(A& a) {
    a(program, counts, module, hosts, nodes, per_node);
  }
};

// Member -> head: a task asks before it spawns (SpawnAsk). Answered by PlanReply.
struct PlanRequest {
  static constexpr std::uint16_t kType = 0x0550;
  pmix::Proc proc;
  std::vector<PlanCommand> commands;
  std::int64_t wait_ms = 0;
  std::int64_t time_ms = 0;  // the children are ended after it; 0: never
  std::vector<std::string> unknown;
  Bytes
      nam;  // network attached memory that the job's allotment is to grow by, once all processes have a place
  template <class A>
  void Fields(A& a) {
    a(proc, commands, wait_ms, time_ms, unknown, nam);
  }
};

struct PlanReply {
  static constexpr std::uint16_t kType = 0x0551;
  wire::SpawnRefusal refusal = wire::SpawnRefusal::kNone;
  std::string reason;
  std::string ticket;
  std::string nspace;
  std::vector<std::uint32_t> counts;
  template <class A>
  void Fields(A& a) {
    a(refusal, reason, ticket, nspace, counts);
  }
};

// Member -> head: what was planned is not wanted any more. `request`: the id of the PlanRequest, answered or
// not.
struct PlanDrop {
  static constexpr std::uint16_t kType = 0x0552;
  std::uint64_t request = 0;
  template <class A>
  void Fields(A& a) {
    a(request);
  }
};

struct AbortRequest {
  static constexpr std::uint16_t kType = 0x053a;
  pmix::Proc proc;
  std::int32_t exit_code = 0;
  std::string message;
  std::vector<pmix::Proc> targets;
  template <class A>
  void Fields(A& a) {
    a(proc, exit_code, message, targets);
  }
};

// Member -> head: these namespaces were joined (MPI_Comm_connect, spawn) or parted (MPI_Comm_disconnect).
struct NamespacesLinked {
  static constexpr std::uint16_t kType = 0x053b;
  std::vector<std::string> nspaces;
  bool linked = true;
  template <class A>
  void Fields(A& a) {
    a(nspaces, linked);
  }
};

// Member -> head, when it changes: whether tasks of the namespace here have joined their MPI world and not
// left it. The first: a task of it has reached a server.
struct NamespaceConnected {
  static constexpr std::uint16_t kType = 0x053c;
  std::string nspace;
  bool pmix = true;   // through PMIx (Open MPI)
  bool pmi1 = false;  // through PMI-1 (MPICH) and not through PMIx
  template <class A>
  void Fields(A& a) {
    a(nspace, pmix, pmi1);
  }
};

// Member -> head: for the user, about a task of the namespace. Shown once for each text.
struct TaskNotice {
  static constexpr std::uint16_t kType = 0x053f;
  std::string nspace;
  Rank rank;
  std::string text;
  bool of_node = false;  // not of a task but of the node: shown once a job, whichever node says it
  template <class A>
  void Fields(A& a) {
    a(nspace, rank, text, of_node);
  }
};

// Head -> members: tell the tasks of `targets` here of a PMIx event about `source`.
struct NamespaceEvent {
  static constexpr std::uint16_t kType = 0x0543;
  pmix::PmixStatus event = 0;
  pmix::Proc source;
  std::vector<std::string> targets;
  template <class A>
  void Fields(A& a) {
    a(event, source, targets);
  }
};

// ---------------------------------------------------------------------------------------------- other jobs
// Between the heads of two jobs that are linked, StorePublish, StoreLookup and StoreReply pass too, about
// keys of ports that the receiver's job has opened.

// Head -> head: processes of this namespace of mine take part from now on. What follows on the link is about
// it. Head -> members: host it, without ranks here. `spec` has no environment, `nodes` are the other job's.
struct ForeignRegister {
  static constexpr std::uint16_t kType = 0x0560;
  NamespaceRegister reg;
  JobId job;
  template <class A>
  void Fields(A& a) {
    a(reg, job);
  }
};

// Member -> head: hosted; or not, with the reason.
struct ForeignReady {
  static constexpr std::uint16_t kType = 0x0561;
  std::string nspace;
  std::string error;
  template <class A>
  void Fields(A& a) {
    a(nspace, error);
  }
};

// Head -> head, head -> members: it has ended.
struct ForeignEnded {
  static constexpr std::uint16_t kType = 0x0562;
  std::string nspace;
  bool failed = false;
  std::string reason;
  template <class A>
  void Fields(A& a) {
    a(nspace, failed, reason);
  }
};

// Member -> head: its part of a collective operation over processes of several jobs; answered by
// ForeignResult. All count the operations over the same processes alike, see msa/pmix/collective.h.
struct ForeignCollective {
  static constexpr std::uint16_t kType = 0x0563;
  pmix::CollectiveKey key;
  std::string data;
  std::uint32_t timeout_s = 0;
  template <class A>
  void Fields(A& a) {
    a(key, data, timeout_s);
  }
};

// Head -> head: the part of the sender's job; or the operation has failed.
struct ForeignPart {
  static constexpr std::uint16_t kType = 0x0564;
  pmix::CollectiveKey key;
  std::string data;
  pmix::PmixStatus status = pmix::kPmixSuccess;
  std::string reason;
  template <class A>
  void Fields(A& a) {
    a(key, data, status, reason);
  }
};

struct ForeignResult {
  static constexpr std::uint16_t kType = 0x0565;
  pmix::PmixStatus status = pmix::kPmixSuccess;
  std::string data;
  std::string reason;
  template <class A>
  void Fields(A& a) {
    a(status, data, reason);
  }
};

// The modex blob of a process of another job: member -> head -> other head -> member that has it.
struct ForeignModex {
  static constexpr std::uint16_t kType = 0x0566;
  pmix::Proc proc;
  template <class A>
  void Fields(A& a) {
    a(proc);
  }
};

// Head -> member: the blob of a rank of yours, for another job; answered by ForeignModexReply.
struct ForeignModexServe {
  static constexpr std::uint16_t kType = 0x0568;
  pmix::Proc proc;
  template <class A>
  void Fields(A& a) {
    a(proc);
  }
};

// The answer, on the way back to the head that asked for it.
struct ForeignModexReply {
  static constexpr std::uint16_t kType = 0x0567;
  pmix::PmixStatus status = 0;
  std::string data;
  template <class A>
  void Fields(A& a) {
    a(status, data);
  }
};

// ------------------------------------------------------------------------------------- membership, end

// Head -> members: the membership as the controller told it; newer epochs win.
struct Membership {
  static constexpr std::uint16_t kType = 0x0540;
  Epoch epoch;
  std::vector<wire::Member> members;
  std::string reason;
  template <class A>
  void Fields(A& a) {
    a(epoch, members, reason);
  }
};

// Head -> members: the connection to this member broke; its operations fail.
struct MemberGone {
  static constexpr std::uint16_t kType = 0x0541;
  std::uint32_t index = 0;
  std::string reason;
  template <class A>
  void Fields(A& a) {
    a(index, reason);
  }
};

// Head -> members: the job's end is on the controller's disk; leave.
struct JobEnd {
  static constexpr std::uint16_t kType = 0x0542;
  std::string reason;
  template <class A>
  void Fields(A& a) {
    a(reason);
  }
};

}  // namespace msa::jobd
