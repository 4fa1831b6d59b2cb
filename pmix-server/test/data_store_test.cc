#include "msa/pmix/data_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace msa::pmix {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

const DataStore::Caller kAnn{{"a", 0}, 1};       // namespace a, node 1
const DataStore::Caller kAnnsPeer{{"a", 1}, 2};  // same namespace, other node
const DataStore::Caller kBob{{"b", 0}, 1};       // other namespace, Ann's node
const DataStore::Caller kEve{{"b", 1}, 2};       // neither
const SteadyTime kStart{};

DataStore::LookupRequest Asks(std::uint64_t lookup, const DataStore::Caller& caller,
                              std::vector<std::string> keys) {
  return {.lookup = lookup, .caller = caller, .keys = std::move(keys)};
}
DataStore::LookupRequest Waits(std::uint64_t lookup, const DataStore::Caller& caller,
                               std::vector<std::string> keys) {
  auto request = Asks(lookup, caller, std::move(keys));
  request.wait = true;
  return request;
}
PmixStatus StatusOf(DataStore& store, const DataStore::Caller& caller, const std::string& key,
                    Range range = Range::kSession) {
  auto request = Asks(1, caller, {key});
  request.range = range;
  const StoreResult result = store.Lookup(request);
  EXPECT_EQ(result.done.size(), 1u);
  EXPECT_TRUE(store.CheckInvariants().ok());
  return result.done.at(0).status;
}
PmixStatus Put(DataStore& store, const DataStore::Caller& caller, const std::string& key,
               Range range = Range::kSession, Persistence persistence = Persistence::kApp) {
  return store.Publish(caller, range, persistence, {{key, "value of " + key}}).status;
}

TEST(DataStore, LookupReturnsValueAndPublisher) {
  DataStore store;
  ASSERT_EQ(Put(store, kAnn, "k"), kPmixSuccess);
  const StoreResult result = store.Lookup(Asks(5, kEve, {"k"}));
  ASSERT_EQ(result.done.size(), 1u);
  EXPECT_EQ(result.done[0].lookup, 5u);
  EXPECT_EQ(result.done[0].status, kPmixSuccess);
  ASSERT_EQ(result.done[0].values.size(), 1u);
  EXPECT_EQ(result.done[0].values[0].first, kAnn.proc);
  EXPECT_EQ(result.done[0].values[0].second, (KeyValue{"k", "value of k"}));
}

TEST(DataStore, FindsSomeAllOrNone) {
  DataStore store;
  Put(store, kAnn, "k");
  const StoreResult some = store.Lookup(Asks(1, kBob, {"k", "missing"}));
  EXPECT_EQ(some.done[0].status, kPmixErrPartialSuccess);
  EXPECT_EQ(some.done[0].values.size(), 1u);
  EXPECT_EQ(StatusOf(store, kBob, "missing"), kPmixErrNotFound);
}

TEST(DataStore, RangesAdmitOnlyWhomTheyName) {
  DataStore store;
  Put(store, kAnn, "own", Range::kProcLocal);
  Put(store, kAnn, "node", Range::kLocal);
  Put(store, kAnn, "ns", Range::kNamespace);
  Put(store, kAnn, "all", Range::kGlobal);
  for (const char* key : {"own", "node", "ns", "all"})
    EXPECT_EQ(StatusOf(store, kAnn, key), kPmixSuccess) << key;
  EXPECT_EQ(StatusOf(store, kBob, "own"), kPmixErrNotFound);
  EXPECT_EQ(StatusOf(store, kBob, "node"), kPmixSuccess);
  EXPECT_EQ(StatusOf(store, kBob, "ns"), kPmixErrNotFound);
  EXPECT_EQ(StatusOf(store, kAnnsPeer, "node"), kPmixErrNotFound);
  EXPECT_EQ(StatusOf(store, kAnnsPeer, "ns"), kPmixSuccess);
  EXPECT_EQ(StatusOf(store, kEve, "all"), kPmixSuccess);
}

