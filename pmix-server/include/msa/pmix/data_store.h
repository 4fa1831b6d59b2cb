#pragma once
// The publish/lookup store of a job, kept by its head daemon. Pure: no I/O, no clock, time enters as an
// argument. One thread. Values are opaque. PMIx Standard 4.1, chapter 7.
//
// Who sees what: the publisher's range and the reader's must both admit the other. PROC_LOCAL admits the
// process itself, LOCAL the processes of its node, NAMESPACE those of its namespace, every other range the
// whole job; CUSTOM is not supported. Where several entries of a key are visible, the narrowest range wins. A
// key may be published once for each process, node, namespace or job, as its range says.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "msa/base/clock.h"
#include "msa/base/status.h"
#include "msa/pmix/types.h"

namespace msa::pmix {

struct StoreLimits {
  std::size_t key_bytes = 511;                      // PMIX_MAX_KEYLEN
  std::size_t value_bytes = std::size_t{1} << 20;   // a port name has about 100
  std::size_t total_bytes = std::size_t{64} << 20;  // keys and values together
  std::size_t entries = 65536;
  std::size_t keys_per_call = 4096;
  std::size_t waiting = 65536;  // lookups
};

// The end of a lookup.
struct LookupDone {
  std::uint64_t lookup = 0;  // the caller's number
  PmixStatus status = kPmixSuccess;
  std::vector<std::pair<Proc, KeyValue>> values;  // with their publishers, in the order of the keys asked for
  std::string reason;                             // of a failure, for people
};

struct StoreResult {
  PmixStatus status = kPmixSuccess;
  std::string reason;            // of a failure, for people: value and limit
  std::vector<LookupDone> done;  // lookups that ended by this call, oldest first
};

class DataStore {
 public:
  explicit DataStore(StoreLimits limits = {}) : limits_(limits) {}

  // A process and the node it runs on (any number that is the same for processes of one node).
  struct Caller {
    Proc proc;
    std::uint32_t node = 0;
  };

  // All or nothing. kPmixErrDuplicateKey: the key is there for the same process, node, namespace or job, or
  // twice in `data`. kPmixErrNotSupported: range CUSTOM. kPmixErrBadParam: key empty or longer than the
  // limit, unknown range or persistence. kPmixErrOutOfResource: a limit, named in the reason.
  StoreResult Publish(const Caller& caller, Range range, Persistence persistence, std::vector<KeyValue> data);

  struct LookupRequest {
    std::uint64_t lookup =
        0;  // a number of the caller's choice, not in use: exactly one LookupDone with it follows
    Caller caller;
    std::vector<std::string> keys;
    Range range = Range::kSession;
    bool wait = false;                                // until every key is there
    std::optional<SteadyTime> deadline;               // of waiting; none: for ever
    std::vector<std::pair<Proc, KeyValue>> supplied;  // from elsewhere, for keys that the store does not have
  };
  // The result's status is always success; the lookup's own is in `done`, now or later: kPmixSuccess: all
  // found; kPmixErrPartialSuccess: some (not with wait); kPmixErrNotFound: none; kPmixErrTimeout: the
  // deadline passed; kPmixErrJobFailedToStart: the namespace expected to publish a key has ended;
  // kPmixErrUnreachable: the asking process ended; kPmixErrBadParam, kPmixErrNotSupported,
  // kPmixErrOutOfResource as Publish.
  StoreResult Lookup(LookupRequest request);

  // Values from elsewhere for a lookup that waits. Unknown ones are ignored.
  StoreResult Supply(std::uint64_t lookup, std::vector<std::pair<Proc, KeyValue>> values);
  // Whether a lookup of the key by `caller` would find it.
  bool Has(const Caller& caller, const std::string& key, Range range) const;

  // Withdraws entries of the caller in `range` (kSession and wider count as one). No keys: all of them, also
  // none. kPmixErrNotFound: none of the keys named is there.
  StoreResult Unpublish(const Caller& caller, const std::vector<std::string>& keys, Range range);

