#include "msa/pmix/data_store.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace msa::pmix {
namespace {

template <class... Args>
StoreResult Refuse(PmixStatus status, fmt::format_string<Args...> format, Args&&... args) {
  return StoreResult{status, fmt::format(format, std::forward<Args>(args)...), {}};
}

}  // namespace

std::optional<DataStore::Width> DataStore::WidthOf(Range range) {
  switch (range) {
    case Range::kProcLocal:
      return Width::kProc;
    case Range::kLocal:
      return Width::kNode;
    case Range::kNamespace:
      return Width::kNamespace;
    case Range::kUndef:
    case Range::kRm:
    case Range::kSession:
    case Range::kGlobal:
      return Width::kJob;
    case Range::kCustom:
    case Range::kInvalid:
      break;
  }
  return std::nullopt;
}

DataStore::Slot DataStore::SlotOf(const std::string& key, Width width, const Caller& caller) {
  switch (width) {
    case Width::kProc:
      return {key, width, caller.proc, 0};
    case Width::kNode:
      return {key, width, {}, caller.node};
    case Width::kNamespace:
      return {key, width, {caller.proc.nspace, 0}, 0};
    case Width::kJob:
      break;
  }
  return {key, Width::kJob, {}, 0};
}

bool DataStore::Admits(Width width, const Caller& self, const Caller& other) {
  return SlotOf("", width, self) == SlotOf("", width, other);
}

StoreResult DataStore::CheckKeys(const std::vector<std::string>& keys) const {
  if (keys.size() > limits_.keys_per_call)
    return Refuse(kPmixErrOutOfResource, "{} keys in one call; at most {} are possible, make several calls",
                  keys.size(), limits_.keys_per_call);
  for (const std::string& key : keys)
    if (key.empty() || key.size() > limits_.key_bytes)
      return Refuse(kPmixErrBadParam, "a key has {} bytes; 1 to {} are possible", key.size(),
                    limits_.key_bytes);
  return {};
}

StoreResult DataStore::CheckPublish(const Caller& caller, Width width,
                                    const std::vector<KeyValue>& data) const {
  std::size_t added = 0;
  std::set<std::string> keys;
  for (const KeyValue& item : data) {
    if (item.packed_value.size() > limits_.value_bytes)
      return Refuse(kPmixErrOutOfResource, "value of key '{}' has {} bytes; at most {} can be published",
                    item.key, item.packed_value.size(), limits_.value_bytes);
    if (!keys.insert(item.key).second || entries_.contains(SlotOf(item.key, width, caller)))
      return Refuse(kPmixErrDuplicateKey,
                    "key '{}' is published already; unpublish it first or choose another", item.key);
    added += item.key.size() + item.packed_value.size();
  }
  if (entries_.size() + data.size() > limits_.entries)
    return Refuse(kPmixErrOutOfResource,
                  "{} keys are published, {} more are one too many: at most {} can be kept", entries_.size(),
                  data.size(), limits_.entries);
  if (bytes_ + added > limits_.total_bytes)
    return Refuse(kPmixErrOutOfResource,
                  "{} bytes are published, {} more are too many: at most {} can be kept", bytes_, added,
                  limits_.total_bytes);
  return {};
}

StoreResult DataStore::Publish(const Caller& caller, Range range, Persistence persistence,
                               std::vector<KeyValue> data) {
  if (range == Range::kCustom)
    return Refuse(kPmixErrNotSupported, "range PMIX_RANGE_CUSTOM; publish for the namespace or the session");
  const auto width = WidthOf(range);
  if (!width) return Refuse(kPmixErrBadParam, "range {}; expected 0 to 7", static_cast<int>(range));
  if (persistence > Persistence::kSession)
    return Refuse(kPmixErrBadParam, "persistence {}; expected 0 to 4", static_cast<int>(persistence));
  std::vector<std::string> keys;
  for (const KeyValue& item : data) keys.push_back(item.key);
  if (StoreResult refused = CheckKeys(keys); refused.status != kPmixSuccess) return refused;
  if (StoreResult refused = CheckPublish(caller, *width, data); refused.status != kPmixSuccess)
    return refused;
  for (KeyValue& item : data) {
    bytes_ += item.key.size() + item.packed_value.size();
    entries_.emplace(SlotOf(item.key, *width, caller),
                     Entry{caller, persistence, std::move(item.packed_value)});
  }
  StoreResult result;
  Retry({keys.begin(), keys.end()}, result);
  return result;
}

DataStore::Entries::iterator DataStore::Find(const Caller& caller, const std::string& key, Width width) {
  for (const Width candidate : {Width::kProc, Width::kNode, Width::kNamespace, Width::kJob}) {
    const auto it = entries_.find(SlotOf(key, candidate, caller));
    if (it != entries_.end() && Admits(width, caller, it->second.owner)) return it;
  }
  return entries_.end();
}

DataStore::Entries::iterator DataStore::Erase(Entries::iterator it) {
  bytes_ -= it->first.key.size() + it->second.packed_value.size();
  return entries_.erase(it);
}