TEST(DataStore, TheReadersRangeNarrowsToo) {
  DataStore store;
  Put(store, kAnn, "k");
  EXPECT_EQ(StatusOf(store, kBob, "k", Range::kNamespace), kPmixErrNotFound);
  EXPECT_EQ(StatusOf(store, kBob, "k", Range::kLocal), kPmixSuccess);
  EXPECT_EQ(StatusOf(store, kAnnsPeer, "k", Range::kNamespace), kPmixSuccess);
  EXPECT_EQ(StatusOf(store, kEve, "k", Range::kCustom), kPmixErrNotSupported);
  EXPECT_EQ(StatusOf(store, kEve, "k", Range::kInvalid), kPmixErrBadParam);
}

TEST(DataStore, DuplicatesAreRefusedAndNothingOfTheCallIsKept) {
  DataStore store;
  Put(store, kAnn, "k");
  const StoreResult twice =
      store.Publish(kBob, Range::kSession, Persistence::kApp, {{"new", "v"}, {"k", "v"}});
  EXPECT_EQ(twice.status, kPmixErrDuplicateKey);
  EXPECT_THAT(twice.reason, HasSubstr("'k'"));
  EXPECT_EQ(store.entries(), 1u);
  EXPECT_EQ(store.Publish(kBob, Range::kSession, Persistence::kApp, {{"x", "1"}, {"x", "2"}}).status,
            kPmixErrDuplicateKey);
  EXPECT_EQ(Put(store, kBob, "k", Range::kNamespace), kPmixSuccess) << "another scope, another key";
}

TEST(DataStore, FirstReadGoesToTheOldestWaiterAlone) {
  DataStore store;
  EXPECT_TRUE(store.Lookup(Waits(1, kBob, {"k"})).done.empty());
  EXPECT_TRUE(store.Lookup(Waits(2, kEve, {"k"})).done.empty());
  const StoreResult result = store.Publish(kAnn, Range::kSession, Persistence::kFirstRead, {{"k", "v"}});
  ASSERT_EQ(result.done.size(), 1u);
  EXPECT_EQ(result.done[0].lookup, 1u);
  EXPECT_EQ(store.entries(), 0u);
  EXPECT_EQ(store.waiting(), 1u);
}

TEST(DataStore, WaitingForTwoKeysTakesNeitherUntilBothAreThere) {
  DataStore store;
  (void)store.Lookup(Waits(1, kBob, {"j", "k"}));
  EXPECT_TRUE(store.Publish(kAnn, Range::kSession, Persistence::kFirstRead, {{"j", "1"}}).done.empty());
  EXPECT_EQ(store.entries(), 1u);
  const StoreResult result = store.Publish(kAnn, Range::kSession, Persistence::kFirstRead, {{"k", "2"}});
  ASSERT_EQ(result.done.size(), 1u);
  EXPECT_EQ(result.done[0].values[0].second.key, "j");
  EXPECT_EQ(result.done[0].values[1].second.key, "k");
  EXPECT_EQ(store.bytes(), 0u);
}

TEST(DataStore, DeadlinesEndTheWaitInTime) {
  DataStore store;
  auto request = Waits(1, kBob, {"k"});
  request.deadline = kStart + 5s;
  (void)store.Lookup(request);
  (void)store.Lookup(Waits(2, kBob, {"k"}));
  EXPECT_EQ(store.NextDeadline(), kStart + 5s);
  EXPECT_TRUE(store.OnTime(kStart + 4s).done.empty());
  const StoreResult result = store.OnTime(kStart + 5s);
  ASSERT_EQ(result.done.size(), 1u);
  EXPECT_EQ(result.done[0].status, kPmixErrTimeout);
  EXPECT_EQ(store.NextDeadline(), std::nullopt);
  EXPECT_EQ(store.waiting(), 1u);
}

