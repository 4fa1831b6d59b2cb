#include <gmock/gmock.h>

#include "harness.h"

namespace msa {
namespace {

using namespace job_test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GrantViews : public ::testing::Test {
 protected:
  GrantViews() {
    h.RegisterAll();
    id = h.MustRun(Harness::Spec("cluster", 1));
    h.Clear();
  }
  void Ask(std::uint64_t request, std::uint32_t slots, std::int64_t wait = 0) {
    h.FromHead(id, wire::GrantAsk{request, slots, {}, "booster", wait});
  }
  // A spawned namespace that runs on the grant.
  void Spawned(const std::string& nspace, GrantId grant, bool ended = false) {
    wire::NamespaceReport report{nspace, "msa.1.1.0", 8, {"bn0"}, "./child", ended, 0, grant, {grant}};
    h.FromHead(id, report);
  }
  std::vector<GrantView> List(const GrantFilter& filter = {}) {
    auto list = h.controller().ListGrants(filter);
    EXPECT_TRUE(list.ok()) << list.status().message();
    return list.ok() ? *list : std::vector<GrantView>();
  }
  effect::Reply Release(GrantId grant, bool force = false, UserIdentity who = kAda) {
    h.On(event::ReleaseGrant{.caller = who, .grant = grant, .force = force, .reply = 1});
    return h.TakeReply();
  }
  Harness h;
  JobId id;
};

TEST_F(GrantViews, TellWhatIsLentToWhomAndForHowLong) {
  wire::GrantAsk ask{1, 8, {}, "booster", 0};
  ask.time_ms = 60'000;
  h.FromHead(id, ask);
  const auto list = List();
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].id, GrantId(1));
  EXPECT_EQ(list[0].job->id, id);
  EXPECT_EQ(list[0].state, GrantState::kHeld);
  EXPECT_EQ(list[0].slots, 8u);
  EXPECT_EQ(list[0].module, "booster");
  ASSERT_EQ(list[0].shares.size(), 1u);
  EXPECT_EQ(list[0].shares[0].node, "bn0");
  EXPECT_EQ(list[0].asked_at, h.now);
  EXPECT_EQ(list[0].since, h.now);
  EXPECT_EQ(list[0].until, h.now + Millis(60'000));
  EXPECT_THAT(list[0].namespaces, IsEmpty());
  Spawned("msa.1.1.0.1", GrantId(1));
  EXPECT_THAT(List()[0].namespaces, ElementsAre("msa.1.1.0.1"));
  Spawned("msa.1.1.0.1", GrantId(1), true);
  EXPECT_THAT(List()[0].namespaces, IsEmpty());
}

TEST_F(GrantViews, OneThatWaitsSaysWhyAndUntilWhen) {
  h.MustRun(Harness::Spec("booster", 16));
  const Instant asked = h.now;
  Ask(1, 8, 60'000);
  h.Live(Millis(3000));
  const auto list = List({.job = id});
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].state, GrantState::kWaiting);
  EXPECT_EQ(list[0].id, GrantId(0));
  EXPECT_EQ(list[0].slots, 8u);
  EXPECT_EQ(list[0].asked_at, asked);
  EXPECT_EQ(list[0].until, asked + Millis(60'000));
  EXPECT_THAT(list[0].reason, HasSubstr("8 slots asked in module 'booster'"));
}

TEST_F(GrantViews, AWaitingOneThatIsLentRemembersWhenItWasAsked) {
  const JobId other = h.MustRun(Harness::Spec("booster", 16));
  const Instant asked = h.now;
  Ask(1, 8, 60'000);
  h.Live(Millis(3000));
  h.End(other);
  const auto list = List();
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].state, GrantState::kHeld);
  EXPECT_EQ(list[0].asked_at, asked);
  EXPECT_GT(list[0].since, asked);
}

TEST_F(GrantViews, ReleasedOnesAreKeptUntilTheJobEnds) {
  Ask(1, 8);
  h.FromHead(id, wire::GrantRelease{GrantId(1)});
  EXPECT_THAT(List(), IsEmpty());
  ASSERT_EQ(List({.released = true}).size(), 1u);
  EXPECT_EQ(List({.ids = {GrantId(1)}}).at(0).state, GrantState::kReleased);
  h.End(id);
  EXPECT_EQ(h.controller().ListGrants({.ids = {GrantId(1)}}).status().code(), Code::kNotFound);
}

TEST_F(GrantViews, AreFoundByJobAndUser) {
  Ask(1, 8);
  EXPECT_EQ(List({.user = "ada"}).size(), 1u);
  EXPECT_EQ(List({.user = "1000"}).size(), 1u);
  EXPECT_THAT(List({.user = "bob"}), IsEmpty());
  EXPECT_EQ(h.controller().ListGrants({.job = JobId(99)}).status().code(), Code::kNotFound);
}

TEST_F(GrantViews, AnIdleOneIsReleasedAtOnce) {
  Ask(1, 8);
  h.Clear();
  EXPECT_TRUE(Release(GrantId(1)).status.ok());
  EXPECT_EQ(List({.ids = {GrantId(1)}}).at(0).state, GrantState::kReleased);
  EXPECT_EQ(h.CoresUsed(), 1u);
  EXPECT_EQ(h.QuitNodes(), std::vector<std::string>{"bn0"});
  // The head hears first that it must start nothing there.
  const auto messages = h.Sent<effect::SendToJobd>();
  ASSERT_FALSE(messages.empty());
  EXPECT_EQ(messages[0].type, wire::RecallGrant::kType);
  EXPECT_EQ(Release(GrantId(1)).status.code(), Code::kFailedPrecondition) << "a second time";
}

TEST_F(GrantViews, OneInUseIsRefusedWithTheNamespacesNamed) {
  Ask(1, 8);
  Spawned("msa.1.1.0.1", GrantId(1));
  h.Clear();
  const Status status = Release(GrantId(1)).status;
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("in use by msa.1.1.0.1; end it first, or give --force"));
  EXPECT_TRUE(h.ToJobd<wire::RecallGrant>().empty());
  EXPECT_EQ(h.CoresUsed(), 9u);
}

TEST_F(GrantViews, ForceEndsTheNamespacesAndTheNodesComeBackWithThem) {
  Ask(1, 8);
  Spawned("msa.1.1.0.1", GrantId(1));
  h.Clear();
  EXPECT_TRUE(Release(GrantId(1), true).status.ok());
  const auto recalls = h.ToJobd<wire::RecallGrant>("cn0");
  ASSERT_EQ(recalls.size(), 1u);
  EXPECT_EQ(recalls[0].grant, GrantId(1));
  EXPECT_EQ(recalls[0].reason, "grant 1 is released by ada");
  EXPECT_EQ(List().at(0).state, GrantState::kHeld);
  EXPECT_EQ(List().at(0).reason, "released by ada");
  EXPECT_EQ(h.CoresUsed(), 9u) << "its tasks still run";
  Spawned("msa.1.1.0.1", GrantId(1), true);
  h.FromHead(id, wire::GrantRelease{GrantId(1)});
  EXPECT_EQ(h.CoresUsed(), 1u);
  EXPECT_EQ(h.State(id), JobState::kRunning);
}

TEST_F(GrantViews, ARecallIsRepeatedWhenControllerOrNodeComeBack) {
  Ask(1, 8);
  Spawned("msa.1.1.0.1", GrantId(1));
  EXPECT_TRUE(Release(GrantId(1), true).status.ok());
  h.Restart();
  h.Clear();
  h.Register("bn0", {{id, Incarnation(1), 1, false, false}});
  EXPECT_TRUE(h.ToJobd<wire::RecallGrant>().empty()) << "the head is on cn0";
  h.Register("cn0", {{id, Incarnation(1), 0, true, false}});
  EXPECT_EQ(h.ToJobd<wire::RecallGrant>("cn0").size(), 1u);
}

TEST_F(GrantViews, OnlyTheJobsOwnerRootAndTheOperatorRelease) {
  Ask(1, 8);
  EXPECT_EQ(Release(GrantId(1), true, kBob).status.code(), Code::kPermissionDenied);
  EXPECT_EQ(Release(GrantId(7)).status.code(), Code::kNotFound);
  EXPECT_TRUE(Release(GrantId(1), false, kRoot).status.ok());
  EXPECT_EQ(List({.ids = {GrantId(1)}}).at(0).reason, "released by uid 0");
}

TEST_F(GrantViews, AnEndingJobsGrantsCannotBeReleasedAnyMore) {
  Ask(1, 8);
  h.On(event::Cancel{.caller = kAda, .job = id, .reason = "", .now = false, .reply = 1});
  h.TakeReply();
  EXPECT_EQ(Release(GrantId(1)).status.code(), Code::kFailedPrecondition);
}

}  // namespace
}  // namespace msa