bool DataStore::TryComplete(const LookupRequest& request, std::vector<LookupDone>& done) {
  const Width width = *WidthOf(request.range);
  LookupDone answer{request.lookup, kPmixSuccess, {}, {}};
  std::set<Slot> read_once;  // a key asked for twice is still read once
  for (const std::string& key : request.keys) {
    if (const auto it = Find(request.caller, key, width); it != entries_.end()) {
      answer.values.emplace_back(it->second.owner.proc, KeyValue{key, it->second.packed_value});
      if (it->second.persistence == Persistence::kFirstRead) read_once.insert(it->first);
      continue;
    }
    const auto supplied = std::find_if(request.supplied.begin(), request.supplied.end(),
                                       [&](const auto& value) { return value.second.key == key; });
    if (supplied != request.supplied.end()) answer.values.push_back(*supplied);
  }
  if (request.wait && answer.values.size() < request.keys.size()) return false;
  if (answer.values.empty()) {
    answer.status = kPmixErrNotFound;
    answer.reason = fmt::format("key '{}' is not published for this process", request.keys.front());
  } else if (answer.values.size() < request.keys.size()) {
    answer.status = kPmixErrPartialSuccess;
  }
  for (const Slot& slot : read_once) Erase(entries_.find(slot));
  done.push_back(std::move(answer));
  return true;
}

bool DataStore::Has(const Caller& caller, const std::string& key, Range range) const {
  const auto width = WidthOf(range);
  return width && const_cast<DataStore*>(this)->Find(caller, key, *width) != entries_.end();
}

StoreResult DataStore::Supply(std::uint64_t lookup, std::vector<std::pair<Proc, KeyValue>> values) {
  StoreResult result;
  const auto it = std::find_if(waiting_.begin(), waiting_.end(),
                               [&](const auto& entry) { return entry.second.lookup == lookup; });
  if (it == waiting_.end()) return result;
  it->second.supplied = std::move(values);
  if (TryComplete(it->second, result.done)) StopWaiting(it);
  return result;
}

std::optional<std::string> DataStore::NeverComes(const LookupRequest& request) const {
  const Width width = *WidthOf(request.range);
  for (const std::string& key : request.keys) {
    if (const_cast<DataStore*>(this)->Find(request.caller, key, width) != entries_.end()) continue;
    // Prefixes of the key sort before it; ports are few, so the longest candidates come first soon.
    for (auto it = expected_.upper_bound(key); it != expected_.begin();) {
      --it;
      if (key.starts_with(it->first) && it->second.ended) return it->second.ended;
    }
  }
  return std::nullopt;
}

StoreResult DataStore::Lookup(LookupRequest request) {
  StoreResult result;
  const auto refuse = [&](StoreResult refused) {
    result.done.push_back({request.lookup, refused.status, {}, std::move(refused.reason)});
    return result;
  };
  if (request.range == Range::kCustom)
    return refuse(
        Refuse(kPmixErrNotSupported, "range PMIX_RANGE_CUSTOM; look up in the namespace or the session"));
  if (!WidthOf(request.range))
    return refuse(Refuse(kPmixErrBadParam, "range {}; expected 0 to 7", static_cast<int>(request.range)));
  if (request.keys.empty()) return refuse(Refuse(kPmixErrBadParam, "lookup without a key"));
  if (StoreResult refused = CheckKeys(request.keys); refused.status != kPmixSuccess)
    return refuse(std::move(refused));
  if (TryComplete(request, result.done)) return result;
  if (auto reason = NeverComes(request)) return refuse({kPmixErrJobFailedToStart, std::move(*reason), {}});
  if (waiting_.size() >= limits_.waiting)
    return refuse(
        Refuse(kPmixErrOutOfResource, "{} lookups wait already; at most that many may", limits_.waiting));
  Wait(std::move(request));
  return result;
}

void DataStore::Wait(LookupRequest request) {
  const std::uint64_t age = next_age_++;
  for (const std::string& key : request.keys) waiting_for_[key].insert(age);
  waiting_.emplace(age, std::move(request));
}

std::map<std::uint64_t, DataStore::LookupRequest>::iterator DataStore::StopWaiting(
    std::map<std::uint64_t, LookupRequest>::iterator it) {
  for (const std::string& key : it->second.keys) {
    const auto ages = waiting_for_.find(key);
    if (ages == waiting_for_.end()) continue;
    ages->second.erase(it->first);
    if (ages->second.empty()) waiting_for_.erase(ages);
  }
  return waiting_.erase(it);
}

void DataStore::Retry(const std::set<std::string>& keys, StoreResult& result) {
  std::set<std::uint64_t> ages;
  for (const std::string& key : keys)
    if (const auto it = waiting_for_.find(key); it != waiting_for_.end())
      ages.insert(it->second.begin(), it->second.end());
  for (const std::uint64_t age : ages) {
    const auto it = waiting_.find(age);
    if (TryComplete(it->second, result.done)) StopWaiting(it);
  }
}

