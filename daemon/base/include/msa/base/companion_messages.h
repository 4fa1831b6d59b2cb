#pragma once
// What goes to and comes from msa-companion, which asks Slurm for nodes in a user's name: with the agent
// (msa/base/slurm_agent_messages.h) the only program of msa that links libslurm. Local wire format
// (msa/base/wire.h) over a socketpair, whose other end the program has as descriptor kSlurmHelperFd; type
// numbers are never reused, fields are only appended.
//
//   job daemon --CompanionAsk-->      msa-companion    once, first: one process per ask, as the user
//              <--CompanionPending--                   queued by Slurm; again whenever what it waits for
//              changes
//              <--CompanionGranted-- or <--CompanionRefused--    the answer. Refused is the last message
//              --CompanionShrink-->                    after Granted: give nodes back, keep others
//              <--CompanionGranted-- or <--CompanionKept--
//              --CompanionRelease-->                   at any time: cancel the job
//              <--CompanionEnded--                     the job is over, whoever ended it; the last message
//
// Closing the job daemon's end is a Release without an answer. The program stays as long as its job may live:
// after Refused it ends when nothing of the ask is left in Slurm. A program that is killed leaves its job
// behind; it is cancelled when its parent is over (SlurmCancelOrphans).
//
// Job ids are Slurm's: a component of a heterogeneous job has its own, its leader's is the one that users
// know. Times are Unix seconds, 0: not known. Spans are milliseconds. "Reason" is Slurm's word ("Resources"),
// what squeue shows; a "message" is for people and says what to do.

#include <cstdint>
#include <string>
#include <vector>

#include "msa/base/ids.h"
#include "msa/base/status.h"
#include "msa/base/wire.h"

