// Whole sets of engines with a network that keeps the order of each pair of members and nothing else.

#include <deque>
#include <map>
#include <memory>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "msa/pmix/collective.h"

namespace msa::pmix {
namespace {

constexpr std::uint64_t kRounds = 3;

std::string BlobOf(std::uint32_t member, std::uint64_t round) {
  return fmt::format("[{}.{}]", member, round);
}

class Net {
 public:
  Net(std::vector<std::uint32_t> members, std::uint32_t arity) : members_(std::move(members)) {
    for (const std::uint32_t member : members_)
      engines_.emplace(member,
                       std::make_unique<CollectiveEngine>(CollectiveOptions{.self = member, .arity = arity}));
  }

  // Actions that are possible now.
  struct Action {
    enum Kind { kContribute, kDeliver, kTell } kind;
    std::uint32_t from = 0;
    std::uint32_t to = 0;
  };
  std::vector<Action> Possible() const {
    std::vector<Action> actions;
    for (const std::uint32_t member : members_)
      if (Alive(member) && begun(member) < kRounds && finished(member) == begun(member))
        actions.push_back({Action::kContribute, member, member});
    for (const auto& [link, queue] : links_)
      if (!queue.empty()) actions.push_back({Action::kDeliver, link.first, link.second});
    for (const std::uint32_t member : untold_) actions.push_back({Action::kTell, member, member});
    return actions;
  }

  void Do(const Action& action) {
    if (action.kind == Action::kContribute) {
      const std::uint64_t round = begun_[action.from]++;
      Apply(action.from, engines_.at(action.from)
                             ->LocalContribution({round,
                                                  CollectiveKind::kFence,
                                                  {{"b", 1}, {"a", kRankWildcard}},
                                                  members_,
                                                  BlobOf(action.from, round)}));
    } else if (action.kind == Action::kTell) {
      untold_.erase(action.from);
      Apply(action.from, engines_.at(action.from)->MemberLost(*lost_, "lost for the test"));
    } else {
      auto& queue = links_[{action.from, action.to}];
      const CollectiveMessage message = queue.front();
      queue.pop_front();
      if (!Alive(action.to)) return;
      auto effects = engines_.at(action.to)->FromPeer(action.from, message);
      RC_ASSERT(effects.ok());
      Apply(action.to, *effects);
    }
  }

  void Lose(std::uint32_t member) {
    lost_ = member;
    engines_.erase(member);
    for (const std::uint32_t other : members_)
      if (other != member) untold_.insert(other);
  }

  void TimeOut(std::uint32_t member) {
    for (std::uint64_t round = 0; round < begun(member); ++round)
      Apply(member, engines_.at(member)->OnTimeout(round));
  }

  bool Alive(std::uint32_t member) const { return member != lost_; }
  std::uint64_t begun(std::uint32_t member) const {
    const auto it = begun_.find(member);
    return it == begun_.end() ? 0 : it->second;
  }
  std::uint64_t finished(std::uint32_t member) const {
    const auto it = done_.find(member);
    return it == done_.end() ? 0 : it->second.size();
  }
  const std::map<std::uint64_t, CollectiveComplete>& done(std::uint32_t member) { return done_[member]; }
  const CollectiveEngine& engine(std::uint32_t member) const { return *engines_.at(member); }
  const std::vector<std::uint32_t>& members() const { return members_; }

 private:
  void Apply(std::uint32_t self, CollectiveEffects effects) {
    for (CollectiveEffect& effect : effects) {
      if (auto* send = std::get_if<SendToPeer>(&effect)) {
        RC_ASSERT(send->member != self);
        links_[{self, send->member}].push_back(std::move(send->message));
      } else {
        auto& complete = std::get<CollectiveComplete>(effect);
        RC_ASSERT(complete.operation < begun(self));
        RC_ASSERT(done_[self].emplace(complete.operation, complete).second);
      }
    }
    const Status status = engines_.at(self)->CheckInvariants();
    RC_ASSERT(status == Status::Ok());
  }

