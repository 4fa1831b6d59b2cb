// The job's publish/lookup store, served to all members, and to heads of other jobs for ports of this one.
#include "msa/job/port_name.h"

#include "head.h"

namespace msa::jobd {
namespace {

// The node of processes of other jobs, for the store: none of ours.
constexpr std::uint32_t kForeignNode = 0xffffffff;

// For an acceptor at a port that Open MPI has not made, by the programs that agreed on its name: Open MPI
// would wait for ten minutes. libmsampi refuses such a port at once, this is for programs without it.
constexpr std::chrono::seconds kUnknownPortWait{60};

pmix::DataStore::Caller CallerOf(const StoreCaller& caller, const pmix::Proc& proc) {
  return {proc, caller.foreign.value != 0 ? kForeignNode : caller.from};
}

// MPI_Publish_name: the value, a packed string, is the name of a port.
bool NamesAPort(const StorePublish& message) {
  constexpr const char* kDigits = "0123456789";
  for (const pmix::KeyValue& item : message.data) {
    const std::size_t begin = item.packed_value.find_first_of(kDigits);
    if (begin == std::string::npos) continue;
    const std::string text = item.packed_value.substr(begin, item.packed_value.find('\0', begin) - begin);
    if (ParsePortKey(text + ":name")) return true;
  }
  return false;
}

}  // namespace

void Head::OnPublish(const StoreCaller& caller, StorePublish message) {
  if (message.data.size() == 1 && IsShared(message.range)) {
    if (const auto key = ParsePortKey(message.data[0].key)) {
      if (!IsOwnPort(key->owner) && caller.foreign.value == 0)
        return Forward(caller, key->owner, std::move(message));
      if (key->use == "connect" && !TakeTurn(caller, key->port, message)) return;
      return Publish(caller, std::move(message));
    }
  }
  if (caller.foreign.value != 0) return AnswerStore(caller, {pmix::kPmixErrBadParam, {}});
  if (ShareNames(caller, message)) return;
  Publish(caller, std::move(message));
}

void Head::Publish(const StoreCaller& caller, StorePublish message) {
  const bool of_mpi = NamesAPort(message);
  auto result = store_.Publish(CallerOf(caller, message.proc), message.range, message.persistence,
                               std::move(message.data));
  // The only status for it that Open MPI knows.
  if (of_mpi && result.status == pmix::kPmixErrDuplicateKey) result.status = pmix::kPmixErrExists;
  Apply(std::move(result), caller);
}

void Head::OnUnpublish(const StoreCaller& caller, const StoreUnpublish& message) {
  auto result = store_.Unpublish(CallerOf(caller, message.proc), message.keys, message.range);
  std::vector<std::string> gone = NamesGone();
  if (gone.empty()) return Apply(std::move(result), caller);
  // Answered when other jobs may publish the name. Before Apply, which would withdraw them for nobody.
  WithdrawNames(std::move(gone), caller);
  Apply(std::move(result), std::nullopt);
}

void Head::OnLookup(StoreCaller caller, StoreLookup message) {
  std::optional<PortKey> port;
  if (message.keys.size() == 1 && IsShared(message.range)) port = ParsePortKey(message.keys[0]);
  if (port && !IsOwnPort(port->owner) && caller.foreign.value == 0)
    return Forward(caller, port->owner, std::move(message));
  if (!port && caller.foreign.value != 0) return AnswerStore(caller, {pmix::kPmixErrBadParam, {}});
  pmix::DataStore::LookupRequest lookup;
  lookup.lookup = next_lookup_++;
  lookup.caller = CallerOf(caller, message.proc);
  lookup.keys = std::move(message.keys);
  lookup.range = message.range;
  lookup.wait = message.wait;
  // A server waits for a client as long as MPI says; Open MPI would give up after 10 minutes. Not where a
  // parent waits for its children.
  const bool accepts =
      port && port->use == "connect" && caller.foreign.value == 0 && !store_.Expects(port->port);
  if (message.timeout_s > 0 && !accepts)
    lookup.deadline = outlet_.SteadyTimeNow() + std::chrono::seconds(message.timeout_s);
  if (!port && lookup.wait && AwaitsAcceptor(lookup.keys)) {
    const SteadyTime limit = outlet_.SteadyTimeNow() + kUnknownPortWait;
    lookup.deadline = std::min(lookup.deadline.value_or(limit), limit);
  }
  if (port && port->use == "accept") caller.port = port->port;
  if (!port && AskNames(caller, lookup)) return;
  lookups_[lookup.lookup] = std::move(caller);
  Apply(store_.Lookup(std::move(lookup)), std::nullopt);
}

// The key by which Open MPI's connect waits for the other side; not of a spawn, where a parent may take
// longer.
bool Head::AwaitsAcceptor(const std::vector<std::string>& keys) const {
  constexpr std::string_view kUse = ":accept";
  return keys.size() == 1 && keys[0].ends_with(kUse) &&
         !store_.Expects(keys[0].substr(0, keys[0].size() - kUse.size()));
}

void Head::AnswerStore(const StoreCaller& caller, StoreReply reply) {
  if (caller.foreign.value == 0) return Tell(caller.from, reply, caller.request);
  for (const StoreValue& value : reply.values) Introduce(caller.foreign, value.proc.nspace);
  ToForeign(caller.foreign, reply, caller.request);
}

// Answers `caller` (a publish or unpublish) and every lookup that ended by the call.
void Head::Apply(pmix::StoreResult result, std::optional<StoreCaller> caller) {
  if (caller) AnswerStore(*caller, {result.status, {}});
  if (!result.reason.empty()) outlet_.Log("store: " + result.reason);
  for (pmix::LookupDone& done : result.done) {
    LookupOver(done.lookup);
    const auto it = lookups_.find(done.lookup);
    if (it == lookups_.end()) continue;
    StoreReply reply{done.status, {}};
    for (auto& [proc, value] : done.values) reply.values.push_back({proc, std::move(value)});
    if (!done.reason.empty()) outlet_.Log("lookup: " + done.reason);
    const StoreCaller asker = std::move(it->second);
    lookups_.erase(it);
    if (const auto turn = foreign_.turns.find(asker.port);
        turn != foreign_.turns.end() && turn->second.caller.foreign == asker.foreign)
      (done.status == pmix::kPmixSuccess ? turn->second.accepted : turn->second.gave_up) = true;
    AnswerStore(asker, std::move(reply));
  }
  if (store_.entries() < foreign_.entries_seen)
    if (std::vector<std::string> gone = NamesGone(); !gone.empty())
      WithdrawNames(std::move(gone), std::nullopt);
  foreign_.entries_seen = store_.entries();
  AdvanceTurns();
  ArmStore();
}

void Head::ArmStore() {
  outlet_.Cancel(store_timer_);
  store_timer_ = {};
  const auto next = store_.NextDeadline();
  if (!next || left_) return;
  const auto wait = std::chrono::ceil<Millis>(*next - outlet_.SteadyTimeNow());
  store_timer_ = outlet_.After(std::max(wait, Millis(0)),
                               [this] { Apply(store_.OnTime(outlet_.SteadyTimeNow()), std::nullopt); });
}

}  // namespace msa::jobd
