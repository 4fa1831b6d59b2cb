// Steps inside a batch job or an allocation: queue, sessions, ends.
#include <signal.h>

#include <gmock/gmock.h>

#include "head_double.h"

namespace msa::jobd {
namespace {

using ::testing::HasSubstr;

constexpr char kScript[] = "msa.7.1.batch";

struct HeadStepsTest : HeadDouble {
  // cn0 (2 cores) is component 0, bn0 (4) component 1.
  void BeginMode(wire::JobMode mode) {
    launch.job = JobId(7);
    launch.incarnation = Incarnation(1);
    launch.epoch = Epoch(1);
    launch.mode = mode;
    launch.members = {Node(0, "cn0", 2), Node(1, "bn0", 4)};
    launch.components = {{"cn", 2, 0, 1, {{0, {0, 1}, 2}}}, {"bn", 4, 0, 1, {{1, {0, 1, 2, 3}, 4}}}};
    launch.step.cwd = "/";
    if (mode == wire::JobMode::kBatch) {
      launch.step.step = wire::kBatchStep;
      launch.step.nspace = kScript;
      launch.step.apps = {{0, {"job.sh"}, {}, {}, 1, 1}};
      launch.step.rank_member = {0};
      launch.step.stdio.out = "none";
    }
    head = std::make_unique<Head>(launch, *this);
    head->Start();
    Check();
    if (mode != wire::JobMode::kBatch) return;
    Ready(kScript);
    Started(kScript, {0});
    said.clear();
  }
  static wire::StepOpen Open(const std::string& token, std::uint32_t component, std::uint32_t ntasks) {
    wire::StepOpen open;
    open.token = token;
    open.cwd = "/";
    wire::StepComponent part;
    part.component = component;
    part.ntasks = ntasks;
    part.argv = {"./" + token};
    open.components = {part};
    return open;
  }
  static std::string Nspace(std::uint32_t step) { return fmt::format("msa.7.1.{}", step); }
  bool Runs(std::uint32_t step) {
    for (std::uint32_t member : {0u, 1u})
      for (const auto& start : Told<NamespaceRegister>(member))
        if (start.spec.nspace == Nspace(step)) return true;
    return false;
  }
  // All of its tasks on `member`.
  void Run(std::uint32_t step, std::uint32_t member, std::uint32_t tasks) {
    Ready(Nspace(step));
    Started(Nspace(step), std::vector<std::uint32_t>(tasks, member));
  }
  void EndAll(std::uint32_t step, std::uint32_t member, std::uint32_t tasks, std::int32_t code = 0) {
    for (std::uint32_t rank = 0; rank < tasks; ++rank) End(member, rank, code, Nspace(step));
  }
  std::string Waits(std::uint64_t session) {
    const auto states = ToldClient<wire::StepStatus>(session);
    return states.empty() || states.back().running ? "" : states.back().reason;
  }
  std::optional<wire::SessionEnd> EndOf(std::uint64_t session) {
    const auto ends = ToldClient<wire::SessionEnd>(session);
    return ends.empty() ? std::nullopt : std::optional(ends.back());
  }
};

TEST_F(HeadStepsTest, AScriptHoldsNoSlotAndItsCodeIsTheJobs) {
  BeginMode(wire::JobMode::kBatch);
  EXPECT_EQ(head->slots().free(), 6u);
  EXPECT_EQ(ToldController<wire::JobStarted>().size(), 1u);
  FromClient(1, Open("a", 0, 2));
  ASSERT_TRUE(Runs(0));
  Run(0, 0, 2);
  EndAll(0, 0, 2, 9);
  EXPECT_FALSE(head->ended());  // the step's failure is the script's affair
  EXPECT_EQ(EndOf(1)->exit_code, 9);
  End(0, 0, 4, kScript);
  ASSERT_TRUE(head->ended());
  EXPECT_EQ(ToldController<wire::JobExit>()[0].exit_code, 4);
  EXPECT_THAT(ToldController<wire::JobExit>()[0].message,
              HasSubstr("the batch script exited with exit code 4"));
}

TEST_F(HeadStepsTest, TheEndOfTheScriptEndsStepsAndRefusesThoseThatWait) {
  BeginMode(wire::JobMode::kBatch);
  FromClient(1, Open("a", 0, 2));
  Run(0, 0, 2);
  FromClient(2, Open("b", 0, 1));
  EXPECT_THAT(Waits(2), HasSubstr("0 of 2 are free"));
  End(0, 0, 0, kScript);
  EXPECT_FALSE(head->ended());
  EXPECT_EQ(EndOf(2)->refusal, 7);
  const auto signals = Told<NamespaceSignal>(0);
  ASSERT_FALSE(signals.empty());
  EXPECT_EQ(signals[0].nspace, Nspace(0));
  EXPECT_EQ(signals[0].signal, SIGTERM);
  Advance(Millis(2'100));
  EXPECT_EQ(Told<NamespaceKill>(0).size(), 1u);
  EndAll(0, 0, 2);
  ASSERT_TRUE(head->ended());
  EXPECT_EQ(ToldController<wire::JobExit>()[0].state, wire::JobState::kCompleted);
  EXPECT_EQ(EndOf(1)->state, wire::JobState::kCancelled);
  FromClient(3, Open("late", 0, 1));
  EXPECT_EQ(EndOf(3)->refusal, 7);
}

TEST_F(HeadStepsTest, AnAllocationRunsAtOnceAndEndsWithItsOwnersCode) {
  BeginMode(wire::JobMode::kAlloc);
  EXPECT_EQ(ToldController<wire::JobStarted>().size(), 1u);
  EXPECT_FALSE(head->ended());
  FromController(wire::CancelJob{wire::JobState::kFailed, 1'000, "", false, 3});
  Advance(Millis(1));
  ASSERT_TRUE(head->ended());
  const auto exits = ToldController<wire::JobExit>();
  EXPECT_EQ(exits[0].state, wire::JobState::kFailed);
  EXPECT_EQ(exits[0].exit_code, 3);
  FromController(wire::ExitAck{});
  EXPECT_TRUE(over);  // nobody is to read anything
}

TEST_F(HeadStepsTest, AnAllocationsEndTakesItsSteps) {
  BeginMode(wire::JobMode::kAlloc);
  FromClient(1, Open("a", 1, 1));
  Run(0, 1, 1);
  FromController(wire::CancelJob{wire::JobState::kCompleted, 1'000, "", false, 0});
  EndAll(0, 1, 1);
  ASSERT_TRUE(head->ended());
  EXPECT_EQ(ToldController<wire::JobExit>()[0].state, wire::JobState::kCompleted);
  EXPECT_EQ(EndOf(1)->state, wire::JobState::kCancelled);
  FromController(wire::ExitAck{});
  EXPECT_FALSE(over);  // its owner reads yet
  FromClient(1, wire::OutputAck{100});
  EXPECT_TRUE(over);
}

TEST_F(HeadStepsTest, StepsRunSideBySideEachWithStreamsOfItsOwn) {
  BeginMode(wire::JobMode::kAlloc);
  FromClient(1, Open("a", 1, 2));
  FromClient(2, Open("b", 1, 2));
  ASSERT_TRUE(Runs(0));
  ASSERT_TRUE(Runs(1));
  Run(0, 1, 2);
  Run(1, 1, 2);
  From(1, TaskOutput{Nspace(0), Rank(0), wire::Stream::kOut, "one"});
  From(1, TaskOutput{Nspace(1), Rank(1), wire::Stream::kOut, "two"});
  ASSERT_EQ(ToldClient<wire::Output>(1).size(), 1u);
  ASSERT_EQ(ToldClient<wire::Output>(2).size(), 1u);
  EXPECT_EQ(ToldClient<wire::Output>(2)[0].data, "two");
  EXPECT_EQ(ToldClient<wire::Output>(2)[0].seq, 1u);
  const auto credits = Told<OutputCredit>(1);
  ASSERT_EQ(credits.size(), 2u);
  EXPECT_EQ(credits[1].step, StepId(1));
  FromClient(2, wire::ClientSignal{SIGUSR1});
  const auto signals = Told<NamespaceSignal>(1);
  ASSERT_EQ(signals.size(), 1u);
  EXPECT_EQ(signals[0].nspace, Nspace(1));
}

TEST_F(HeadStepsTest, AStepWaitsForSlotsAndSaysSo) {
  BeginMode(wire::JobMode::kAlloc);
  FromClient(1, Open("a", 1, 3));
  FromClient(2, Open("b", 1, 3));
  EXPECT_FALSE(Runs(1));
  EXPECT_EQ(Waits(2),
            "3 tasks wait for slots of module 'bn' that other steps of the job use: 1 of 4 are free");
  Run(0, 1, 3);
  EndAll(0, 1, 3);
  EXPECT_TRUE(Runs(1));
  EXPECT_TRUE(ToldClient<wire::StepStatus>(2).back().running);
}

TEST_F(HeadStepsTest, ALaterStepOvertakesOnlyWhereNobodyWaits) {
  BeginMode(wire::JobMode::kAlloc);
  FromClient(1, Open("a", 1, 3));
  FromClient(2, Open("b", 1, 2));  // waits
  FromClient(3, Open("c", 1, 1));  // would fit
  FromClient(4, Open("d", 0, 1));  // another component
  EXPECT_FALSE(Runs(2));
  EXPECT_THAT(Waits(3), HasSubstr("behind step 1"));
  EXPECT_TRUE(Runs(3));
  auto overlapping = Open("e", 1, 4);
  overlapping.overlap = true;
  FromClient(5, overlapping);
  EXPECT_TRUE(Runs(4));
}

TEST_F(HeadStepsTest, WhatNeverFitsIsRefusedAndImmediateGivesUp) {
  BeginMode(wire::JobMode::kAlloc);
  FromClient(1, Open("a", 1, 5));
  EXPECT_EQ(EndOf(1)->refusal, 5);
  FromClient(2, Open("b", 7, 1));
  EXPECT_EQ(EndOf(2)->refusal, 3);
  FromClient(3, Open("c", 1, 4));
  auto hasty = Open("d", 1, 1);
  hasty.immediate_s = 2;
  FromClient(4, hasty);
  EXPECT_FALSE(EndOf(4));
  Advance(Millis(2'100));
  EXPECT_EQ(EndOf(4)->refusal, 6);
  EXPECT_THAT(EndOf(4)->message, HasSubstr("not started within 2 s"));
}

TEST_F(HeadStepsTest, AnOrdinaryRunTakesNoSteps) {
  BeginRunning({0, 1});
  FromClient(1, Open("a", 0, 1));
  EXPECT_EQ(EndOf(1)->refusal, 2);
}

TEST_F(HeadStepsTest, AStepEndsTwoSecondsAfterItsClientWent) {
  BeginMode(wire::JobMode::kAlloc);
  FromClient(1, Open("a", 1, 1));
  Run(0, 1, 1);
  SessionOver(1);
  Advance(Millis(1'900));
  EXPECT_TRUE(Told<NamespaceSignal>(1).empty());
  Advance(Millis(200));
  EXPECT_EQ(Told<NamespaceSignal>(1).at(0).signal, SIGTERM);
  EndAll(0, 1, 1);
  Advance(Millis(2'100));
  EXPECT_EQ(head->steps(), 1u);  // forgotten; the allocation itself is left
  // Whoever comes later hears of the end and runs nothing again.
  said.clear();
  FromClient(2, Open("a", 1, 1));
  EXPECT_EQ(EndOf(2)->state, wire::JobState::kCancelled);
  EXPECT_TRUE(Told<NamespaceRegister>(1).empty());
}

TEST_F(HeadStepsTest, AWaitingStepWhoseClientWentIsDropped) {
  BeginMode(wire::JobMode::kAlloc);
  FromClient(1, Open("a", 1, 4));
  FromClient(2, Open("b", 1, 4));
  FromClient(3, Open("c", 1, 1));
  SessionOver(2);
  Advance(Millis(2'100));
  Run(0, 1, 4);
  EndAll(0, 1, 4);
  EXPECT_FALSE(Runs(1));
  EXPECT_TRUE(Runs(2));
}

TEST_F(HeadStepsTest, ARestartOfTheNodeDaemonKeepsTheStepAndItsOutput) {
  BeginMode(wire::JobMode::kAlloc);
  FromClient(1, Open("a", 1, 1));
  Run(0, 1, 1);
  From(1, TaskOutput{Nspace(0), Rank(0), wire::Stream::kOut, "early"});
  head->OnSessionsLost();
  Advance(Millis(60'000));  // however long it takes
  From(1, TaskOutput{Nspace(0), Rank(0), wire::Stream::kOut, "meanwhile"});
  head->OnControllerLink();
  Advance(Millis(1'900));
  auto again = Open("a", 1, 1);
  again.acked = 1;
  FromClient(2, again);
  Advance(Millis(60'000));
  EXPECT_TRUE(Told<NamespaceSignal>(1).empty());
  ASSERT_EQ(ToldClient<wire::Output>(2).size(), 1u);
  EXPECT_EQ(ToldClient<wire::Output>(2)[0].data, "meanwhile");
  EXPECT_TRUE(ToldClient<wire::StepStatus>(2).back().running);
}

TEST_F(HeadStepsTest, AStepThatEndsWhileTheNodeDaemonIsAwayIsReadAfterwards) {
  BeginMode(wire::JobMode::kAlloc);
  FromClient(1, Open("a", 1, 1));
  Run(0, 1, 1);
  head->OnSessionsLost();
  From(1, TaskOutput{Nspace(0), Rank(0), wire::Stream::kOut, "last words"});
  EndAll(0, 1, 1, 3);
  Advance(Millis(60'000));
  head->OnControllerLink();
  FromClient(2, Open("a", 1, 1));
  ASSERT_EQ(ToldClient<wire::Output>(2).size(), 1u);
  EXPECT_EQ(ToldClient<wire::Output>(2)[0].data, "last words");
  EXPECT_EQ(EndOf(2)->exit_code, 3);
}

TEST_F(HeadStepsTest, OneInterruptEndsAStepThatIsStillStarting) {
  BeginMode(wire::JobMode::kAlloc);
  FromClient(1, Open("a", 1, 4));
  Ready(Nspace(0));
  FromClient(1, wire::ClientSignal{SIGINT});
  const auto signals = Told<NamespaceSignal>(1);
  ASSERT_FALSE(signals.empty());
  EXPECT_EQ(signals[0].signal, SIGTERM);
  EXPECT_TRUE(signals[0].ending);
}

TEST_F(HeadStepsTest, ATokenOrALimitThatCannotBeIsRefused) {
  BeginMode(wire::JobMode::kAlloc);
  FromClient(1, Open(std::string(65, 'x'), 1, 1));
  EXPECT_EQ(EndOf(1)->refusal, 2);
  wire::StepOpen limits = Open("a", 1, 1);
  limits.limits = {{1000, 1, 1}};
  FromClient(2, limits);
  EXPECT_EQ(EndOf(2)->refusal, 2);
}

TEST_F(HeadStepsTest, AMalformedFrameOfItsClientIsItsEnd) {
  BeginMode(wire::JobMode::kAlloc);
  FromClient(1, Open("a", 1, 1));
  Run(0, 1, 1);
  head->OnSession(1, {wire::ClientSignal::kType, 0, 1, "x"});
  Check();
  Advance(Millis(2'100));
  EXPECT_FALSE(Told<NamespaceSignal>(1).empty());
}

TEST_F(HeadStepsTest, SigkillOfItsClientEndsAStepAndAWaitingOne) {
  BeginMode(wire::JobMode::kAlloc);
  FromClient(1, Open("a", 1, 4));
  Run(0, 1, 4);
  FromClient(2, Open("b", 1, 1));
  FromClient(2, wire::ClientSignal{SIGKILL});
  EXPECT_TRUE(EndOf(2).has_value());
  FromClient(1, wire::ClientSignal{SIGKILL});
  EXPECT_EQ(Told<NamespaceKill>(1).at(0).nspace, Nspace(0));
  EndAll(0, 1, 4);
  EXPECT_EQ(EndOf(1)->state, wire::JobState::kCancelled);
  EXPECT_EQ(EndOf(1)->exit_code, 128 + SIGTERM);
}

TEST_F(HeadStepsTest, ALostNodeTakesTheStepsThatUseItAlone) {
  BeginMode(wire::JobMode::kAlloc);
  FromClient(1, Open("a", 1, 1));
  FromClient(2, Open("b", 0, 1));
  Run(0, 1, 1);
  Run(1, 0, 1);
  FromClient(3, Open("c", 1, 4));  // waits for what will not be any more
  head->OnMemberLost(1, "power");
  Check();
  Advance(Millis(1));
  EXPECT_EQ(EndOf(1)->state, wire::JobState::kNodeFail);
  EXPECT_FALSE(EndOf(2));
  EXPECT_EQ(EndOf(3)->refusal, 5);
  EXPECT_FALSE(head->ended());
}

TEST_F(HeadStepsTest, AMembershipWithoutTheHeadItselfDoesNoHarmToANewStep) {
  BeginMode(wire::JobMode::kAlloc);
  head->OnMemberLost(0, "the controller takes it for down");
  Check();
  FromClient(1, Open("a", 1, 1));
  EXPECT_TRUE(Runs(0));
  FromClient(2, Open("b", 0, 1));
  EXPECT_EQ(EndOf(2)->refusal, 5);
}

TEST_F(HeadStepsTest, AStepThatWasReadIsForgotten) {
  BeginMode(wire::JobMode::kAlloc);
  for (std::uint32_t i = 0; i < 100; ++i) {
    FromClient(10 + i, Open(fmt::format("t{}", i), 0, 2));
    Run(i, 0, 2);
    EndAll(i, 0, 2);
    FromClient(10 + i, wire::OutputAck{1});
  }
  EXPECT_EQ(head->steps(), 1u);
  EXPECT_EQ(head->slots().free(), 6u);
}

TEST_F(HeadStepsTest, InputReachesTheFirstTaskOfItsStep) {
  BeginMode(wire::JobMode::kAlloc);
  auto first = Open("a", 1, 1);
  first.wants_stdin = true;
  FromClient(1, first);
  FromClient(2, Open("b", 0, 1));
  Run(0, 1, 1);
  Run(1, 0, 1);
  FromClient(1, wire::Input{0, "text", false});
  const auto inputs = Told<TaskInput>(1);
  ASSERT_EQ(inputs.size(), 1u);
  EXPECT_EQ(inputs[0].nspace, Nspace(0));
  EXPECT_EQ(inputs[0].data, "text");
  EXPECT_TRUE(Told<TaskInput>(0).at(0).eof);  // the other's client has none
  From(1, InputTaken{4, true, Nspace(0)});
  EXPECT_TRUE(ToldClient<wire::InputAck>(1).back().closed);
}

TEST_F(HeadStepsTest, AStepSpawnsInItsOwnNameAndEndsWithItsChildren) {
  BeginMode(wire::JobMode::kAlloc);
  FromClient(1, Open("a", 1, 1));
  Run(0, 1, 1);
  SpawnApp app;
  app.argv = {"./child"};
  app.env = {"MSA_ARCH=cn"};
  From(1, SpawnRequest{{Nspace(0), 0}, {app}, 0}, 5);
  const std::string child = Nspace(0) + ".1";
  Ready(child);
  Started(child, {0});
  From(0, TaskOutput{child, Rank(0), wire::Stream::kOut, "child"});
  ASSERT_EQ(ToldClient<wire::Output>(1).size(), 1u);
  EXPECT_EQ(ToldClient<wire::Output>(1)[0].spawn, 1u);
  EndAll(0, 1, 1);
  EXPECT_FALSE(EndOf(1));
  End(0, 0, 0, child);
  EXPECT_TRUE(EndOf(1).has_value());
}

}  // namespace
}  // namespace msa::jobd
