#pragma once
// The state behind NamBook and the functions that change it, by concern: nam_book.cc (events, timers),
// book_accounts.cc (who is charged what), book_requests.cc (create, resize), book_access.cc (who may what,
// listings), book_leases.cc (leases, holders, jobs), book_removal.cc, book_namds.cc (NAM nodes, extents),
// book_check.cc (fsck, invariants), book_restore.cc.

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "msa/nam/nam_book.h"

#include "layout.h"

namespace msa {

// Beyond what any memory has: sums of a few of these stay in range.
inline constexpr std::uint64_t kMaxNamBytes = std::uint64_t{1} << 56;
// Of one holder at a time, and regions of one user: each costs a row in the store.
inline constexpr std::size_t kMaxNamLeases = 4096;
inline constexpr std::size_t kMaxNamRegions = 16384;
// For a namd to make an extent: a file system in memory takes 0.3 s for a GiB, and a resize copies as well.
inline constexpr Millis kNamRequestTime{30000};
inline constexpr Millis kNamRequestTimePerGiB{2000};
constexpr Millis NamRequestTime(std::uint64_t bytes) {
  return kNamRequestTime + kNamRequestTimePerGiB * static_cast<std::int64_t>(bytes >> 30);
}
// Of clients that go while a namd is away.
inline constexpr std::size_t kMaxNamGone = 65536;
// Processes ask a restarted namd again within a second; one that is stopped for longer opens its regions
// anew.
inline constexpr Millis kNamOrphanTime{10000};
// A removal that is not over by then goes on without its caller: somebody still maps the memory.
inline constexpr Millis kNamRemovalTime{2000};
// A namd that could not free an extent is asked again.
inline constexpr Millis kNamFreeRetry{5000};
// A directory of ten thousand extents is looked at in well under a second; a namd that is silent for longer
// counts as away to fsck.
inline constexpr Millis kNamScanTime{10000};
inline constexpr std::size_t kMaxNamChecks = 16;  // at a time

class NamBook::Impl {
 public:
  using Layout = nam_book::Layout;

  struct Waiter {
    NamCaller caller;
    std::uint64_t tag = 0;
  };

  // Extents that are being allocated: of a region in kReserved, or the next generation of a resized one.
  struct Pending {
    std::vector<Waiter> waiters;
    Millis limit{0};
    Instant deadline;  // when it has passed
    Generation generation;
    Layout layout;
    std::vector<std::uint64_t> charges;  // by extent
    std::uint64_t bytes = 0;
    std::vector<bool> done;  // by extent
  };

  struct Region {
    RegionRecord record;
    std::vector<std::uint64_t> charges;  // by extent
    std::uint64_t bytes = 0;             // their sum
    std::set<LeaseId> leases;
    std::optional<Pending> pending;
    std::vector<std::uint64_t> removers;  // tags
    Instant removal_told;                 // when they are answered at the latest
    // Of kReserved its layout stands in `pending`, too; it is charged once.
    bool reserved() const { return record.phase == RegionPhase::kReserved; }
    bool committed() const { return record.phase == RegionPhase::kCommitted; }
    bool removing() const { return record.phase == RegionPhase::kRemoving; }
  };

  using ExtentKey = std::pair<RegionUuid, Generation>;
  // An extent that is being freed and that no record names: of a request that failed, of an old generation.
  struct Ghost {
    std::uint64_t bytes = 0;
  };

  struct Node {
    NamNodeSpec spec;
    bool up = false;
    std::uint64_t capacity = 0;  // as last said
    std::string socket;
    std::string fabric_provider;
    std::string fabric_address;
    std::uint32_t pid = 0;
    std::map<ExtentKey, wire::NamExtentReport> extents;  // that its namd has, as far as is known
    std::map<ExtentKey, Ghost> ghosts;
    std::set<RegionUuid> regions;  // with an extent here, or one that is being made
    std::uint64_t used = 0;
    std::uint64_t by_jobs = 0;  // of `used`: of jobs that run
    std::uint64_t excused = 0;  // what it may hold: its capacity, or what it was found with
    std::optional<Instant> retry_frees;
    std::deque<NamClientId> gone;  // while it was away: it is told when it is back
  };

