#include <signal.h>

#include <gmock/gmock.h>

#include "head_double.h"

namespace msa::jobd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The job holds cn0 (2 slots) and bn0 (4); the step's rank 0 is on cn0, so 1 + 4 are free.
class HeadPlanTest : public HeadDouble {
 public:
  static PlanRequest Plan(std::vector<std::uint32_t> counts, std::string module = {},
                          Millis wait = Millis(0)) {
    PlanRequest plan;
    plan.proc = {"msa.7.1.0", 0};
    plan.commands = {{"./child", std::move(counts), std::move(module), {}, 0, 0}};
    plan.wait_ms = wait.count();
    return plan;
  }
  PlanReply Reply() {
    const auto replies = Told<PlanReply>(0);
    EXPECT_EQ(replies.size(), 1u);
    return replies.empty() ? PlanReply{} : replies[0];
  }
  static SpawnRequest Claim(const std::string& ticket, std::uint32_t n) {
    SpawnRequest request;
    request.proc = {"msa.7.1.0", 0};
    request.apps = {{{"./child"}, {"A=1", "MSA_SPAWN_TICKET=" + ticket}, "", n, {}, {}}};
    return request;
  }
  wire::GrantAsk LastAsk() {
    const auto asks = ToldController<wire::GrantAsk>();
    EXPECT_FALSE(asks.empty());
    return asks.empty() ? wire::GrantAsk{} : asks.back();
  }
  void Refuse(const std::string& reason) {
    wire::GrantAnswer answer;
    answer.request = LastAsk().request;
    answer.reason = reason;
    FromController(answer);
  }
};

TEST_F(HeadPlanTest, ReservesTheLargestMemberThatFitsTheJobsOwnSlots) {
  BeginRunning({0});
  From(0, Plan({4, 2, 1}, "bn"), 5);
  const PlanReply reply = Reply();
  EXPECT_EQ(reply.refusal, wire::SpawnRefusal::kNone);
  EXPECT_THAT(reply.counts, ElementsAre(4));
  EXPECT_EQ(reply.nspace, "msa.7.1.0.1");
  EXPECT_EQ(head->slots().free(1), 0u) << "kept until the spawn comes";
  EXPECT_THAT(ToldController<wire::GrantAsk>(), IsEmpty());
}

TEST_F(HeadPlanTest, TheTicketStartsExactlyWhatWasPermittedOnce) {
  BeginRunning({0});
  From(0, Plan({2}, "bn"), 5);
  const std::string ticket = Reply().ticket;
  From(0, Claim(ticket, 2), 11);
  ASSERT_EQ(Told<NamespaceRegister>(1).size(), 1u);
  const NamespaceRegister reg = Told<NamespaceRegister>(1)[0];
  EXPECT_THAT(reg.spec.rank_member, ElementsAre(1, 1));
  EXPECT_THAT(reg.spec.apps.at(0).env, ElementsAre("A=1")) << "children do not inherit the ticket";
  From(0, Claim(ticket, 2), 12);
  ASSERT_EQ(Told<SpawnReply>(0).size(), 1u);
  EXPECT_NE(Told<SpawnReply>(0)[0].status, pmix::kPmixSuccess);
  EXPECT_THAT(Notices(), HasSubstr("is unknown, used, expired or for other commands"));
}

TEST_F(HeadPlanTest, ATicketIsNotForOtherCountsOrProcesses) {
  BeginRunning({0, 0});
  From(0, Plan({2}, "bn"), 5);
  const std::string ticket = Reply().ticket;
  From(0, Claim(ticket, 3), 11);
  SpawnRequest other = Claim(ticket, 2);
  other.proc.rank = 1;
  From(0, other, 12);
  EXPECT_EQ(Told<SpawnReply>(0).size(), 2u);
  EXPECT_THAT(Told<NamespaceRegister>(1), IsEmpty());
  From(0, Claim(ticket, 2), 13);
  EXPECT_EQ(Told<NamespaceRegister>(1).size(), 1u) << "its owner may still use it";
}

TEST_F(HeadPlanTest, AsksTheControllerForTheRestAndSaysWhatElseWouldDo) {
  BeginRunning({0});
  From(0, Plan({8, 6, 5, 3}, "bn", Millis(5000)), 5);
  const wire::GrantAsk ask = LastAsk();
  EXPECT_EQ(ask.slots, 4u);
  EXPECT_THAT(ask.alternatives, ElementsAre(2, 1));
  EXPECT_EQ(ask.wait_ms, 5000);
  EXPECT_EQ(ask.module, "bn");
}

