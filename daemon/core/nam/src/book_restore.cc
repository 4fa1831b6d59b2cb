#include <algorithm>

#include "book_impl.h"

namespace msa {

Status NamBook::Impl::CheckRecord(const RegionRecord& record) const {
  const auto wrong = [&](const char* what) {
    return Error(Code::kInvalidArgument, "region '{}' ({}): {}", record.name, ToText(record.uuid), what);
  };
  if (!record.uuid.valid() || regions.contains(record.uuid)) return wrong("two regions have this uuid");
  if (record.phase == RegionPhase::kReserved || record.phase > RegionPhase::kRemoving)
    return wrong("its phase is none that is stored");
  if (record.extents.empty() || record.segments.empty() || record.segments.size() > wire::kMaxNamSegments)
    return wrong("it has no segments, or too many");
  if (record.phase == RegionPhase::kCommitted && names.contains(record.name))
    return wrong("two regions have this name");
  std::uint64_t sum = 0;
  for (const wire::NamSegmentPlace& segment : record.segments) {
    if (segment.extent >= record.extents.size())
      return wrong("a segment lies in an extent that it does not have");
    if (segment.bytes.value > kMaxNamBytes - sum)
      return wrong("its segments have more bytes than any memory");
    sum += segment.bytes.value;
  }
  for (std::size_t a = 0; a < record.extents.size(); ++a)
    for (std::size_t b = a + 1; b < record.extents.size(); ++b)
      if (record.extents[a].node == record.extents[b].node)
        return wrong("two of its extents are on one node");
  return Status::Ok();
}

// Takes the records as they are; what no longer holds ends afterwards.
Status NamBook::Impl::Load(StoredNam& state) {
  // A lease may have been given whose row was never written: the disk was full. Its number is not used again,
  // since the clock has gone on; a controller gives fewer than 4096 in a millisecond.
  last_lease = std::max(state.last_lease, LeaseId(static_cast<std::uint64_t>(ToUnixMillis(now)) << 12));
  for (RegionRecord& record : state.regions) {
    MSA_RETURN_IF_ERROR(CheckRecord(record));
    const RegionUuid uuid = record.uuid;
    Region region;
    region.charges = nam_book::ChargesOf({record.extents, record.segments});
    region.bytes = nam_book::SumOf(region.charges);
    if (record.phase == RegionPhase::kCommitted) {
      names.emplace(record.name, uuid);
      if (!record.token.empty()) create_tokens[{record.owner.uid, record.token}] = uuid;
    }
    for (const RegionExtent& extent : record.extents)
      if (const auto node = FindNode(extent.node)) nodes[*node].regions.insert(uuid);
    region.record = std::move(record);
    Account(regions.emplace(uuid, std::move(region)).first->second, Sign::kAdd);
  }
  for (LeaseRecord& lease : state.leases) {
    last_lease = std::max(last_lease, lease.id);
    Region* region = Find(lease.region);
    if (region == nullptr || !region->committed()) {
      Emit(nam_effect::DeleteLease{lease.id});
      continue;
    }
    if (leases.contains(lease.id))
      return Error(Code::kInvalidArgument, "two leases have the number {}", lease.id);
    region->leases.insert(lease.id);
    held[lease.holder].insert(lease.id);
    if (!lease.token.empty()) lease_tokens.try_emplace({lease.user.uid, lease.token}, lease.id);
    leases.emplace(lease.id, std::move(lease));
  }
  return Status::Ok();
}

Result<std::vector<NamEffect>> NamBook::Restore(StoredNam state,
                                                const std::vector<nam_event::JobStarted>& jobs, Instant now) {
  Impl& impl = *impl_;
  impl.now = now;
  impl.out.clear();
  // Answers to what the controller asked before its restart are answers to nothing.
  impl.last_ask = static_cast<std::uint64_t>(ToUnixMillis(now)) << 20;
  // Jobs first, so that their regions are charged to them.
  std::vector<nam_event::JobStarted> running = jobs;
  for (nam_event::JobStarted& job : running) {
    std::vector<wire::NamRegionBinding> bindings = std::exchange(job.regions, {});
    const JobId id = job.job;
    impl.StartJob(std::move(job));
    impl.FindJob(id)->started.regions = std::move(bindings);
  }
  MSA_RETURN_IF_ERROR(impl.Load(state));
  for (auto& [id, job] : impl.jobs) job.excused = job.used;
  for (auto& [uid, user] : impl.users) user.excused = user.used;
  for (Impl::Node& node : impl.nodes) node.excused = std::max(node.excused, node.used);
  std::set<LeaseId> over;
  for (const auto& [id, lease] : impl.leases) {
    const NamHolder& holder = lease.holder;
    const bool of_ended_job = holder.job.value != 0 && impl.FindJob(holder.job) == nullptr;
    const bool of_no_node = !holder.node.empty() && !impl.FindNode(holder.node);
    if (of_ended_job || of_no_node || holder.call != 0) over.insert(id);
  }
  impl.EndLeases(over, NamClientId());
  std::set<JobId> ended;
  std::vector<RegionUuid> lifeless;
  for (const auto& [uuid, region] : impl.regions) {
    const RegionRecord& record = region.record;
    if (!region.committed()) continue;
    if (record.job.value != 0 && impl.FindJob(record.job) == nullptr) ended.insert(record.job);
    if (record.job.value == 0 && record.lifetime == wire::NamLifetime::kLease &&
        !impl.leases.contains(record.life_lease))
      lifeless.push_back(uuid);
  }
  for (const JobId id : ended) impl.TakeFromJob(id);
  for (const RegionUuid& uuid : lifeless) impl.BeginRemoval(*impl.Find(uuid));
  for (auto& [id, job] : impl.jobs) impl.BindJob(job);
  if (Status status = impl.CheckInvariants(); !status.ok())
    return Error(Code::kInvalidArgument, "{}", status.message());
  return std::exchange(impl.out, {});
}

}  // namespace msa
