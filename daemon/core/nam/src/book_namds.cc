// NAM nodes: what their namds say they have, and what they must have.
#include <algorithm>

#include "book_impl.h"

namespace msa {

std::optional<std::size_t> NamBook::Impl::FindNode(std::string_view name) const {
  const auto it = node_index.find(name);
  return it == node_index.end() ? std::nullopt : std::optional(it->second);
}

bool NamBook::Impl::Missing(const Region& region, std::size_t extent) const {
  const auto node = FindNode(region.record.extents[extent].node);
  if (!node || !nodes[*node].up || !region.committed()) return false;
  const auto there = nodes[*node].extents.find({region.record.uuid, region.record.generation});
  return there == nodes[*node].extents.end() || there->second.state == wire::NamExtentState::kDamaged;
}

bool NamBook::Impl::Refuse(const nam_event::NamdUp& e) {
  std::string reason;
  if (!FindNode(e.node))
    reason = fmt::format(
        "node '{}' has no network attached memory in the topology; give it 'nam', or stop msa-namd "
        "there",
        e.node);
  else if (e.hello.version != wire::kNamProtocolVersion)
    reason =
        fmt::format("msa-namd of {} speaks version {}, this controller {}; install the same build on both",
                    e.node, e.hello.version, wire::kNamProtocolVersion);
  else if (e.hello.system != 0 && e.hello.system != system)
    reason = fmt::format(
        "the extents in '{}' on {} belong to another system ({:016x}, this one is {:016x}); give "
        "msa-namd another directory, or move them away",
        e.hello.backing, e.node, e.hello.system, system);
  if (reason.empty()) return false;
  nam_event::NamdLost lost{e.node, reason};
  Handle(lost);
  Emit(nam_effect::RefuseNamd{e.node, reason});
  Emit(nam_effect::Log{reason});
  return true;
}

void NamBook::Impl::Handle(nam_event::NamdUp& e) {
  if (Refuse(e)) return;
  const std::size_t index = *FindNode(e.node);
  Node& node = nodes[index];
  ForgetAsks(index);
  node.up = true;
  node.capacity = std::min(node.spec.capacity.value, e.hello.capacity.value);
  node.socket = e.hello.socket;
  node.fabric_provider = e.hello.fabric_provider;
  node.fabric_address = e.hello.fabric_address;
  const std::uint32_t old_pid = std::exchange(node.pid, e.hello.pid);
  node.retry_frees.reset();
  node.extents.clear();
  for (const wire::NamExtentReport& report : e.hello.extents)
    node.extents[{report.uuid, report.generation}] = report;
  DropConnections(index, e, old_pid);
  Welcome(index);
  // It may have restored them from before.
  if (const auto gone = std::exchange(node.gone, {}); !gone.empty())
    Send(index, wire::NamRevoke{.clients = {gone.begin(), gone.end()}});
  Reconcile(index);
  node.excused = std::max(node.excused, node.used);  // by extents of before
}

// Processes outside jobs that closed their connection while nobody could tell. Those of a namd that may have
// been restarted since have lost theirs with it and get the time to take their leases over (NamRefresh).
void NamBook::Impl::DropConnections(std::size_t node, const nam_event::NamdUp& e, std::uint32_t old_pid) {
  const bool same = old_pid == e.hello.pid;
  if (same && !e.hello.connections) return;
  const std::string& name = nodes[node].spec.name;
  const auto gone = [&](const NamHolder& holder) {
    if (holder.node != name) return false;
    const auto& open = e.hello.connections;
    return !open || std::find(open->begin(), open->end(), holder.connection) == open->end();
  };
  DropWaiters([&](const NamCaller& caller) { return gone(caller.holder); },
              "the process that asked has gone");
  std::erase_if(heirs, [&](const auto& heir) { return gone(heir.second); });
  std::set<LeaseId> over;
  std::vector<LeaseId> inherited;
  for (const auto& [holder, ids] : held) {
    if (!gone(holder)) continue;
    if (same) {
      over.insert(ids.begin(), ids.end());
      continue;
    }
    if (orphans.try_emplace(holder, now + kNamOrphanTime).second) Wake(now + kNamOrphanTime);
    for (const LeaseId id : ids)
      if (heirs.contains(id)) inherited.push_back(id);
  }
  for (const LeaseId id : inherited) Pass(leases.at(id), NamHolder(heirs.at(id)));
  EndLeases(over, NamClientId());
}

void NamBook::Impl::ListRegion(Region& region, std::size_t node, wire::NamdWelcome& welcome) const {
  const RegionRecord& record = region.record;
  const std::string& name = nodes[node].spec.name;
  if (region.removing()) return;
  for (const RegionExtent& extent : record.extents)
    if (extent.node == name && region.committed())
      welcome.extents.push_back(
          {record.uuid, record.generation, wire::NamExtentState::kCommitted, extent.bytes});
  if (!region.pending) return;
  for (const RegionExtent& extent : region.pending->layout.extents)
    if (extent.node == name)
      welcome.extents.push_back(
          {record.uuid, region.pending->generation, wire::NamExtentState::kPending, extent.bytes});
}

void NamBook::Impl::Welcome(std::size_t index) {
  wire::NamdWelcome welcome;
  welcome.newest = last_lease;
  for (const RegionUuid& uuid : nodes[index].regions) {
    Region& region = *Find(uuid);
    welcome.leases.insert(welcome.leases.end(), region.leases.begin(), region.leases.end());
    ListRegion(region, index, welcome);
  }
  std::sort(welcome.leases.begin(), welcome.leases.end());
  Send(index, std::move(welcome));
}

void NamBook::Impl::Reconcile(std::size_t index) {
  Node& node = nodes[index];
  for (const RegionUuid& uuid : std::vector<RegionUuid>(node.regions.begin(), node.regions.end()))
    if (Region* region = Find(uuid)) ReconcileRegion(*region, index);
  for (auto it = node.extents.begin(); it != node.extents.end();) {
    const auto& [key, report] = *it;
    const Region* region = Find(key.first);
    const bool ours = region != nullptr && node.regions.contains(key.first) &&
                      (key.second == region->record.generation ||
                       (region->pending && key.second == region->pending->generation));
    // Of a layout that was replaced, and the controller died before it was freed.
    if (region != nullptr && !region->reserved() && key.second < region->record.generation &&
        report.state != wire::NamExtentState::kPending)
      AddGhost(index, key, report.bytes.value);
    else if (!ours && report.state == wire::NamExtentState::kPending && !node.ghosts.contains(key)) {
      it = node.extents.erase(it);  // namd frees it: the welcome does not list it
      continue;
    }
    ++it;
  }
  std::vector<ExtentKey> gone;
  for (const auto& [key, ghost] : node.ghosts) {
    if (node.extents.contains(key)) continue;
    gone.push_back(key);
  }
  for (const ExtentKey& key : gone) DropGhost(index, key);
  AskFreesAgain(index);
}

void NamBook::Impl::ReconcileRegion(Region& region, std::size_t index) {
  Node& node = nodes[index];
  RegionRecord& record = region.record;
  const auto there = node.extents.find({record.uuid, record.generation});
  if (region.committed()) {
    for (RegionExtent& extent : record.extents) {
      if (extent.node != node.spec.name) continue;
      if (there == node.extents.end()) {
        Emit(nam_effect::Log{
            fmt::format("region '{}': its memory on {} is not there", record.name, extent.node)});
      } else if (there->second.state == wire::NamExtentState::kPending) {
        // The commit was lost with the session.
        there->second.state = wire::NamExtentState::kCommitted;
        Send(index, wire::NamExtentCommit{record.uuid, record.generation});
      } else if (there->second.state == wire::NamExtentState::kDamaged && !extent.damaged) {
        extent.damaged = true;
        Put(region);
      }
    }
  }
  if (!region.pending) return;
  Pending& pending = *region.pending;
  for (std::size_t e = 0; e < pending.layout.extents.size(); ++e) {
    if (pending.layout.extents[e].node != node.spec.name) continue;
    pending.done[e] = false;
    AskAllocation(region, e);
  }
}

// Answers of a session that is over do not come.
void NamBook::Impl::ForgetAsks(std::size_t node) {
  std::erase_if(asks, [&](const auto& entry) { return entry.second.node == node; });
  EndScans(node);
}

void NamBook::Impl::Handle(nam_event::NamdLost& e) {
  const auto index = FindNode(e.node);
  if (!index || !nodes[*index].up) return;
  Node& node = nodes[*index];
  node.up = false;
  node.retry_frees.reset();
  node.extents.clear();
  ForgetAsks(*index);
  Emit(nam_effect::Log{fmt::format("namd of {} is away: {}", e.node, e.reason)});
  std::vector<RegionUuid> failed;
  for (const RegionUuid& uuid : node.regions)
    if (Find(uuid)->pending) failed.push_back(uuid);
  for (const RegionUuid& uuid : failed)
    FailPending(uuid, Error(Code::kUnavailable, "region '{}': namd of {} went away ({}); try again",
                            Find(uuid)->record.name, e.node, e.reason));
}

void NamBook::Impl::Handle(nam_event::ExtentDone& e) {
  const auto index = FindNode(e.node);
  const auto it = asks.find(e.done.request);
  if (!index || it == asks.end() || it->second.node != *index) return;
  const Ask ask = it->second;
  asks.erase(it);
  const auto code = e.done.code <= static_cast<std::uint8_t>(Code::kUnauthenticated)
                        ? static_cast<Code>(e.done.code)
                        : Code::kUnknown;
  if (ask.kind == Ask::Kind::kFree) {
    if (code == Code::kOk || code == Code::kNotFound) return Freed(*index, ask.extent);
    Emit(nam_effect::Log{fmt::format("namd of {} could not free extent {}.{}: {}; asked again in {} s",
                                     e.node, ToText(ask.extent.first), ask.extent.second, e.done.message,
                                     kNamFreeRetry.count() / 1000)});
    nodes[*index].retry_frees = now + kNamFreeRetry;
    return Wake(now + kNamFreeRetry);
  }
  Region* region = Find(ask.extent.first);
  if (region == nullptr || !region->pending || region->pending->generation != ask.extent.second) return;
  if (code != Code::kOk)
    return FailPending(ask.extent.first, Error(code, "region '{}': namd of {}: {}", region->record.name,
                                               e.node, e.done.message));
  Pending& pending = *region->pending;
  for (std::size_t i = 0; i < pending.done.size(); ++i) {
    if (pending.layout.extents[i].node != e.node) continue;
    pending.done[i] = true;
    nodes[*index].extents[ask.extent] = {ask.extent.first, ask.extent.second, wire::NamExtentState::kPending,
                                         pending.layout.extents[i].bytes};
  }
  if (std::find(pending.done.begin(), pending.done.end(), false) == pending.done.end()) Allocated(*region);
}

void NamBook::Impl::Handle(nam_event::ExtentDamaged& e) {
  const auto index = FindNode(e.node);
  if (!index) return;
  const ExtentKey key{e.damaged.uuid, e.damaged.generation};
  if (const auto there = nodes[*index].extents.find(key); there != nodes[*index].extents.end())
    there->second.state = wire::NamExtentState::kDamaged;
  Region* region = Find(key.first);
  if (region == nullptr || !region->committed() || region->record.generation != key.second) return;
  for (RegionExtent& extent : region->record.extents) {
    if (extent.node != e.node || extent.damaged) continue;
    extent.damaged = true;
    Emit(nam_effect::Log{fmt::format("region '{}': its memory on {} is damaged: {}", region->record.name,
                                     e.node, e.damaged.reason)});
    Put(*region);
  }
}

}  // namespace msa
