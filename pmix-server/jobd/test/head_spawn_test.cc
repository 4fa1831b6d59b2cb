#include <signal.h>

#include <gmock/gmock.h>

#include "head_double.h"

namespace msa::jobd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HeadSpawnTest : public HeadDouble {
 public:
  static SpawnRequest Ask(std::uint32_t n, std::vector<std::string> hosts = {}) {
    SpawnRequest request;
    request.proc = {"msa.7.1.0", 0};
    request.apps = {{{"./child"}, {}, "", n, std::move(hosts), {}}};
    return request;
  }
  // A spawn of `n` from rank 0 that runs.
  void Spawned(std::uint32_t n, const std::string& nspace, const std::vector<std::uint32_t>& where) {
    From(0, Ask(n), 11);
    Ready(nspace);
    Started(nspace, where);
    From(where.front(), NamespaceConnected{nspace});
  }
};

TEST_F(HeadSpawnTest, RegistersEverywhereStartsAndAnswers) {
  BeginRunning({0});
  From(0, Ask(3), 11);
  ASSERT_EQ(Told<NamespaceRegister>(0).size(), 1u);
  ASSERT_EQ(Told<NamespaceRegister>(1).size(), 1u);
  const NamespaceRegister reg = Told<NamespaceRegister>(1)[0];
  EXPECT_EQ(reg.spec.nspace, "msa.7.1.0.1");
  EXPECT_THAT(reg.spec.rank_member, ElementsAre(0, 1, 1));
  EXPECT_THAT(reg.nodes, ElementsAre("cn0", "bn0"));
  EXPECT_EQ(reg.parent, "msa.7.1.0");
  Ready("msa.7.1.0.1");
  EXPECT_TRUE(Told<SpawnReply>(0).empty());
  Started("msa.7.1.0.1", {0, 1, 1});
  ASSERT_EQ(Told<SpawnReply>(0).size(), 1u);
  EXPECT_EQ(Told<SpawnReply>(0)[0].nspace, "msa.7.1.0.1");
}

TEST_F(HeadSpawnTest, TheJobLastsUntilItsLastNamespaceAndTakesAFailedChildsCode) {
  BeginRunning({0});
  Spawned(1, "msa.7.1.0.1", {0});
  From(0, NamespacesLinked{{"msa.7.1.0", "msa.7.1.0.1"}, false});
  End(0, 0, 0);
  EXPECT_FALSE(head->ended());
  From(0, TaskEnded{"msa.7.1.0.1", {Rank(0), 0, "cn0", 0, SIGSEGV, false}, true, false, false, {}});
  ASSERT_TRUE(head->ended());
  EXPECT_EQ(ToldController<wire::JobExit>()[0].exit_code, 139);
}

TEST_F(HeadSpawnTest, ADeadChildEndsItsConnectedParent) {
  BeginRunning({0});
  Spawned(1, "msa.7.1.0.1", {0});
  said.clear();
  From(0, TaskEnded{"msa.7.1.0.1", {Rank(0), 0, "cn0", 0, SIGSEGV, false}, true, false, false, {}});
  EXPECT_THAT(Notices(), HasSubstr("step 0 is ended: spawn 1, which it is connected to, failed"));
  EXPECT_TRUE(Told<NamespaceSignal>(0).empty()) << "libpmix does not bear the loss of both at once";
  Advance(Millis(50));
  EXPECT_EQ(Told<NamespaceSignal>(0).at(0).nspace, "msa.7.1.0");
  EXPECT_EQ(Told<NamespaceSignal>(0).at(0).exit_code, 139) << "the child's";
}