  struct Ask {
    enum class Kind { kAllocate, kFree } kind = Kind::kAllocate;
    std::size_t node = 0;
    ExtentKey extent;
  };

  // A fsck that waits for the namds to look at their directories.
  struct Check {
    NamCaller caller;
    std::uint64_t tag = 0;
    bool repair = false;
    Instant deadline;
    std::map<std::uint64_t, std::size_t> scans;  // asked and not answered: request, node
    std::set<std::size_t> scanned;               // nodes
    std::vector<wire::NamFinding> foreign;
  };

  struct Job {
    nam_event::JobStarted started;
    std::uint64_t reserved = 0;
    std::uint64_t used = 0;
    std::uint64_t excused = 0;  // beyond the allotment, by what was found at a restart
    std::uint32_t windows = 0;  // names given
    std::set<RegionUuid> regions;
  };

  struct User {
    std::string name;
    std::uint64_t used = 0;
    std::uint64_t excused = 0;
    std::uint32_t regions = 0;
  };

  Impl(std::vector<NamNodeSpec> specs, NamPolicy policy, std::uint64_t system);

  // -- events
  void Handle(nam_event::Request& e);
  void Handle(nam_event::HolderGone& e);
  void Handle(nam_event::JobStarted& e);
  void Handle(nam_event::JobEnded& e);
  void Handle(nam_event::AllotmentAsk& e);
  void Handle(nam_event::NamdUp& e);
  void Handle(nam_event::NamdLost& e);
  void Handle(nam_event::ExtentDone& e);
  void Handle(nam_event::ExtentDamaged& e);
  void Handle(nam_event::Scanned& e);
  void Handle(nam_event::Tick& e);

  // -- requests; each answers its tag, or sees to it that it will be
  void Do(nam_event::Request& e, wire::NamCreate& m);
  void Do(nam_event::Request& e, wire::NamOpen& m);
  void Do(nam_event::Request& e, wire::NamClose& m);
  void Do(nam_event::Request& e, wire::NamRefresh& m);
  void Do(nam_event::Request& e, wire::NamRemove& m);
  void Do(nam_event::Request& e, wire::NamSetLifetime& m);
  void Do(nam_event::Request& e, wire::NamList& m);
  void Do(nam_event::Request& e, wire::NamResize& m);
  void Do(nam_event::Request& e, wire::NamSetAccess& m);
  void Do(nam_event::Request& e, wire::NamUsageAsk& m);
  void Do(nam_event::Request& e, wire::NamCheckAsk& m);
  void Do(nam_event::Request& e, wire::NamWithdraw& m);

  // -- create, resize
  Status CheckCreate(const nam_event::Request& e, const wire::NamCreate& m, std::uint64_t& bytes) const;
  bool RepeatCreate(nam_event::Request& e, const wire::NamCreate& m);
  Result<std::vector<nam_book::Room>> RoomsFor(const std::vector<std::string>& names) const;
  std::string FreshName(JobId job);
  void Reserve(nam_event::Request& e, wire::NamCreate& m, Layout layout);
  void AskAllocation(const Region& region, std::size_t extent);
  void Allocated(Region& region);
  void SendCommits(const Region& region);
  void CommitCreate(Region& region);
  void CommitResize(Region& region);
  Generation FreshGeneration(const Region& region) const;
  // Everybody who waits is told; the other extents are freed.
  void FailPending(RegionUuid uuid, const Status& why);
  // `caller` does not wait any more.
  void DropWaiters(const std::function<bool(const NamCaller&)>& gone, const std::string& why);

