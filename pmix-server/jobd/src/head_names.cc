// Names that the user's other jobs see (MPI_Publish_name): the controller has the directory of them.
#include <algorithm>

#include "msa/job/port_name.h"

#include "head.h"

namespace msa::jobd {
namespace {

// Larger values stay in the job; a port name has 20 to 1,024 bytes.
constexpr std::size_t kMaxSharedValue = 4096;
// For an answer of the controller, which its supervisor starts again within a second or two.
constexpr Millis kNameAnswerWait{10'000};
// Of the keys of one lookup, together.
constexpr std::size_t kMaxLookupBytes = 64 << 10;
// Publishes that wait for the controller: each holds a call of a rank.
constexpr std::size_t kMaxNameOperations = 4096;

}  // namespace

bool Head::IsShared(pmix::Range range) {
  return range == pmix::Range::kSession || range == pmix::Range::kGlobal || range == pmix::Range::kRm ||
         range == pmix::Range::kUndef;
}

// Whether the publish is on its way: the controller says whether another job has the name. What is read once
// only is for this job.
bool Head::ShareNames(const StoreCaller& caller, StorePublish& message) {
  if (!IsShared(message.range) || message.persistence == pmix::Persistence::kFirstRead) return false;
  NameOperation operation;
  operation.message.change = wire::NameChange::kPublish;
  for (const pmix::KeyValue& item : message.data)
    if (!ParsePortKey(item.key) && item.packed_value.size() <= kMaxSharedValue)
      operation.message.names.push_back(
          {item.key, item.packed_value, message.proc.nspace, message.proc.rank});
  if (operation.message.names.empty()) return false;
  if (foreign_.name_operations.size() >= kMaxNameOperations) {
    outlet_.Log(fmt::format("{} names wait for the controller, the limit; a publish is refused",
                            foreign_.name_operations.size()));
    AnswerStore(caller, {pmix::kPmixErrOutOfResource, {}});
    return true;
  }
  operation.publish = std::move(message);
  operation.caller = caller;
  Queue(std::move(operation));
  return true;
}

void Head::WithdrawNames(std::vector<std::string> keys, std::optional<StoreCaller> caller) {
  NameOperation operation;
  operation.message.change = wire::NameChange::kWithdraw;
  for (std::string& key : keys) {
    foreign_.shared.erase(key);
    operation.message.names.push_back({std::move(key), {}, {}, 0});
  }
  operation.caller = std::move(caller);
  Queue(std::move(operation));
}

// Shared names that the store has no more.
std::vector<std::string> Head::NamesGone() {
  std::vector<std::string> gone;
  for (const auto& [key, name] : foreign_.shared)
    if (!store_.Has({{name.nspace, name.rank}, 0}, key, pmix::Range::kSession)) gone.push_back(key);
  return gone;
}

void Head::Queue(NameOperation operation) {
  operation.message.request = foreign_.next_request++;
  foreign_.name_operations.push_back(std::move(operation));
  if (foreign_.name_operations.size() == 1) TellController(foreign_.name_operations.front().message);
}

void Head::OnNameAnswer(const wire::NameAnswer& answer) {
  auto& operations = foreign_.name_operations;
  if (!operations.empty() && operations.front().message.request == answer.request) {
    NameOperation done = std::move(operations.front());
    operations.pop_front();
    if (!operations.empty()) TellController(operations.front().message);
    return Finished(std::move(done), answer);
  }
  const auto it = foreign_.asked_names.find(answer.request);
  if (it == foreign_.asked_names.end()) return;
  AskedNames asked = std::move(it->second);
  foreign_.asked_names.erase(it);
  if (answer.status == wire::NameStatus::kLimit) outlet_.Log("lookup in other jobs: " + answer.reason);
  std::vector<std::pair<pmix::Proc, pmix::KeyValue>> values;
  for (const wire::SharedName& name : answer.names)
    values.push_back({{name.nspace, name.rank}, {name.key, name.value}});
  if (asked.message.wait) return Apply(store_.Supply(asked.lookup.lookup, std::move(values)), std::nullopt);
  asked.lookup.supplied = std::move(values);
  Apply(store_.Lookup(std::move(asked.lookup)), std::nullopt);
}

void Head::Finished(NameOperation operation, const wire::NameAnswer& answer) {
  if (!operation.publish) {
    if (operation.caller) AnswerStore(*operation.caller, {pmix::kPmixSuccess, {}});
    return;
  }
  StorePublish& publish = *operation.publish;
  if (answer.status != wire::NameStatus::kOk) {
    outlet_.Log("publish: " + answer.reason);
    const bool taken = answer.status == wire::NameStatus::kTaken;
    return AnswerStore(*operation.caller, {taken ? pmix::kPmixErrExists : pmix::kPmixErrOutOfResource, {}});
  }
  const pmix::Proc proc = publish.proc;
  if (IsGone(proc)) return WithdrawNames(NamesGone(), std::nullopt);
  std::vector<wire::SharedName> fresh;
  for (wire::SharedName& name : operation.message.names)
    if (!foreign_.shared.contains(name.key)) fresh.push_back(std::move(name));
  for (const wire::SharedName& name : fresh) foreign_.shared[name.key] = name;
  Publish(*operation.caller, std::move(publish));
  // What the store refused is not published.
  if (std::vector<std::string> gone = NamesGone(); !gone.empty())
    WithdrawNames(std::move(gone), std::nullopt);
}

// Whether the lookup is held until the controller has answered. A lookup that waits is in the store, too.
bool Head::AskNames(const StoreCaller& caller, pmix::DataStore::LookupRequest& lookup) {
  if (!IsShared(lookup.range)) return false;
  AskedNames asked;
  for (const std::string& key : lookup.keys)
    if (!ParsePortKey(key) && !store_.Has(lookup.caller, key, lookup.range))
      asked.message.keys.push_back(key);
  if (asked.message.keys.empty()) return false;
  std::size_t bytes = 0;
  for (const std::string& key : asked.message.keys) bytes += key.size();
  if (bytes > kMaxLookupBytes) {
    outlet_.Log(fmt::format("a lookup of {} bytes of names is not asked of other jobs; the limit is {}",
                            bytes, kMaxLookupBytes));
    return false;
  }
  asked.message.request = foreign_.next_request++;
  asked.message.wait = lookup.wait;
  asked.lookup.lookup = lookup.lookup;
  if (!lookup.wait) asked.lookup = std::move(lookup);
  const wire::NameLookup message = asked.message;
  if (!message.wait) lookups_[asked.lookup.lookup] = caller;
  foreign_.asked_names[message.request] = std::move(asked);
  TellController(message);
  // A controller that is away does not hold the caller: what this job has itself is the answer then.
  if (!message.wait)
    outlet_.After(kNameAnswerWait, [this, request = message.request] {
      if (foreign_.asked_names.contains(request))
        OnNameAnswer({request, wire::NameStatus::kNotFound, {}, {}});
    });
  return !message.wait;
}

void Head::LookupOver(std::uint64_t lookup) {
  const auto it = std::find_if(
      foreign_.asked_names.begin(), foreign_.asked_names.end(),
      [&](const auto& asked) { return asked.second.message.wait && asked.second.lookup.lookup == lookup; });
  if (it == foreign_.asked_names.end()) return;
  wire::NameLookup withdraw = std::move(it->second.message);
  withdraw.withdraw = true;
  foreign_.asked_names.erase(it);
  TellController(withdraw);
}

// The controller may be a new one, which knows nothing of it.
void Head::AnnounceNames() {
  wire::NamePublish all;
  all.change = wire::NameChange::kAll;
  for (const auto& [key, name] : foreign_.shared) all.names.push_back(name);
  for (const auto& [job, other] : foreign_.jobs) all.links.push_back(job);
  TellController(all);
  // One that is under way may be known to the controller already, and was forgotten by this: once more.
  if (!foreign_.name_operations.empty()) TellController(foreign_.name_operations.front().message);
}

void Head::ResendNames() {
  if (!foreign_.name_operations.empty()) TellController(foreign_.name_operations.front().message);
  for (const auto& [request, asked] : foreign_.asked_names) TellController(asked.message);
  for (const auto& [request, asked] : foreign_.asked_links)
    TellController(wire::LinkAsk{request, asked.port_owner, asked.secret});
}

}  // namespace msa::jobd
