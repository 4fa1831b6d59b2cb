#pragma once
// What namd knows and decides: its extents, who is attached to them under which owner number, and which
// requests are within their bounds. Pure: what the outcome names is done by the caller, before the next call.
// A client is trusted in nothing: every index, offset and length comes from a signed lease and is checked
// against the extent's own file. One thread, or the caller's lock.

#include <bitset>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "msa/base/nam_messages.h"
#include "msa/base/status.h"
#include "msa/nam/layout.h"
#include "msa/namd/attachments.h"
#include "msa/namd/extent_name.h"
#include "msa/namd/lease_gate.h"

namespace msa::namd {

// libmsanam has one of each connection.
inline constexpr std::size_t kMaxAttachmentsOfAConnection = 64;

// What a welcome asks of a namd, by comparison with what it has.
struct Reconciliation {
  std::vector<ExtentKey> free;                  // pending ones that nobody expects
  std::vector<ExtentKey> commit;                // pending here, committed there
  std::vector<ExtentKey> unknown;               // committed here, unknown there: kept
  std::vector<wire::NamExtentDamaged> damaged;  // expected and missing, or too small
  Outcome ended;
};

class Book {
 public:
  // `node`: this namd's, as leases name it.
  Book(std::string node, Hmac hmac) : node_(std::move(node)), gate_(std::move(hmac)) {}

  // -------------------------------------------------------------------------------------------- extents

  // New, or found by the scan. One that is known keeps its attachments.
  void Put(const ExtentKey& key, wire::NamExtentState state, ExtentShape shape);
  // Its file is gone; the book must have called it removable, or it never had an attachment.
  void Remove(const ExtentKey& key);
  bool Knows(const ExtentKey& key) const { return extents_.contains(key); }
  std::optional<wire::NamExtentState> StateOf(const ExtentKey& key) const;
  void Commit(const ExtentKey& key);
  // False: it was damaged already, or is unknown. Attachments stay, later ones are refused.
  bool MarkDamaged(const ExtentKey& key, const std::string& reason);
  std::vector<wire::NamExtentReport> Reports() const;

  // Refuses new attachments and ends those that can be ended. `removable` names it when no mapping is left,
  // now or in a later outcome. Unknown ones are not named. Idempotent.
  Outcome Free(const ExtentKey& key);
  bool IsFreeing(const ExtentKey& key) const;

  // ---------------------------------------------------------------------------------------- the controller

  // kFailedPrecondition: another system than that of a welcome before it.
  Result<Reconciliation> Welcome(const wire::NamdWelcome& welcome);
  Outcome Revoke(const wire::NamRevoke& revoke);

  // ------------------------------------------------------------------------------------------- attachments

  // `random` names the attachment: 64 random bits. Errors as of NamAttach.
  Result<Grant> Attach(const Caller& caller, const wire::NamAttach& attach, std::uint64_t random);
  // False: the attachment has ended meanwhile; the key is the caller's to unregister.
  bool SetFabricKey(std::uint64_t attachment, std::uint64_t key);
  // kFailedPrecondition: not the caller's, or unknown.
  Result<Outcome> Detach(const Caller& caller, std::uint64_t attachment);
  Outcome ConnectionClosed(std::uint64_t connection);
  // A process of this user has ended: what the client has over the fabric goes, and what a namd before this
  // one has noted of it.
  Outcome ClientGone(NamClientId client, std::uint32_t uid);
  // What a client of this user has over the fabric.
  std::vector<std::pair<ExtentKey, RestoredOwner>> RemoteOwners(NamClientId client, std::uint32_t uid) const;

  // Owners of before a restart keep their numbers until they attach again, their lease ends, or
  // OwnerProcessGone. kInvalidArgument: a number that is out of range or taken.
  Status Restore(const ExtentKey& key, const RestoredOwner& owner);
  Outcome OwnerProcessGone(const ExtentKey& key, std::uint32_t owner);

  // -------------------------------------------------------------------------------------------- operations

  // kFailedPrecondition: unknown attachment; kOutOfRange: no such segment; kInvalidArgument: mode.
  Result<SegmentTarget> CheckLock(const Caller& caller, const wire::NamLock& lock) const;
  // `element_bytes` of the atomic's type, 0: no such type. Errors as of NamAtomic.
  Result<SegmentTarget> CheckAtomic(const Caller& caller, const wire::NamAtomic& atomic,
                                    std::size_t element_bytes) const;

  std::size_t attachments() const { return attachments_.size(); }
  const LeaseGate& gate() const { return gate_; }
  // kInternal names the first that does not hold. For tests.
  Status CheckInvariants() const;

 private:
  struct Owner {
    std::uint32_t number = 0;
    std::uint32_t uid = 0;          // of its leases: nobody else is the same owner, whatever client he names
    std::uint32_t attachments = 0;  // those that have ended but still map included
    std::uint32_t ended = 0;
  };
  struct Extent {
    ExtentShape shape;
    wire::NamExtentState state = wire::NamExtentState::kPending;
    std::string damage;
    bool freeing = false;
    std::map<NamClientId, Owner> owners;
    std::bitset<nam::kMaxOwners> numbers;  // number n at n - 1
    std::uint32_t highest_owner = 0;
    std::set<std::uint64_t> attachments;
    std::shared_ptr<const SegmentTable> segments;  // of the last lease
  };
  enum class Kind { kSocket, kFabric, kRestored };
  struct Attachment {
    Kind kind = Kind::kFabric;
    ExtentKey extent;
    NamClientId client;
    LeaseId lease;
    std::uint64_t connection = 0;
    NamRights rights = NamRights::kNone;
    bool mapped = false;
    bool ended = false;  // only its mapping is left
    std::optional<std::uint64_t> key;
    std::shared_ptr<const SegmentTable> segments;
  };

  Result<std::shared_ptr<const SegmentTable>> SegmentsOf(const Extent& extent, const wire::NamLease& lease,
                                                         std::uint32_t extent_index) const;
  // What the connection has already.
  std::optional<Grant> AttachAgain(const Caller& caller, const wire::NamAttach& attach, const ExtentKey& key,
                                   LeaseId lease, bool map);
  // kResourceExhausted: the connection may not have another attachment.
  Status CheckMore(std::uint64_t connection) const;
  Result<ExtentKey> FindExtent(const wire::NamLease& lease) const;
  Result<std::uint32_t> TakeOwner(Extent& extent, NamClientId client, std::uint32_t uid);
  Result<const Attachment*> Find(const Caller& caller, std::uint64_t attachment) const;
  Grant GrantOf(std::uint64_t id, const Attachment& attachment, const wire::NamAttach& attach) const;
  void Insert(std::uint64_t id, Attachment attachment);
  Outcome EndOlder(const Attachment& newer, std::uint64_t newer_id);
  Outcome End(std::uint64_t attachment);
  Outcome RevokeOne(std::uint64_t attachment);
  Outcome RevokeAll(const std::set<std::uint64_t>& attachments);

  std::string node_;
  LeaseGate gate_;
  std::map<ExtentKey, Extent> extents_;
  std::unordered_map<std::uint64_t, Attachment> attachments_;
  std::map<std::uint64_t, std::set<std::uint64_t>> by_connection_;
  std::map<LeaseId, std::set<std::uint64_t>> by_lease_;
  std::map<NamClientId, std::set<std::uint64_t>> by_client_;
  // Restored ones are named by nobody: numbers of their own.
  std::uint64_t next_restored_ = 1;
};

}  // namespace msa::namd
