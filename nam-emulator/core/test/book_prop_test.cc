// Any sequence of events: the invariants hold, no owner number has two holders, and every owner that was
// given is ended exactly once.
#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "book_fixture.h"

namespace msa::namd {
namespace {

class World {
 public:
  World() { test::Fill(book_); }

  void Step() {
    const int kind = *rc::gen::inRange(0, 8);
    if (kind <= 2) return Attach();
    if (kind == 3) return Apply(book_.ConnectionClosed(Small()));
    if (kind == 4) return Apply(book_.Revoke({.leases = {LeaseId(Small())}}));
    if (kind == 5) return Apply(book_.Revoke({.clients = {NamClientId(Small())}}));
    if (kind == 6) return Detach();
    Free();
  }

  void End() {
    for (std::uint64_t connection = 0; connection < 8; ++connection)
      Apply(book_.ConnectionClosed(connection));
    for (std::uint64_t client = 0; client < 8; ++client)
      Apply(book_.Revoke({.clients = {NamClientId(client)}}));
    RC_ASSERT(book_.attachments() == 0u);
    RC_ASSERT(holders_.empty());
    RC_ASSERT(keys_.empty());
  }

 private:
  static std::uint64_t Small() { return *rc::gen::inRange<std::uint64_t>(1, 6); }
  Caller Anyone() { return *rc::gen::arbitrary<bool>() ? test::Socket(Small()) : test::Fabric(); }

  void Attach() {
    const Caller caller = Anyone();
    const std::uint64_t client = Small();
    wire::NamAttach attach = test::AttachOf(test::LeaseOf(Small()), client);
    attach.map = *rc::gen::arbitrary<bool>();
    attach.fabric = *rc::gen::arbitrary<bool>();
    auto grant = book_.Attach(caller, attach, ++random_);
    if (!grant.ok()) return Check();
    const auto [holder, is_new] = holders_.emplace(grant->owner, client);
    RC_ASSERT(is_new || holder->second == client);
    ids_.push_back({caller, grant->attachment});
    if (grant->fabric) {
      RC_ASSERT(book_.SetFabricKey(grant->attachment, ++random_));
      keys_.insert(random_);
    }
    Apply(std::move(grant->replaced));
  }

  void Detach() {
    if (ids_.empty()) return;
    const auto& [caller, id] = ids_[*rc::gen::inRange<std::size_t>(0, ids_.size())];
    auto outcome = book_.Detach(*rc::gen::arbitrary<bool>() ? caller : Anyone(), id);
    if (outcome.ok()) Apply(std::move(*outcome));
  }

  void Free() {
    if (*rc::gen::inRange(0, 4) != 0) return;
    Apply(book_.Free(test::kExtent));
  }

  void Apply(Outcome outcome) {
    for (const OwnerEnd& end : outcome.owners) {
      RC_ASSERT(holders_.contains(end.owner));
      if (end.what == OwnerEnd::What::kNumber) holders_.erase(end.owner);
    }
    for (const std::uint64_t key : outcome.keys) RC_ASSERT(keys_.erase(key) == 1u);
    for (const ExtentKey& key : outcome.removable) {
      RC_ASSERT(book_.attachments() == 0u);
      book_.Remove(key);
    }
    Check();
  }

  void Check() {
    const Status status = book_.CheckInvariants();
    if (!status.ok()) RC_FAIL(status.message());
  }

  Book book_{"nam0", test::Sign};
  std::uint64_t random_ = 1000;
  std::map<std::uint32_t, std::uint64_t> holders_;
  std::set<std::uint64_t> keys_;
  std::vector<std::pair<Caller, std::uint64_t>> ids_;
};

RC_GTEST_PROP(BookProperty, NoSequenceOfEventsLosesOrSharesAnOwnerNumber, ()) {
  World world;
  const int steps = *rc::gen::inRange(1, 60);
  for (int i = 0; i < steps; ++i) world.Step();
  world.End();
}

}  // namespace
}  // namespace msa::namd
