// A grant that its owner takes back while the job runs.
#include <gmock/gmock.h>

#include "head_double.h"

namespace msa::jobd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// cn0 (2 cores) and bn0 (4); rank 0 runs on cn0. Grant 5 lends bn1 (4).
class HeadRecall : public HeadDouble {
 protected:
  static SpawnRequest Ask(std::uint32_t n) {
    SpawnRequest request;
    request.proc = {"msa.7.1.0", 0};
    request.apps = {{{"./child"}, {}, "", n, {}, {}}};
    return request;
  }
  void Lend() {
    wire::Member lent = Node(2, "bn1", 4);
    lent.grant = GrantId(5);
    FromController(wire::MembersChanged{Epoch(2), {Node(0, "cn0", 2), Node(1, "bn0", 4), lent}, {}});
    FromController(wire::GrantAnswer{1, GrantId(5), Epoch(2), {2}, {}, 4, {{2, {0, 1, 2, 3}}}});
  }
  // A spawn of 8, three of them on the grant; all of it runs and is connected.
  void Spawned() {
    BeginRunning({0});
    From(0, Ask(8), 11);
    Lend();
    joined.insert(2);
    head->OnMemberJoined(2);
    From(2, NamespaceReady{"msa.7.1.0", {}});
    Ready("msa.7.1.0.1");
    From(2, NamespaceReady{"msa.7.1.0.1", {}});
    Started("msa.7.1.0.1", {0, 1, 2});
    From(0, NamespaceConnected{"msa.7.1.0.1"});
    ranks = Told<NamespaceRegister>(1).at(0).spec.rank_member;
    said.clear();
  }
  void Recall() { FromController(wire::RecallGrant{GrantId(5), "grant 5 is released by ada"}); }
  std::vector<std::uint32_t> ranks;
};

TEST_F(HeadRecall, ReportsNameTheGrantsThatANamespaceUses) {
  Spawned();
  const auto reports = ToldController<wire::NamespaceReport>();
  ASSERT_FALSE(reports.empty());
  EXPECT_EQ(reports.back().nspace, "msa.7.1.0.1");
  EXPECT_THAT(reports.back().grants, ElementsAre(GrantId(5)));
  EXPECT_EQ(reports.back().grant, GrantId(5));
}

TEST_F(HeadRecall, EndsTheNamespacesOnItAndReleasesItAfterTheLastTask) {
  Spawned();
  From(0, NamespacesLinked{{"msa.7.1.0", "msa.7.1.0.1"}, false});
  Recall();
  ASSERT_FALSE(Told<NamespaceSignal>(2).empty());
  EXPECT_EQ(Told<NamespaceSignal>(2)[0].nspace, "msa.7.1.0.1");
  EXPECT_THAT(ToldController<wire::GrantRelease>(), IsEmpty());
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    End(ranks[rank], rank, 143, "msa.7.1.0.1");
    EXPECT_EQ(head->slots().free(2), 0u) << "what is recalled is not to be had any more";
  }
  ASSERT_EQ(ToldController<wire::GrantRelease>().size(), 1u);
  EXPECT_EQ(ToldController<wire::GrantRelease>()[0].grant, GrantId(5));
  EXPECT_EQ(head->namespaces(), 1u) << "the step, which had parted from them, runs on";
  EXPECT_THAT(Notices(), HasSubstr("spawn 1 is ended: grant 5 is released by ada"));
}

TEST_F(HeadRecall, WhoeverIsConnectedToThemEndsAsWithAFailedChild) {
  Spawned();
  Recall();
  EXPECT_THAT(Notices(), HasSubstr("step 0 is ended: spawn 1, which it is connected to, failed"));
}

TEST_F(HeadRecall, IsIdempotentAndIgnoresWhatItDoesNotKnow) {
  Spawned();
  FromController(wire::RecallGrant{GrantId(6), "grant 6 is released by ada"});
  EXPECT_TRUE(Told<NamespaceSignal>(2).empty());
  From(0, NamespacesLinked{{"msa.7.1.0", "msa.7.1.0.1"}, false});
  Recall();
  const std::size_t once = Told<NamespaceSignal>(2).size();
  Recall();
  EXPECT_EQ(Told<NamespaceSignal>(2).size(), once);
}

TEST_F(HeadRecall, ASpawnThatWaitsForItsNodesIsRefused) {
  BeginRunning({0});
  From(0, Ask(8), 11);
  Lend();
  Recall();
  EXPECT_EQ(Told<SpawnReply>(0).at(0).status, pmix::kPmixErrOutOfResource);
  EXPECT_EQ(ToldController<wire::GrantRelease>().size(), 1u);
  EXPECT_THAT(Notices(), HasSubstr("spawn refused: grant 5 is released by ada"));
}

TEST_F(HeadRecall, APermissionToSpawnOnItIsVoid) {
  BeginRunning({0});
  PlanRequest plan;
  plan.proc = {"msa.7.1.0", 0};
  plan.commands.resize(1);
  plan.commands[0].program = "./child";
  plan.commands[0].counts = {8};
  From(0, plan, 11);
  joined.insert(2);
  Lend();
  const auto replies = Told<PlanReply>(0);
  ASSERT_EQ(replies.size(), 1u);
  ASSERT_FALSE(replies[0].ticket.empty());
  Recall();
  EXPECT_EQ(ToldController<wire::GrantRelease>().size(), 1u);
  SpawnRequest ask = Ask(8);
  ask.apps[0].env = {"MSA_SPAWN_TICKET=" + replies[0].ticket};
  From(0, ask, 12);
  EXPECT_EQ(Told<SpawnReply>(0).at(0).status, pmix::kPmixErrBadParam);
}

}  // namespace
}  // namespace msa::jobd
