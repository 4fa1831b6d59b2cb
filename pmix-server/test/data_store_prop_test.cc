#include <map>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "msa/pmix/data_store.h"

namespace msa::pmix {
namespace {

DataStore::Caller AnyCaller() {
  return {{*rc::gen::element<std::string>("a", "b"), *rc::gen::inRange(0u, 2u)}, *rc::gen::inRange(0u, 2u)};
}
std::string AnyKey() { return *rc::gen::element<std::string>("k", "l", "m", "mm"); }
Range AnyRange() {
  return *rc::gen::element(Range::kProcLocal, Range::kLocal, Range::kNamespace, Range::kSession,
                           Range::kCustom);
}

TEST(DataStoreProperty, EveryLookupEndsExactlyOnceWhateverHappens) {
  EXPECT_TRUE(rc::check("random calls", [] {
    DataStore store({.entries = 6, .waiting = 5});
    std::set<std::uint64_t> open;
    std::uint64_t next = 1;
    const auto settle = [&](const StoreResult& result) {
      for (const LookupDone& done : result.done) RC_ASSERT(open.erase(done.lookup) == 1u);
      RC_ASSERT(store.CheckInvariants() == Status::Ok());
      RC_ASSERT(store.waiting() == open.size());
    };
    SteadyTime now{};
    const auto calls = *rc::gen::inRange(1, 80);
    for (int i = 0; i < calls; ++i) {
      now += std::chrono::seconds(1);
      switch (*rc::gen::inRange(0, 7)) {
        case 0:
        case 1:
          settle(store.Publish(AnyCaller(), AnyRange(), static_cast<Persistence>(*rc::gen::inRange(0, 5)),
                               {{AnyKey(), "v"}}));
          break;
        case 2:
        case 3: {
          DataStore::LookupRequest request{
              next, AnyCaller(), {AnyKey(), AnyKey()}, AnyRange(), *rc::gen::arbitrary<bool>(), {}};
          if (*rc::gen::arbitrary<bool>()) request.deadline = now + std::chrono::seconds(3);
          open.insert(next++);
          settle(store.Lookup(request));
          break;
        }
        case 4:
          settle(store.Unpublish(AnyCaller(), {AnyKey()}, AnyRange()));
          break;
        case 5:
          settle(store.OnTime(now));
          RC_ASSERT(!store.NextDeadline() || *store.NextDeadline() > now);
          break;
        case 6:
          store.ExpectFrom("b", "m");
          settle(*rc::gen::arbitrary<bool>() ? store.ProcEnded(AnyCaller().proc)
                                             : store.NamespaceEnded("b", "over"));
          break;
      }
    }
    settle(store.NamespaceEnded("a", "over"));
    settle(store.NamespaceEnded("b", "over"));
    RC_ASSERT(open.empty());
  }));
}

}  // namespace
}  // namespace msa::pmix