  std::vector<std::uint32_t> members_;
  std::map<std::uint32_t, std::unique_ptr<CollectiveEngine>> engines_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<CollectiveMessage>> links_;
  std::map<std::uint32_t, std::uint64_t> begun_;
  std::map<std::uint32_t, std::map<std::uint64_t, CollectiveComplete>> done_;
  std::optional<std::uint32_t> lost_;
  std::set<std::uint32_t> untold_;
};

std::vector<std::uint32_t> AnyMembers() {
  const auto some =
      *rc::gen::nonEmpty(rc::gen::container<std::set<std::uint32_t>>(rc::gen::inRange(0u, 40u)));
  return {some.begin(), some.end()};
}

template <class Before>
void RunToEnd(Net& net, Before before) {
  while (true) {
    before();
    const auto actions = net.Possible();
    if (actions.empty()) return;
    net.Do(actions[*rc::gen::inRange<std::size_t>(0, actions.size())]);
  }
}

TEST(CollectiveProperty, AnyOrderOfArrivalsGivesEveryMemberTheWholeInMemberOrder) {
  EXPECT_TRUE(rc::check("fences in any order", [] {
    Net net(AnyMembers(), *rc::gen::inRange(1u, 9u));
    RunToEnd(net, [] {});
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      std::string whole;
      for (const std::uint32_t member : net.members()) whole += BlobOf(member, round);
      for (const std::uint32_t member : net.members()) {
        RC_ASSERT(net.done(member).at(round).status == kPmixSuccess);
        RC_ASSERT(net.done(member).at(round).data == whole);
      }
    }
    for (const std::uint32_t member : net.members())
      RC_ASSERT(net.engine(member).pending() + net.engine(member).early() == 0u);
  }));
}

TEST(CollectiveProperty, LossOfAnyMemberAtAnyTimeEndsEveryOperationAtAllOthers) {
  EXPECT_TRUE(rc::check("a member is lost", [] {
    Net net(AnyMembers(), *rc::gen::inRange(1u, 9u));
    RC_PRE(net.members().size() >= 2u);
    const std::uint32_t lost = net.members()[*rc::gen::inRange<std::size_t>(0, net.members().size())];
    auto steps = *rc::gen::inRange(0, 60);
    RunToEnd(net, [&] {
      if (steps-- == 0) net.Lose(lost);
    });
    if (net.Alive(lost)) return;  // everything was over before
    for (const std::uint32_t member : net.members()) {
      if (member == lost) continue;
      RC_ASSERT(net.finished(member) == kRounds);
      for (const auto& [round, complete] : net.done(member)) {
        if (complete.status == kPmixSuccess) continue;
        RC_ASSERT(complete.status == kPmixErrUnreachable);
        RC_ASSERT(complete.reason == std::string("lost for the test"));
      }
      RC_ASSERT(net.engine(member).pending() + net.engine(member).early() == 0u);
    }
  }));
}

TEST(CollectiveProperty, ATimeoutAnywhereEndsTheOperationForAllAndTheNextOneIsWhole) {
  EXPECT_TRUE(rc::check("a member's time limit passes", [] {
    Net net(AnyMembers(), *rc::gen::inRange(1u, 9u));
    const std::uint32_t impatient = net.members()[*rc::gen::inRange<std::size_t>(0, net.members().size())];
    auto steps = *rc::gen::inRange(0, 60);
    RunToEnd(net, [&] {
      if (steps-- == 0) net.TimeOut(impatient);
    });
    for (const std::uint32_t member : net.members()) {
      RC_ASSERT(net.finished(member) == kRounds);
      RC_ASSERT(net.engine(member).pending() + net.engine(member).early() == 0u);
      for (const auto& [round, complete] : net.done(member)) {
        std::string whole;
        for (const std::uint32_t other : net.members()) whole += BlobOf(other, round);
        RC_ASSERT(complete.status == kPmixErrTimeout ||
                  (complete.status == kPmixSuccess && complete.data == whole));
      }
    }
  }));
}

}  // namespace
}  // namespace msa::pmix
