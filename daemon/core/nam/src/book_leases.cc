// Leases, who holds them, and the jobs among these.
#include <algorithm>

#include "book_impl.h"

namespace msa {

Status NamBook::Impl::CheckToken(const std::string& token) {
  if (token.size() <= wire::kMaxNamToken) return Status::Ok();
  return Error(Code::kInvalidArgument, "a token of {} bytes; the limit is {}", token.size(),
               wire::kMaxNamToken);
}

Status NamBook::Impl::CheckLeases(const NamCaller& caller) const {
  const auto it = held.find(caller.holder);
  if (it == held.end() || it->second.size() < kMaxNamLeases) return Status::Ok();
  return Error(Code::kResourceExhausted,
               "{} holds {} leases, the limit is {}; close regions that are not needed",
               caller.who.empty() ? "this process" : caller.who, it->second.size(), kMaxNamLeases);
}

Result<LeaseId> NamBook::Impl::AddLease(Region& region, const NamCaller& caller, const std::string& token,
                                        NamRights rights) {
  MSA_RETURN_IF_ERROR(CheckLeases(caller));
  last_lease = LeaseId(last_lease.value + 1);
  LeaseRecord lease;
  lease.id = last_lease;
  lease.region = region.record.uuid;
  lease.holder = caller.holder;
  lease.token = token;
  lease.user = caller.user;
  lease.user_name = caller.user_name;
  lease.who = caller.who;
  lease.rights = rights;
  lease.since = now;
  lease.groups = caller.groups;
  region.leases.insert(lease.id);
  held[lease.holder].insert(lease.id);
  if (!token.empty()) lease_tokens.try_emplace({lease.user.uid, token}, lease.id);
  Emit(nam_effect::PutLease{lease});
  leases.emplace(lease.id, std::move(lease));
  return last_lease;
}

NamLeaseReply NamBook::Impl::Grant(const Region& region, const LeaseRecord& record) const {
  NamLeaseReply reply;
  reply.granted.lease = record.id;
  reply.granted.region = InfoOf(region);
  wire::NamLease& lease = reply.lease;
  lease.system = system;
  lease.lease = record.id;
  lease.uuid = region.record.uuid;
  lease.generation = region.record.generation;
  lease.name = region.record.name;
  lease.rights = record.rights;
  lease.uid = record.user.uid;
  lease.job = record.holder.job;
  for (const RegionExtent& extent : region.record.extents) {
    wire::NamExtentPlace place;
    place.node = extent.node;
    place.bytes = extent.bytes;
    if (const auto index = FindNode(extent.node)) {
      const Node& node = nodes[*index];
      place.socket = node.socket;
      place.fabric_provider = node.fabric_provider;
      place.fabric_address = node.fabric_address;
    }
    lease.extents.push_back(std::move(place));
  }
  lease.segments = region.record.segments;
  return reply;
}

void NamBook::Impl::ReplyLease(std::uint64_t tag, const Region& region, LeaseId lease) {
  Answer(tag, NamReplyBody(Grant(region, leases.at(lease))));
}

std::set<LeaseId> NamBook::Impl::LeasesOf(const NamHolder& holder) const {
  const auto it = held.find(holder);
  return it == held.end() ? std::set<LeaseId>() : it->second;
}

void NamBook::Impl::EndLeases(const std::set<LeaseId>& ids, NamClientId client) {
  std::map<std::size_t, wire::NamRevoke> told;
  std::set<RegionUuid> over;
  for (const LeaseId id : ids) {
    const auto it = leases.find(id);
    if (it == leases.end()) continue;
    const LeaseRecord lease = std::move(it->second);
    leases.erase(it);
    heirs.erase(id);
    const auto holder = held.find(lease.holder);
    holder->second.erase(id);
    if (holder->second.empty()) held.erase(holder);
    const auto token = lease_tokens.find({lease.user.uid, lease.token});
    if (token != lease_tokens.end() && token->second == id) lease_tokens.erase(token);
    Region& region = *Find(lease.region);
    region.leases.erase(id);
    Emit(nam_effect::DeleteLease{id});
    for (const RegionExtent& extent : region.record.extents)
      if (const auto node = FindNode(extent.node); node && nodes[*node].up) told[*node].leases.push_back(id);
    if (region.record.life_lease == id && region.committed()) over.insert(lease.region);
  }
  for (std::size_t n = 0; n < nodes.size() && client.value != 0; ++n) {
    if (nodes[n].up) {
      told[n].clients.push_back(client);
      continue;
    }
    nodes[n].gone.push_back(client);
    if (nodes[n].gone.size() > kMaxNamGone) nodes[n].gone.pop_front();
  }
  for (auto& [node, revoke] : told) Send(node, std::move(revoke));
  for (const RegionUuid& uuid : over) BeginRemoval(*Find(uuid));
}

void NamBook::Impl::Do(nam_event::Request& e, wire::NamOpen& m) {
  if (Status status = CheckToken(m.token); !status.ok()) return Answer(e.tag, std::move(status));
  if (!Has(NamRights::kAll, m.rights) ||
      (m.rights & (NamRights::kRead | NamRights::kWrite)) == NamRights::kNone)
    return Answer(e.tag,
                  Error(Code::kInvalidArgument, "rights {}; expected read (1), write (2), and map (4) beside",
                        static_cast<int>(m.rights)));
  auto found = Select(m.region);
  if (!found.ok()) return Answer(e.tag, found.status());
  Region& region = **found;
  if (Status status = CheckRights(region, e.caller, m.rights); !status.ok())
    return Answer(e.tag, std::move(status));
  if (Status status = CheckThere(region); !status.ok()) return Answer(e.tag, std::move(status));
  if (const auto known = lease_tokens.find({e.caller.user.uid, m.token}); known != lease_tokens.end()) {
    const LeaseRecord& lease = leases.at(known->second);
    if (lease.region == region.record.uuid && lease.holder == e.caller.holder)
      return ReplyLease(e.tag, region, lease.id);
  }
  const NamRights rights = m.rights | (RightsOf(region, e.caller) & NamRights::kMap);
  const auto lease = AddLease(region, e.caller, m.token, rights);
  lease.ok() ? ReplyLease(e.tag, region, *lease) : Answer(e.tag, lease.status());
}

// Of the caller's user and, in a job, of his job: ranks that share a lease may ask for its addresses.
const LeaseRecord* NamBook::Impl::FindLease(const NamCaller& caller, LeaseId id) const {
  const auto it = leases.find(id);
  if (it == leases.end()) return nullptr;
  const LeaseRecord& lease = it->second;
  const bool his = lease.user.uid == caller.user.uid && lease.holder.job == caller.holder.job;
  return his ? &lease : nullptr;
}

void NamBook::Impl::Do(nam_event::Request& e, wire::NamClose& m) {
  // A job's own lease ends with the job.
  const LeaseRecord* lease = FindLease(e.caller, m.lease);
  if (lease != nullptr && lease->holder == e.caller.holder) EndLeases({m.lease}, NamClientId());
  Answer(e.tag, Status::Ok());
}

void NamBook::Impl::Do(nam_event::Request& e, wire::NamRefresh& m) {
  const LeaseRecord* lease = FindLease(e.caller, m.lease);
  if (lease == nullptr)
    return Answer(e.tag, Error(Code::kNotFound, "lease {} has ended; open the region again", m.lease));
  const Region& region = *Find(lease->region);
  if (Status status = CheckThere(region); !status.ok()) return Answer(e.tag, std::move(status));
  TakeOver(leases.at(m.lease), e.caller);
  ReplyLease(e.tag, region, m.lease);
}

void NamBook::Impl::TakeOver(LeaseRecord& lease, const NamCaller& caller) {
  if (lease.holder == caller.holder) {
    heirs.erase(lease.id);
  } else if (orphans.contains(lease.holder)) {
    Pass(lease, caller.holder);
  } else if (!lease.holder.node.empty() && !caller.holder.node.empty()) {
    heirs[lease.id] = caller.holder;
  }
}

void NamBook::Impl::Pass(LeaseRecord& lease, const NamHolder& heir) {
  heirs.erase(lease.id);
  const auto old = held.find(lease.holder);
  old->second.erase(lease.id);
  if (old->second.empty()) {
    orphans.erase(old->first);
    held.erase(old);
  }
  lease.holder = heir;
  held[lease.holder].insert(lease.id);
  Emit(nam_effect::PutLease{lease});
}

void NamBook::Impl::EndOrphans(const std::function<bool(Instant)>& over) {
  std::vector<NamHolder> late;
  for (const auto& [holder, until] : orphans)
    if (over(until)) late.push_back(holder);
  for (const NamHolder& holder : late) {
    orphans.erase(holder);
    EndLeases(LeasesOf(holder), NamClientId());
  }
}

void NamBook::Impl::Handle(nam_event::HolderGone& e) {
  DropWaiters([&](const NamCaller& caller) { return caller.holder == e.holder; },
              "the process that asked has gone");
  orphans.erase(e.holder);
  std::erase_if(heirs, [&](const auto& heir) { return heir.second == e.holder; });
  EndLeases(LeasesOf(e.holder), e.client.value != 0 ? e.client : e.holder.client);
}

void NamBook::Impl::Handle(nam_event::JobStarted& e) {
  if (FindJob(e.job) != nullptr) return;
  StartJob(std::move(e));
}

void NamBook::Impl::StartJob(nam_event::JobStarted started) {
  Job job;
  const JobId id = started.job;
  job.reserved = std::min(started.allotment.value, kMaxNamBytes);
  job.started = std::move(started);
  held_by_jobs += Held(job);
  const Job& kept = jobs.insert_or_assign(id, std::move(job)).first->second;
  BindJob(kept);
}

// --nam-region: the regions stay while the job runs.
void NamBook::Impl::BindJob(const Job& job) {
  const nam_event::JobStarted& started = job.started;
  NamCaller caller;
  caller.user = started.user;
  caller.user_name = started.user_name;
  caller.groups = started.groups;
  caller.holder.job = started.job;
  caller.who = fmt::format("job {}", started.job);
  for (const wire::NamRegionBinding& binding : started.regions) {
    auto found = Select(binding.region);
    Status status = found.ok() ? CheckRights(**found, caller, binding.rights) : found.status();
    if (status.ok()) {
      Region& region = **found;
      const std::set<LeaseId> bound = LeasesOf(caller.holder);
      const bool known = std::any_of(bound.begin(), bound.end(),
                                     [&](LeaseId id) { return leases.at(id).region == region.record.uuid; });
      if (!known) status = AddLease(region, caller, "", binding.rights).status();
    }
    if (!status.ok())
      Emit(nam_effect::Log{
          fmt::format("job {} starts without its --nam-region: {}", started.job, status.message())});
  }
}

void NamBook::Impl::Handle(nam_event::JobEnded& e) {
  if (FindJob(e.job) == nullptr) return;
  DropWaiters([&](const NamCaller& caller) { return caller.holder.job == e.job; },
              fmt::format("job {} has ended", e.job));
  std::set<LeaseId> over;
  for (auto it = held.lower_bound(NamHolder{e.job}); it != held.end() && it->first.job == e.job; ++it)
    over.insert(it->second.begin(), it->second.end());
  EndLeases(over, NamClientId());
  TakeFromJob(e.job);
}

// Its regions go, or pass to the user; what is being freed is nobody's but the node's.
void NamBook::Impl::TakeFromJob(JobId id) {
  std::vector<RegionUuid> unmade;
  for (const RegionUuid& uuid : waiting)
    if (const Region& region = *Find(uuid); region.reserved() && region.record.job == id)
      unmade.push_back(uuid);
  for (const RegionUuid& uuid : unmade) FailPending(uuid, Error(Code::kCancelled, "job {} has ended", id));
  const auto it = jobs.find(id);
  std::vector<RegionUuid> its;
  if (it != jobs.end())
    its.assign(it->second.regions.begin(), it->second.regions.end());
  else
    for (const auto& [uuid, region] : regions)
      if (region.record.job == id) its.push_back(uuid);
  for (const RegionUuid& uuid : its) Account(*Find(uuid), Sign::kTake);
  if (it != jobs.end()) {
    held_by_jobs -= Held(it->second);
    jobs.erase(it);
  }
  for (const RegionUuid& uuid : its) {
    Region& region = *Find(uuid);
    const bool passes = region.committed() && region.record.lifetime == wire::NamLifetime::kPersistent;
    if (passes) region.record.job = JobId();
    Account(region, Sign::kAdd);
    if (passes) Put(region);
    if (region.committed() && !passes) BeginRemoval(region);
  }
}

Status NamBook::CheckBinding(const NamCaller& caller, const wire::NamRegionBinding& binding) const {
  MSA_ASSIGN_OR_RETURN(const Impl::Region* region, impl_->Select(binding.region));
  MSA_RETURN_IF_ERROR(impl_->CheckRights(*region, caller, binding.rights));
  // Away now is not away for good: the job waits in the queue, and its node may be back by then.
  const Status there = impl_->CheckThere(*region);
  return there.code() == Code::kUnavailable ? Status::Ok() : there;
}

}  // namespace msa