StoreResult DataStore::Unpublish(const Caller& caller, const std::vector<std::string>& keys, Range range) {
  const auto width = WidthOf(range);
  if (!width)
    return Refuse(range == Range::kCustom ? kPmixErrNotSupported : kPmixErrBadParam,
                  "range {} of an unpublish", static_cast<int>(range));
  if (keys.empty()) {
    EraseEntries([&](const Slot& slot, const Entry& entry) {
      return entry.owner.proc == caller.proc && slot.width == *width;
    });
    return {};
  }
  if (StoreResult refused = CheckKeys(keys); refused.status != kPmixSuccess) return refused;
  bool found = false;
  for (const std::string& key : keys) {
    const auto it = entries_.find(SlotOf(key, *width, caller));
    if (it == entries_.end() || it->second.owner.proc != caller.proc) continue;
    Erase(it);
    found = true;
  }
  if (found) return {};
  return Refuse(kPmixErrNotFound, "key '{}' was not published by this process in this range", keys.front());
}

void DataStore::ExpectFrom(const std::string& nspace, const std::string& prefix) {
  if (!prefix.empty()) expected_[prefix] = Expected{nspace, std::nullopt};
}

template <class Predicate>
void DataStore::EraseEntries(Predicate predicate) {
  for (auto it = entries_.begin(); it != entries_.end();)
    it = predicate(it->first, it->second) ? Erase(it) : std::next(it);
}

template <class Predicate>
void DataStore::EndWaiting(PmixStatus status, const std::string& reason, Predicate predicate,
                           StoreResult& result) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (!predicate(it->second)) {
      ++it;
      continue;
    }
    result.done.push_back({it->second.lookup, status, {}, reason});
    it = StopWaiting(it);
  }
}

StoreResult DataStore::ProcEnded(const Proc& proc) {
  StoreResult result;
  EraseEntries([&](const Slot&, const Entry& entry) {
    return entry.persistence == Persistence::kProc && entry.owner.proc == proc;
  });
  EndWaiting(
      kPmixErrUnreachable, fmt::format("rank {} of {} has ended", proc.rank, proc.nspace),
      [&](const LookupRequest& request) { return request.caller.proc == proc; }, result);
  return result;
}

StoreResult DataStore::AppEnded(const std::string& nspace, std::uint32_t first_rank, std::uint32_t size) {
  EraseEntries([&](const Slot&, const Entry& entry) {
    const Proc& owner = entry.owner.proc;
    return entry.persistence == Persistence::kApp && owner.nspace == nspace && owner.rank >= first_rank &&
           owner.rank - first_rank < size;
  });
  return {};
}

StoreResult DataStore::NamespaceEnded(const std::string& nspace, const std::string& reason) {
  StoreResult result;
  EraseEntries([&](const Slot&, const Entry& entry) {
    return (entry.persistence == Persistence::kProc || entry.persistence == Persistence::kApp) &&
           entry.owner.proc.nspace == nspace;
  });
  EndWaiting(
      kPmixErrUnreachable, reason,
      [&](const LookupRequest& request) { return request.caller.proc.nspace == nspace; }, result);
  for (auto& [prefix, expected] : expected_)
    if (expected.nspace == nspace && !expected.ended) expected.ended = reason;
  EndWaiting(
      kPmixErrJobFailedToStart, reason,
      [&](const LookupRequest& request) { return NeverComes(request).has_value(); }, result);
  return result;
}

StoreResult DataStore::OnTime(SteadyTime now) {
  StoreResult result;
  EndWaiting(
      kPmixErrTimeout, "the caller's time limit passed before all keys were published",
      [&](const LookupRequest& request) { return request.deadline && *request.deadline <= now; }, result);
  return result;
}

std::optional<SteadyTime> DataStore::NextDeadline() const {
  std::optional<SteadyTime> next;
  for (const auto& [age, request] : waiting_)
    if (request.deadline && (!next || *request.deadline < *next)) next = request.deadline;
  return next;
}

Status DataStore::CheckInvariants() const {
  std::size_t bytes = 0;
  for (const auto& [slot, entry] : entries_) {
    bytes += slot.key.size() + entry.packed_value.size();
    if (slot != SlotOf(slot.key, slot.width, entry.owner))
      return Error(Code::kInternal, "key '{}' lies in a slot that is not its owner's", slot.key);
  }
  if (bytes != bytes_) return Error(Code::kInternal, "{} bytes are kept, {} are counted", bytes, bytes_);
  if (entries_.size() > limits_.entries || bytes_ > limits_.total_bytes || waiting_.size() > limits_.waiting)
    return Error(Code::kInternal, "a limit is exceeded");
  std::size_t indexed = 0;
  for (const auto& [key, ages] : waiting_for_) {
    indexed += ages.size();
    for (const std::uint64_t age : ages)
      if (!waiting_.contains(age)) return Error(Code::kInternal, "key '{}' is awaited by nobody", key);
  }
  std::size_t expected = 0;
  for (const auto& [age, request] : waiting_)
    expected += std::set<std::string>(request.keys.begin(), request.keys.end()).size();
  if (indexed != expected)
    return Error(Code::kInternal, "{} keys are awaited, {} are indexed", expected, indexed);
  return Status::Ok();
}

}  // namespace msa::pmix
