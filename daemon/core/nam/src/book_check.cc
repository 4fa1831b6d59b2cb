// fsck: what the book knows against what the namds have; and what must always hold of the book itself.
#include <algorithm>

#include "book_impl.h"

namespace msa {

void NamBook::Impl::CheckNode(const Check& check, std::size_t index, wire::NamCheckResult& result) {
  const NamCaller& caller = check.caller;
  const bool repair = check.repair;
  Node& node = nodes[index];
  const std::string& name = node.spec.name;
  for (const RegionUuid& uuid : node.regions) {
    Region& region = *Find(uuid);
    if (!region.committed() || !MaySee(region, caller)) continue;
    const auto there = node.extents.find({uuid, region.record.generation});
    for (RegionExtent& extent : region.record.extents) {
      if (extent.node != name) continue;
      const bool missing = there == node.extents.end();
      if (!missing && !extent.damaged && there->second.state != wire::NamExtentState::kDamaged) continue;
      wire::NamFinding finding{name, region.record.name,
                               missing ? "its memory is not there" : "its memory is damaged"};
      if (repair && !extent.damaged) {
        extent.damaged = finding.repaired = true;
        finding.what += "; the region is marked as damaged";
        Put(region);
      } else if (extent.damaged) {
        finding.what += "; remove the region, or bring it back with 'msactl region restore --force'";
      }
      result.findings.push_back(std::move(finding));
    }
  }
  if (!caller.operator_) return;
  std::vector<std::pair<ExtentKey, std::uint64_t>> unknown;
  for (const auto& [key, report] : node.extents) {
    const Region* region = Find(key.first);
    const bool ours = region != nullptr && node.regions.contains(key.first) &&
                      (key.second == region->record.generation ||
                       (region->pending && key.second == region->pending->generation));
    if (ours || node.ghosts.contains(key)) continue;
    unknown.emplace_back(key, report.bytes.value);
  }
  for (const auto& [key, bytes] : unknown) {
    result.findings.push_back({name, ToText(key.first),
                               fmt::format("extent of {} bytes, generation {}, that no region knows{}", bytes,
                                           key.second, repair ? "; freed" : ""),
                               repair});
    if (repair) AddGhost(index, key, 0);
  }
}

void NamBook::Impl::Do(nam_event::Request& e, wire::NamCheckAsk& m) {
  if (m.repair && !e.caller.operator_)
    return Answer(e.tag,
                  Error(Code::kPermissionDenied, "{} (uid {}) may not repair; root and the operator may",
                        e.caller.user_name, e.caller.user.uid));
  if (checks.size() >= kMaxNamChecks)
    return Answer(e.tag, Error(Code::kResourceExhausted, "{} checks are under way, the limit; try again",
                               checks.size()));
  Check check{.caller = e.caller, .tag = e.tag, .repair = m.repair, .deadline = now + kNamScanTime};
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (!nodes[n].up) continue;
    check.scans.emplace(++last_ask, n);
    Send(n, wire::NamScan{last_ask});
  }
  if (check.scans.empty()) return Finish(check);
  Wake(check.deadline);
  checks.push_back(std::move(check));
}

void NamBook::Impl::Handle(nam_event::Scanned& e) {
  const auto index = FindNode(e.node);
  wire::NamScanned& scanned = e.scanned;
  const auto check = std::find_if(checks.begin(), checks.end(), [&](const Check& c) {
    const auto scan = c.scans.find(scanned.request);
    return scan != c.scans.end() && index && scan->second == *index;
  });
  if (check == checks.end()) return;
  Node& node = nodes[*index];
  for (const wire::NamExtentReport& report : scanned.extents) {
    const bool fresh = node.extents.try_emplace({report.uuid, report.generation}, report).second;
    if (fresh || !check->caller.operator_ || report.state != wire::NamExtentState::kCommitted) continue;
    const Region* region = Find(report.uuid);
    check->foreign.push_back(
        {e.node, region != nullptr ? region->record.name : ToText(report.uuid),
         fmt::format("the file of its memory has grown to {} bytes; what is beyond its end serves nobody",
                     report.bytes),
         false});
  }
  if (check->caller.operator_) {
    for (const std::string& name : scanned.foreign)
      check->foreign.push_back(
          {e.node, name, "file in the directory of its extents that is none; move it elsewhere", false});
    if (scanned.foreign_count > scanned.foreign.size())
      check->foreign.push_back({e.node, "",
                                fmt::format("{} more files in the directory of its extents that are none",
                                            scanned.foreign_count - scanned.foreign.size()),
                                false});
  }
  if (!scanned.failure.empty()) Emit(nam_effect::Log{fmt::format("fsck: {}: {}", e.node, scanned.failure)});
  ScanOver(scanned.request, scanned.failure.empty());
}

