#pragma once
// The collective operations of a job's daemons: fence (allgather of one blob for each participating member),
// connect and disconnect, and the barrier of PMI-1, a fence that PMIx's never meet. Pure: no I/O, no clock;
// messages go out as effects. One thread.
//
// The participants of an operation, sorted by member index, form a k-ary tree: the parent of position p is
// (p-1)/k, the root is the lowest index. Blobs travel up to the root, the whole travels down. An operation is
// named by its kind, its processes and a sequence number that each member counts for itself: PMIx asks all
// participants to call operations over the same processes in the same order, so all count alike.

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "msa/base/status.h"
#include "msa/pmix/types.h"

namespace msa::pmix {

enum class CollectiveKind : std::uint8_t { kFence = 0, kConnect = 1, kDisconnect = 2, kPmi1Barrier = 3 };

struct CollectiveKey {
  CollectiveKind kind = CollectiveKind::kFence;
  std::vector<Proc> procs;     // sorted, without repetition
  std::uint64_t sequence = 0;  // of operations of this kind over these processes, from 0
  friend auto operator<=>(const CollectiveKey&, const CollectiveKey&) = default;
  template <class A>
  void Fields(A& a) {
    a(kind, procs, sequence);
  }
};

enum class CollectivePhase : std::uint8_t {
  kUp = 0,    // blobs of the sender's subtree
  kDown = 1,  // the result
  kFail = 2,  // the operation failed: status and reason
};

struct CollectiveBlob {
  std::uint32_t member = 0;
  std::string data;
  template <class A>
  void Fields(A& a) {
    a(member, data);
  }
};

// Between the job daemons of one job, from neighbour to neighbour in the tree. Messages of one sender to one
// receiver must arrive in order.
struct CollectiveMessage {
  static constexpr std::uint16_t kType = 0x0530;
  CollectiveKey key;
  CollectivePhase phase = CollectivePhase::kUp;
  std::vector<std::uint32_t> participants;  // member indices, sorted
  std::vector<CollectiveBlob> blobs;        // kUp, ascending member
  std::string data;                         // kDown: all blobs in member order
  PmixStatus status = kPmixSuccess;         // kFail
  std::string reason;                       // kFail
  template <class A>
  void Fields(A& a) {
    a(key, phase, participants, blobs, data, status, reason);
  }
};

// What the engine wants done.
struct SendToPeer {
  std::uint32_t member = 0;  // never the engine's own
  CollectiveMessage message;
};
struct CollectiveComplete {
  std::uint64_t operation = 0;  // the caller's number of LocalContribution
  PmixStatus status = kPmixSuccess;
  std::string data;    // blobs of all participants in member order; empty unless status is kPmixSuccess
  std::string reason;  // of a failure, for people
};
using CollectiveEffect = std::variant<SendToPeer, CollectiveComplete>;
using CollectiveEffects = std::vector<CollectiveEffect>;

struct CollectiveOptions {
  std::uint32_t self = 0;   // member index of this daemon
  std::uint32_t arity = 8;  // two levels reach 72 members, three 584
  // Largest result. 60 MiB: it travels in one frame of at most 64 MiB (wire::kMaxPayloadBytes).
  std::size_t max_data_bytes = std::size_t{60} << 20;
  // Operations that peers have begun and this member has not yet, failures remembered for it included. Honest
  // peers begin one for each set of processes; 65,536 bounds what a broken one can make us keep.
  std::size_t max_early_operations = 65536;
};

class CollectiveEngine {
 public:
  explicit CollectiveEngine(CollectiveOptions options) : options_(options) {}

  // All local participants have called. `operation` is a number of the caller's choice, not in use: exactly
  // one CollectiveComplete with it follows, perhaps at once. `participants`: indices of the members that have
  // processes among `procs`, this one included, in any order.
  struct Contribution {
    std::uint64_t operation = 0;
    CollectiveKind kind = CollectiveKind::kFence;
    std::vector<Proc> procs;
    std::vector<std::uint32_t> participants;
    std::string data;
  };
  CollectiveEffects LocalContribution(Contribution contribution);

  // A message of member `from`. Messages of operations that are over are ignored. kInvalidArgument: one that
  // a member in step with us cannot send; kResourceExhausted: max_early_operations. Nothing has changed then;
  // close the connection.
  Result<CollectiveEffects> FromPeer(std::uint32_t from, CollectiveMessage message);

  // Member `index` is gone for good: its operations, the later ones included, fail with kPmixErrUnreachable
  // and the reason. Every member must be told. Idempotent.
  CollectiveEffects MemberLost(std::uint32_t index, const std::string& reason);

  // The caller's time limit for `operation` has passed: it fails with kPmixErrTimeout at every participant.
  // Unknown or completed operations are ignored.
  CollectiveEffects OnTimeout(std::uint64_t operation);

  // The namespace is gone everywhere: forgets the sequence numbers and early messages of operations over its
  // processes; those still under way here fail with kPmixErrUnreachable. Their results may still be on the
  // way from the parent, where it ends later: they are ignored.
  CollectiveEffects ForgetNamespace(const std::string& nspace);

  // Operations this member has contributed to that have not completed.
  std::size_t pending() const noexcept { return by_number_.size(); }
  // Operations that only peers have begun, remembered failures included.
  std::size_t early() const noexcept { return operations_.size() - by_number_.size(); }
  // kInternal naming the first violated invariant. For tests.
  Status CheckInvariants() const;

 private:
  struct Operation {
    std::vector<std::uint32_t> participants;  // sorted
    std::optional<std::uint64_t> number;      // the caller's; none: not yet contributed here
    std::map<std::uint32_t, std::vector<CollectiveBlob>> from;  // per child, and the own blob under self
    std::size_t bytes = 0;                                      // in `from`
    bool sent_up = false;
    std::optional<std::pair<PmixStatus, std::string>> failed;  // before the local contribution came
  };
  using Operations = std::map<CollectiveKey, Operation>;
  using Group = std::pair<CollectiveKind, std::vector<Proc>>;

  // Moves blobs up, or completes at the root, once all of the subtree are here.
  void Advance(Operations::iterator it, CollectiveEffects& out);
  void CompleteRoot(Operations::iterator it, CollectiveEffects& out);
  // Tells the neighbours in the tree but `except`, then completes here or remembers.
  void Fail(Operations::iterator it, PmixStatus status, const std::string& reason,
            std::optional<std::uint32_t> except, CollectiveEffects& out);
  void Finish(Operations::iterator it, CollectiveComplete complete, CollectiveEffects& out);
  void OnUp(Operations::iterator it, std::uint32_t from, CollectiveMessage& message, CollectiveEffects& out);
  Status Check(std::uint32_t from, const CollectiveMessage& message) const;
  std::optional<std::string> LostAmong(const std::vector<std::uint32_t>& participants) const;
  std::uint64_t NextSequence(const CollectiveKey& key) const;
  bool IsForgotten(const CollectiveKey& key) const;

  CollectiveOptions options_;
  Operations operations_;
  std::map<std::uint64_t, CollectiveKey> by_number_;
  std::map<Group, std::uint64_t> next_sequence_;  // of the local contributions
  std::map<std::uint32_t, std::string> lost_;     // member -> reason
  std::set<std::string> forgotten_;               // namespaces: at most those of one job
};

}  // namespace msa::pmix