  // -- who may what
  NamRights RightsOf(const RegionRecord& record, const UserIdentity& user,
                     const std::vector<std::uint32_t>& groups) const;
  // Also as the job's binding limits it.
  NamRights RightsOf(const Region& region, const NamCaller& caller) const;
  Status CheckRights(const Region& region, const NamCaller& caller, NamRights needed) const;
  // kAll without a binding.
  NamRights BoundRights(const Region& region, JobId job) const;
  Status CheckBinding(const Region& region, const NamCaller& caller, std::string_view what) const;
  // With CheckBinding.
  Status CheckOwner(const Region& region, const NamCaller& caller, std::string_view what) const;
  // kNotFound names the selector; regions that are not made yet or are being removed are not found.
  // kUnavailable: it is being resized.
  Result<Region*> Select(const std::string& selector);
  const Region* Find(const std::string& selector) const;
  Region* Find(RegionUuid uuid);
  Status MakePersistent(Region& region);
  Status MakeLease(Region& region, const NamCaller& caller);
  static Result<RegionRecord> WithAccess(const RegionRecord& record, const NamCaller& caller,
                                         const wire::NamSetAccess& m);
  bool MaySee(const Region& region, const NamCaller& caller) const;
  // kDataLoss, kUnavailable: its memory is lost, or away.
  Status CheckThere(const Region& region) const;
  wire::NamRegionState StateOf(const Region& region) const;
  wire::NamRegionInfo InfoOf(const Region& region) const;
  wire::NamHolderInfo HolderOf(const LeaseRecord& lease) const;
  std::string HoldersText(const std::set<LeaseId>& held) const;

  // -- leases
  static Status CheckToken(const std::string& token);
  Status CheckLeases(const NamCaller& caller) const;
  Result<LeaseId> AddLease(Region& region, const NamCaller& caller, const std::string& token,
                           NamRights rights);
  NamLeaseReply Grant(const Region& region, const LeaseRecord& lease) const;
  void ReplyLease(std::uint64_t tag, const Region& region, LeaseId lease);
  // They end: deleted, told to the namds, and with them the regions that live as long as they do.
  void EndLeases(const std::set<LeaseId>& ids, NamClientId client);
  std::set<LeaseId> LeasesOf(const NamHolder& holder) const;
  const LeaseRecord* FindLease(const NamCaller& caller, LeaseId id) const;
  void StartJob(nam_event::JobStarted started);
  void BindJob(const Job& job);
  void TakeFromJob(JobId id);

  // -- removal
  void BeginRemoval(Region& region);
  void FreeExtents(Region& region);
  void Forget(Region& region);
  void AddGhost(std::size_t node, ExtentKey key, std::uint64_t bytes);
  void DropGhost(std::size_t node, ExtentKey key);
  bool HasGhosts(std::size_t node, RegionUuid uuid) const;
  void AskFree(std::size_t node, ExtentKey key);
  void Freed(std::size_t node, ExtentKey key);
  void AskFreesAgain(std::size_t node);

  // -- NAM nodes
  std::optional<std::size_t> FindNode(std::string_view name) const;
  bool Refuse(const nam_event::NamdUp& e);
  void Welcome(std::size_t node);
  void ListRegion(Region& region, std::size_t node, wire::NamdWelcome& welcome) const;
  void Reconcile(std::size_t node);
  void ReconcileRegion(Region& region, std::size_t node);
  void EndOrphans(const std::function<bool(Instant)>& over);
  // The lease passes to the caller if its holder is an orphan, else once it is one.
  void TakeOver(LeaseRecord& lease, const NamCaller& caller);
  void Pass(LeaseRecord& lease, const NamHolder& heir);
  void DropConnections(std::size_t node, const nam_event::NamdUp& e, std::uint32_t old_pid);
  void ForgetAsks(std::size_t node);
  bool Missing(const Region& region, std::size_t extent) const;

