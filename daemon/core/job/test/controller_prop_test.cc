// Random sequences of events, restarts included: the invariants hold after each, and every job ends when all
// is quiet.

#include <rapidcheck.h>

#include "harness.h"

namespace msa {
namespace {

using namespace job_test;

template <class T>
T Between(T low, T high) {
  return *rc::gen::inRange<T>(low, high + 1);
}

const std::vector<std::string> kNodes = {"cn0", "cn1", "bn0", "bn1", "dn0"};

// What runs on the nodes as far as their daemons know: launched and neither quit nor acknowledged.
class World {
 public:
  explicit World(Harness& harness) : h(harness) {}

  // Carries out what the controller sent since the last time.
  void Settle() {
    const std::vector<Effect> sent = std::exchange(h.sent, {});
    for (const Effect& effect : sent) {
      if (const auto* start = std::get_if<effect::SendStartJob>(&effect)) {
        if (h.sessions.contains(start->node))
          jobds[{start->node, start->job}] = {start->job, start->incarnation, start->self_index,
                                              start->self_index == start->launch->head_index, false};
      } else if (const auto* quit = std::get_if<effect::SendQuitJob>(&effect)) {
        if (h.sessions.contains(quit->node) && jobds.erase({quit->node, quit->job}) > 0)
          gone.push_back({quit->node, quit->job, quit->incarnation, "", true});
      } else if (const auto* message = std::get_if<effect::SendToJobd>(&effect)) {
        if (message->type == wire::ExitAck::kType && h.sessions.contains(message->node))
          jobds.erase({message->node, message->job});
      } else if (const auto* registered = std::get_if<effect::Registered>(&effect)) {
        std::erase_if(jobds, [&](const auto& entry) {
          return entry.first.first == registered->node &&
                 std::none_of(registered->keep.begin(), registered->keep.end(),
                              [&](const JobdInfo& keep) { return keep.job == entry.first.second; });
        });
      }
    }
    for (const event::JobdGone& event : std::exchange(gone, {})) h.On(event);
  }

  void Register(const std::string& node) {
    std::vector<JobdInfo> here;
    for (const auto& [key, info] : jobds)
      if (key.first == node) here.push_back(info);
    h.Register(node, here);
  }