TEST(DataStore, EntriesLastAsTheirPersistenceSays) {
  DataStore store;
  Put(store, kAnn, "proc", Range::kSession, Persistence::kProc);
  Put(store, kAnn, "app", Range::kSession, Persistence::kApp);
  Put(store, kAnn, "session", Range::kSession, Persistence::kSession);
  Put(store, kAnn, "ever", Range::kSession, Persistence::kIndefinite);
  Put(store, kAnn, "read", Range::kSession, Persistence::kFirstRead);
  (void)store.ProcEnded(kAnn.proc);
  EXPECT_EQ(StatusOf(store, kBob, "proc"), kPmixErrNotFound);
  EXPECT_EQ(StatusOf(store, kBob, "app"), kPmixSuccess);
  (void)store.AppEnded("a", 1, 3);
  EXPECT_EQ(StatusOf(store, kBob, "app"), kPmixSuccess) << "ranks of another application";
  (void)store.AppEnded("a", 0, 1);
  EXPECT_EQ(StatusOf(store, kBob, "app"), kPmixErrNotFound);
  Put(store, kAnn, "app", Range::kSession, Persistence::kApp);
  (void)store.NamespaceEnded("a", "ended");
  EXPECT_EQ(StatusOf(store, kBob, "app"), kPmixErrNotFound);
  EXPECT_EQ(StatusOf(store, kBob, "session"), kPmixSuccess);
  EXPECT_EQ(StatusOf(store, kBob, "ever"), kPmixSuccess);
  EXPECT_EQ(StatusOf(store, kBob, "read"), kPmixSuccess);
}

TEST(DataStore, UnpublishTakesOnlyThePublishersOwn) {
  DataStore store;
  Put(store, kAnn, "k");
  Put(store, kAnn, "j");
  EXPECT_EQ(store.Unpublish(kBob, {"k"}, Range::kSession).status, kPmixErrNotFound);
  EXPECT_EQ(store.Unpublish(kAnn, {"k"}, Range::kNamespace).status, kPmixErrNotFound);
  EXPECT_EQ(store.Unpublish(kAnn, {"k", "missing"}, Range::kSession).status, kPmixSuccess);
  EXPECT_EQ(store.entries(), 1u);
  EXPECT_EQ(store.Unpublish(kAnn, {}, Range::kSession).status, kPmixSuccess);
  EXPECT_EQ(store.entries(), 0u);
  EXPECT_EQ(store.Unpublish(kAnn, {}, Range::kSession).status, kPmixSuccess);
}

TEST(DataStore, AChildThatDiesBeforeItConnectsEndsItsParentsWait) {
  DataStore store;
  store.ExpectFrom("child", "1234.0:99");
  (void)store.Lookup(Waits(1, kAnn, {"1234.0:99:connect"}));
  (void)store.Lookup(Waits(2, kAnn, {"other"}));
  const StoreResult result = store.NamespaceEnded("child", "rank 0 was killed by signal 9");
  ASSERT_EQ(result.done.size(), 1u);
  EXPECT_EQ(result.done[0].lookup, 1u);
  EXPECT_EQ(result.done[0].status, kPmixErrJobFailedToStart);
  EXPECT_THAT(result.done[0].reason, HasSubstr("signal 9"));
  // and the one who asks later does not wait either
  const StoreResult late = store.Lookup(Waits(3, kAnnsPeer, {"1234.0:99:connect"}));
  ASSERT_EQ(late.done.size(), 1u);
  EXPECT_EQ(late.done[0].status, kPmixErrJobFailedToStart);
}

TEST(DataStore, WhatAnEndedChildHasLeftIsStillFound) {
  DataStore store;
  store.ExpectFrom("child", "p");
  (void)store.Publish({{"child", 0}, 1}, Range::kSession, Persistence::kFirstRead, {{"p:connect", "v"}});
  (void)store.NamespaceEnded("child", "ended");
  const StoreResult result = store.Lookup(Waits(1, kAnn, {"p:connect"}));
  ASSERT_EQ(result.done.size(), 1u);
  EXPECT_EQ(result.done[0].status, kPmixSuccess);
}

TEST(DataStore, TheEndOfTheAskerEndsItsWait) {
  DataStore store;
  (void)store.Lookup(Waits(1, kAnn, {"k"}));
  (void)store.Lookup(Waits(2, kBob, {"k"}));
  const StoreResult result = store.ProcEnded(kAnn.proc);
  ASSERT_EQ(result.done.size(), 1u);
  EXPECT_EQ(result.done[0].lookup, 1u);
  EXPECT_EQ(result.done[0].status, kPmixErrUnreachable);
  EXPECT_EQ(store.NamespaceEnded("b", "gone").done.size(), 1u);
  EXPECT_EQ(store.waiting(), 0u);
}