void NamBook::Impl::ScanOver(std::uint64_t request, bool is_in) {
  const auto check =
      std::find_if(checks.begin(), checks.end(), [&](const Check& c) { return c.scans.contains(request); });
  if (check == checks.end()) return;
  const auto scan = check->scans.find(request);
  if (is_in) check->scanned.insert(scan->second);
  check->scans.erase(scan);
  if (!check->scans.empty()) return;
  const Check done = std::move(*check);
  checks.erase(check);
  Finish(done);
}

void NamBook::Impl::EndScans(std::size_t node) {
  std::vector<std::uint64_t> lost;
  for (const Check& check : checks)
    for (const auto& [request, where] : check.scans)
      if (where == node) lost.push_back(request);
  for (const std::uint64_t request : lost) ScanOver(request, false);
}

void NamBook::Impl::EndLateScans(const std::function<bool(Instant)>& over) {
  std::vector<std::uint64_t> late;
  for (const Check& check : checks)
    if (over(check.deadline))
      for (const auto& [request, node] : check.scans) late.push_back(request);
  for (const std::uint64_t request : late) ScanOver(request, false);
}

void NamBook::Impl::Finish(const Check& check) {
  wire::NamCheckResult result;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (nodes[n].up && check.scanned.contains(n))
      CheckNode(check, n, result);
    else
      result.away.push_back(nodes[n].spec.name);
  }
  result.findings.insert(result.findings.end(), check.foreign.begin(), check.foreign.end());
  for (const auto& [uuid, region] : regions)
    for (const RegionExtent& extent : region.record.extents)
      if (!FindNode(extent.node) && MaySee(region, check.caller) && !region.removing())
        result.findings.push_back({extent.node, region.record.name,
                                   "its node has no network attached memory in the topology any more",
                                   false});
  Answer(check.tag, NamReplyBody(std::move(result)));
}

// What Account() has summed up, against the sums.
Status NamBook::Impl::CheckAccounts() const {
  std::vector<std::uint64_t> used(nodes.size(), 0);
  std::vector<std::uint64_t> by_jobs(nodes.size(), 0);
  std::map<JobId, std::uint64_t> of_job;
  std::map<std::uint32_t, std::uint64_t> of_user;
  const auto charge = [&](const RegionRecord& record, const RegionExtent& extent, std::uint64_t bytes) {
    const auto node = FindNode(extent.node);
    if (!node || extent.freed) return;
    used[*node] += bytes;
    if (jobs.contains(record.job)) by_jobs[*node] += bytes;
  };
  for (const auto& [uuid, region] : regions) {
    const RegionRecord& record = region.record;
    const auto charges = nam_book::ChargesOf({record.extents, record.segments});
    std::uint64_t bytes = nam_book::SumOf(charges);
    for (std::size_t e = 0; e < charges.size(); ++e) charge(record, record.extents[e], charges[e]);
    if (region.committed() && region.pending) {
      const Layout& next = region.pending->layout;
      const auto more = nam_book::ChargesOf(next);
      std::uint64_t sum = 0;
      for (std::size_t e = 0; e < more.size(); ++e) {
        charge(record, next.extents[e], more[e]);
        sum += more[e];
      }
      bytes = std::max(bytes, sum);
    }
    of_job[record.job] += bytes;
    if (ChargedToUser(record)) of_user[record.owner.uid] += bytes;
  }
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const Node& node = nodes[n];
    for (const auto& [key, ghost] : node.ghosts) used[n] += ghost.bytes;
    if (node.used != used[n] || node.by_jobs != by_jobs[n])
      return Error(Code::kInternal, "NAM node {}: {} bytes booked, {} used; of jobs {} and {}",
                   node.spec.name, node.used, used[n], node.by_jobs, by_jobs[n]);
    if (node.used > node.excused)
      return Error(Code::kInternal, "NAM node {}: {} of {} bytes used", node.spec.name, node.used,
                   node.excused);
  }
  std::uint64_t promised = 0;
  for (const auto& [id, job] : jobs) {
    promised += Held(job);
    if (job.used != of_job[id])
      return Error(Code::kInternal, "job {}: {} bytes booked, {} used", id, job.used, of_job[id]);
    const std::uint64_t limit = job.started.reserved ? job.reserved : job.reserved + policy.job_default.value;
    const bool limited = job.started.reserved || policy.job_default.value != 0;
    if (limited && job.used > std::max(limit, job.excused))
      return Error(Code::kInternal, "job {}: {} of {} bytes used", id, job.used, limit);
  }
  if (promised != held_by_jobs)
    return Error(Code::kInternal, "{} bytes promised to jobs, {} booked", promised, held_by_jobs);
  for (const auto& [uid, user] : users) {
    if (user.used != of_user[uid])
      return Error(Code::kInternal, "uid {}: {} bytes booked, {} used", uid, user.used, of_user[uid]);
    if (policy.user_quota.value != 0 && user.used > std::max(policy.user_quota.value, user.excused))
      return Error(Code::kInternal, "uid {}: {} of {} bytes used", uid, user.used, policy.user_quota);
  }
  return Status::Ok();
}