  Harness& h;
  std::map<std::pair<std::string, JobId>, JobdInfo> jobds;
  std::vector<event::JobdGone> gone;
  std::uint64_t submitted = 0;  // highest id so far
};

JobSpec RandomSpec() {
  static const std::vector<std::string> modules = {"cluster", "booster", "dam"};
  JobSpec spec = Harness::Spec(modules[Between<std::size_t>(0, 2)], Between<std::uint32_t>(1, 4),
                               Between<std::uint32_t>(0, 1));
  if (Between(0, 2) == 0)
    spec.components.push_back(
        Harness::Spec(modules[Between<std::size_t>(0, 2)], Between<std::uint32_t>(1, 8)).components[0]);
  if (Between(0, 1) == 0) spec.time_limit_s = Between<std::uint32_t>(1, 30);
  if (Between(0, 5) == 0) spec.immediate_s = Between<std::uint32_t>(1, 5);
  spec.oversubscribe = Between(0, 5) == 0;
  spec.mode = static_cast<wire::JobMode>(std::max(0, Between(0, 4) - 2));
  if (spec.mode != wire::JobMode::kStep)
    for (Component& component : spec.components) component.argv.clear();
  if (spec.mode == wire::JobMode::kBatch) spec.script = "#!/bin/sh\n";
  if (Between(0, 4) == 0) spec.name = "same";
  return spec;
}

// `last`: ids from 1 to it were given.
void AddDependencies(JobSpec& spec, std::uint64_t last, Instant now) {
  if (Between(0, 4) == 0) spec.begin_at_ms = ToUnixMillis(now) + Between<std::int64_t>(0, 20'000);
  spec.dependency_any = Between(0, 2) == 0;
  spec.kill_on_invalid_dep = Between(0, 1) == 0;
  if (last == 0 || Between(0, 1) == 0) return;
  for (int i = Between(1, 3); i > 0; --i) {
    Dependency dependency;
    dependency.kind = static_cast<DependencyKind>(Between(0, 4));
    if (dependency.kind != DependencyKind::kSingleton)
      dependency.job = JobId(Between<std::uint64_t>(std::max<std::uint64_t>(last, 4) - 3, last));
    if (dependency.kind == DependencyKind::kAfter) dependency.delay_s = Between<std::uint32_t>(0, 10);
    spec.dependencies.push_back(dependency);
  }
}

// How each job stood when it was last looked at; a model that knows nothing of the controller's tables.
class Oracle {
 public:
  explicit Oracle(Harness& harness) : h(harness) {}

  // A job that was placed since the last look was allowed to.
  void Look() {
    JobFilter all;
    all.ended = true;
    all.limit = 1000;
    for (const JobView& view : h.controller().ListJobs(all)) now_[view.record->id] = *view.record;
    for (const auto& [id, record] : now_) {
      const bool placed = record.placed_at != Instant();
      if (placed && placed_.insert(id).second) RC_ASSERT(Allowed(record));
      if (!placed && record.state == JobState::kPending) RC_ASSERT(!Overdue(record));
    }
  }

 private:
  std::optional<bool> Met(const JobRecord& record, const Dependency& d) const {
    if (d.kind == DependencyKind::kSingleton) {
      for (const auto& [id, other] : now_)
        if (id < record.id && other.spec.name == record.spec.name && !wire::IsFinal(other.state))
          return std::nullopt;
      return true;
    }
    const JobRecord& other = now_.at(d.job);
    const bool ended = wire::IsFinal(other.state);
    if (d.kind == DependencyKind::kAfter) {
      const bool started = other.started_at != Instant();
      if (!started && !ended) return std::nullopt;
      const Instant from = started ? other.started_at : other.ended_at;
      return from + Millis(1000LL * d.delay_s) <= h.now ? std::optional<bool>(true) : std::nullopt;
    }
    if (!ended) return std::nullopt;
    const bool good = other.state == JobState::kCompleted;
    return d.kind == DependencyKind::kAfterAny || good == (d.kind == DependencyKind::kAfterOk);
  }
  bool Allowed(const JobRecord& record) const {
    if (record.spec.begin_at_ms > ToUnixMillis(h.now)) return false;
    std::size_t met = 0;
    for (const Dependency& d : record.spec.dependencies) met += Met(record, d) == true ? 1 : 0;
    const std::size_t all = record.spec.dependencies.size();
    return record.spec.dependency_any ? met > 0 || all == 0 : met == all;
  }
  // To be cancelled, and still there.
  bool Overdue(const JobRecord& record) const {
    if (!record.spec.kill_on_invalid_dep || record.spec.dependencies.empty()) return false;
    std::size_t never = 0;
    for (const Dependency& d : record.spec.dependencies) never += Met(record, d) == false ? 1 : 0;
    return record.spec.dependency_any ? never == record.spec.dependencies.size() : never > 0;
  }

  Harness& h;
  std::map<JobId, JobRecord> now_;
  std::set<JobId> placed_;
};

std::optional<JobId> AnyActive(Harness& h) {
  std::vector<JobId> ids;
  for (const JobView& view : h.controller().ListJobs({}))
    if (view.record->state != JobState::kPending) ids.push_back(view.record->id);
  if (ids.empty()) return std::nullopt;
  return ids[Between<std::size_t>(0, ids.size() - 1)];
}

void JobEvent(World& world, JobId id) {
  Harness& h = world.h;
  const std::string head = h.HeadNode(id);
  const auto jobd = world.jobds.find({head, id});
  const bool reachable = jobd != world.jobds.end() && h.sessions.contains(head);
  switch (Between(0, 8)) {
    case 8:
      h.On(event::ReleaseGrant{.caller = Between(0, 3) == 0 ? kBob : kAda,
                               .grant = GrantId(Between<std::uint64_t>(1, 6)),
                               .force = Between(0, 1) == 0,
                               .reply = 1});
      break;
    case 0:
    case 1:
      if (reachable) h.FromHead(id, wire::JobStarted{ToUnixMillis(h.now)});
      break;
    case 2:
      if (reachable) h.End(id, Between(0, 1) == 0 ? JobState::kCompleted : JobState::kFailed, 1);
      break;
    case 3:
      if (reachable)
        h.FromHead(id, wire::GrantAsk{Between<std::uint64_t>(1, 4),
                                      Between<std::uint32_t>(0, 12),
                                      {},
                                      Between(0, 1) == 0 ? "booster" : "",
                                      Between<std::int64_t>(0, 4) * 1000});
      break;
    case 4:
      if (reachable) h.FromHead(id, wire::GrantRelease{GrantId(Between<std::uint64_t>(1, 6))});
      break;
    case 5:
      h.On(event::Cancel{.caller = kAda, .job = id, .reason = "", .now = Between(0, 1) == 0, .reply = 1});
      break;
    case 6:
      if (!world.jobds.empty()) {
        auto victim = world.jobds.begin();
        std::advance(victim, Between<std::size_t>(0, world.jobds.size() - 1));
        const auto [key, info] = *victim;
        world.jobds.erase(victim);
        if (h.sessions.contains(key.first))
          h.On(event::JobdGone{key.first, key.second, info.incarnation, "killed", false});
      }
      break;
    default:
      if (reachable) h.FromHead(id, wire::MemberFailed{Between<std::uint32_t>(0, 3), "its peer died"});
  }
}

void NodeEvent(World& world) {
  Harness& h = world.h;
  const std::string& node = kNodes[Between<std::size_t>(0, kNodes.size() - 1)];
  switch (Between(0, 4)) {
    case 0:
      world.Register(node);
      break;
    case 1:
      if (h.sessions.contains(node)) {
        h.On(event::NodeLost{node, h.sessions[node]});
        h.sessions.erase(node);
      }
      break;
    case 2:
      std::erase_if(world.jobds,
                    [&](const auto& entry) { return entry.first.first == node; });  // it was switched off
      h.On(event::NodeLost{node, h.sessions[node]});
      h.sessions.erase(node);
      break;
    case 3:
      h.On(event::Drain{.caller = kRoot, .nodes = {node}, .reason = "x", .reply = 1});
      break;
    default:
      h.On(event::Resume{.caller = kRoot, .nodes = {node}, .reply = 1});
  }
}

void Step(World& world) {
  Harness& h = world.h;
  switch (Between(0, 9)) {
    case 0:
    case 1:
    case 2: {
      event::Submit submit = Harness::Request(RandomSpec(), Between(0, 3) == 0);
      AddDependencies(submit.spec, world.submitted, h.now);
      h.On(submit);
      for (const auto& reply : h.Sent<effect::Reply>())
        world.submitted = std::max(world.submitted, reply.job.value);
      break;
    }
    case 3:
    case 4:
    case 5:
      if (const auto id = AnyActive(h)) JobEvent(world, *id);
      break;
    case 6:
      NodeEvent(world);
      break;
    case 7:
      h.Live(Millis(Between<std::int64_t>(1, 4000)));
      break;
    case 8:
      h.BeatAll();
      break;
    default:
      if (Between(0, 3) == 0) {
        h.Restart();
        h.Clear();
        for (const std::string& node : kNodes)
          if (Between(0, 4) != 0) world.Register(node);
      }
  }
  world.Settle();
}

// The controller's picture and the store's are the same at any moment.
void CheckStore(Harness& h) {
  for (const JobRecord& stored : h.store().Load().jobs) {
    const auto view = h.controller().GetJob(stored.id);
    RC_ASSERT(view.ok());
    RC_ASSERT(view->record->state == stored.state);
    RC_ASSERT(view->record->members.size() == stored.members.size());
    RC_ASSERT(view->record->epoch == stored.epoch);
  }
}

TEST(ControllerProperty, NoJobStartsBeforeItsDependenciesAreMetAndNoneIsHeldForNothing) {
  RC_ASSERT(rc::check("random dependencies", [] {
    Harness h;
    World world(h);
    for (const std::string& node : kNodes) world.Register(node);
    world.Settle();
    Oracle oracle(h);
    const int steps = Between(10, 60);
    for (int i = 0; i < steps; ++i) {
      Step(world);
      oracle.Look();
    }
    // Nodes are free: what is not held starts, and ends when it is told to.
    h.On(event::Resume{.caller = kRoot, .nodes = kNodes, .reply = 1});
    for (const std::string& node : kNodes) world.Register(node);
    world.Settle();
    for (int round = 0; round < 40; ++round) {
      for (const JobView& view : h.controller().ListJobs({}))
        if (view.record->state != JobState::kPending) {
          h.On(event::Cancel{.caller = kRoot, .job = view.record->id, .now = true, .reply = 1});
          break;
        }
      h.Live(Millis(12000));
      oracle.Look();
    }
    for (const JobView& view : h.controller().ListJobs({})) {
      RC_ASSERT(view.record->state == JobState::kPending);
      RC_ASSERT(view.reason.starts_with("DependencyNeverSatisfied") ||
                view.reason.starts_with("Dependency: "));
    }
    RC_ASSERT(!::testing::Test::HasFailure());
  }));
}

TEST(ControllerProperty, InvariantsHoldWhateverHappensAndEveryJobEnds) {
  RC_ASSERT(rc::check("random events", [] {
    Harness h({.keep_ended = 20});
    World world(h);
    for (const std::string& node : kNodes) world.Register(node);
    world.Settle();
    const int steps = Between(5, 60);
    for (int i = 0; i < steps; ++i) {
      Step(world);
      CheckStore(h);
      RC_ASSERT(!::testing::Test::HasFailure());
    }
    // All nodes are there, nobody says anything more, everything is cancelled: it all ends by the clock
    // alone.
    h.On(event::Resume{.caller = kRoot, .nodes = kNodes, .reply = 1});
    for (const std::string& node : kNodes) world.Register(node);
    world.Settle();
    for (const JobView& view : h.controller().ListJobs({}))
      h.On(event::Cancel{.caller = kRoot, .job = view.record->id, .reason = "", .now = true, .reply = 1});
    h.Live(Millis(60000));
    RC_ASSERT(h.controller().ListJobs({}).empty());
    RC_ASSERT(h.CoresUsed() == 0u);
    RC_ASSERT(h.store().grants() == 0u);
    RC_ASSERT(!::testing::Test::HasFailure());
  }));
}

}  // namespace
}  // namespace msa