TEST(DataStore, ValuesFromElsewhereFillInForWhatIsNotThere) {
  DataStore store;
  Put(store, kAnn, "k");
  auto request = Asks(1, kBob, {"k", "far", "nowhere"});
  request.supplied = {{{"z", 3}, {"far", "f"}}, {{"z", 3}, {"k", "not this"}}};
  const StoreResult result = store.Lookup(request);
  EXPECT_EQ(result.done.at(0).status, kPmixErrPartialSuccess);
  ASSERT_EQ(result.done[0].values.size(), 2u);
  EXPECT_EQ(result.done[0].values[0].first, kAnn.proc);
  EXPECT_EQ(result.done[0].values[1].second.packed_value, "f");
}

TEST(DataStore, ALookupThatWaitsTakesValuesFromElsewhere) {
  DataStore store;
  EXPECT_TRUE(store.Lookup(Waits(7, kBob, {"k", "far"})).done.empty());
  EXPECT_TRUE(store.Supply(7, {{{"z", 3}, {"far", "f"}}}).done.empty()) << "one is missing still";
  EXPECT_TRUE(store.Supply(99, {{{"z", 3}, {"k", "f"}}}).done.empty()) << "nobody asked";
  const StoreResult result = store.Publish(kAnn, Range::kSession, Persistence::kApp, {{"k", "v"}});
  ASSERT_EQ(result.done.size(), 1u);
  EXPECT_EQ(result.done[0].values.size(), 2u);
  EXPECT_EQ(store.waiting(), 0u);
  EXPECT_TRUE(store.CheckInvariants().ok());
}

TEST(DataStore, KnowsWhoWouldFindAKeyWithoutReadingIt) {
  DataStore store;
  Put(store, kAnn, "once", Range::kSession, Persistence::kFirstRead);
  Put(store, kAnn, "near", Range::kNamespace);
  EXPECT_TRUE(store.Has(kBob, "once", Range::kSession));
  EXPECT_TRUE(store.Has(kBob, "once", Range::kSession));
  EXPECT_TRUE(store.Has(kAnnsPeer, "near", Range::kNamespace));
  EXPECT_FALSE(store.Has(kBob, "near", Range::kSession));
  EXPECT_FALSE(store.Has(kBob, "once", Range::kCustom));
}

TEST(DataStore, LimitsAreNamedWhenTheyAreReached) {
  DataStore store(
      {.key_bytes = 4, .value_bytes = 8, .total_bytes = 20, .entries = 2, .keys_per_call = 3, .waiting = 1});
  const auto publish = [&](std::vector<KeyValue> data) {
    const StoreResult result = store.Publish(kAnn, Range::kSession, Persistence::kApp, std::move(data));
    EXPECT_TRUE(store.CheckInvariants().ok());
    return result;
  };
  EXPECT_EQ(publish({{"12345", ""}}).status, kPmixErrBadParam);
  EXPECT_EQ(publish({{"", ""}}).status, kPmixErrBadParam);
  EXPECT_THAT(publish({{"k", "123456789"}}).reason, HasSubstr("9 bytes; at most 8"));
  EXPECT_EQ(publish({{"a", ""}, {"b", ""}, {"c", ""}}).status, kPmixErrOutOfResource);
  EXPECT_EQ(publish({{"a", ""}, {"b", ""}, {"c", ""}, {"d", ""}}).status, kPmixErrOutOfResource);
  EXPECT_EQ(publish({{"a", "12345678"}}).status, kPmixSuccess);
  EXPECT_EQ(publish({{"1234", "12345678"}}).status, kPmixErrOutOfResource);
  EXPECT_TRUE(store.Lookup(Waits(1, kAnn, {"w"})).done.empty());
  EXPECT_EQ(store.Lookup(Waits(2, kAnn, {"w"})).done.at(0).status, kPmixErrOutOfResource);
  EXPECT_EQ(store.Lookup(Waits(3, kAnn, {})).done.at(0).status, kPmixErrBadParam);
}

}  // namespace
}  // namespace msa::pmix
