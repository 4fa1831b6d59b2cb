#pragma once
// What goes on while the controller's state cannot be written: requests that need no write.

#include <optional>

#include "msa/job/effects.h"
#include "msa/job/events.h"

namespace msa {

// A request that asks, or one of a process that uses regions which are there, or news of a namd. Its answer
// does not wait for the store: what it changes, leases, is written later, and a lease that a restart forgets
// is asked for again. News of a namd keep their order by that.
bool UsesOnly(const Event& event);

// The answers to this event may go before anything is written: it asks for nothing, or UsesOnly.
bool MayBeAnswered(const Event& event);

// A request that is to be kept for good: to make or change a region.
bool AsksToKeep(const Event& event);

// A request to remove a region: it may be what makes room.
bool Removes(const Event& event);

// Of what such an event leads to, what whoever asked waits for.
bool IsForTheAsker(const Effect& effect);

// The answer `why` to a request for network attached memory of a process; nothing to another event.
std::optional<Effect> RefusalOf(const Event& event, const Status& why);

}  // namespace msa