  // -- accounts
  // What `region` costs is added to, or taken from, everybody who is charged for it.
  enum class Sign { kAdd, kTake };
  void Account(const Region& region, Sign sign);
  template <class Change>
  void Recharge(Region& region, Change change) {
    Account(region, Sign::kTake);
    change();
    Account(region, Sign::kAdd);
  }
  // Of memory that no job has been promised.
  std::int64_t Free() const;
  std::uint64_t Capacity() const;
  static std::uint64_t Held(const Job& job) { return std::max(job.reserved, job.used); }
  void ChargeJob(Job& job, std::uint64_t bytes, Sign sign);
  void SetReserved(Job& job, std::uint64_t reserved);
  Status CheckUserQuota(const UserIdentity& user, const std::string& name, std::uint64_t more) const;
  // What the job may draw: its allotment, or the default and what its children asked for; nullopt: anything.
  std::optional<std::uint64_t> LimitOf(const Job& job) const;
  Status CheckJobQuota(const Job& job, std::uint64_t more) const;
  // Are `more` bytes free for `job`, or for somebody without?
  Status CheckFree(const Job* job, std::uint64_t more) const;
  bool ChargedToUser(const RegionRecord& record) const {
    return record.lifetime == wire::NamLifetime::kPersistent || record.job.value == 0;
  }
  Job* FindJob(JobId id);

  // -- fsck
  void CheckNode(const Check& check, std::size_t node, wire::NamCheckResult& result);
  // The scan of `node` is in, or will never be.
  void ScanOver(std::uint64_t request, bool is_in);
  void EndScans(std::size_t node);
  void EndLateScans(const std::function<bool(Instant)>& over);
  void Finish(const Check& check);
  Status CheckAccounts() const;
  Status CheckTables() const;
  Status CheckPhases() const;
  Status CheckInvariants() const;

  // -- taking up
  Status Load(StoredNam& state);
  Status CheckRecord(const RegionRecord& record) const;

  // -- outlet
  template <class E>
  void Emit(E effect) {
    out.emplace_back(std::move(effect));
  }
  template <class M>
  void Send(std::size_t node, M message) {
    if (nodes[node].up) Emit(nam_effect::SendToNamd{nodes[node].spec.name, std::move(message)});
  }
  void Answer(std::uint64_t tag, Status status) {
    Emit(nam_effect::Reply{tag, std::move(status), wire::NamDone{}});
  }
  void Answer(std::uint64_t tag, NamReplyBody body) {
    Emit(nam_effect::Reply{tag, Status::Ok(), std::move(body)});
  }
  void Put(const Region& region) { Emit(nam_effect::PutRegion{region.record}); }
  void Wake(Instant at);

  const NamPolicy policy;
  const std::uint64_t system;
  Instant now;
  std::vector<NamEffect> out;
  std::optional<Instant> armed;

  std::vector<Node> nodes;
  std::map<std::string, std::size_t, std::less<>> node_index;
  std::map<RegionUuid, Region> regions;
  std::map<std::string, RegionUuid, std::less<>> names;  // not of kRemoving
  std::map<std::pair<std::uint32_t, std::string>, RegionUuid>
      create_tokens;  // (uid, token), not of kRemoving
  std::map<LeaseId, LeaseRecord> leases;
  std::map<NamHolder, std::set<LeaseId>> held;
  // Processes outside jobs whose namd was restarted: until when their leases wait for them.
  std::map<NamHolder, Instant> orphans;
  // Of leases of processes outside jobs: who has refreshed it since over another connection. A process whose
  // namd ends comes back by another one of its host, perhaps before the controller has heard of that end.
  std::map<LeaseId, NamHolder> heirs;
  std::map<std::pair<std::uint32_t, std::string>, LeaseId> lease_tokens;
  std::map<JobId, Job> jobs;
  std::map<std::uint32_t, User> users;
  std::map<std::uint64_t, Ask> asks;
  std::list<Check> checks;
  std::set<RegionUuid> waiting;  // regions with a pending part or removers: looked at by the clock
  std::uint64_t held_by_jobs = 0;
  std::uint64_t last_ask = 0;
  std::uint64_t last_name = 0;
  LeaseId last_lease;
};

}  // namespace msa
