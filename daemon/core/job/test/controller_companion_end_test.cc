// Companions of jobs that Slurm schedules: their release, loss and sweep, and a restart of the controller.
#include "companions.h"

namespace msa {
namespace {

using namespace job_test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(Companions, AReleaseCancelsAndTheAgentDoesSoIfNobodyElseHas) {
  Lend();
  h.Clear();
  h.FromHead(kJob, wire::GrantRelease{View().id});
  EXPECT_THAT(Orders(), ElementsAre(wire::CompanionRelease::kType));
  EXPECT_EQ(h.Record(kJob).MemberOn("bn0"), nullptr);
  EXPECT_THAT(ToAgent<wire::SlurmCancelJob>(), IsEmpty());
  h.Live(Millis(6000));
  ASSERT_THAT(ToAgent<wire::SlurmCancelJob>(), SizeIs(1));
  wire::SlurmDone done;
  h.On(event::FromSlurmAgent{ToAgent<wire::SlurmCancelJob>()[0].id, done});
  h.Live(Millis(30'000));
  EXPECT_THAT(ToAgent<wire::SlurmCancelJob>(), SizeIs(1));
}

TEST_F(Companions, OneThatHasEndedIsNotCancelled) {
  Lend();
  h.FromHead(kJob, wire::GrantRelease{View().id});
  wire::CompanionEnded over;
  over.job = kCompanion;
  Report(over);
  h.Live(Millis(10'000));
  EXPECT_THAT(ToAgent<wire::SlurmCancelJob>(), IsEmpty());
}

TEST_F(Companions, AlsoMsactlReleasesIt) {
  Lend();
  h.Clear();
  h.On(event::ReleaseGrant{.caller = kAda, .grant = View().id, .force = false, .reply = 1});
  EXPECT_TRUE(h.TakeReply().status.ok());
  EXPECT_EQ(Orders().back(), wire::CompanionRelease::kType);
}

TEST_F(Companions, OneThatDiesIsStartedAgainOnceAndThenRefused) {
  h.FromHead(kJob, Ask());
  h.Clear();
  Gone();
  const auto orders = h.ToJobd<wire::CompanionOrder>("cn0");
  ASSERT_THAT(orders, SizeIs(1));
  EXPECT_TRUE(wire::Decode<wire::CompanionAsk>(orders[0].payload)->again);
  EXPECT_THAT(Answers(), IsEmpty());
  Gone();
  ASSERT_THAT(Answers(), SizeIs(1));
  EXPECT_THAT(Answers()[0].reason, HasSubstr("killed"));
}

TEST_F(Companions, WhatTheAgentSaysIsOverIsLost) {
  Lend();
  h.Clear();
  Tell(kCompanion, true);
  EXPECT_EQ(h.Record(kJob).MemberOn("bn0"), nullptr);
  EXPECT_THAT(h.QuitNodes(), ElementsAre("bn0"));
  const auto changed = h.ToJobd<wire::MembersChanged>("cn0");
  ASSERT_FALSE(changed.empty());
  EXPECT_THAT(changed.back().reason, HasSubstr("31"));
  EXPECT_EQ(View().state, GrantState::kReleased);
  EXPECT_EQ(h.State(kJob), JobState::kRunning);
}

TEST_F(Companions, AnEpilogTakesItsNodeAndTheLastOneTheCompanion) {
  AgentKnows();
  h.FromHead(kJob, Ask());
  wire::CompanionGranted granted = Granted();
  granted.nodes.push_back({"bn1", {0, 1}});
  Report(granted);
  wire::SlurmJobAnswer truth = Truth();
  truth.cores.push_back({"bn1", {0, 1}});
  Answer(truth);
  ASSERT_NE(h.Record(kJob).MemberOn("bn1"), nullptr);
  // Of a node that it had been given and has given back, or that failed, before it was lent.
  h.On(event::SlurmJobEnd{"dn0", kCompanion});
  EXPECT_EQ(View().state, GrantState::kHeld);
  EXPECT_EQ(h.Record(kJob).members.size(), 3u);
  h.On(event::SlurmJobEnd{"bn1", kCompanion});
  EXPECT_EQ(h.Record(kJob).MemberOn("bn1"), nullptr);
  EXPECT_NE(h.Record(kJob).MemberOn("bn0"), nullptr);
  EXPECT_EQ(View().state, GrantState::kHeld);
  h.On(event::SlurmJobEnd{"bn0", kCompanion});
  EXPECT_EQ(h.Record(kJob).MemberOn("bn0"), nullptr);
  EXPECT_EQ(View().state, GrantState::kReleased);
  EXPECT_EQ(h.State(kJob), JobState::kRunning);
}

TEST_F(Companions, TheEndOfItsJobSweepsThem) {
  Lend();
  h.Clear();
  h.On(event::SlurmStepEnd{"cn0", {kJob, kJob, StepId(0)}});
  h.On(event::SlurmJobEnd{"cn0", kJob});
  ASSERT_TRUE(IsFinal(h.State(kJob)));
  const auto sweeps = ToAgent<wire::SlurmCancelOrphans>();
  ASSERT_THAT(sweeps, SizeIs(1));
  EXPECT_THAT(wire::Decode<wire::SlurmCancelOrphans>(sweeps[0].payload)->parents, ElementsAre(kJob));
}

TEST_F(Companions, OneOnTheHeadsNodeDoesNotOutliveItsJob) {
  AgentKnows();
  h.FromHead(kJob, Ask());
  Report(Granted("cn0"));
  Answer(Truth("cn0"));
  h.Clear();
  h.On(event::SlurmStepEnd{"cn0", {kJob, kJob, StepId(0)}});
  h.On(event::SlurmJobEnd{"cn0", kJob});
  EXPECT_EQ(h.State(kJob), JobState::kCompleted);
  EXPECT_THAT(ToAgent<wire::SlurmCancelOrphans>(), SizeIs(1));
}

TEST_F(Companions, ASweepWaitsForTheAgent) {
  Lend();
  h.On(event::SlurmAgentLost{});
  h.On(event::SlurmStepEnd{"cn0", {kJob, kJob, StepId(0)}});
  h.On(event::SlurmJobEnd{"cn0", kJob});
  EXPECT_THAT(ToAgent<wire::SlurmCancelOrphans>(), IsEmpty());
  AgentUp();
  EXPECT_THAT(ToAgent<wire::SlurmCancelOrphans>(), SizeIs(1));
}

TEST_F(Companions, ASweepThatSlurmctldDidNotAnswerIsAskedForAgain) {
  Lend();
  h.On(event::SlurmStepEnd{"cn0", {kJob, kJob, StepId(0)}});
  h.On(event::SlurmJobEnd{"cn0", kJob});
  const auto sweeps = ToAgent<wire::SlurmCancelOrphans>();
  ASSERT_THAT(sweeps, SizeIs(1));
  wire::SlurmAgentState down;
  h.On(event::FromSlurmAgent{0, down});
  wire::SlurmOrphansCancelled away;
  away.code = Code::kUnavailable;
  h.On(event::FromSlurmAgent{sweeps[0].id, away});
  AgentUp();
  EXPECT_THAT(ToAgent<wire::SlurmCancelOrphans>(), SizeIs(2));
}

TEST_F(Companions, ASweepThatWasOpenIsAskedForAgainAfterARestart) {
  Lend();
  h.On(event::SlurmAgentLost{});
  h.On(event::SlurmStepEnd{"cn0", {kJob, kJob, StepId(0)}});
  h.On(event::SlurmJobEnd{"cn0", kJob});
  h.Restart();
  h.Clear();
  AgentUp();
  const auto sweeps = ToAgent<wire::SlurmCancelOrphans>();
  ASSERT_THAT(sweeps, SizeIs(1));
  EXPECT_THAT(wire::Decode<wire::SlurmCancelOrphans>(sweeps[0].payload)->parents, ElementsAre(kJob));
}

TEST_F(Companions, ASweepThatComesLateSparesTheNextIncarnation) {
  Lend();
  h.On(event::SlurmAgentLost{});
  h.On(event::JobdGone{"cn0", kJob, Incarnation(1), "killed", false});
  ASSERT_TRUE(IsFinal(h.State(kJob)));
  Step(kJob, 1, "cn0", {0, 1});
  ASSERT_EQ(h.Record(kJob).incarnation, Incarnation(2));
  h.Clear();
  h.FromHead(kJob, Ask());
  const auto orders = h.ToJobd<wire::CompanionOrder>("cn0");
  ASSERT_THAT(orders, SizeIs(1));
  EXPECT_EQ(wire::Decode<wire::CompanionAsk>(orders[0].payload)->incarnation, Incarnation(2));
  AgentUp();
  const auto sweeps = ToAgent<wire::SlurmCancelOrphans>();
  ASSERT_THAT(sweeps, SizeIs(1));
  const auto sweep = wire::Decode<wire::SlurmCancelOrphans>(sweeps[0].payload);
  EXPECT_THAT(sweep->parents, ElementsAre(kJob));
  EXPECT_THAT(sweep->incarnations, ElementsAre(Incarnation(1)));
}

TEST_F(Companions, AJobThatSlurmHasEndedEndsWithoutItsEpilog) {
  Tell(kJob, true);
  h.Live(Millis(7000));
  EXPECT_FALSE(IsFinal(h.State(kJob)));  // its step is given its time
  h.On(event::SlurmStepEnd{"cn0", {kJob, kJob, StepId(0)}});
  h.Live(Millis(7000));
  EXPECT_EQ(h.State(kJob), JobState::kCompleted);
}

TEST_F(Companions, AStepOfACompanionIsOfItsParent) {
  Lend();
  h.Clear();
  Step(kCompanion, 0, "bn0", {4, 5, 6});
  const auto verdicts = h.Sent<effect::SlurmVerdict>();
  ASSERT_THAT(verdicts, SizeIs(1));
  EXPECT_TRUE(verdicts[0].verdict.accepted) << verdicts[0].verdict.message;
  EXPECT_EQ(verdicts[0].verdict.job, kCompanion);
  EXPECT_EQ(verdicts[0].verdict.parent, kJob);
  EXPECT_EQ(verdicts[0].verdict.incarnation, h.Record(kJob).incarnation);
  EXPECT_FALSE(h.controller().GetJob(kCompanion).ok());
  // Given back, it takes no more of them.
  h.Clear();
  h.FromHead(kJob, wire::GrantRelease{View().id});
  Step(kCompanion, 1, "bn0", {4, 5, 6});
  EXPECT_FALSE(h.Sent<effect::SlurmVerdict>()[0].verdict.accepted);
}

TEST_F(Companions, AGrantOutlivesARestart) {
  Lend();
  h.Restart();
  h.RegisterAll();
  EXPECT_EQ(View().slurm_job, kCompanion);
  EXPECT_EQ(View().state, GrantState::kHeld);
  AgentUp();
  h.Clear();
  // Slurm's list has the job and not the companion: it is asked for by name.
  Tell(kJob, false, true);
  ASSERT_THAT(ToAgent<wire::SlurmJobQuestion>(), SizeIs(1));
  wire::SlurmJobAnswer none;
  none.code = Code::kNotFound;
  Answer(none);
  EXPECT_EQ(View().state, GrantState::kReleased);
}

TEST_F(Companions, AnAskIsRepeatedAfterARestart) {
  h.FromHead(kJob, Ask());
  h.Restart();
  h.RegisterAll();
  AgentKnows();
  h.FromHead(kJob, Ask());
  EXPECT_THAT(Orders(), ElementsAre(wire::CompanionAsk::kType));
  Report(Granted());
  Answer(Truth());
  ASSERT_THAT(Answers(), SizeIs(1));
  EXPECT_EQ(Answers()[0].slurm_job, kCompanion);
}

}  // namespace
}  // namespace msa