TEST_F(HeadPlanTest, TakesWhatFitsWhenNothingIsLent) {
  BeginRunning({0});
  From(0, Plan({8, 6, 3, 1}, "bn"), 5);
  Refuse("nothing is free");
  EXPECT_THAT(Reply().counts, ElementsAre(3));
  EXPECT_EQ(head->slots().free(1), 1u);
}

TEST_F(HeadPlanTest, ASmallerLoanGivesTheSmallerMember) {
  BeginRunning({0});
  From(0, Plan({8, 6, 3}, "bn"), 5);
  wire::MembersChanged changed;
  changed.epoch = Epoch(2);
  changed.members = launch.members;
  changed.members.push_back(Node(2, "bn1", 2));
  changed.members.back().module_name = changed.members.back().module_kind = "bn";
  changed.members.back().grant = GrantId(9);
  joined.insert(2);
  FromController(changed);
  FromController(wire::GrantAnswer{LastAsk().request, GrantId(9), Epoch(2), {2}, {}, 2, {{2, {0, 1}}}});
  EXPECT_THAT(Reply().counts, ElementsAre(6));
}

TEST_F(HeadPlanTest, IsRefusedWithNumbersAndTheControllersReason) {
  BeginRunning({0});
  From(0, Plan({8}, "bn"), 5);
  Refuse("8 exist, all taken");
  const PlanReply reply = Reply();
  EXPECT_EQ(reply.refusal, wire::SpawnRefusal::kSpawn);
  EXPECT_THAT(reply.reason, HasSubstr("4 more needed in module 'bn': 8 exist, all taken"));
  EXPECT_EQ(head->slots().free(), 5u);
}

TEST_F(HeadPlanTest, CommandsOfOneSpawnStartTogetherOrNotAtAll) {
  BeginRunning({0});
  PlanRequest plan = Plan({1}, "cn");
  plan.commands.push_back({"./other", {5}, "bn", {}, 0, 0});
  From(0, plan, 5);
  Refuse("no");
  EXPECT_EQ(Reply().refusal, wire::SpawnRefusal::kSpawn);
  EXPECT_EQ(head->slots().free(), 5u) << "the first command's slot is free again";
  said.clear();
  plan.commands[1].counts = {5, 4};
  From(0, plan, 6);
  Refuse("no");
  EXPECT_THAT(Reply().counts, ElementsAre(1, 4));
}

TEST_F(HeadPlanTest, SpreadsOverTheNumberOfNodesThatWasAsked) {
  BeginRunning({0});
  PlanRequest plan = Plan({2});
  plan.commands[0].nodes = 2;
  From(0, plan, 5);
  From(0, Claim(Reply().ticket, 2), 11);
  EXPECT_THAT(Told<NamespaceRegister>(1).at(0).spec.rank_member, ElementsAre(0, 1));
}

TEST_F(HeadPlanTest, ASetWithZeroEndsAsAnEmptyGroup) {
  BeginRunning({0});
  From(0, Plan({8, 0}, "bn"), 5);
  Refuse("no");
  EXPECT_EQ(Reply().refusal, wire::SpawnRefusal::kNone);
  EXPECT_THAT(Reply().counts, ElementsAre(0));
  EXPECT_EQ(Reply().ticket, "");
}

