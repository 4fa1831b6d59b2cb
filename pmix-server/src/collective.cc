#include "msa/pmix/collective.h"

#include <algorithm>
#include <iterator>

namespace msa::pmix {
namespace {

using Indices = std::vector<std::uint32_t>;

template <class T>
void SortUnique(std::vector<T>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

template <class T>
bool IsSortedUnique(const std::vector<T>& items) {
  return std::adjacent_find(items.begin(), items.end(), [](const T& a, const T& b) { return !(a < b); }) ==
         items.end();
}

std::size_t PositionOf(const Indices& participants, std::uint32_t member) {
  return static_cast<std::size_t>(std::lower_bound(participants.begin(), participants.end(), member) -
                                  participants.begin());
}

bool Contains(const Indices& participants, std::uint32_t member) {
  return std::binary_search(participants.begin(), participants.end(), member);
}

std::optional<std::uint32_t> ParentOf(const Indices& participants, std::uint32_t member,
                                      std::uint32_t arity) {
  const std::size_t position = PositionOf(participants, member);
  if (position == 0) return std::nullopt;
  return participants[(position - 1) / arity];
}

Indices ChildrenOf(const Indices& participants, std::uint32_t member, std::uint32_t arity) {
  const std::size_t first = PositionOf(participants, member) * arity + 1;
  const std::size_t last = std::min(first + arity, participants.size());
  return first < last ? Indices(participants.begin() + static_cast<std::ptrdiff_t>(first),
                                participants.begin() + static_cast<std::ptrdiff_t>(last))
                      : Indices();
}

// Members of the subtree under `member`, it included, ascending.
Indices SubtreeOf(const Indices& participants, std::uint32_t member, std::uint32_t arity) {
  Indices subtree{member};
  for (std::size_t i = 0; i < subtree.size(); ++i) {
    const Indices children = ChildrenOf(participants, subtree[i], arity);
    subtree.insert(subtree.end(), children.begin(), children.end());
  }
  std::sort(subtree.begin(), subtree.end());
  return subtree;
}

bool Concerns(const CollectiveKey& key, const std::string& nspace) {
  return std::any_of(key.procs.begin(), key.procs.end(),
                     [&](const Proc& proc) { return proc.nspace == nspace; });
}

std::string Describe(const CollectiveKey& key) {
  static constexpr const char* kNames[] = {"fence", "connect", "disconnect", "PMI-1 barrier"};
  return fmt::format("{} over {} process entries of {}", kNames[static_cast<std::size_t>(key.kind)],
                     key.procs.size(), key.procs.empty() ? std::string("nobody") : key.procs.front().nspace);
}

}  // namespace

CollectiveEffects CollectiveEngine::LocalContribution(Contribution contribution) {
  CollectiveEffects out;
  SortUnique(contribution.procs);
  contribution.participants.push_back(options_.self);
  SortUnique(contribution.participants);
  CollectiveKey key{contribution.kind, std::move(contribution.procs), 0};
  key.sequence = next_sequence_[Group{key.kind, key.procs}]++;
  const auto [it, fresh] = operations_.try_emplace(key);
  Operation& operation = it->second;
  operation.number = contribution.operation;
  by_number_.emplace(contribution.operation, key);
  if (operation.failed) {
    const auto [status, reason] = *operation.failed;
    Finish(it, {contribution.operation, status, {}, reason}, out);
    return out;
  }
  if (fresh) operation.participants = contribution.participants;
  operation.bytes += contribution.data.size();
  operation.from[options_.self].push_back({options_.self, std::move(contribution.data)});
  if (auto lost = LostAmong(contribution.participants)) {
    Fail(it, kPmixErrUnreachable, *lost, std::nullopt, out);
  } else if (operation.participants != contribution.participants) {
    Fail(it, kPmixErrBadParam,
         fmt::format("{}: this node counts {} participating nodes, another one {}; the nodes know different "
                     "placements of these processes",
                     Describe(key), contribution.participants.size(), operation.participants.size()),
         std::nullopt, out);
  } else {
    Advance(it, out);
  }
  return out;
}

void CollectiveEngine::Advance(Operations::iterator it, CollectiveEffects& out) {
  Operation& operation = it->second;
  if (!operation.number || operation.sent_up) return;
  const Indices children = ChildrenOf(operation.participants, options_.self, options_.arity);
  for (const std::uint32_t child : children)
    if (!operation.from.contains(child)) return;
  if (operation.bytes > options_.max_data_bytes) {
    Fail(it, kPmixErrOutOfResource,
         fmt::format(
             "{}: the contributions have {} bytes, at most {} can be exchanged; put less data before the "
             "fence",
             Describe(it->first), operation.bytes, options_.max_data_bytes),
         std::nullopt, out);
    return;
  }
  const auto parent = ParentOf(operation.participants, options_.self, options_.arity);
  if (!parent) {
    CompleteRoot(it, out);
    return;
  }
  CollectiveMessage up{it->first, CollectivePhase::kUp, operation.participants, {}, {}, kPmixSuccess, {}};
  for (auto& [child, blobs] : operation.from)
    std::move(blobs.begin(), blobs.end(), std::back_inserter(up.blobs));
  std::sort(up.blobs.begin(), up.blobs.end(),
            [](const auto& a, const auto& b) { return a.member < b.member; });
  operation.from.clear();
  operation.bytes = 0;
  operation.sent_up = true;
  out.push_back(SendToPeer{*parent, std::move(up)});
}

void CollectiveEngine::CompleteRoot(Operations::iterator it, CollectiveEffects& out) {
  Operation& operation = it->second;
  std::map<std::uint32_t, std::string*> ordered;
  for (auto& [child, blobs] : operation.from)
    for (CollectiveBlob& blob : blobs) ordered[blob.member] = &blob.data;
  std::string data;
  data.reserve(operation.bytes);
  for (const auto& [member, blob] : ordered) data += *blob;
  for (const std::uint32_t child : ChildrenOf(operation.participants, options_.self, options_.arity))
    out.push_back(SendToPeer{
        child, {it->first, CollectivePhase::kDown, operation.participants, {}, data, kPmixSuccess, {}}});
  Finish(it, {*operation.number, kPmixSuccess, std::move(data), {}}, out);
}

void CollectiveEngine::Fail(Operations::iterator it, PmixStatus status, const std::string& reason,
                            std::optional<std::uint32_t> except, CollectiveEffects& out) {
  Operation& operation = it->second;
  Indices neighbours = ChildrenOf(operation.participants, options_.self, options_.arity);
  if (auto parent = ParentOf(operation.participants, options_.self, options_.arity))
    neighbours.push_back(*parent);
  for (const std::uint32_t neighbour : neighbours) {
    if (neighbour == except || lost_.contains(neighbour)) continue;
    out.push_back(SendToPeer{
        neighbour, {it->first, CollectivePhase::kFail, operation.participants, {}, {}, status, reason}});
  }
  if (operation.number) {
    Finish(it, {*operation.number, status, {}, reason}, out);
    return;
  }
  operation.failed.emplace(status, reason);
  operation.from.clear();
  operation.bytes = 0;
}

void CollectiveEngine::Finish(Operations::iterator it, CollectiveComplete complete, CollectiveEffects& out) {
  by_number_.erase(complete.operation);
  operations_.erase(it);
  out.push_back(std::move(complete));
}

Status CollectiveEngine::Check(std::uint32_t from, const CollectiveMessage& message) const {
  const Indices& participants = message.participants;
  const auto fault = [&](std::string_view what) {
    return Error(Code::kInvalidArgument, "collective message of member {}: {}", from, what);
  };
  if (message.key.kind > CollectiveKind::kPmi1Barrier) return fault("unknown kind of operation");
  if (message.key.procs.empty() || !IsSortedUnique(message.key.procs))
    return fault("processes are not sorted");
  if (!IsSortedUnique(participants)) return fault("participants are not sorted");
  if (from == options_.self || !Contains(participants, from) || !Contains(participants, options_.self))
    return fault("sender and receiver are not both participants");
  const bool from_parent = ParentOf(participants, options_.self, options_.arity) == from;
  const bool from_child = ParentOf(participants, from, options_.arity) == options_.self;
  switch (message.phase) {
    case CollectivePhase::kUp: {
      if (!from_child) return fault("contribution from a member that is no child of this one");
      Indices members;
      for (const CollectiveBlob& blob : message.blobs) members.push_back(blob.member);
      if (members != SubtreeOf(participants, from, options_.arity))
        return fault("contributions are not those of the sender's subtree");
      return Status::Ok();
    }
    case CollectivePhase::kDown:
      return from_parent ? Status::Ok() : fault("result from a member that is not the parent of this one");
    case CollectivePhase::kFail:
      if (message.status == kPmixSuccess) return fault("failure without a status");
      return from_parent || from_child ? Status::Ok() : fault("failure from a member that is no neighbour");
  }
  return fault("unknown phase");
}

Result<CollectiveEffects> CollectiveEngine::FromPeer(std::uint32_t from, CollectiveMessage message) {
  MSA_RETURN_IF_ERROR(Check(from, message));
  CollectiveEffects out;
  auto it = operations_.find(message.key);
  if (it == operations_.end()) {
    if (message.key.sequence < NextSequence(message.key)) return out;
    // The loss itself ends the operation here when its time comes.
    if (LostAmong(message.participants)) return out;
    if (message.phase == CollectivePhase::kDown) {
      if (IsForgotten(message.key)) return out;
      return Error(Code::kInvalidArgument,
                   "collective message of member {}: result of {} before this member's "
                   "contribution",
                   from, Describe(message.key));
    }
    if (early() >= options_.max_early_operations)
      return Error(Code::kResourceExhausted,
                   "collective message of member {}: {} operations wait for this member "
                   "already, at most that many may",
                   from, options_.max_early_operations);
    it = operations_.try_emplace(message.key).first;
    it->second.participants = message.participants;
  }
  if (it->second.failed) return out;
  if (message.phase == CollectivePhase::kFail) {
    Fail(it, message.status, message.reason, from, out);
  } else if (message.phase == CollectivePhase::kUp) {
    OnUp(it, from, message, out);
  } else {
    if (!it->second.sent_up)
      return Error(Code::kInvalidArgument,
                   "collective message of member {}: result of {} before this member's "
                   "contribution",
                   from, Describe(message.key));
    for (const std::uint32_t child : ChildrenOf(it->second.participants, options_.self, options_.arity))
      out.push_back(SendToPeer{child, message});
    Finish(it, {*it->second.number, kPmixSuccess, std::move(message.data), {}}, out);
  }
  return out;
}

void CollectiveEngine::OnUp(Operations::iterator it, std::uint32_t from, CollectiveMessage& message,
                            CollectiveEffects& out) {
  Operation& operation = it->second;
  if (operation.participants != message.participants) {
    Fail(it, kPmixErrBadParam,
         fmt::format("{}: this node counts {} participating nodes, another one {}; the nodes know different "
                     "placements of these processes",
                     Describe(it->first), operation.participants.size(), message.participants.size()),
         std::nullopt, out);
    return;
  }
  if (operation.sent_up || operation.from.contains(from)) return;
  for (const CollectiveBlob& blob : message.blobs) operation.bytes += blob.data.size();
  operation.from[from] = std::move(message.blobs);
  Advance(it, out);
}

CollectiveEffects CollectiveEngine::MemberLost(std::uint32_t index, const std::string& reason) {
  CollectiveEffects out;
  if (!lost_.emplace(index, reason).second) return out;
  for (auto it = operations_.begin(); it != operations_.end();) {
    const auto current = it++;
    if (!Contains(current->second.participants, index)) continue;
    if (current->second.number) {
      Fail(current, kPmixErrUnreachable, reason, std::nullopt, out);
    } else {
      operations_.erase(current);
    }
  }
  return out;
}

CollectiveEffects CollectiveEngine::OnTimeout(std::uint64_t number) {
  CollectiveEffects out;
  const auto known = by_number_.find(number);
  if (known == by_number_.end()) return out;
  const auto it = operations_.find(known->second);
  Fail(it, kPmixErrTimeout,
       fmt::format("{}: the caller's time limit passed before all of {} nodes had joined",
                   Describe(it->first), it->second.participants.size()),
       std::nullopt, out);
  return out;
}

CollectiveEffects CollectiveEngine::ForgetNamespace(const std::string& nspace) {
  CollectiveEffects out;
  for (auto it = operations_.begin(); it != operations_.end();) {
    const auto current = it++;
    if (!Concerns(current->first, nspace)) continue;
    if (current->second.number) {
      Finish(current,
             {*current->second.number,
              kPmixErrUnreachable,
              {},
              fmt::format("{}: namespace {} has ended", Describe(current->first), nspace)},
             out);
    } else {
      operations_.erase(current);
    }
  }
  std::erase_if(next_sequence_, [&](const auto& entry) {
    return Concerns(CollectiveKey{entry.first.first, entry.first.second, 0}, nspace);
  });
  forgotten_.insert(nspace);
  return out;
}

bool CollectiveEngine::IsForgotten(const CollectiveKey& key) const {
  return std::any_of(key.procs.begin(), key.procs.end(),
                     [&](const Proc& proc) { return forgotten_.contains(proc.nspace); });
}

std::optional<std::string> CollectiveEngine::LostAmong(const Indices& participants) const {
  for (const auto& [member, reason] : lost_)
    if (Contains(participants, member)) return reason;
  return std::nullopt;
}

std::uint64_t CollectiveEngine::NextSequence(const CollectiveKey& key) const {
  const auto it = next_sequence_.find(Group{key.kind, key.procs});
  return it == next_sequence_.end() ? 0 : it->second;
}

Status CollectiveEngine::CheckInvariants() const {
  std::size_t numbered = 0;
  for (const auto& entry : operations_) {
    const CollectiveKey& key = entry.first;
    const Operation& operation = entry.second;
    const auto broken = [&](std::string_view what) {
      return Error(Code::kInternal, "{} #{}: {}", Describe(key), key.sequence, what);
    };
    if (!IsSortedUnique(key.procs)) return broken("processes are not sorted");
    if (!IsSortedUnique(operation.participants) || !Contains(operation.participants, options_.self))
      return broken("participants are not sorted or lack this member");
    if (operation.number) {
      ++numbered;
      const auto it = by_number_.find(*operation.number);
      if (it == by_number_.end() || it->second != key) return broken("number and operation disagree");
      if (operation.failed) return broken("failed, but not completed");
      if (key.sequence >= NextSequence(key)) return broken("contributed, but not counted");
    } else if (key.sequence < NextSequence(key)) {
      return broken("is over, but kept");
    }
    std::size_t bytes = 0;
    for (const auto& [child, blobs] : operation.from)
      for (const CollectiveBlob& blob : blobs) bytes += blob.data.size();
    if (bytes != operation.bytes) return broken("bytes are miscounted");
  }
  if (numbered != by_number_.size()) return Error(Code::kInternal, "a number has no operation");
  return Status::Ok();
}

}  // namespace msa::pmix
