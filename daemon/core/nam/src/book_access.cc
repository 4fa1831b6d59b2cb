// Who may do what with a region, and who sees what of it.
#include <algorithm>

#include "msa/nam/nam_text.h"

#include "book_impl.h"

namespace msa {
namespace {

constexpr NamRights kReadWrite = NamRights::kRead | NamRights::kWrite;
constexpr std::uint32_t kModeBits = 0666;
constexpr std::uint32_t kOwnerShift = 6;
constexpr std::uint32_t kGroupShift = 3;

NamRights OfBits(std::uint32_t mode, std::uint32_t shift) {
  NamRights rights = NamRights::kNone;
  if ((mode >> shift & 04) != 0) rights = rights | NamRights::kRead;
  if ((mode >> shift & 02) != 0) rights = rights | NamRights::kWrite;
  return rights;
}

std::string RightsText(NamRights rights) {
  std::string text;
  const auto add = [&](NamRights one, const char* word) {
    if (Has(rights, one)) text += (text.empty() ? "" : " and ") + std::string(word);
  };
  add(NamRights::kRead, "read");
  add(NamRights::kWrite, "write");
  add(NamRights::kMap, "map");
  return text;
}

bool IsIn(std::uint32_t gid, const UserIdentity& user, const std::vector<std::uint32_t>& groups) {
  return user.gid == gid || std::find(groups.begin(), groups.end(), gid) != groups.end();
}

// Segments in a listing of all regions; one region is always shown whole.
constexpr std::size_t kMaxListedSegments = 65536;

}  // namespace

NamRights NamBook::Impl::RightsOf(const RegionRecord& record, const UserIdentity& user,
                                  const std::vector<std::uint32_t>& groups) const {
  NamRights rights = NamRights::kNone;
  if (user.uid == record.owner.uid)
    rights = OfBits(record.mode, kOwnerShift) | NamRights::kMap;
  else if (IsIn(record.owner.gid, user, groups))
    rights = OfBits(record.mode, kGroupShift);
  else
    rights = OfBits(record.mode, 0);
  for (const wire::NamAclEntry& entry : record.acl) {
    const bool his =
        entry.kind == wire::NamAclKind::kUser ? entry.id == user.uid : IsIn(entry.id, user, groups);
    if (his) rights = rights | entry.rights;
  }
  // As with files; a mapping is another matter: it cannot be taken back.
  if (user.uid == 0) rights = rights | kReadWrite;
  return rights;
}

NamRights NamBook::Impl::RightsOf(const Region& region, const NamCaller& caller) const {
  return RightsOf(region.record, caller.user, caller.groups) & BoundRights(region, caller.holder.job);
}

NamRights NamBook::Impl::BoundRights(const Region& region, JobId id) const {
  NamRights rights = NamRights::kAll;
  if (id.value == 0) return rights;
  // What was asked for limits the job, too, if it could not be bound when it started.
  if (const auto job = jobs.find(id); job != jobs.end())
    for (const wire::NamRegionBinding& binding : job->second.started.regions)
      if (Find(binding.region) == &region) rights = rights & (binding.rights | NamRights::kMap);
  const auto bound = held.find(NamHolder{id});
  if (bound == held.end()) return rights;
  for (const LeaseId id : bound->second)
    if (const LeaseRecord& lease = leases.at(id); lease.region == region.record.uuid)
      rights = rights & (lease.rights | NamRights::kMap);
  return rights;
}

Status NamBook::Impl::CheckRights(const Region& region, const NamCaller& caller, NamRights needed) const {
  const auto missing = static_cast<NamRights>(static_cast<unsigned>(needed) &
                                              ~static_cast<unsigned>(RightsOf(region, caller)));
  if (missing == NamRights::kNone) return Status::Ok();
  const RegionRecord& record = region.record;
  if (Has(RightsOf(record, caller.user, caller.groups), needed))
    return Error(Code::kPermissionDenied,
                 "region '{}': job {} is bound to it without {} (--nam-region); submit it with more rights",
                 record.name, caller.holder.job, RightsText(missing));
  return Error(
      Code::kPermissionDenied,
      "region '{}': {} (uid {}) may not {} it; it belongs to {} (uid {}), mode {:04o}; the owner gives "
      "rights with 'msactl region acl'",
      record.name, caller.user_name, caller.user.uid, RightsText(missing), record.user_name, record.owner.uid,
      record.mode);
}

Status NamBook::Impl::CheckOwner(const Region& region, const NamCaller& caller, std::string_view what) const {
  MSA_RETURN_IF_ERROR(CheckBinding(region, caller, what));
  const RegionRecord& record = region.record;
  if (caller.user.uid == record.owner.uid || caller.user.uid == 0) return Status::Ok();
  return Error(Code::kPermissionDenied, "region '{}': {} (uid {}) may not {} it; it belongs to {} (uid {})",
               record.name, caller.user_name, caller.user.uid, what, record.user_name, record.owner.uid);
}

// Whoever owns it: a job that may only read it must not end or change it in another way.
Status NamBook::Impl::CheckBinding(const Region& region, const NamCaller& caller,
                                   std::string_view what) const {
  if (Has(BoundRights(region, caller.holder.job), NamRights::kWrite)) return Status::Ok();
  return Error(Code::kPermissionDenied,
               "region '{}': job {} is bound to it without write (--nam-region) and may not {} it; submit it "
               "with more rights",
               region.record.name, caller.holder.job, what);
}

bool NamBook::Impl::MaySee(const Region& region, const NamCaller& caller) const {
  return caller.operator_ || caller.user.uid == region.record.owner.uid ||
         RightsOf(region.record, caller.user, caller.groups) != NamRights::kNone;
}

NamBook::Impl::Region* NamBook::Impl::Find(RegionUuid uuid) {
  const auto it = regions.find(uuid);
  return it == regions.end() ? nullptr : &it->second;
}

const NamBook::Impl::Region* NamBook::Impl::Find(const std::string& selector) const {
  std::string_view text = selector;
  if (text.starts_with(kNamPortPrefix)) text.remove_prefix(kNamPortPrefix.size());
  auto uuid = ParseRegionUuid(text);
  if (!uuid) {
    const auto named = names.find(selector);
    if (named == names.end()) return nullptr;
    uuid = named->second;
  }
  const auto it = regions.find(*uuid);
  return it == regions.end() || it->second.reserved() ? nullptr : &it->second;
}

Result<NamBook::Impl::Region*> NamBook::Impl::Select(const std::string& selector) {
  MSA_RETURN_IF_ERROR(CheckNamSelector(selector));
  const Region* found = Find(selector);
  if (found == nullptr) return Error(Code::kNotFound, "no region '{}'; see 'msactl region list'", selector);
  Region* region = Find(found->record.uuid);
  if (region->removing()) return Error(Code::kNotFound, "region '{}' has been removed", selector);
  if (region->pending) return Error(Code::kUnavailable, "region '{}' is being resized; try again", selector);
  return region;
}

wire::NamRegionState NamBook::Impl::StateOf(const Region& region) const {
  if (region.removing()) return wire::NamRegionState::kRemoving;
  bool away = false;
  for (std::size_t e = 0; e < region.record.extents.size(); ++e) {
    if (region.record.extents[e].damaged || Missing(region, e)) return wire::NamRegionState::kDamaged;
    const auto node = FindNode(region.record.extents[e].node);
    away = away || !node || !nodes[*node].up;
  }
  return away ? wire::NamRegionState::kAway : wire::NamRegionState::kReady;
}

Status NamBook::Impl::CheckThere(const Region& region) const {
  const wire::NamRegionState state = StateOf(region);
  if (state == wire::NamRegionState::kReady) return Status::Ok();
  std::vector<std::string> where;
  for (std::size_t e = 0; e < region.record.extents.size(); ++e) {
    const RegionExtent& extent = region.record.extents[e];
    const auto node = FindNode(extent.node);
    if (state == wire::NamRegionState::kDamaged ? extent.damaged || Missing(region, e)
                                                : !node || !nodes[*node].up)
      where.push_back(extent.node);
  }
  std::string named;
  for (const std::string& name : where) named += (named.empty() ? "" : ", ") + name;
  if (state == wire::NamRegionState::kAway)
    return Error(Code::kUnavailable, "region '{}': its memory on {} is away; it is there again when namd is",
                 region.record.name, named);
  return Error(
      Code::kDataLoss,
      "region '{}': its memory on {} is lost or was cut; remove it, or bring it back with 'msactl region "
      "restore --force'",
      region.record.name, named);
}

wire::NamRegionInfo NamBook::Impl::InfoOf(const Region& region) const {
  const RegionRecord& record = region.record;
  wire::NamRegionInfo info;
  info.uuid = record.uuid;
  info.generation = record.generation;
  info.name = record.name;
  info.uid = record.owner.uid;
  info.gid = record.owner.gid;
  info.user_name = record.user_name;
  info.mode = record.mode;
  info.acl = record.acl;
  info.lifetime = record.lifetime;
  info.placement = record.placement;
  info.state = StateOf(region);
  info.job = record.created_by;
  info.created_ms = ToUnixMillis(record.created_at);
  info.bytes = record.bytes();
  info.segments.reserve(record.segments.size());
  for (const wire::NamSegmentPlace& segment : record.segments)
    info.segments.push_back({segment.bytes, segment.disp_unit, record.extents[segment.extent].node});
  return info;
}

wire::NamHolderInfo NamBook::Impl::HolderOf(const LeaseRecord& lease) const {
  return {lease.id,     lease.holder.job,         lease.who, lease.user.uid, lease.user_name,
          lease.rights, ToUnixMillis(lease.since)};
}

std::string NamBook::Impl::HoldersText(const std::set<LeaseId>& ids) const {
  constexpr std::size_t kNamed = 4;
  std::string text;
  std::size_t named = 0;
  for (const LeaseId id : ids) {
    if (named++ == kNamed) return text + fmt::format(" and {} more", ids.size() - kNamed);
    const LeaseRecord& lease = leases.at(id);
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", lease.who.empty() ? "a process" : lease.who,
                        lease.user_name);
  }
  return text;
}