TEST_F(HeadPlanTest, WhatIsNotUsedIsTakenBack) {
  BeginRunning({0});
  From(0, Plan({4}, "bn"), 5);
  Advance(Millis(60'001));
  EXPECT_EQ(head->slots().free(1), 4u);
  From(0, Claim(Reply().ticket, 4), 11);
  EXPECT_NE(Told<SpawnReply>(0).at(0).status, pmix::kPmixSuccess);
}

TEST_F(HeadPlanTest, AnAskerThatLeavesWithdrawsItsWait) {
  BeginRunning({0});
  From(0, Plan({8}, "bn", Millis(60'000)), 5);
  const std::uint64_t request = LastAsk().request;
  From(0, PlanDrop{5});
  ASSERT_EQ(ToldController<wire::GrantWithdraw>().size(), 1u);
  EXPECT_EQ(ToldController<wire::GrantWithdraw>()[0].request, request);
  // A loan that crossed it is given back.
  FromController(wire::GrantAnswer{request, GrantId(9), Epoch(2), {2}, {}, 4, {{2, {0, 1, 2, 3}}}});
  ASSERT_EQ(ToldController<wire::GrantRelease>().size(), 1u);
  EXPECT_EQ(ToldController<wire::GrantRelease>()[0].grant, GrantId(9));
}

TEST_F(HeadPlanTest, AWaitEndsWhenTheJobsOwnSlotsBecomeFree) {
  BeginRunning({0, 1, 1});
  From(0, Plan({4}, "bn", Millis(60'000)), 5);
  EXPECT_THAT(Told<PlanReply>(0), IsEmpty());
  From(0, PlanDrop{5});
  From(0, Plan({3}, "bn"), 6);  // leaves its slots below
  Refuse("no");
  said.clear();
  From(0, Plan({2}, "bn"), 7);
  const std::string ticket = Reply().ticket;
  said.clear();
  From(0, Plan({2}, "bn", Millis(60'000)), 8);
  EXPECT_THAT(Told<PlanReply>(0), IsEmpty());
  From(0, PlanDrop{7});
  EXPECT_THAT(Reply().counts, ElementsAre(2));
  EXPECT_EQ(ToldController<wire::GrantWithdraw>().size(), 2u);
}

TEST_F(HeadPlanTest, TheEndOfTheAskersNamespaceEndsThePlan) {
  BeginRunning({0});
  From(0, Plan({8}, "bn", Millis(60'000)), 5);
  End(0, 0, 0);
  EXPECT_TRUE(head->ended());
  EXPECT_EQ(ToldController<wire::GrantWithdraw>().size(), 1u);
}

TEST_F(HeadPlanTest, ASpawnThatFitsOnlyWhenItsParentIsGoneIsNotStarted) {
  BeginRunning({0});
  From(0, Plan({4}, "bn"), 5);
  SpawnRequest plain;
  plain.proc = {"msa.7.1.0", 0};
  plain.apps = {{{"./child"}, {}, "", 3, {}, {}}};
  From(0, plain, 11);  // 1 slot is left: it waits for a loan
  ASSERT_EQ(ToldController<wire::GrantAsk>().size(), 1u);
  End(0, 0, 0);
  EXPECT_TRUE(head->ended());
  EXPECT_THAT(Told<NamespaceStart>(1), IsEmpty());
}

TEST_F(HeadPlanTest, ChildrenAreEndedWhenTheirTimeIsOver) {
  BeginRunning({0});
  PlanRequest plan = Plan({1}, "bn");
  plan.time_ms = 30'000;
  From(0, plan, 5);
  From(0, Claim(Reply().ticket, 1), 11);
  Ready("msa.7.1.0.1");
  Started("msa.7.1.0.1", {1});
  said.clear();
  Advance(Millis(30'001));
  ASSERT_FALSE(Told<NamespaceSignal>(1).empty());
  EXPECT_EQ(Told<NamespaceSignal>(1)[0].nspace, "msa.7.1.0.1");
  EXPECT_THAT(Notices(), HasSubstr("msa_time"));
}

TEST_F(HeadPlanTest, UnknownKeysAreNamedOnce) {
  BeginRunning({0});
  PlanRequest plan = Plan({1}, "bn");
  plan.unknown = {"msa_colour"};
  From(0, plan, 5);
  From(0, plan, 6);
  const std::string notices = Notices();
  EXPECT_THAT(notices, HasSubstr("'msa_colour' is not known"));
  EXPECT_EQ(notices.find("msa_colour"), notices.rfind("msa_colour"));
}

TEST_F(HeadPlanTest, AChildsFailureIsLeftToItsParentIfTheJobWantsSo) {
  launch.step.on_child_failure = wire::OnChildFailure::kEvent;
  BeginRunning({0});
  From(0, Plan({1}, "bn"), 5);
  From(0, Claim(Reply().ticket, 1), 11);
  Ready("msa.7.1.0.1");
  Started("msa.7.1.0.1", {1});
  From(1, NamespaceConnected{"msa.7.1.0.1"});
  said.clear();
  From(1, TaskEnded{"msa.7.1.0.1", {Rank(0), 0, "bn0", 0, SIGKILL, false}, true, false, false, {}});
  ASSERT_EQ(Told<NamespaceEvent>(0).size(), 1u);
  EXPECT_THAT(Told<NamespaceEvent>(0)[0].targets, ElementsAre("msa.7.1.0"));
  for (const NamespaceSignal& signal : Told<NamespaceSignal>(0)) EXPECT_NE(signal.nspace, "msa.7.1.0");
  End(0, 0, 0);
  ASSERT_TRUE(head->ended());
  EXPECT_EQ(ToldController<wire::JobExit>()[0].exit_code, 0);
}

// ------------------------------------------------------------------------- network attached memory (msa_nam)

class HeadAllotmentTest : public HeadPlanTest {
 public:
  static PlanRequest PlanWithMemory(std::uint32_t count) {
    PlanRequest plan = Plan({count}, "bn");
    plan.nam = Bytes(64u << 20);
    return plan;
  }
  wire::NamAllotmentAsk Ask() {
    const auto asks = ToldController<wire::NamAllotmentAsk>();
    EXPECT_EQ(asks.size(), 1u);
    return asks.empty() ? wire::NamAllotmentAsk{} : asks[0];
  }
};

TEST_F(HeadAllotmentTest, IsAskedForOnceTheProcessesHaveAPlaceAndBeforeTheyMayStart) {
  BeginRunning({0});
  From(0, PlanWithMemory(4), 5);
  EXPECT_EQ(Ask().more, Bytes(64u << 20));
  EXPECT_THAT(Told<PlanReply>(0), IsEmpty());
  EXPECT_EQ(head->slots().free(1), 0u);
  From(0, Claim("7.1.1", 4), 11);
  ASSERT_EQ(Told<SpawnReply>(0).size(), 1u) << "a ticket that was guessed is none yet";
  EXPECT_NE(Told<SpawnReply>(0)[0].status, pmix::kPmixSuccess);
  FromController(wire::NamAllotment{Ask().request, Bytes(128u << 20), ""});
  EXPECT_EQ(Reply().ticket, "7.1.1");
  From(0, Claim(Reply().ticket, 4), 12);
  EXPECT_EQ(Told<NamespaceRegister>(1).size(), 1u);
}

TEST_F(HeadAllotmentTest, ARefusalNamesTheReasonAndKeepsNothing) {
  BeginRunning({0});
  From(0, PlanWithMemory(4), 5);
  FromController(wire::NamAllotment{Ask().request, Bytes(0), "64 MiB asked, 1 MiB are free"});
  EXPECT_EQ(Reply().refusal, wire::SpawnRefusal::kSpawn);
  EXPECT_THAT(Reply().reason, HasSubstr("msa_nam: 64 MiB asked, 1 MiB are free"));
  EXPECT_EQ(head->slots().free(1), 4u);
}

TEST_F(HeadAllotmentTest, IsNotAskedForWhenTheProcessesGetNoPlace) {
  BeginRunning({0});
  From(0, PlanWithMemory(8), 5);
  Refuse("all taken");
  EXPECT_EQ(Reply().refusal, wire::SpawnRefusal::kSpawn);
  EXPECT_THAT(ToldController<wire::NamAllotmentAsk>(), IsEmpty());
}

TEST_F(HeadAllotmentTest, ASilentControllerIsARefusal) {
  BeginRunning({0});
  From(0, PlanWithMemory(4), 5);
  Advance(Millis(11'000));
  EXPECT_THAT(Reply().reason, HasSubstr("did not answer for 67108864 bytes"));
  EXPECT_EQ(head->slots().free(1), 4u);
  FromController(wire::NamAllotment{Ask().request, Bytes(64u << 20), ""});
  EXPECT_EQ(Told<PlanReply>(0).size(), 1u) << "too late";
}

TEST_F(HeadAllotmentTest, AnAnswerForAnAskerThatIsGoneIsIgnored) {
  BeginRunning({0});
  From(0, PlanWithMemory(4), 5);
  From(0, PlanDrop{5});
  EXPECT_EQ(head->slots().free(1), 4u);
  FromController(wire::NamAllotment{Ask().request, Bytes(64u << 20), ""});
  FromController(wire::NamAllotment{0, Bytes(0), "to nobody"});
  EXPECT_THAT(Told<PlanReply>(0), IsEmpty());
}

}  // namespace
}  // namespace msa::jobd