  // Keys beginning with `prefix` will be published by processes of `nspace` alone, or by `except`, the
  // process that spawned it: once the namespace has ended, lookups of such keys that find nothing fail at
  // once instead of waiting for ever. `prefix` is the port that a spawn hands to its children
  // (open_mpi_env.h: ParentPort).
  void ExpectFrom(const std::string& nspace, const std::string& prefix);

  // Whether `prefix` was given to ExpectFrom.
  bool Expects(const std::string& prefix) const { return expected_.contains(prefix); }

  // A process ended: its entries of persistence PROC go, its waiting lookups end.
  StoreResult ProcEnded(const Proc& proc);
  // An application of a namespace ended: entries of persistence APP of these ranks go.
  StoreResult AppEnded(const std::string& nspace, std::uint32_t first_rank, std::uint32_t size);
  // The namespace ended or failed to start: entries of PROC and APP go, waiting lookups of its processes and
  // those for keys expected from it end. Entries of FIRST_READ stay: their reader may be slower than the
  // publisher's exit.
  StoreResult NamespaceEnded(const std::string& nspace, const std::string& reason);

  // Ends the lookups whose deadline is not after `now`.
  StoreResult OnTime(SteadyTime now);
  // Of the waiting lookups; when to call OnTime next.
  std::optional<SteadyTime> NextDeadline() const;

  std::size_t entries() const noexcept { return entries_.size(); }
  std::size_t waiting() const noexcept { return waiting_.size(); }
  std::size_t bytes() const noexcept { return bytes_; }
  // kInternal naming the first violated invariant. For tests.
  Status CheckInvariants() const;

 private:
  // For whom a key is unique: scope kind, then the process, node or namespace of it. Ordered narrowest first.
  enum class Width : std::uint8_t { kProc = 0, kNode = 1, kNamespace = 2, kJob = 3 };
  struct Slot {
    std::string key;
    Width width = Width::kJob;
    Proc proc;               // kProc: the process; kNamespace: its namespace, rank 0
    std::uint32_t node = 0;  // kNode
    friend auto operator<=>(const Slot&, const Slot&) = default;
  };
  struct Entry {
    Caller owner;
    Persistence persistence = Persistence::kApp;
    std::string packed_value;
  };
  using Entries = std::map<Slot, Entry>;
  struct Expected {
    std::string nspace;
    std::optional<std::string> ended;  // reason
  };

  static std::optional<Width> WidthOf(Range range);
  static Slot SlotOf(const std::string& key, Width width, const Caller& caller);
  static bool Admits(Width width, const Caller& self, const Caller& other);
  StoreResult CheckKeys(const std::vector<std::string>& keys) const;
  StoreResult CheckPublish(const Caller& caller, Width width, const std::vector<KeyValue>& data) const;
  Entries::iterator Find(const Caller& caller, const std::string& key, Width width);
  Entries::iterator Erase(Entries::iterator it);
  bool TryComplete(const LookupRequest& request, std::vector<LookupDone>& done);
  std::optional<std::string> NeverComes(const LookupRequest& request) const;
  void Wait(LookupRequest request);
  void Retry(const std::set<std::string>& keys, StoreResult& result);
  std::map<std::uint64_t, LookupRequest>::iterator StopWaiting(
      std::map<std::uint64_t, LookupRequest>::iterator it);
  template <class Predicate>
  void EndWaiting(PmixStatus status, const std::string& reason, Predicate predicate, StoreResult& result);
  template <class Predicate>
  void EraseEntries(Predicate predicate);

  StoreLimits limits_;
  Entries entries_;
  std::map<std::uint64_t, LookupRequest> waiting_;              // by age
  std::map<std::string, std::set<std::uint64_t>> waiting_for_;  // key -> ages
  std::uint64_t next_age_ = 0;
  std::map<std::string, Expected> expected_;  // by prefix
  std::size_t bytes_ = 0;
};

}  // namespace msa::pmix