namespace msa::wire {

inline constexpr std::uint32_t kSlurmHelperVersion = 1;
inline constexpr int kSlurmHelperFd = 3;

struct SlurmNodeCores {
  std::string node;
  std::vector<std::uint16_t> cores;  // of the node that the job holds, from 0, ascending
  template <class A>
  void Fields(A& a) {
    a(node, cores);
  }
};

// ----------------------------------------------------------------------- job daemon -> msa-companion

// Sizes as in GrantAsk, where a slot is a core.
struct CompanionAsk {
  static constexpr std::uint16_t kType = 0x0B20;
  std::uint32_t version = kSlurmHelperVersion;
  JobId parent;                    // the leader's id; account, QOS and end are the parent's
  std::uint32_t restarts = 0;      // SLURM_RESTART_COUNT of the parent, until Slurm has said so
  std::uint64_t request = 0;       // GrantAsk::request; the job is named "msa:<parent>.<request>"
  std::string partition;           // "a,b": any of them; empty: the parent's
  std::string features;            // as srun -C; empty: any
  std::vector<std::string> nodes;  // on no other nodes than these; empty: any
  std::uint32_t slots = 0;         // at least 1
  // Fewer that would do as well, descending. `slots` is asked for until wait_ms has passed, then whatever of
  // these Slurm grants within settle_ms. With wait_ms 0 all of them at once. Where slots_per_node is 0 such
  // an ask is for whole nodes.
  std::vector<std::uint32_t> alternatives;
  std::uint32_t slots_per_node = 0;  // at most so many of a node; 0: all
  std::uint32_t nodes_exactly = 0;   // 0: as few as hold the slots
  bool exclusive = false;            // whole nodes, which no other job shares
  std::int64_t wait_ms = 0;          // 0: only what Slurm grants at once
  std::int64_t settle_ms = 3000;
  std::int64_t time_ms = 0;  // of the job, whole minutes, rounded up; 0, or more than the parent has left: to
                             // the parent's end
  // A program that had the same ask before this one has died: go on with its job, if there is one.
  bool again = false;
  // Of the parent here. Requests are counted anew in each, and Slurm's job may have several.
  Incarnation incarnation{0};
  template <class A>
  void Fields(A& a) {
    a(version, parent, restarts, request, partition, features, nodes, slots, alternatives, slots_per_node,
      nodes_exactly, exclusive, wait_ms, settle_ms, time_ms, again, incarnation);
  }
};

// Keep these nodes of the job, give the others back. Answer: CompanionGranted with what is left, or
// CompanionKept.
struct CompanionShrink {
  static constexpr std::uint16_t kType = 0x0B21;
  std::vector<std::string> keep;
  template <class A>
  void Fields(A& a) {
    a(keep);
  }
};

// Cancel the job, or the ask; answer: CompanionEnded. Idempotent.
struct CompanionRelease {
  static constexpr std::uint16_t kType = 0x0B22;
  template <class A>
  void Fields(A& a) {
    (void)a;
  }
};

// ----------------------------------------------------------------------- msa-companion -> job daemon

// Queued. Also sent, with job 0, while slurmctld does not answer.
struct CompanionPending {
  static constexpr std::uint16_t kType = 0x0B28;
  JobId job;            // changes when `alternatives` are asked for
  std::string reason;   // "Resources", "Priority", "QOSMaxJobsPerUserLimit"
  std::string message;  // the same in words
  std::uint64_t expected_start = 0;
  template <class A>
  void Fields(A& a) {
    a(job, reason, message, expected_start);
  }
};

struct CompanionGranted {
  static constexpr std::uint16_t kType = 0x0B29;
  JobId job;
  std::vector<SlurmNodeCores> nodes;  // in Slurm's order
  std::uint32_t slots = 0;            // CompanionAsk::slots or one of its alternatives; the nodes hold them
  std::uint64_t start = 0;
  std::uint64_t end = 0;           // when Slurm will end it; 0: no limit
  std::uint32_t time_limit_s = 0;  // 0: none
  std::string partition;
  std::string account;
  std::string qos;
  template <class A>
  void Fields(A& a) {
    a(job, nodes, slots, start, end, time_limit_s, partition, account, qos);
  }
};

// Nothing is held, and nothing stays queued; where slurmctld is away, as soon as it is back. Codes:
// kDeadlineExceeded (not within the wait), kPermissionDenied (partition, account, QOS), kOutOfRange (can
// never start there), kResourceExhausted (a limit on submitting), kNotFound (partition, node, parent),
// kFailedPrecondition (the parent is over), kUnavailable (no slurmctld), kInvalidArgument (the ask), kAborted
// (someone cancelled the queued job), kInternal.
struct CompanionRefused {
  static constexpr std::uint16_t kType = 0x0B2A;
  Code code = Code::kInternal;
  JobId job;            // that was queued; 0: none was
  std::string reason;   // Slurm's word for what it waited for; empty: it was refused outright
  std::string message;  // Slurm's own text within
  template <class A>
  void Fields(A& a) {
    a(code, job, reason, message);
  }
};

// A CompanionShrink that was not done: all is as before.
struct CompanionKept {
  static constexpr std::uint16_t kType = 0x0B2B;
  std::string message;
  template <class A>
  void Fields(A& a) {
    a(message);
  }
};

struct CompanionEnded {
  static constexpr std::uint16_t kType = 0x0B2C;
  JobId job;            // 0: released before Slurm had it
  std::string state;    // "CANCELLED", "TIMEOUT", "NODE_FAIL"; empty: not known
  std::string message;  // whose doing, as far as known
  template <class A>
  void Fields(A& a) {
    a(job, state, message);
  }
};

// ------------------------------------------------------------------------ between controller and job daemon

// The controller asks, the job daemon of the head relays: a frame for the msa-companion of `request`. A
// CompanionAsk starts it; of one that runs, or has had its last answer, the last report is repeated.
struct CompanionOrder {
  static constexpr std::uint16_t kType = 0x020e;
  std::uint64_t request = 0;
  std::uint16_t type = 0;
  std::string payload;
  template <class M>
  static CompanionOrder Of(std::uint64_t request, const M& message) {
    CompanionOrder order;
    order.request = request;
    order.type = M::kType;
    order.payload = Encode(message);
    return order;
  }
  template <class A>
  void Fields(A& a) {
    a(request, type, payload);
  }
};

// A frame of it. With type 0: there is none, it has ended without its last answer, or could not be started;
// `payload` says why.
struct CompanionReport {
  static constexpr std::uint16_t kType = 0x0313;
  std::uint64_t request = 0;
  std::uint16_t type = 0;
  std::string payload;
  template <class A>
  void Fields(A& a) {
    a(request, type, payload);
  }
};

}  // namespace msa::wire