Status NamBook::Impl::CheckTables() const {
  std::size_t held_leases = 0;
  for (const auto& [holder, ids] : held) held_leases += ids.size();
  if (held_leases != leases.size())
    return Error(Code::kInternal, "{} leases, {} of holders", leases.size(), held_leases);
  for (const auto& [id, lease] : leases) {
    const auto region = regions.find(lease.region);
    if (region == regions.end() || !region->second.committed() || !region->second.leases.contains(id))
      return Error(Code::kInternal, "lease {} is on region {}, which is not there", id, ToText(lease.region));
    if (lease.holder.job.value != 0 && !jobs.contains(lease.holder.job))
      return Error(Code::kInternal, "lease {} is of job {}, which has ended", id, lease.holder.job);
    if (id > last_lease) return Error(Code::kInternal, "lease {} is beyond the last one, {}", id, last_lease);
  }
  for (const auto& [id, heir] : heirs)
    if (!leases.contains(id) || leases.at(id).holder == heir || heir.node.empty())
      return Error(Code::kInternal, "lease {} has an heir that it cannot have", id);
  std::size_t named = 0;
  for (const auto& [uuid, region] : regions) {
    const RegionRecord& record = region.record;
    for (const LeaseId id : region.leases)
      if (!leases.contains(id))
        return Error(Code::kInternal, "region '{}' has lease {}, which is not there", record.name, id);
    for (const RegionExtent& extent : record.extents)
      if (const auto node = FindNode(extent.node); node && !nodes[*node].regions.contains(uuid))
        return Error(Code::kInternal, "region '{}' is not listed on {}", record.name, extent.node);
    if (region.removing()) continue;
    ++named;
    const auto name = names.find(record.name);
    if (name == names.end() || name->second != uuid)
      return Error(Code::kInternal, "the name '{}' is of two regions, or of none", record.name);
  }
  if (named != names.size())
    return Error(Code::kInternal, "{} regions with names, {} names", named, names.size());
  for (const Node& node : nodes)
    for (const RegionUuid& uuid : node.regions)
      if (!regions.contains(uuid))
        return Error(Code::kInternal, "{} lists a region that is gone", node.spec.name);
  return Status::Ok();
}

Status NamBook::Impl::CheckPhases() const {
  for (const auto& [uuid, region] : regions) {
    const RegionRecord& record = region.record;
    if (region.reserved() != (region.reserved() && region.pending))
      return Error(Code::kInternal, "region '{}' is reserved and nobody makes it", record.name);
    if (region.reserved() && region.pending->waiters.empty())
      return Error(Code::kInternal, "region '{}' is made for nobody", record.name);
    if (region.pending && region.removing())
      return Error(Code::kInternal, "region '{}' is made and removed", record.name);
    if ((region.pending || !region.removers.empty()) && !waiting.contains(uuid))
      return Error(Code::kInternal, "region '{}': its time is not looked at", record.name);
    if (!region.committed()) continue;
    if (record.job.value != 0 && !jobs.contains(record.job))
      return Error(Code::kInternal, "region '{}' is of job {}, which has ended", record.name, record.job);
    if (record.lifetime == wire::NamLifetime::kLease && record.job.value == 0 &&
        !leases.contains(record.life_lease))
      return Error(Code::kInternal, "region '{}' lives as long as lease {}, which has ended", record.name,
                   record.life_lease);
  }
  for (const RegionUuid& uuid : waiting)
    if (!regions.contains(uuid))
      return Error(Code::kInternal, "region {} is waited for and gone", ToText(uuid));
  return Status::Ok();
}

Status NamBook::Impl::CheckInvariants() const {
  MSA_RETURN_IF_ERROR(CheckTables());
  MSA_RETURN_IF_ERROR(CheckPhases());
  return CheckAccounts();
}

}  // namespace msa
