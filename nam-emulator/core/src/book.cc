#include "msa/namd/book.h"

#include <algorithm>
#include <utility>

namespace msa::namd {
namespace {

template <class T>
void Append(std::vector<T>& to, std::vector<T> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

void Outcome::Add(Outcome other) {
  Append(owners, std::move(other.owners));
  Append(keys, std::move(other.keys));
  Append(told, std::move(other.told));
  Append(removable, std::move(other.removable));
}

void Book::Put(const ExtentKey& key, wire::NamExtentState state, ExtentShape shape) {
  Extent& extent = extents_[key];
  extent.state = state;
  extent.shape = shape;
  if (state == wire::NamExtentState::kDamaged && extent.damage.empty()) extent.damage = "its file is damaged";
}

void Book::Remove(const ExtentKey& key) {
  const auto it = extents_.find(key);
  if (it == extents_.end()) return;
  for (const std::uint64_t attachment : std::set(it->second.attachments)) (void)End(attachment);
  extents_.erase(key);
}

std::optional<wire::NamExtentState> Book::StateOf(const ExtentKey& key) const {
  const auto it = extents_.find(key);
  if (it == extents_.end()) return std::nullopt;
  return it->second.state;
}

void Book::Commit(const ExtentKey& key) {
  const auto it = extents_.find(key);
  if (it != extents_.end() && it->second.state == wire::NamExtentState::kPending)
    it->second.state = wire::NamExtentState::kCommitted;
}

bool Book::MarkDamaged(const ExtentKey& key, const std::string& reason) {
  const auto it = extents_.find(key);
  if (it == extents_.end() || it->second.state == wire::NamExtentState::kDamaged) return false;
  it->second.state = wire::NamExtentState::kDamaged;
  it->second.damage = reason;
  return true;
}

std::vector<wire::NamExtentReport> Book::Reports() const {
  std::vector<wire::NamExtentReport> reports;
  for (const auto& [key, extent] : extents_)
    reports.push_back({key.uuid, key.generation, extent.state, extent.shape.data});
  return reports;
}

Outcome Book::Free(const ExtentKey& key) {
  const auto it = extents_.find(key);
  if (it == extents_.end()) return {};
  it->second.freeing = true;
  if (it->second.attachments.empty()) return {.removable = {key}};
  return RevokeAll(std::set(it->second.attachments));
}

bool Book::IsFreeing(const ExtentKey& key) const {
  const auto it = extents_.find(key);
  return it != extents_.end() && it->second.freeing;
}

Result<Reconciliation> Book::Welcome(const wire::NamdWelcome& welcome) {
  if (gate_.is_open() && gate_.system() != welcome.system)
    return Error(Code::kFailedPrecondition,
                 "controller is of system {:016x}, this NAM daemon serves {:016x}; start it with the system "
                 "to which its backing belongs",
                 welcome.system, gate_.system());
  gate_.Open(welcome);
  Reconciliation result;
  std::set<ExtentKey> expected;
  for (const wire::NamExtentReport& report : welcome.extents) {
    const ExtentKey key{report.uuid, report.generation};
    expected.insert(key);
    const auto it = extents_.find(key);
    if (report.state == wire::NamExtentState::kPending) continue;
    if (it == extents_.end()) {
      result.damaged.push_back({key.uuid, key.generation, "its file is not there"});
    } else if (report.bytes.value > nam::RoundUp(it->second.shape.data.value, nam::kPageBytes)) {
      result.damaged.push_back(
          {key.uuid, key.generation,
           fmt::format("its file holds {} bytes instead of {}", it->second.shape.data, report.bytes)});
    } else if (it->second.state == wire::NamExtentState::kPending) {
      result.commit.push_back(key);
    } else if (it->second.state == wire::NamExtentState::kDamaged &&
               report.state != wire::NamExtentState::kDamaged) {
      result.damaged.push_back({key.uuid, key.generation, it->second.damage});
    }
  }
  for (const auto& [key, extent] : extents_) {
    if (expected.contains(key) || extent.freeing) continue;
    (extent.state == wire::NamExtentState::kPending ? result.free : result.unknown).push_back(key);
  }
  std::vector<LeaseId> over;
  for (const auto& [lease, attachments] : by_lease_)
    if (!gate_.IsLive(lease)) over.push_back(lease);
  result.ended = Revoke({.leases = std::move(over)});
  return result;
}

Outcome Book::Revoke(const wire::NamRevoke& revoke) {
  std::set<std::uint64_t> all;
  for (const LeaseId lease : revoke.leases) {
    gate_.Revoke(lease);
    if (const auto it = by_lease_.find(lease); it != by_lease_.end())
      all.insert(it->second.begin(), it->second.end());
  }
  for (const NamClientId client : revoke.clients)
    if (const auto it = by_client_.find(client); it != by_client_.end())
      all.insert(it->second.begin(), it->second.end());
  return RevokeAll(all);
}

Outcome Book::RevokeAll(const std::set<std::uint64_t>& attachments) {
  Outcome outcome;
  for (const std::uint64_t attachment : attachments) outcome.Add(RevokeOne(attachment));
  return outcome;
}

// A mapping cannot be taken away: its attachment stays until its holder lets go, without rights.
Outcome Book::RevokeOne(std::uint64_t id) {
  const auto it = attachments_.find(id);
  if (it == attachments_.end()) return {};
  Attachment& attachment = it->second;
  if (attachment.kind != Kind::kSocket || !attachment.mapped) return End(id);
  if (attachment.ended) return {};
  Outcome outcome;
  attachment.ended = true;
  outcome.told.push_back({attachment.connection, id});
  if (attachment.key) outcome.keys.push_back(*std::exchange(attachment.key, std::nullopt));
  Owner& owner = extents_.at(attachment.extent).owners.at(attachment.client);
  if (++owner.ended == owner.attachments)
    outcome.owners.push_back({attachment.extent, owner.number, OwnerEnd::What::kLocks});
  return outcome;
}

Outcome Book::End(std::uint64_t id) {
  const auto it = attachments_.find(id);
  if (it == attachments_.end()) return {};
  const Attachment attachment = std::move(it->second);
  attachments_.erase(it);
  const auto forget = [id](auto& index, auto key) {
    const auto at = index.find(key);
    if (at == index.end()) return;
    at->second.erase(id);
    if (at->second.empty()) index.erase(at);
  };
  if (attachment.kind == Kind::kSocket) forget(by_connection_, attachment.connection);
  forget(by_lease_, attachment.lease);
  forget(by_client_, attachment.client);

  Outcome outcome;
  if (attachment.key) outcome.keys.push_back(*attachment.key);
  Extent& extent = extents_.at(attachment.extent);
  extent.attachments.erase(id);
  Owner& owner = extent.owners.at(attachment.client);
  --owner.attachments;
  if (attachment.ended) --owner.ended;
  if (owner.attachments == 0) {
    outcome.owners.push_back({attachment.extent, owner.number, OwnerEnd::What::kNumber});
    extent.numbers.reset(owner.number - 1);
    extent.owners.erase(attachment.client);
  } else if (!attachment.ended && owner.ended == owner.attachments) {
    outcome.owners.push_back({attachment.extent, owner.number, OwnerEnd::What::kLocks});
  }
  if (extent.freeing && extent.attachments.empty()) outcome.removable.push_back(attachment.extent);
  return outcome;
}

Status Book::CheckInvariants() const {
  std::size_t listed = 0;
  for (const auto& [key, extent] : extents_) {
    std::bitset<nam::kMaxOwners> numbers;
    std::size_t counted = 0;
    for (const auto& [client, owner] : extent.owners) {
      if (owner.number == 0 || owner.number > nam::kMaxOwners || numbers.test(owner.number - 1))
        return Error(Code::kInternal, "owner number {} of extent {} is wrong or twice there", owner.number,
                     ToText(key));
      if (owner.number > extent.highest_owner || owner.attachments == 0 || owner.ended > owner.attachments)
        return Error(Code::kInternal, "owner {} of extent {} is counted wrongly", owner.number, ToText(key));
      numbers.set(owner.number - 1);
      counted += owner.attachments;
    }
    if (numbers != extent.numbers)
      return Error(Code::kInternal, "owner numbers of extent {} are not its owners'", ToText(key));
    if (counted != extent.attachments.size())
      return Error(Code::kInternal, "extent {} has {} attachments, its owners have {}", ToText(key),
                   extent.attachments.size(), counted);
    for (const std::uint64_t id : extent.attachments)
      if (const auto it = attachments_.find(id); it == attachments_.end() || it->second.extent != key)
        return Error(Code::kInternal, "extent {} lists an attachment that is not its own", ToText(key));
    listed += extent.attachments.size();
  }
  std::size_t indexed = 0;
  for (const auto& [lease, attachments] : by_lease_) indexed += attachments.size();
  if (listed != attachments_.size() || indexed != attachments_.size())
    return Error(Code::kInternal, "{} attachments, {} in extents, {} in leases", attachments_.size(), listed,
                 indexed);
  for (const auto& [id, attachment] : attachments_)
    if (attachment.kind == Kind::kFabric && !gate_.IsLive(attachment.lease))
      return Error(Code::kInternal, "fabric attachment under lease {} that has ended", attachment.lease);
  return Status::Ok();
}

}  // namespace msa::namd