void NamBook::Impl::Do(nam_event::Request& e, wire::NamList& m) {
  wire::NamListing listing;
  if (!m.region.empty()) {
    if (Status status = CheckNamSelector(m.region); !status.ok()) return Answer(e.tag, std::move(status));
    const Region* region = Find(m.region);
    if (region == nullptr)
      return Answer(e.tag, Error(Code::kNotFound, "no region '{}'; see 'msactl region list'", m.region));
    // As all other requests say it: names are everybody's, and a taken one is no secret.
    if (!MaySee(*region, e.caller)) return Answer(e.tag, CheckRights(*region, e.caller, NamRights::kRead));
    listing.regions.push_back(InfoOf(*region));
    for (const LeaseId id : region->leases) listing.regions[0].holders.push_back(HolderOf(leases.at(id)));
    return Answer(e.tag, NamReplyBody(std::move(listing)));
  }
  std::size_t segments = 0;
  for (const auto& [uuid, region] : regions) {
    const RegionRecord& record = region.record;
    if (region.reserved() || !MaySee(region, e.caller)) continue;
    if (!m.user.empty() && m.user != record.user_name && m.user != std::to_string(record.owner.uid)) continue;
    listing.regions.push_back(InfoOf(region));
    segments += record.segments.size();
    if (segments > kMaxListedSegments) listing.regions.back().segments.clear();
  }
  std::sort(listing.regions.begin(), listing.regions.end(),
            [](const auto& a, const auto& b) { return std::tie(a.name, a.uuid) < std::tie(b.name, b.uuid); });
  Answer(e.tag, NamReplyBody(std::move(listing)));
}

