// A region goes in two phases: kRemoving is committed, its namds free, the record goes. What no record names,
// because a request failed or a layout was replaced, is freed as a ghost.
#include <algorithm>

#include "book_impl.h"

namespace msa {

void NamBook::Impl::Do(nam_event::Request& e, wire::NamRemove& m) {
  auto found = Select(m.region);
  if (!found.ok()) return Answer(e.tag, found.status());
  Region& region = **found;
  if (Status status = e.caller.operator_ ? CheckBinding(region, e.caller, "remove")
                                         : CheckOwner(region, e.caller, "remove");
      !status.ok())
    return Answer(e.tag, std::move(status));
  std::set<LeaseId> others = region.leases;
  for (const LeaseId own : LeasesOf(e.caller.holder)) others.erase(own);
  if (!others.empty() && !m.force)
    return Answer(
        e.tag, Error(Code::kFailedPrecondition,
                     "region '{}' is in use: {}; wait until they have closed it, or remove it with --force",
                     region.record.name, HoldersText(others)));
  const RegionUuid uuid = region.record.uuid;
  BeginRemoval(region);
  Region* left = Find(uuid);
  if (left == nullptr) return Answer(e.tag, Status::Ok());
  left->removers.push_back(e.tag);
  left->removal_told = now + kNamRemovalTime;
  waiting.insert(uuid);
  Wake(left->removal_told);
}

// Of a region that is committed. It may be gone afterwards.
void NamBook::Impl::BeginRemoval(Region& region) {
  RegionRecord& record = region.record;
  if (region.pending)
    FailPending(record.uuid, Error(Code::kCancelled, "region '{}' was removed", record.name));
  record.phase = RegionPhase::kRemoving;
  names.erase(record.name);
  create_tokens.erase({record.owner.uid, record.token});
  EndLeases(std::set<LeaseId>(region.leases), NamClientId());
  FreeExtents(region);
}

void NamBook::Impl::FreeExtents(Region& region) {
  const RegionUuid uuid = region.record.uuid;
  Recharge(region, [&] {
    for (RegionExtent& extent : region.record.extents) {
      // A node that the topology no longer has: nobody can free it, and nobody is charged.
      if (!FindNode(extent.node)) extent.freed = true;
    }
  });
  if (std::all_of(region.record.extents.begin(), region.record.extents.end(),
                  [](const auto& x) { return x.freed; })) {
    Emit(nam_effect::DeleteRegion{uuid});
    Account(region, Sign::kTake);
    return Forget(region);
  }
  Put(region);
  for (const RegionExtent& extent : region.record.extents)
    if (const auto node = FindNode(extent.node); node && !extent.freed)
      AskFree(*node, {uuid, region.record.generation});
}

// It is out of the tables. Its accounts are settled already.
void NamBook::Impl::Forget(Region& region) {
  const RegionRecord& record = region.record;
  const RegionUuid uuid = record.uuid;
  const auto name = names.find(record.name);
  if (name != names.end() && name->second == uuid) names.erase(name);
  const auto token = create_tokens.find({record.owner.uid, record.token});
  if (token != create_tokens.end() && token->second == uuid) create_tokens.erase(token);
  for (const RegionExtent& extent : record.extents)
    if (const auto node = FindNode(extent.node)) nodes[*node].regions.erase(uuid);
  waiting.erase(uuid);
  regions.erase(uuid);
}

void NamBook::Impl::AskFree(std::size_t node, ExtentKey key) {
  if (!nodes[node].up) return;
  const std::uint64_t request = ++last_ask;
  asks[request] = {Ask::Kind::kFree, node, key};
  Send(node, wire::NamExtentFree{request, key.first, key.second});
}

void NamBook::Impl::AddGhost(std::size_t node, ExtentKey key, std::uint64_t bytes) {
  if (!nodes[node].ghosts.emplace(key, Ghost{bytes}).second) return;
  nodes[node].used += bytes;
  AskFree(node, key);
}

void NamBook::Impl::DropGhost(std::size_t node, ExtentKey key) {
  const auto it = nodes[node].ghosts.find(key);
  if (it == nodes[node].ghosts.end()) return;
  nodes[node].used -= it->second.bytes;
  nodes[node].ghosts.erase(it);
}

bool NamBook::Impl::HasGhosts(std::size_t node, RegionUuid uuid) const {
  const auto& ghosts = nodes[node].ghosts;
  const auto first = ghosts.lower_bound({uuid, Generation()});
  return first != ghosts.end() && first->first.first == uuid;
}

// namd has freed it, or never had it.
void NamBook::Impl::Freed(std::size_t node, ExtentKey key) {
  nodes[node].extents.erase(key);
  DropGhost(node, key);
  Region* region = Find(key.first);
  if (region == nullptr || !region->removing()) return;
  // The record goes last: without it nobody would know, after a restart, what its older extents are.
  if (HasGhosts(node, key.first)) return;
  if (region->record.generation != key.second) return AskFree(node, {key.first, region->record.generation});
  bool left = false;
  bool changed = false;
  Recharge(*region, [&] {
    for (RegionExtent& extent : region->record.extents) {
      if (extent.node == nodes[node].spec.name) changed = !std::exchange(extent.freed, true);
      left = left || !extent.freed;
    }
  });
  if (left) {
    if (changed) Put(*region);
    return;
  }
  Emit(nam_effect::DeleteRegion{key.first});
  for (const std::uint64_t tag : region->removers) Answer(tag, Status::Ok());
  Account(*region, Sign::kTake);
  Forget(*region);
}

void NamBook::Impl::AskFreesAgain(std::size_t node) {
  nodes[node].retry_frees.reset();
  std::set<ExtentKey> asked;
  for (const auto& [request, ask] : asks)
    if (ask.node == node && ask.kind == Ask::Kind::kFree) asked.insert(ask.extent);
  std::vector<ExtentKey> keys;
  for (const auto& [key, ghost] : nodes[node].ghosts) keys.push_back(key);
  for (const RegionUuid& uuid : nodes[node].regions) {
    const Region& region = *Find(uuid);
    if (!region.removing()) continue;
    for (const RegionExtent& extent : region.record.extents)
      if (extent.node == nodes[node].spec.name && !extent.freed)
        keys.emplace_back(uuid, region.record.generation);
  }
  for (const ExtentKey& key : keys)
    if (!asked.contains(key)) AskFree(node, key);
}

}  // namespace msa
