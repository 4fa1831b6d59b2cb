#include <signal.h>

#include <gmock/gmock.h>

#include "msa/base/ping.h"

#include "head_double.h"

namespace msa::jobd {
namespace {

using ::testing::HasSubstr;

using HeadTest = HeadDouble;

TEST_F(HeadTest, StartsNoTaskBeforeEveryMemberIsReady) {
  Begin({0, 1});
  From(0, NamespaceReady{"msa.7.1.0", {}});
  EXPECT_TRUE(Told<NamespaceStart>(0).empty());
  From(1, NamespaceReady{"msa.7.1.0", {}});
  ASSERT_EQ(Told<NamespaceStart>(0).size(), 1u);
  ASSERT_EQ(Told<NamespaceStart>(1).size(), 1u);
  EXPECT_TRUE(Told<NamespaceStart>(0)[0].want_stdin);
  EXPECT_FALSE(Told<NamespaceStart>(1)[0].want_stdin);
}

TEST_F(HeadTest, SaysStartedOnceAllMembersHaveStarted) {
  Begin({0, 1});
  Ready("msa.7.1.0");
  From(0, TasksStarted{"msa.7.1.0", 1, {}});
  EXPECT_TRUE(ToldController<wire::JobStarted>().empty());
  From(1, TasksStarted{"msa.7.1.0", 1, {}});
  EXPECT_EQ(ToldController<wire::JobStarted>().size(), 1u);
}

TEST_F(HeadTest, EndsWithTheHighestCodeAndWaitsForTheAcknowledgement) {
  BeginRunning({0, 1});
  End(0, 0, 2);
  EXPECT_FALSE(head->ended());
  End(1, 1, 5);
  ASSERT_TRUE(head->ended());
  const auto exits = ToldController<wire::JobExit>();
  ASSERT_EQ(exits.size(), 1u);
  EXPECT_EQ(exits[0].exit_code, 5);
  EXPECT_EQ(exits[0].state, wire::JobState::kFailed);
  EXPECT_EQ(exits[0].tasks_failed, 2u);
  EXPECT_EQ(wire::Decode<wire::JobExit>(record)->exit_code, 5);
  Advance(Millis(2'100));
  EXPECT_EQ(ToldController<wire::JobExit>().size(), 2u);  // said again
  FromController(wire::ExitAck{});
  EXPECT_FALSE(over);  // the owner has not read
  FromClient(1, wire::AttachOpen{true, 0, false});
  FromClient(1, wire::OutputAck{1000});
  EXPECT_TRUE(over);
}

TEST_F(HeadTest, LeavesTenSecondsAfterTheEndWithoutAnOwner) {
  BeginRunning({0});
  End(0, 0, 0);
  FromController(wire::ExitAck{});
  Advance(Millis(9'900));
  EXPECT_FALSE(over);
  Advance(Millis(200));
  EXPECT_TRUE(over);
}

TEST_F(HeadTest, AnEndedJobDoesNotWaitForAnOwnerWhoseSessionEnded) {
  BeginRunning({0});
  FromClient(1, wire::AttachOpen{true, 0, false});
  SessionOver(1);
  End(0, 0, 0);
  EXPECT_FALSE(over);  // the controller has not got the result
  FromController(wire::ExitAck{});
  EXPECT_TRUE(over);
}

TEST_F(HeadTest, AnOwnerThatGoesAfterTheEndIsNotWaitedFor) {
  BeginRunning({0});
  FromClient(1, wire::AttachOpen{true, 0, false});
  End(0, 0, 0);
  FromController(wire::ExitAck{});
  EXPECT_FALSE(over);
  SessionOver(1);
  EXPECT_TRUE(over);
}

TEST_F(HeadTest, AnOwnerThatNeverAttachedAndIsGoneIsNotWaitedFor) {
  BeginRunning({0});
  FromController(wire::CancelJob{wire::JobState::kCancelled, 1000, "msactl went away", true});
  End(0, 0, 0);
  EXPECT_FALSE(over);  // the controller has not got the result
  FromController(wire::ExitAck{});
  EXPECT_TRUE(over);
}

TEST_F(HeadTest, AnOwnerThatIsGoneWhenItsJobHasEndedIsNotWaitedFor) {
  BeginRunning({0});
  End(0, 0, 0);
  FromController(wire::ExitAck{});
  EXPECT_FALSE(over);
  FromController(wire::CancelJob{wire::JobState::kCancelled, 1000, "msactl went away", true});
  EXPECT_TRUE(over);
}

TEST_F(HeadTest, AnOwnerThatTheControllerLostReadsOnWhereItIsAttached) {
  BeginRunning({0});
  FromClient(1, wire::AttachOpen{true, 0, false});
  FromController(wire::CancelJob{wire::JobState::kCancelled, 1000, "msactl went away", true});
  End(0, 0, 0);
  FromController(wire::ExitAck{});
  EXPECT_FALSE(over);
  FromClient(1, wire::OutputAck{1000});
  EXPECT_TRUE(over);
}

TEST_F(HeadTest, APingIsAnsweredAtAnyTime) {
  Begin({0});
  FromClient(1, wire::AttachOpen{false, 0, false});
  FromClient(1, wire::Ping{});
  EXPECT_EQ(ToldClient<wire::Ping>(1).size(), 1u);
  Ready("msa.7.1.0");
  End(0, 0, 0);
  FromClient(1, wire::Ping{});
  EXPECT_EQ(ToldClient<wire::Ping>(1).size(), 2u);
}

TEST_F(HeadTest, AFailureToStartStopsTheStartsOfTheOtherMembers) {
  Begin({0, 0, 1, 1});
  Ready("msa.7.1.0");
  From(0, TasksStarted{"msa.7.1.0", 0, {{Rank(0), 127, "program './prog' not found"}}, {Rank(1)}});
  ASSERT_EQ(Told<NamespaceSignal>(1).size(), 2u);
  EXPECT_TRUE(Told<NamespaceSignal>(1)[0].ending);
  EXPECT_FALSE(head->ended());
  From(1, TasksStarted{"msa.7.1.0", 0, {}, {Rank(2), Rank(3)}});
  ASSERT_TRUE(head->ended());
  const wire::JobExit exit = ToldController<wire::JobExit>()[0];
  EXPECT_EQ(exit.exit_code, 127);
  EXPECT_EQ(exit.tasks_failed, 4u);
  EXPECT_TRUE(ToldController<wire::JobStarted>().empty());
}

TEST_F(HeadTest, ACancelWhileTasksAreStartedAsksForNoMoreAndCountsThoseThatRan) {
  Begin({0, 0, 1});
  Ready("msa.7.1.0");
  FromController(wire::CancelJob{wire::JobState::kTimeout, 5'000, "time limit of 1 s reached"});
  EXPECT_TRUE(Told<NamespaceSignal>(0).at(0).ending);
  EXPECT_EQ(Told<NamespaceSignal>(0).at(0).signal, SIGTERM);
  From(0, TasksStarted{"msa.7.1.0", 1, {}, {Rank(1)}});
  From(1, TasksStarted{"msa.7.1.0", 0, {}, {Rank(2)}});
  EXPECT_FALSE(head->ended());
  From(0, TaskEnded{"msa.7.1.0", {Rank(0), 0, "cn0", 0, SIGTERM, false}, false, false, false, {}});
  ASSERT_TRUE(head->ended());
  const wire::JobExit exit = ToldController<wire::JobExit>()[0];
  EXPECT_EQ(exit.state, wire::JobState::kTimeout);
  EXPECT_EQ(exit.exit_code, 128 + SIGTERM);
  EXPECT_EQ(exit.tasks_failed, 1u);
}

TEST_F(HeadTest, ATaskThatEndsBeforeAllHaveStartedIsJudged) {
  Begin({0, 0, 1}, wire::KillPolicy::kAlways);
  Ready("msa.7.1.0");
  End(0, 0, 3);
  ASSERT_FALSE(Told<NamespaceSignal>(1).empty());
  EXPECT_TRUE(Told<NamespaceSignal>(1)[0].ending);
  From(0, TasksStarted{"msa.7.1.0", 1, {}, {Rank(1)}});
  From(1, TasksStarted{"msa.7.1.0", 0, {}, {Rank(2)}});
  ASSERT_TRUE(head->ended());
  EXPECT_EQ(ToldController<wire::JobExit>()[0].exit_code, 3);
}

TEST_F(HeadTest, AnOwnerThatARestartOfNodedCutOffIsWaitedFor) {
  BeginRunning({0});
  FromClient(1, wire::AttachOpen{true, 0, false});
  head->OnSessionsLost();
  End(0, 0, 0);
  FromController(wire::ExitAck{});
  Advance(Millis(9'000));
  EXPECT_FALSE(over);
  FromClient(1, wire::AttachOpen{true, 0, false});
  FromClient(1, wire::OutputAck{1000});
  EXPECT_TRUE(over);
}

TEST_F(HeadTest, AnOwnerThatAttachesAgainIsWaitedForAgain) {
  BeginRunning({0});
  FromClient(1, wire::AttachOpen{true, 0, false});
  SessionOver(1);
  FromClient(2, wire::AttachOpen{true, 0, false});
  End(0, 0, 0);
  FromController(wire::ExitAck{});
  EXPECT_FALSE(over);
  FromClient(2, wire::OutputAck{1000});
  EXPECT_TRUE(over);
}

TEST_F(HeadTest, AViewerThatLeavesIsNoOwnerThatHasGone) {
  BeginRunning({0});
  FromClient(1, wire::AttachOpen{true, 0, false});
  FromClient(2, wire::AttachOpen{false, 0, false});
  SessionOver(2);
  End(0, 0, 0);
  FromController(wire::ExitAck{});
  EXPECT_FALSE(over);
}

TEST_F(HeadTest, ATaskEndOfAnotherMemberIsNotBelieved) {
  BeginRunning({0, 1});
  End(1, 0, 9);
  End(0, 0, 0);
  End(0, 0, 3);  // twice
  End(1, 1, 0);
  ASSERT_TRUE(head->ended());
  EXPECT_EQ(ToldController<wire::JobExit>()[0].exit_code, 0);
}

TEST_F(HeadTest, LeavingMpiWithoutFinalizeEndsTheOthersTermThenKill) {
  BeginRunning({0, 1, 1});
  From(1, NamespaceConnected{"msa.7.1.0"});
  TaskEnded ended{"msa.7.1.0", {Rank(1), 0, "bn0", 0, 0, false}, true, false, false, {}};
  From(1, ended);
  EXPECT_EQ(Told<NamespaceSignal>(0).at(0).signal, SIGTERM);
  EXPECT_TRUE(Told<NamespaceKill>(0).empty());
  Advance(Millis(2'100));
  EXPECT_EQ(Told<NamespaceKill>(0).size(), 1u);
  From(0, TaskEnded{"msa.7.1.0", {Rank(0), 0, "cn0", 0, SIGKILL, false}, true, false, false, {}});
  From(1, TaskEnded{"msa.7.1.0", {Rank(2), 0, "bn0", 0, SIGKILL, false}, true, false, false, {}});
  ASSERT_TRUE(head->ended());
  EXPECT_EQ(ToldController<wire::JobExit>()[0].exit_code, 1);  // the killed ones do not decide
  EXPECT_THAT(
      Notices(),
      HasSubstr("bn0: task 1 of step 0 ended without MPI_Finalize; the other 2 tasks of it are ended"));
}

TEST_F(HeadTest, ATaskThatDiesBeforeMpiInitEndsThoseThatWaitForIt) {
  BeginRunning({0, 1});
  From(0, NamespaceConnected{"msa.7.1.0"});
  End(1, 1, 4);
  EXPECT_EQ(Told<NamespaceSignal>(0).at(0).signal, SIGTERM);
}

TEST_F(HeadTest, ATaskThatDiedBeforeTheOthersReachedMpiInitEndsThemWhenTheyDo) {
  BeginRunning({0, 1, 1});
  End(1, 1, 4);
  EXPECT_TRUE(Told<NamespaceSignal>(0).empty());
  From(0, NamespaceConnected{"msa.7.1.0"});
  EXPECT_EQ(Told<NamespaceSignal>(0).at(0).signal, SIGTERM);
  EXPECT_THAT(Notices(), HasSubstr("bn0: task 1 of step 0 ended before MPI_Init"));
}

TEST_F(HeadTest, ATaskThatEndedWellBeforeMpiInitEndsNobody) {
  BeginRunning({0, 1});
  End(1, 1, 0);
  From(0, NamespaceConnected{"msa.7.1.0"});
  EXPECT_TRUE(Told<NamespaceSignal>(0).empty());
}

TEST_F(HeadTest, TwoMpisInOneWorldEndTheStepAfterAWhile) {
  BeginRunning({0, 1});
  From(0, NamespaceConnected{"msa.7.1.0", true, false});
  From(1, NamespaceConnected{"msa.7.1.0", false, true});
  Advance(Millis(2'900));
  EXPECT_TRUE(Told<NamespaceSignal>(0).empty());
  Advance(Millis(200));
  EXPECT_EQ(Told<NamespaceSignal>(0).at(0).signal, SIGTERM);
  EXPECT_THAT(Notices(), HasSubstr("mixes two MPIs in one MPI_COMM_WORLD: tasks on cn0 use PMIx (Open MPI), "
                                   "tasks on bn0 PMI-1 (MPICH)"));
}

TEST_F(HeadTest, TasksThatLeaveOneMpiForAnotherAreNoMixture) {
  BeginRunning({0, 1});
  From(0, NamespaceConnected{"msa.7.1.0", true, false});
  From(1, NamespaceConnected{"msa.7.1.0", true, false});
  From(1, NamespaceConnected{"msa.7.1.0", false, true});
  Advance(Millis(1'000));
  From(0, NamespaceConnected{"msa.7.1.0", false, false});
  From(0, NamespaceConnected{"msa.7.1.0", false, true});
  Advance(Millis(10'000));
  EXPECT_TRUE(Told<NamespaceSignal>(0).empty());
}

TEST_F(HeadTest, EqualEndsOfAMomentShareALine) {
  BeginRunning({0, 1, 1, 1});
  End(1, 1, 3);
  Advance(Millis(90));
  End(1, 2, 3);
  End(1, 3, 3);
  Advance(Millis(10));
  EXPECT_EQ(Notices(), "bn0: tasks 1-3: exited with exit code 3\n") << "while task 0 runs on";
}

TEST_F(HeadTest, ATasksNoticeIsShownOnceAndOnlySoMany) {
  BeginRunning({0, 1});
  for (const std::uint32_t member : {1u, 0u})
    From(member, TaskNotice{"msa.7.1.0", Rank(member), "spawn refused"});
  for (int i = 0; i < 100; ++i) From(1, TaskNotice{"msa.7.1.0", Rank(1), fmt::format("text {}", i)});
  const std::string notices = Notices();
  EXPECT_THAT(notices, HasSubstr("bn0: task 1 of step 0: spawn refused\n"));
  EXPECT_EQ(notices.find("task 0"), std::string::npos);
  EXPECT_EQ(std::count(notices.begin(), notices.end(), '\n'), 16);
}

TEST_F(HeadTest, WithoutMpiAFailedTaskLeavesTheOthers) {
  BeginRunning({0, 1});
  End(1, 1, 4);
  EXPECT_TRUE(Told<NamespaceSignal>(0).empty());
}

TEST_F(HeadTest, KillPolicyNeverLeavesEverybody) {
  BeginRunning({0, 1}, wire::KillPolicy::kNever);
  From(1, TaskEnded{"msa.7.1.0", {Rank(1), 0, "bn0", 0, SIGSEGV, false}, true, false, false, {}});
  EXPECT_TRUE(Told<NamespaceSignal>(0).empty());
}

TEST_F(HeadTest, AbortGivesItsCodeWhateverTheTasksReturn) {
  BeginRunning({0, 1});
  From(1, AbortRequest{{"msa.7.1.0", 1}, 3, "", {}});
  From(1, TaskEnded{"msa.7.1.0", {Rank(1), 0, "bn0", 255, 0, false}, true, false, false, {}});
  From(0, TaskEnded{"msa.7.1.0", {Rank(0), 0, "cn0", 0, SIGTERM, false}, true, false, false, {}});
  ASSERT_TRUE(head->ended());
  EXPECT_EQ(ToldController<wire::JobExit>()[0].exit_code, 3);
  EXPECT_THAT(ToldController<wire::JobExit>()[0].message, HasSubstr("aborted by task 1 with code 3"));
}

TEST_F(HeadTest, SingletonsFailAStepThatSucceededElse) {
  BeginRunning({0, 1});
  for (const std::uint32_t rank : {0u, 1u})
    From(rank, TaskEnded{"msa.7.1.0",
                         {Rank(rank), 0, rank == 0 ? "cn0" : "bn0", 0, 0, false},
                         false,
                         false,
                         true,
                         "libmpich.so.12"});
  ASSERT_TRUE(head->ended());
  const wire::JobExit exit = ToldController<wire::JobExit>()[0];
  EXPECT_EQ(exit.exit_code, 125);
  EXPECT_THAT(exit.message, HasSubstr("2 tasks of step 0 ran './prog' (libmpich.so.12) alone"));
}

TEST_F(HeadTest, AFailedStartEndsTheStartedOnesWithTheLaunchersCode) {
  Begin({0, 1});
  Ready("msa.7.1.0");
  From(0, TasksStarted{"msa.7.1.0", 1, {}});
  From(1, TasksStarted{"msa.7.1.0", 0, {{Rank(1), 127, "program './prog' not found"}}});
  EXPECT_EQ(Told<NamespaceSignal>(0).at(0).signal, SIGTERM);
  From(0, TaskEnded{"msa.7.1.0", {Rank(0), 0, "cn0", 0, SIGTERM, false}, false, false, false, {}});
  ASSERT_TRUE(head->ended());
  const wire::JobExit exit = ToldController<wire::JobExit>()[0];
  EXPECT_EQ(exit.exit_code, 127);
  EXPECT_EQ(exit.message, "bn0: program './prog' not found");
  EXPECT_EQ(exit.started_at_ms, 0);
}

TEST_F(HeadTest, CancelBeforeTheStartEndsAtOnce) {
  Begin({0, 1});
  FromController(wire::CancelJob{wire::JobState::kCancelled, 5'000, "by user"});
  Advance(Millis(1));
  ASSERT_TRUE(head->ended());
  EXPECT_EQ(ToldController<wire::JobExit>()[0].state, wire::JobState::kCancelled);
  EXPECT_EQ(ToldController<wire::JobExit>()[0].exit_code, 143);
}

TEST_F(HeadTest, ASecondCancelWithLessGraceShortensIt) {
  BeginRunning({0});
  FromController(wire::CancelJob{wire::JobState::kTimeout, 60'000, "limit"});
  EXPECT_EQ(Told<NamespaceSignal>(0).size(), 2u);  // TERM, CONT
  Advance(Millis(1'000));
  EXPECT_TRUE(Told<NamespaceKill>(0).empty());
  FromController(wire::CancelJob{wire::JobState::kCancelled, 0, "now"});
  EXPECT_EQ(Told<NamespaceKill>(0).size(), 1u);
  From(0, TaskEnded{"msa.7.1.0", {Rank(0), 0, "cn0", 0, SIGKILL, false}, false, false, false, {}});
  EXPECT_EQ(ToldController<wire::JobExit>()[0].state, wire::JobState::kTimeout);  // the first reason stays
}

TEST_F(HeadTest, TasksThatSurviveSigkillAreGivenUp) {
  BeginRunning({0});
  FromController(wire::CancelJob{wire::JobState::kCancelled, 0, "now"});
  Advance(Millis(10'100));
  EXPECT_TRUE(head->ended());
}

TEST_F(HeadTest, ALostMemberEndsOnlyTheNamespacesThatUseIt) {
  BeginRunning({0, 0});
  head->OnMemberLost(1, "lost the job daemon of node bn0");
  Advance(Millis(1));
  EXPECT_TRUE(Told<NamespaceSignal>(0).empty());
  End(0, 0, 0);
  End(0, 1, 0);
  EXPECT_EQ(ToldController<wire::JobExit>()[0].state, wire::JobState::kCompleted);
}

TEST_F(HeadTest, ALostMemberFailsTheStepThatUsesIt) {
  BeginRunning({0, 1});
  head->OnMemberLost(1, "lost the job daemon of node bn0");
  EXPECT_EQ(Told<MemberGone>(0).size(), 1u);
  EXPECT_EQ(Told<NamespaceSignal>(0).at(0).signal, SIGTERM);
  End(0, 0, 143);
  Advance(Millis(1));
  const wire::JobExit exit = ToldController<wire::JobExit>().at(0);
  EXPECT_EQ(exit.state, wire::JobState::kNodeFail);
  EXPECT_EQ(exit.exit_code, 125);
  EXPECT_THAT(exit.message, HasSubstr("lost the job daemon of node bn0"));
}

TEST_F(HeadTest, AMemberLostBeforeItWasReadyFailsTheLaunch) {
  Begin({0, 1});
  From(0, NamespaceReady{"msa.7.1.0", {}});
  head->OnMemberLost(1, "cannot reach bn0");
  Advance(Millis(1));
  ASSERT_TRUE(head->ended());
  EXPECT_NE(ToldController<wire::JobExit>()[0].exit_code, 0);
  EXPECT_THAT(ToldController<wire::JobExit>()[0].message, HasSubstr("cannot reach bn0"));
}

TEST_F(HeadTest, AMemberThatCannotHostEndsTheJobOnceTheOthersHaveAnswered) {
  Begin({0, 1});
  From(1, NamespaceReady{"msa.7.1.0", "no space left"});
  From(0, NamespaceReady{"msa.7.1.0", {}});
  ASSERT_TRUE(head->ended());
  EXPECT_THAT(Notices(), HasSubstr("node bn0 cannot host step 0: no space left"));
}

TEST_F(HeadTest, AMemberThatChangesItsDescriptionKeepsTheSlotsThatAreTaken) {
  BeginRunning({0, 1});
  wire::MembersChanged changed{Epoch(2), launch.members, {}};
  changed.members[1].cores = {7, 7};
  FromController(changed);
  EXPECT_EQ(head->slots().free(), 2u);  // one on each node
  End(0, 0, 0);
  End(1, 1, 0);
  EXPECT_EQ(head->slots().free(), head->slots().total());
}

TEST_F(HeadTest, ANodeThatTheControllerTakesAwayGivesNodeFail) {
  BeginRunning({0, 1});
  FromController(wire::MembersChanged{Epoch(2), {Node(0, "cn0", 2)}, "node bn0 is down"});
  End(0, 0, 143);
  Advance(Millis(1));
  EXPECT_EQ(ToldController<wire::JobExit>().at(0).state, wire::JobState::kNodeFail);
}

TEST_F(HeadTest, InputIsForwardedOnceTheTaskRunsAndRepetitionsAreDropped) {
  Begin({1});
  FromClient(1, wire::AttachOpen{true, 0, true});
  FromClient(1, wire::Input{0, "ab", false});
  FromClient(1, wire::Input{0, "abc", false});
  FromClient(1, wire::Input{9, "gap", false});
  Ready("msa.7.1.0");
  Started("msa.7.1.0", {1});
  FromClient(1, wire::Input{3, "d", true});
  const auto inputs = Told<TaskInput>(1);
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(inputs[0].data, "abc");
  EXPECT_EQ(inputs[1].data, "d");
  EXPECT_TRUE(inputs[1].eof);
  From(1, InputTaken{4, true, "msa.7.1.0"});
  EXPECT_EQ(ToldClient<wire::InputAck>(1).back().offset, 4u);
  EXPECT_TRUE(ToldClient<wire::InputAck>(1).back().closed);
}

TEST_F(HeadTest, ASingleLookupWaitsForItsPublisher) {
  BeginRunning({0, 1});
  From(1, StoreLookup{{"msa.7.1.0", 1}, {"port"}, pmix::Range::kSession, true, 0}, 42);
  EXPECT_TRUE(Told<StoreReply>(1).empty());
  From(0,
       StorePublish{
           {"msa.7.1.0", 0}, pmix::Range::kSession, pmix::Persistence::kFirstRead, {{"port", "value"}}},
       43);
  ASSERT_EQ(Told<StoreReply>(1).size(), 1u);
  EXPECT_EQ(Told<StoreReply>(1)[0].values.at(0).value.packed_value, "value");
  EXPECT_EQ(Told<StoreReply>(0)[0].status, pmix::kPmixSuccess);
}

TEST_F(HeadTest, ALookupWithATimeoutEnds) {
  BeginRunning({0});
  From(0, StoreLookup{{"msa.7.1.0", 0}, {"never"}, pmix::Range::kSession, true, 2}, 42);
  Advance(Millis(1'900));
  EXPECT_TRUE(Told<StoreReply>(0).empty());
  Advance(Millis(200));
  ASSERT_EQ(Told<StoreReply>(0).size(), 1u);
  EXPECT_EQ(Told<StoreReply>(0)[0].status, pmix::kPmixErrTimeout);
}

TEST_F(HeadTest, GarbageFromAMemberChangesNothing) {
  BeginRunning({0, 1});
  for (std::uint16_t type = 0x0500; type < 0x0570; ++type)
    if (Head::IsForHead(type)) head->OnMember(1, {type, 0, 1, "\xff\xff\xff\xff garbage"});
  Check();
  EXPECT_FALSE(head->ended());
}

}  // namespace
}  // namespace msa::jobd