TEST_F(HeadSpawnTest, OfTwoFailuresTheFirstOnesCodeIsTheConnectedParents) {
  BeginRunning({0, 1});
  Spawned(1, "msa.7.1.0.1", {0});
  said.clear();
  From(0, AbortRequest{{"msa.7.1.0.1", 0}, 17, {}, {}});
  From(1, TaskEnded{"msa.7.1.0", {Rank(1), 0, "bn0", 44, 0, false}, true, false, false, {}});
  Advance(Millis(50));
  const auto signals = Told<NamespaceSignal>(0);
  const auto first = std::find_if(signals.begin(), signals.end(),
                                  [](const auto& signal) { return signal.nspace == "msa.7.1.0"; });
  ASSERT_NE(first, signals.end());
  EXPECT_EQ(first->exit_code, 17);
}

TEST_F(HeadSpawnTest, AChildThatDiesBeforeItConnectsLeavesTheParent) {
  BeginRunning({0});
  From(0, Ask(2), 11);
  Ready("msa.7.1.0.1");
  Started("msa.7.1.0.1", {0, 1});
  said.clear();
  End(0, 0, 3, "msa.7.1.0.1");
  EXPECT_EQ(Told<NamespaceSignal>(1).at(0).nspace, "msa.7.1.0.1");
  for (const NamespaceSignal& signal : Told<NamespaceSignal>(0)) EXPECT_NE(signal.nspace, "msa.7.1.0");
}

TEST_F(HeadSpawnTest, ADisconnectedParentLivesOn) {
  BeginRunning({0});
  Spawned(1, "msa.7.1.0.1", {0});
  From(0, NamespacesLinked{{"msa.7.1.0", "msa.7.1.0.1"}, false});
  said.clear();
  From(0, TaskEnded{"msa.7.1.0.1", {Rank(0), 0, "cn0", 0, SIGSEGV, false}, true, false, false, {}});
  EXPECT_TRUE(Told<NamespaceSignal>(0).empty());
}

TEST_F(HeadSpawnTest, SlotsComeBackWhenChildrenEnd) {
  BeginRunning({0});
  for (int i = 1; i <= 200; ++i) {
    const std::string nspace = "msa.7.1.0." + std::to_string(i);
    Spawned(5, nspace, {0, 1, 1, 1, 1});
    From(0, NamespacesLinked{{"msa.7.1.0", nspace}, false});
    End(0, 0, 0, nspace);
    for (std::uint32_t rank = 1; rank < 5; ++rank) End(1, rank, 0, nspace);
    said.clear();
  }
  EXPECT_EQ(head->namespaces(), 1u);
  EXPECT_EQ(head->slots().free(), 5u);
  EXPECT_LE(timers.size(), 4u);
}

TEST_F(HeadSpawnTest, ShortageAsksTheControllerAndARefusalNamesNumbers) {
  BeginRunning({0});
  From(0, Ask(8), 11);
  const auto asks = ToldController<wire::GrantAsk>();
  ASSERT_EQ(asks.size(), 1u);
  EXPECT_EQ(asks[0].slots, 3u);
  FromController(wire::GrantAnswer{asks[0].request, GrantId(0), Epoch(1), {}, "bn1 is free at 10:00"});
  ASSERT_EQ(Told<SpawnReply>(0).size(), 1u);
  EXPECT_EQ(Told<SpawnReply>(0)[0].status, pmix::kPmixErrOutOfResource);
  EXPECT_THAT(Notices(), HasSubstr("spawn of 8 processes of './child' refused: 5 slots free in the job, 3 "
                                   "more needed: bn1 is free at 10:00"));
  EXPECT_EQ(head->slots().free(), 5u);
}

