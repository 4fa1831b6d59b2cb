#pragma once
// The controller's book of network attached memory: regions, their names, owners, quotas and leases, and the
// NAM nodes. Pure: time, sessions and random bytes enter as arguments, what happens outside comes out as
// effects. It is a part of the controller's state machine (msa/job/controller.h), which hands it its events
// and passes its effects on: those that change the store are committed before any other is carried out.
//
// A region is made in two phases: reserved here (memory, quota and name are taken), allocated by every namd
// that holds an extent, committed to the store, and only then answered. What was reserved when the controller
// died is freed when its namd says hello. It is removed in two phases too: kRemoving is committed, the namds
// free, the record goes. One thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "msa/base/ids.h"
#include "msa/base/nam_messages.h"
#include "msa/base/status.h"
#include "msa/nam/records.h"

namespace msa {

struct NamPolicy {
  Bytes user_quota;   // of one user's persistent regions; 0: none
  Bytes job_quota;    // most that one job's --nam may ask for; 0: none
  Bytes job_default;  // what a job without --nam may draw of memory that is free at that moment; 0: all of it
};

// As configured; capacity 0: no NAM node.
struct NamNodeSpec {
  std::string name;
  Bytes capacity;
};

// Who asks. `groups` beyond user.gid; empty for tasks of jobs of users without.
struct NamCaller {
  UserIdentity user;
  std::vector<std::uint32_t> groups;
  std::string user_name;
  std::string who;         // for people: "rank 3 of msa.7.1.0 on cn0"
  NamHolder holder;        // of the leases that it gets
  bool operator_ = false;  // root, or the controller's own user
};

using NamRequest = std::variant<wire::NamCreate, wire::NamOpen, wire::NamClose, wire::NamRefresh,
                                wire::NamRemove, wire::NamSetLifetime, wire::NamList, wire::NamResize,
                                wire::NamSetAccess, wire::NamUsageAsk, wire::NamCheckAsk, wire::NamWithdraw>;
// kInvalidArgument: a type that no process sends, or a malformed payload.
Result<NamRequest> DecodeNamRequest(std::uint16_t type, std::string_view payload);

// NamGranted: `lease` is what is to be signed and put into its blob.
struct NamLeaseReply {
  wire::NamGranted granted;
  wire::NamLease lease;
};
using NamReplyBody =
    std::variant<wire::NamDone, NamLeaseReply, wire::NamListing, wire::NamUsage, wire::NamCheckResult>;

namespace nam_event {

// Answered by exactly one nam_effect::Reply with the tag, at once or when the namds have answered (30 s at
// most: kUnavailable).
struct Request {
  NamCaller caller;
  NamRequest request;
  RegionUuid random;  // fresh
  std::uint64_t tag = 0;
};
// Its leases end, its regions of NamLifetime::kLease without a job too. The namds are told of its client, a
// namd that is away when it is back.
struct HolderGone {
  NamHolder holder;
  NamClientId client = {};  // of a holder outside jobs
};
struct JobStarted {
  JobId job;
  UserIdentity user;
  std::string user_name;
  Bytes allotment;  // of --nam; 0: the policy's default, not reserved
  bool reserved = false;
  std::vector<wire::NamRegionBinding> regions;
  std::vector<std::uint32_t> groups = {};  // supplementary ones of the user; for `regions`
};
// Its leases end, its kLease regions are removed; persistent ones pass to the user's quota.
struct JobEnded {
  JobId job;
};
// More for a running job (msa_nam). Replied at once by AllotmentReply.
struct AllotmentAsk {
  JobId job;
  std::uint64_t request = 0;
  Bytes more;
};
struct NamdUp {
  std::string node;
  wire::NamdHello hello;
};
struct NamdLost {
  std::string node;
  std::string reason;
};
struct ExtentDone {
  std::string node;
  wire::NamExtentDone done;
};
struct ExtentDamaged {
  std::string node;
  wire::NamExtentDamaged damaged;
};
struct Scanned {
  std::string node;
  wire::NamScanned scanned;
};
struct Tick {};

}  // namespace nam_event

using NamEvent =
    std::variant<nam_event::Request, nam_event::HolderGone, nam_event::JobStarted, nam_event::JobEnded,
                 nam_event::AllotmentAsk, nam_event::NamdUp, nam_event::NamdLost, nam_event::ExtentDone,
                 nam_event::ExtentDamaged, nam_event::Scanned, nam_event::Tick>;

namespace nam_effect {

struct PutRegion {
  RegionRecord record;
};
struct DeleteRegion {
  RegionUuid uuid;
};
struct PutLease {
  LeaseRecord record;
};
struct DeleteLease {
  LeaseId lease;
};
// To a NAM node's namd, after the commit, in order. Dropped if it is not there. A NamdWelcome carries no key
// and no system: whoever sends it fills them in.
struct SendToNamd {
  std::string node;
  std::variant<wire::NamdWelcome, wire::NamExtentAllocate, wire::NamExtentCommit, wire::NamExtentFree,
               wire::NamRevoke, wire::NamScan>
      message;
};
// Its extents belong to another system, or it is no NAM node: end its session with this.
struct RefuseNamd {
  std::string node;
  std::string reason;
};
struct Reply {
  std::uint64_t tag = 0;
  Status status;  // with `body` if ok
  NamReplyBody body;
};
struct AllotmentReply {
  JobId job;
  wire::NamAllotment answer;
};
// What is free for jobs has grown: a schedule pass is worth while.
struct MoreFree {};
struct WakeAt {
  Instant at;
};
struct Log {
  std::string text;
};

}  // namespace nam_effect

using NamEffect =
    std::variant<nam_effect::PutRegion, nam_effect::DeleteRegion, nam_effect::PutLease,
                 nam_effect::DeleteLease, nam_effect::SendToNamd, nam_effect::RefuseNamd, nam_effect::Reply,
                 nam_effect::AllotmentReply, nam_effect::MoreFree, nam_effect::WakeAt, nam_effect::Log>;

class NamBook {
 public:
  // `system`: random, of the controller's store; namds that hold another's extents are refused.
  NamBook(std::vector<NamNodeSpec> nodes, NamPolicy policy, std::uint64_t system);
  ~NamBook();
  NamBook(const NamBook&) = delete;
  NamBook& operator=(const NamBook&) = delete;

  // Once, before the first event. `jobs`: those that have not ended, as JobStarted. Leases of jobs that have,
  // and of calls, end. kInvalidArgument: records that contradict each other.
  Result<std::vector<NamEffect>> Restore(StoredNam state, const std::vector<nam_event::JobStarted>& jobs,
                                         Instant now);

  // Never fails.
  std::vector<NamEffect> On(NamEvent event, Instant now);

  // May a job of this user be bound to it? Errors of NamOpen. For submission; judged again at the start.
  Status CheckBinding(const NamCaller& caller, const wire::NamRegionBinding& binding) const;

  // For the scheduler: memory of the NAM nodes that are there; what regions that belong to no running job
  // take of it; what a running job keeps from others: its allotment, or what it has drawn if that is more.
  Bytes capacity() const;
  Bytes persistent() const;
  Bytes HeldBy(JobId job) const;

  // kInternal names the first invariant that does not hold: no node beyond its capacity, no user beyond his
  // quota by an operation that was granted, no job beyond its allotment, each lease's region there, names
  // unique, no region of an ended job. For tests.
  Status CheckInvariants() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace msa
