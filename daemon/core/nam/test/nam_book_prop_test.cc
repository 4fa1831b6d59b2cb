// Random creations, openings, removals, ends of processes and jobs, crashes and restarts of the controller
// and of namds at any message. What always holds is checked by the harness after each event.
#include <rapidcheck.h>

#include "book_harness.h"

namespace msa::nam_test {
namespace {

template <class T>
T Between(T low, T high) {
  return *rc::gen::inRange<T>(low, high + 1);
}

struct World {
  Harness h{{{"nam0", Bytes(4000)}, {"nam1", Bytes(3000)}},
            {.user_quota = Bytes(5000), .job_default = Bytes(1500)}};
  std::uint64_t next_job = 1;
  std::uint64_t names = 0;

  World() { h.auto_pump = false; }

  NamCaller AnyCaller() {
    if (!h.jobs.empty() && Between(0, 1) == 0)
      return h.InJob(std::next(h.jobs.begin(),
                               Between<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(h.jobs.size()) - 1))
                         ->first,
                     Between<std::uint64_t>(1, 3));
    return Between(0, 1) == 0 ? h.Ada() : h.Bob();
  }
  std::string AnyRegion() { return "r" + std::to_string(Between<std::uint64_t>(0, names)); }

  void Create() {
    const auto lifetime = Between(0, 1) == 0 ? wire::NamLifetime::kLease : wire::NamLifetime::kPersistent;
    std::vector<std::uint64_t> sizes(Between<std::size_t>(1, 4));
    for (std::uint64_t& size : sizes) size = Between<std::uint64_t>(0, 700);
    const std::string name = "r" + std::to_string(++names);
    wire::NamCreate m = Harness::Create(name, sizes, lifetime);
    m.placement = Between(0, 1) == 0 ? wire::NamPlacement::kPack : wire::NamPlacement::kSpread;
    m.mode = Between(0, 1) == 0 ? 0600 : 0666;
    h.Send(AnyCaller(), m);
  }
  void Remove() { h.Send(AnyCaller(), wire::NamRemove{AnyRegion(), Between(0, 1) == 0}); }
  void Resize() {
    const std::string region = AnyRegion();
    const auto info = h.List(h.Root(), region);
    if (info.empty()) return;
    std::vector<Bytes> sizes;
    for (std::size_t i = 0; i < info[0].segments.size(); ++i)
      sizes.emplace_back(Between<std::uint64_t>(0, 700));
    h.Send(h.Root(), wire::NamResize{region, sizes});
  }
  // Persistent regions that the store has.
  std::set<RegionUuid> Kept() const {
    std::set<RegionUuid> kept;
    for (const RegionRecord& record : h.store.Load().regions)
      if (record.phase == RegionPhase::kCommitted && record.lifetime == wire::NamLifetime::kPersistent)
        kept.insert(record.uuid);
    return kept;
  }
  void Step() {
    switch (Between(0, 17)) {
      case 0:
      case 1:
      case 2:
        return Create();
      case 3:
        (void)h.Send(AnyCaller(), wire::NamOpen{"", AnyRegion()});
        return;
      case 4:
        return Remove();
      case 5:
        return Resize();
      case 6:
        h.StartJob(next_job++,
                   h.book->capacity().value > 6000 && h.jobs.empty() ? Between<std::uint64_t>(0, 1000) : 0);
        return;
      case 7:
        if (!h.jobs.empty()) h.EndJob(h.jobs.begin()->first);
        return;
      case 8:
        h.CloseAll(AnyCaller());
        return;
      case 9:
        h.Lose(Between(0, 1) == 0 ? "nam0" : "nam1");
        return;
      case 10:
        Up(Between(0, 1) == 0 ? "nam0" : "nam1");
        return;
      case 11:
        h.Restart();
        return;
      case 12:
        h.Sleep(Millis(Between<std::int64_t>(0, 31000)));
        return;
      case 13:
        h.namds["nam0"].fail_allocate = Between(0, 3) == 0 ? Code::kResourceExhausted : Code::kOk;
        return;
      case 14:
        (void)h.Send(AnyCaller(),
                     wire::NamSetLifetime{AnyRegion(), Between(0, 1) == 0 ? wire::NamLifetime::kLease
                                                                          : wire::NamLifetime::kPersistent});
        return;
      default:
        for (int i = Between(1, 6); i > 0; --i) (void)(h.Step("nam0") || h.Step("nam1"));
    }
  }
  void Up(const std::string& name) {
    if (h.namds[name].up) h.Lose(name);
    ++h.namds[name].pid;
    h.Up(name);
  }
};

// Each extent of a region that the store holds is at its namd, which may be away.
void CheckExtents(World& w) {
  for (const RegionRecord& record : w.h.store.Load().regions) {
    if (record.phase != RegionPhase::kCommitted) continue;
    for (const RegionExtent& extent : record.extents)
      RC_ASSERT(w.h.namds[extent.node].extents.contains({record.uuid, record.generation}));
  }
}

TEST(NamBookProperty, NoCommittedRegionIsLostAndNothingIsLeaked) {
  RC_ASSERT(rc::check("a life of the book", [] {
    World w;
    for (int i = Between(5, 60); i > 0; --i) {
      const std::set<RegionUuid> before = w.Kept();
      const bool restart = Between(0, 9) == 0;
      if (restart) {
        w.h.Restart();
        RC_ASSERT(w.Kept() == before);
      }
      w.Step();
      CheckExtents(w);
      RC_ASSERT(w.h.book->CheckInvariants().ok());
      RC_ASSERT(!::testing::Test::HasFailure());
    }
    // Everybody comes back, and everything is ended and removed.
    w.h.namds["nam0"].fail_allocate = Code::kOk;
    w.h.auto_pump = true;
    // What a start would clean up must not be there without one.
    if (Between(0, 1) == 0) w.h.Restart();
    for (const char* node : {"nam0", "nam1"})
      if (!w.h.namds[node].up) w.Up(node);
    w.h.Pump();
    w.h.Sleep(Millis(60000));
    RC_ASSERT(w.h.Check(false).findings.empty());
    std::size_t extents = 0;
    for (const RegionRecord& record : w.h.store.Load().regions) extents += record.extents.size();
    RC_ASSERT(w.h.Extents() == extents);
    for (const auto& [name, namd] : w.h.namds)
      for (const auto& [key, extent] : namd.extents)
        RC_ASSERT(extent.state == wire::NamExtentState::kCommitted);
    while (!w.h.jobs.empty()) w.h.EndJob(w.h.jobs.begin()->first);
    w.h.CloseAll(w.h.Ada());
    w.h.CloseAll(w.h.Bob());
    RC_ASSERT(w.h.store.leases.empty());
    for (const auto& region : w.h.List(w.h.Root())) {
      RC_ASSERT(region.lifetime == wire::NamLifetime::kPersistent);
      RC_ASSERT(w.h.Try(w.h.Root(), wire::NamRemove{region.name, false}).ok());
    }
    RC_ASSERT(w.h.Extents() == 0u);
    RC_ASSERT(w.h.store.regions.empty());
    RC_ASSERT(w.h.open.empty());
    for (const auto& node : w.h.Usage().nodes) RC_ASSERT(node.used == Bytes(0));
    RC_ASSERT(!::testing::Test::HasFailure());
  }));
}

}  // namespace
}  // namespace msa::nam_test