TEST_F(HeadSpawnTest, ALoanIsUsedOnceItsNodeHasJoinedAndReleasedAfterwards) {
  BeginRunning({0});
  From(0, Ask(8), 11);
  wire::Member lent = Node(2, "bn1", 4);
  lent.grant = GrantId(5);
  FromController(wire::MembersChanged{Epoch(2), {Node(0, "cn0", 2), Node(1, "bn0", 4), lent}, {}});
  FromController(wire::GrantAnswer{1, GrantId(5), Epoch(2), {2}, {}, 4, {{2, {0, 1, 2, 3}}}});
  EXPECT_TRUE(Told<NamespaceRegister>(1).empty());
  joined.insert(2);
  head->OnMemberJoined(2);
  // The newcomer hears of the step too.
  ASSERT_EQ(Told<NamespaceRegister>(2).size(), 2u);
  From(2, NamespaceReady{"msa.7.1.0", {}});
  Ready("msa.7.1.0.1");
  From(2, NamespaceReady{"msa.7.1.0.1", {}});
  Started("msa.7.1.0.1", {0, 1, 2});
  EXPECT_EQ(Told<SpawnReply>(0).at(0).status, pmix::kPmixSuccess);
  From(0, NamespacesLinked{{"msa.7.1.0", "msa.7.1.0.1"}, false});
  const NamespaceRegister reg = Told<NamespaceRegister>(1).at(0);
  for (std::uint32_t rank = 0; rank < 8; ++rank) End(reg.spec.rank_member[rank], rank, 0, "msa.7.1.0.1");
  ASSERT_EQ(ToldController<wire::GrantRelease>().size(), 1u);
  EXPECT_EQ(ToldController<wire::GrantRelease>()[0].grant, GrantId(5));
  // Until the controller has taken it back its slots are not used again, and the release is said again.
  EXPECT_EQ(head->slots().free(), 5u);
  Advance(Millis(2'100));
  EXPECT_EQ(ToldController<wire::GrantRelease>().size(), 2u);
  FromController(wire::MembersChanged{Epoch(3), {Node(0, "cn0", 2), Node(1, "bn0", 4)}, {}});
  Advance(Millis(2'100));
  EXPECT_EQ(ToldController<wire::GrantRelease>().size(), 2u);
  EXPECT_EQ(head->slots().free(), 5u);
  End(0, 0, 0);
  EXPECT_EQ(ToldController<wire::JobExit>().at(0).state, wire::JobState::kCompleted);
}

TEST_F(HeadSpawnTest, ALoanThatGoesBackBeforeAllChildrenHaveEndedIsNoLostNode) {
  BeginRunning({0});
  From(0, Ask(8), 11);
  wire::Member lent = Node(2, "bn1", 4);
  lent.grant = GrantId(5);
  FromController(wire::MembersChanged{Epoch(2), {Node(0, "cn0", 2), Node(1, "bn0", 4), lent}, {}});
  FromController(wire::GrantAnswer{1, GrantId(5), Epoch(2), {2}, {}, 4, {{2, {0, 1, 2, 3}}}});
  joined.insert(2);
  head->OnMemberJoined(2);
  From(2, NamespaceReady{"msa.7.1.0", {}});
  Ready("msa.7.1.0.1");
  From(2, NamespaceReady{"msa.7.1.0.1", {}});
  Started("msa.7.1.0.1", {0, 1, 2});
  From(0, NamespacesLinked{{"msa.7.1.0", "msa.7.1.0.1"}, false});
  const std::vector<std::uint32_t> where = Told<NamespaceRegister>(1).at(0).spec.rank_member;
  const auto end_children = [&](bool lent_ones) {
    for (std::uint32_t rank = 0; rank < where.size(); ++rank)
      if ((where[rank] == 2) == lent_ones) End(where[rank], rank, 0, "msa.7.1.0.1");
  };
  end_children(true);
  End(0, 0, 0);  // the parents' end looks for what is idle
  ASSERT_EQ(ToldController<wire::GrantRelease>().size(), 1u);
  FromController(wire::MembersChanged{Epoch(3), {Node(0, "cn0", 2), Node(1, "bn0", 4)}, {}});
  EXPECT_FALSE(head->ended());
  end_children(false);
  ASSERT_TRUE(head->ended());
  EXPECT_EQ(ToldController<wire::JobExit>().at(0).state, wire::JobState::kCompleted);
  EXPECT_EQ(ToldController<wire::JobExit>().at(0).exit_code, 0);
}

TEST_F(HeadSpawnTest, ALoanWhoseNodeDoesNotComeIsRefusedAndReleased) {
  BeginRunning({0});
  From(0, Ask(8), 11);
  wire::Member lent = Node(2, "bn1", 4);
  lent.grant = GrantId(5);
  FromController(wire::MembersChanged{Epoch(2), {Node(0, "cn0", 2), Node(1, "bn0", 4), lent}, {}});
  FromController(wire::GrantAnswer{1, GrantId(5), Epoch(2), {2}, {}, 4, {{2, {0, 1, 2, 3}}}});
  Advance(Millis(10'100));
  EXPECT_EQ(Told<SpawnReply>(0).at(0).status, pmix::kPmixErrTimeout);
  EXPECT_FALSE(ToldController<wire::GrantRelease>().empty());
}

TEST_F(HeadSpawnTest, AChildThatDoesNotStartFailsTheSpawnNotTheJob) {
  BeginRunning({0});
  From(0, Ask(2), 11);
  Ready("msa.7.1.0.1");
  From(0, TasksStarted{"msa.7.1.0.1", 0, {{Rank(0), 127, "program './child' not found"}}});
  From(1, TasksStarted{"msa.7.1.0.1", 0, {{Rank(1), 127, "program './child' not found"}}});
  EXPECT_EQ(Told<SpawnReply>(0).at(0).status, pmix::kPmixErrJobFailedToStart);
  Advance(Millis(1));
  EXPECT_EQ(head->namespaces(), 1u);
  EXPECT_EQ(head->slots().free(), 5u);
  End(0, 0, 0);
  EXPECT_EQ(ToldController<wire::JobExit>().at(0).exit_code, 0);
}

TEST_F(HeadSpawnTest, LookupsForAChildThatDiedFailAtOnce) {
  BeginRunning({0});
  SpawnRequest ask = Ask(1);
  ask.apps[0].env = {"OMPI_PARENT_PORT=1234.0;tag"};
  From(0, ask, 11);
  Ready("msa.7.1.0.1");
  Started("msa.7.1.0.1", {0});
  From(0, StoreLookup{{"msa.7.1.0", 0}, {"1234.0;tag:connect"}, pmix::Range::kSession, true, 600}, 12);
  EXPECT_TRUE(Told<StoreReply>(0).empty());
  End(0, 0, 3, "msa.7.1.0.1");
  Advance(Millis(1));
  ASSERT_EQ(Told<StoreReply>(0).size(), 1u);
  EXPECT_EQ(Told<StoreReply>(0)[0].status, pmix::kPmixErrJobFailedToStart);
}

TEST_F(HeadSpawnTest, AbortOfTheParentTakesTheConnectedChildren) {
  BeginRunning({0});
  Spawned(1, "msa.7.1.0.1", {0});
  said.clear();
  From(0, AbortRequest{{"msa.7.1.0", 0}, 3, "", {}});
  Advance(Millis(50));
  std::set<std::string> signalled;
  for (const auto& signal : Told<NamespaceSignal>(0)) signalled.insert(signal.nspace);
  EXPECT_THAT(signalled, ElementsAre("msa.7.1.0", "msa.7.1.0.1"));
}

TEST_F(HeadSpawnTest, EmptyAndAbsurdRequestsAreRefused) {
  BeginRunning({0});
  SpawnRequest none = Ask(1);
  none.apps.clear();
  From(0, none, 1);
  From(0, Ask(0), 2);
  SpawnRequest blank = Ask(1);
  blank.apps[0].argv.clear();
  From(0, blank, 3);
  From(0, Ask(1, {"cn0:x"}), 4);
  ASSERT_EQ(Told<SpawnReply>(0).size(), 4u);
  for (const SpawnReply& reply : Told<SpawnReply>(0)) EXPECT_EQ(reply.status, pmix::kPmixErrBadParam);
}

TEST_F(HeadSpawnTest, ACancelledJobRefusesItsSpawns) {
  BeginRunning({0});
  From(0, Ask(8), 11);
  FromController(wire::CancelJob{wire::JobState::kCancelled, 1'000, ""});
  EXPECT_EQ(Told<SpawnReply>(0).size(), 1u);
  From(0, Ask(1), 12);
  EXPECT_EQ(Told<SpawnReply>(0).size(), 2u);
}

TEST_F(HeadSpawnTest, ASpawnWaitsForChildrenThatAreJustLeaving) {
  BeginRunning({0});
  Spawned(5, "msa.7.1.0.1", {0, 1});
  From(0, NamespacesLinked{{"msa.7.1.0", "msa.7.1.0.1"}, false});
  said.clear();
  From(0, Ask(5), 12);
  FromController(
      wire::GrantAnswer{ToldController<wire::GrantAsk>().at(0).request, GrantId(0), Epoch(1), {}, "none"});
  EXPECT_TRUE(Told<SpawnReply>(0).empty());
  for (std::uint32_t rank = 0; rank < 5; ++rank) End(rank == 0 ? 0 : 1, rank, 0, "msa.7.1.0.1");
  ASSERT_EQ(Told<NamespaceRegister>(1).size(), 1u);
  EXPECT_EQ(Told<NamespaceRegister>(1)[0].spec.nspace, "msa.7.1.0.2");
}

TEST_F(HeadSpawnTest, ASpawnDoesNotWaitForEverForChildrenThatStay) {
  BeginRunning({0});
  Spawned(5, "msa.7.1.0.1", {0, 1});
  From(0, NamespacesLinked{{"msa.7.1.0", "msa.7.1.0.1"}, false});
  said.clear();
  From(0, Ask(5), 12);
  FromController(
      wire::GrantAnswer{ToldController<wire::GrantAsk>().at(0).request, GrantId(0), Epoch(1), {}, "none"});
  Advance(Millis(1'001));
  EXPECT_EQ(Told<SpawnReply>(0).at(0).status, pmix::kPmixErrOutOfResource);
}

TEST_F(HeadSpawnTest, CoresLentOnAnOwnNodeAreUsedAndGivenBack) {
  BeginRunning({0, 0, 1, 1, 1, 1});
  From(0, Ask(2), 11);
  wire::Member more = Node(0, "cn0", 4);
  FromController(wire::MembersChanged{Epoch(2), {more, Node(1, "bn0", 4)}, {}});
  FromController(wire::GrantAnswer{1, GrantId(5), Epoch(2), {0}, {}, 2, {{0, {2, 3}}}});
  Ready("msa.7.1.0.1");
  Started("msa.7.1.0.1", {0, 0});
  EXPECT_EQ(Told<SpawnReply>(0).at(0).status, pmix::kPmixSuccess);
  for (std::uint32_t rank = 0; rank < 2; ++rank) End(0, rank, 0, "msa.7.1.0.1");
  ASSERT_EQ(ToldController<wire::GrantRelease>().size(), 1u);
  EXPECT_EQ(head->slots().free(), 0u) << "nobody uses them until the controller has them back";
  FromController(wire::MembersChanged{Epoch(3), {Node(0, "cn0", 2), Node(1, "bn0", 4)}, {}});
  EXPECT_EQ(head->slots().total(), 6u);
}

TEST_F(HeadSpawnTest, TheJobsCodeIsThatOfTheChildThatFailed) {
  BeginRunning({0});
  Spawned(1, "msa.7.1.0.1", {0});
  From(0, AbortRequest{{"msa.7.1.0.1", 0}, 9, "N/A", {}});
  From(0, TaskEnded{"msa.7.1.0.1", {Rank(0), 0, "cn0", 0, SIGTERM, false}, true, false, false, {}});
  From(0, TaskEnded{"msa.7.1.0", {Rank(0), 0, "cn0", 0, SIGTERM, false}, true, false, false, {}});
  ASSERT_TRUE(head->ended());
  EXPECT_EQ(ToldController<wire::JobExit>()[0].exit_code, 9);
}

}  // namespace
}  // namespace msa::jobd
