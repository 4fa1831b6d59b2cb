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
  return spec;
}

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
      h.On(submit);
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
