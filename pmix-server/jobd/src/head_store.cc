// The job's publish/lookup store, served to all members.
#include "head.h"

namespace msa::jobd {

void Head::OnPublish(std::uint32_t from, std::uint64_t request, StorePublish message) {
  Apply(store_.Publish({message.proc, from}, message.range, message.persistence, std::move(message.data)),
        OpenLookup{from, request});
}

void Head::OnUnpublish(std::uint32_t from, std::uint64_t request, const StoreUnpublish& message) {
  Apply(store_.Unpublish({message.proc, from}, message.keys, message.range), OpenLookup{from, request});
}

void Head::OnLookup(std::uint32_t from, std::uint64_t request, StoreLookup message) {
  pmix::DataStore::LookupRequest lookup;
  lookup.lookup = next_lookup_++;
  lookup.caller = {message.proc, from};
  lookup.keys = std::move(message.keys);
  lookup.range = message.range;
  lookup.wait = message.wait;
  if (message.timeout_s > 0)
    lookup.deadline = outlet_.SteadyTimeNow() + std::chrono::seconds(message.timeout_s);
  lookups_[lookup.lookup] = {from, request};
  Apply(store_.Lookup(std::move(lookup)), std::nullopt);
}

// Answers `caller` (a publish or unpublish) and every lookup that ended by the call.
void Head::Apply(pmix::StoreResult result, std::optional<OpenLookup> caller) {
  if (caller) Tell(caller->from, StoreReply{result.status, {}}, caller->request);
  if (!result.reason.empty()) outlet_.Log("store: " + result.reason);
  for (pmix::LookupDone& done : result.done) {
    const auto it = lookups_.find(done.lookup);
    if (it == lookups_.end()) continue;
    StoreReply reply{done.status, {}};
    for (auto& [proc, value] : done.values) reply.values.push_back({proc, std::move(value)});
    if (!done.reason.empty()) outlet_.Log("lookup: " + done.reason);
    Tell(it->second.from, reply, it->second.request);
    lookups_.erase(it);
  }
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
