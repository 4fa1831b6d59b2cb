#include <algorithm>
#include <utility>

#include "msa/namd/book.h"

namespace msa::namd {

Result<ExtentKey> Book::FindExtent(const wire::NamLease& lease) const {
  const ExtentKey key{lease.uuid, lease.generation};
  const auto it = extents_.find(key);
  if (it == extents_.end()) {
    for (auto other = extents_.lower_bound({lease.uuid, Generation{0}});
         other != extents_.end() && other->first.uuid == lease.uuid; ++other)
      if (other->first.generation > lease.generation)
        return Error(
            Code::kFailedPrecondition,
            "lease {} is of generation {} of region '{}', which has generation {} now; open it again",
            lease.lease, lease.generation, lease.name, other->first.generation);
    return Error(Code::kNotFound, "region '{}' (extent {}) has no memory on NAM node {}", lease.name,
                 ToText(key), node_);
  }
  if (it->second.freeing) return Error(Code::kFailedPrecondition, "region '{}' is being removed", lease.name);
  if (it->second.state == wire::NamExtentState::kDamaged)
    return Error(Code::kDataLoss,
                 "memory of region '{}' on NAM node {} is damaged: {}; restore a snapshot of it", lease.name,
                 node_, it->second.damage);
  return key;
}

Result<std::shared_ptr<const SegmentTable>> Book::SegmentsOf(const Extent& extent,
                                                             const wire::NamLease& lease,
                                                             std::uint32_t extent_index) const {
  SegmentTable table(extent.shape.segments);
  std::vector<bool> seen(table.size());
  for (const wire::NamSegmentPlace& segment : lease.segments) {
    if (segment.extent != extent_index) continue;
    const std::uint64_t data = extent.shape.data.value;
    if (segment.slot >= table.size() || seen[segment.slot] || segment.offset > data ||
        segment.bytes.value > data - segment.offset)
      return Error(Code::kDataLoss,
                   "segment {} of region '{}' ({} bytes from {}) is not in its file on node {}, which has {} "
                   "segments and {} bytes; see 'msactl region fsck'",
                   segment.slot, lease.name, segment.bytes, segment.offset, node_, table.size(), data);
    seen[segment.slot] = true;
    table[segment.slot] = {segment.offset, segment.bytes.value};
  }
  if (std::find(seen.begin(), seen.end(), false) != seen.end())
    return Error(Code::kDataLoss,
                 "region '{}' has another number of segments in its file on node {} ({}) than in its lease; "
                 "see 'msactl region fsck'",
                 lease.name, node_, table.size());
  if (extent.segments && *extent.segments == table) return extent.segments;
  return std::make_shared<const SegmentTable>(std::move(table));
}

Result<std::uint32_t> Book::TakeOwner(Extent& extent, NamClientId client, std::uint32_t uid) {
  const auto known = extent.owners.find(client);
  if (known != extent.owners.end() && known->second.uid != uid)
    return Error(Code::kPermissionDenied,
                 "client {} is a process of uid {}, not of uid {}; name 64 random bits of this process's own",
                 client, known->second.uid, uid);
  if (known != extent.owners.end()) return known->second.number;
  for (std::uint32_t number = 1; number <= nam::kMaxOwners; ++number) {
    if (extent.numbers.test(number - 1)) continue;
    extent.numbers.set(number - 1);
    extent.highest_owner = std::max(extent.highest_owner, number);
    extent.owners.emplace(client, Owner{.number = number, .uid = uid});
    return number;
  }
  return Error(Code::kResourceExhausted,
               "{} processes are attached to the region's memory on node {}, as many as can be; let one "
               "detach",
               nam::kMaxOwners, node_);
}

Grant Book::GrantOf(std::uint64_t id, const Attachment& attachment, const wire::NamAttach& attach) const {
  const Extent& extent = extents_.at(attachment.extent);
  Grant grant;
  grant.attachment = id;
  grant.extent = attachment.extent;
  grant.client = attachment.client;
  grant.lease = attachment.lease;
  grant.uid = extent.owners.at(attachment.client).uid;
  grant.owner = extent.owners.at(attachment.client).number;
  grant.highest_owner = extent.highest_owner;
  grant.rights = attachment.rights;
  grant.map = attach.map && attachment.mapped;
  grant.fabric = attach.fabric && !attachment.key;
  return grant;
}

void Book::Insert(std::uint64_t id, Attachment attachment) {
  Extent& extent = extents_.at(attachment.extent);
  extent.attachments.insert(id);
  ++extent.owners.at(attachment.client).attachments;
  if (attachment.kind == Kind::kSocket) by_connection_[attachment.connection].insert(id);
  by_lease_[attachment.lease].insert(id);
  by_client_[attachment.client].insert(id);
  attachments_.emplace(id, std::move(attachment));
}

// The client has lost what it had under this lease: its answer, its endpoint, or the namd of before.
Outcome Book::EndOlder(const Attachment& newer, std::uint64_t newer_id) {
  std::vector<std::uint64_t> older;
  for (const std::uint64_t id : by_client_.at(newer.client)) {
    const Attachment& other = attachments_.at(id);
    if (id == newer_id || other.extent != newer.extent || other.kind == Kind::kSocket) continue;
    if (other.kind == Kind::kRestored || (newer.kind == Kind::kFabric && other.lease == newer.lease))
      older.push_back(id);
  }
  Outcome outcome;
  for (const std::uint64_t id : older) outcome.Add(End(id));
  return outcome;
}

Status Book::CheckMore(std::uint64_t connection) const {
  const auto mine = by_connection_.find(connection);
  if (mine == by_connection_.end() || mine->second.size() < kMaxAttachmentsOfAConnection) return Status::Ok();
  return Error(Code::kResourceExhausted,
               "this connection has {} attachments, as many as one may have; detach some, or use another "
               "connection",
               mine->second.size());
}

std::optional<Grant> Book::AttachAgain(const Caller& caller, const wire::NamAttach& attach,
                                       const ExtentKey& key, LeaseId lease, bool map) {
  const auto mine = by_connection_.find(caller.connection);
  if (mine == by_connection_.end()) return std::nullopt;
  for (const std::uint64_t id : mine->second) {
    Attachment& known = attachments_.at(id);
    // One that has ended is only a mapping: nothing may be done under it again.
    if (known.ended || known.extent != key || known.client != attach.client || known.lease != lease) continue;
    known.mapped = known.mapped || map;
    Grant grant = GrantOf(id, known, attach);
    grant.known = true;
    return grant;
  }
  return std::nullopt;
}

Result<Grant> Book::Attach(const Caller& caller, const wire::NamAttach& attach, std::uint64_t random) {
  const bool by_socket = caller.via == Caller::Via::kSocket;
  if (attach.version != wire::kNamProtocolVersion)
    return Error(Code::kInvalidArgument,
                 "client speaks version {} of NAM's messages, this daemon {}; use one msa throughout",
                 attach.version, wire::kNamProtocolVersion);
  if (attach.client.value == 0)
    return Status(Code::kInvalidArgument, "attach names client 0; expected 64 random bits");
  MSA_ASSIGN_OR_RETURN(const wire::NamLease lease, gate_.Check(attach.blob));
  if (by_socket && caller.uid != lease.uid)
    return Error(Code::kPermissionDenied,
                 "lease {} of region '{}' was given to uid {}, not to uid {}; open the region as this user",
                 lease.lease, lease.name, lease.uid, caller.uid);
  if ((lease.rights & (NamRights::kRead | NamRights::kWrite)) == NamRights::kNone)
    return Error(Code::kPermissionDenied, "lease {} of region '{}' lets its holder neither read nor write",
                 lease.lease, lease.name);
  const auto place = std::find_if(lease.extents.begin(), lease.extents.end(),
                                  [this](const auto& e) { return e.node == node_; });
  if (place == lease.extents.end())
    return Error(Code::kNotFound, "region '{}' has no memory on NAM node {}", lease.name, node_);
  MSA_ASSIGN_OR_RETURN(const ExtentKey key, FindExtent(lease));
  Extent& extent = extents_.at(key);
  MSA_ASSIGN_OR_RETURN(extent.segments,
                       SegmentsOf(extent, lease, static_cast<std::uint32_t>(place - lease.extents.begin())));

  const bool map = by_socket && attach.map && Has(lease.rights, NamRights::kMap);
  if (by_socket)
    if (auto again = AttachAgain(caller, attach, key, lease.lease, map)) return *std::move(again);
  if (by_socket) MSA_RETURN_IF_ERROR(CheckMore(caller.connection));
  // A number that is taken already is no bad luck but a broken source of random numbers.
  if (random == 0 || attachments_.contains(random))
    return Error(Code::kInternal, "attachment number {:016x} is taken", random);
  // One of whom nothing but mappings is left has no locks any more.
  const auto before = extent.owners.find(attach.client);
  const bool known = before != extent.owners.end() && before->second.ended < before->second.attachments;
  MSA_ASSIGN_OR_RETURN([[maybe_unused]] const std::uint32_t owner,
                       TakeOwner(extent, attach.client, lease.uid));
  Attachment attachment{.kind = by_socket ? Kind::kSocket : Kind::kFabric,
                        .extent = key,
                        .client = attach.client,
                        .lease = lease.lease,
                        .connection = caller.connection,
                        .rights = lease.rights,
                        .mapped = map,
                        .segments = extent.segments};
  Insert(random, attachment);
  Outcome replaced = EndOlder(attachment, random);
  Grant grant = GrantOf(random, attachments_.at(random), attach);
  grant.replaced = std::move(replaced);
  grant.known = known;
  return grant;
}

bool Book::SetFabricKey(std::uint64_t attachment, std::uint64_t key) {
  const auto it = attachments_.find(attachment);
  if (it == attachments_.end() || it->second.ended || it->second.key) return false;
  it->second.key = key;
  return true;
}

Result<const Book::Attachment*> Book::Find(const Caller& caller, std::uint64_t id) const {
  const auto it = attachments_.find(id);
  const Kind kind = caller.via == Caller::Via::kSocket ? Kind::kSocket : Kind::kFabric;
  if (it == attachments_.end() || it->second.kind != kind ||
      (kind == Kind::kSocket && it->second.connection != caller.connection))
    return Status(Code::kFailedPrecondition, "attachment is unknown here or has ended; attach again");
  return &it->second;
}

Result<Outcome> Book::Detach(const Caller& caller, std::uint64_t attachment) {
  MSA_RETURN_IF_ERROR(Find(caller, attachment).status());
  return End(attachment);
}

Outcome Book::ConnectionClosed(std::uint64_t connection) {
  Outcome outcome;
  const auto it = by_connection_.find(connection);
  if (it == by_connection_.end()) return outcome;
  for (const std::uint64_t id : std::set(it->second)) outcome.Add(End(id));
  return outcome;
}

std::vector<std::pair<ExtentKey, RestoredOwner>> Book::RemoteOwners(NamClientId client,
                                                                    std::uint32_t uid) const {
  std::vector<std::pair<ExtentKey, RestoredOwner>> owners;
  const auto it = by_client_.find(client);
  if (it == by_client_.end()) return owners;
  for (const std::uint64_t id : it->second) {
    const Attachment& attachment = attachments_.at(id);
    const Owner& owner = extents_.at(attachment.extent).owners.at(client);
    if (attachment.kind == Kind::kFabric && owner.uid == uid)
      owners.push_back({attachment.extent, {owner.number, client, attachment.lease, uid}});
  }
  return owners;
}

Outcome Book::ClientGone(NamClientId client, std::uint32_t uid) {
  Outcome outcome;
  const auto it = by_client_.find(client);
  if (it == by_client_.end()) return outcome;
  for (const std::uint64_t id : std::set(it->second)) {
    const Attachment& attachment = attachments_.at(id);
    if (attachment.kind != Kind::kSocket && extents_.at(attachment.extent).owners.at(client).uid == uid)
      outcome.Add(End(id));
  }
  return outcome;
}

Status Book::Restore(const ExtentKey& key, const RestoredOwner& owner) {
  const auto it = extents_.find(key);
  if (it == extents_.end()) return Error(Code::kNotFound, "extent {} is not here", ToText(key));
  Extent& extent = it->second;
  if (owner.owner == 0 || owner.owner > nam::kMaxOwners || extent.numbers.test(owner.owner - 1) ||
      extent.owners.contains(owner.client) || owner.client.value == 0)
    return Error(Code::kInvalidArgument, "owner {} of extent {} is out of range or there already",
                 owner.owner, ToText(key));
  extent.numbers.set(owner.owner - 1);
  extent.highest_owner = std::max(extent.highest_owner, owner.owner);
  extent.owners.emplace(owner.client, Owner{.number = owner.owner, .uid = owner.uid});
  while (attachments_.contains(next_restored_)) ++next_restored_;
  Insert(next_restored_++,
         {.kind = Kind::kRestored, .extent = key, .client = owner.client, .lease = owner.lease});
  return Status::Ok();
}

Outcome Book::OwnerProcessGone(const ExtentKey& key, std::uint32_t owner) {
  const auto it = extents_.find(key);
  if (it == extents_.end()) return {};
  for (const std::uint64_t id : std::set(it->second.attachments)) {
    const Attachment& attachment = attachments_.at(id);
    if (attachment.kind == Kind::kRestored && it->second.owners.at(attachment.client).number == owner)
      return End(id);
  }
  return {};
}

}  // namespace msa::namd