void NamBook::Impl::Do(nam_event::Request& e, wire::NamSetLifetime& m) {
  auto found = Select(m.region);
  if (!found.ok()) return Answer(e.tag, found.status());
  Region& region = **found;
  RegionRecord& record = region.record;
  if (Status status = CheckOwner(region, e.caller, "change the lifetime of"); !status.ok())
    return Answer(e.tag, std::move(status));
  if (m.lifetime > wire::NamLifetime::kPersistent)
    return Answer(e.tag, Error(Code::kInvalidArgument, "lifetime {}; expected 0 (lease) or 1 (persistent)",
                               static_cast<int>(m.lifetime)));
  if (m.lifetime == record.lifetime) return Answer(e.tag, Status::Ok());
  Status status =
      m.lifetime == wire::NamLifetime::kPersistent ? MakePersistent(region) : MakeLease(region, e.caller);
  if (status.ok()) Put(region);
  Answer(e.tag, std::move(status));
}

// From the job to the user: its allotment is promised to it again, and that much must be free.
Status NamBook::Impl::MakePersistent(Region& region) {
  RegionRecord& record = region.record;
  if (!ChargedToUser(record))
    MSA_RETURN_IF_ERROR(CheckUserQuota(record.owner, record.user_name, region.bytes));
  if (const Job* job = FindJob(record.job)) {
    const std::uint64_t needed = region.bytes + std::max(job->reserved, job->used - region.bytes);
    if (needed > Held(*job)) MSA_RETURN_IF_ERROR(CheckFree(nullptr, needed - Held(*job)));
  }
  Recharge(region, [&] {
    record.lifetime = wire::NamLifetime::kPersistent;
    record.job = JobId();
    record.life_lease = LeaseId();
  });
  return Status::Ok();
}

// To the caller's job, else the one that made it and still runs, else the caller's lease.
Status NamBook::Impl::MakeLease(Region& region, const NamCaller& caller) {
  RegionRecord& record = region.record;
  const JobId id = caller.holder.job.value != 0 ? caller.holder.job : record.job;
  const Job* job = FindJob(id);
  LeaseId life;
  for (const LeaseId lease : LeasesOf(caller.holder))
    if (job == nullptr && leases.at(lease).region == record.uuid) life = lease;
  if (job == nullptr && life.value == 0)
    return Error(Code::kFailedPrecondition,
                 "region '{}': outside a job a region lives as long as a lease on it; open it first",
                 record.name);
  if (job != nullptr && record.job != id) MSA_RETURN_IF_ERROR(CheckJobQuota(*job, region.bytes));
  Recharge(region, [&] {
    record.lifetime = wire::NamLifetime::kLease;
    record.job = job == nullptr ? JobId() : id;
    record.life_lease = life;
  });
  return Status::Ok();
}

// kInvalidArgument, kPermissionDenied: what `m` asks is not possible.
Result<RegionRecord> NamBook::Impl::WithAccess(const RegionRecord& record, const NamCaller& caller,
                                               const wire::NamSetAccess& m) {
  RegionRecord next = record;
  if (m.mode) {
    if ((*m.mode & ~kModeBits) != 0)
      return Error(Code::kInvalidArgument, "mode {:04o}; expected 0000 to 0666", *m.mode);
    next.mode = *m.mode;
  }
  if (m.gid) {
    if (caller.user.uid != 0 && !IsIn(*m.gid, caller.user, caller.groups))
      return Error(Code::kPermissionDenied, "{} (uid {}) is not in group {}", caller.user_name,
                   caller.user.uid, *m.gid);
    next.owner.gid = *m.gid;
  }
  if (m.clear) next.acl.clear();
  for (const wire::NamAclEntry& entry : m.set) {
    if (entry.kind > wire::NamAclKind::kGroup || !Has(NamRights::kAll, entry.rights))
      return Error(Code::kInvalidArgument,
                   "entry of kind {} with rights {}; expected kind 0 or 1, rights 0 to 7",
                   static_cast<int>(entry.kind), static_cast<int>(entry.rights));
    if (entry.id == ~std::uint32_t{0})
      return Error(Code::kInvalidArgument, "entry of id {}, which is nobody's; expected 0 to {}", entry.id,
                   entry.id - 1);
    const auto old_ones = std::erase_if(
        next.acl, [&](const auto& old) { return old.kind == entry.kind && old.id == entry.id; });
    if (entry.rights == NamRights::kNone && old_ones == 0 && !m.clear)
      return Error(Code::kNotFound, "region '{}' has no entry of {} {}; see 'msactl region acl {}'",
                   next.name, entry.kind == wire::NamAclKind::kUser ? "uid" : "gid", entry.id, next.name);
    if (entry.rights != NamRights::kNone) next.acl.push_back(entry);
    if (next.acl.size() > wire::kMaxNamAcl)
      return Error(Code::kInvalidArgument, "region '{}' would have more than {} entries; use groups",
                   next.name, wire::kMaxNamAcl);
  }
  return next;
}

void NamBook::Impl::Do(nam_event::Request& e, wire::NamSetAccess& m) {
  auto found = Select(m.region);
  if (!found.ok()) return Answer(e.tag, found.status());
  Region& region = **found;
  if (Status status = CheckOwner(region, e.caller, "change the access of"); !status.ok())
    return Answer(e.tag, std::move(status));
  auto next = WithAccess(region.record, e.caller, m);
  if (!next.ok()) return Answer(e.tag, next.status());
  region.record = *std::move(next);
  Put(region);
  std::set<LeaseId> uncovered;
  for (const LeaseId id : region.leases) {
    const LeaseRecord& lease = leases.at(id);
    if (!Has(RightsOf(region.record, lease.user, lease.groups), lease.rights)) uncovered.insert(id);
  }
  EndLeases(uncovered, NamClientId());
  Answer(e.tag, Status::Ok());
}

}  // namespace msa
