// Grants of jobs that Slurm schedules: asked for by msa-companion, vouched for by msa-slurm-agent.
#include "companions.h"

namespace msa {
namespace {

using namespace job_test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(Companions, AnAskIsPassedToMsaCompanionAndWaitsWithSlurmsReason) {
  auto ask = Ask();
  ask.alternatives = {1};
  ask.slots_per_node = 3;
  ask.nodes_exactly = 1;
  ask.time_ms = 5000;
  h.FromHead(kJob, ask);
  const auto orders = h.ToJobd<wire::CompanionOrder>("cn0");
  ASSERT_THAT(orders, SizeIs(1));
  const auto sent = wire::Decode<wire::CompanionAsk>(orders[0].payload);
  ASSERT_TRUE(sent.ok());
  EXPECT_EQ(sent->parent, kJob);
  EXPECT_EQ(sent->partition, "booster");
  EXPECT_EQ(sent->slots, 2u);
  EXPECT_THAT(sent->alternatives, ElementsAre(1u));
  EXPECT_EQ(sent->slots_per_node, 3u);
  EXPECT_EQ(sent->nodes_exactly, 1u);
  EXPECT_EQ(sent->wait_ms, 60'000);
  EXPECT_EQ(sent->time_ms, 5000);
  EXPECT_FALSE(sent->again);
  wire::CompanionPending pending;
  pending.job = kCompanion;
  pending.reason = "Resources";
  pending.message = "it waits for nodes";
  Report(pending);
  EXPECT_EQ(View().state, GrantState::kWaiting);
  EXPECT_EQ(View().slurm_job, kCompanion);
  EXPECT_THAT(View().reason, HasSubstr("it waits for nodes"));
  EXPECT_EQ(View().until, h.now + Millis(60'000));
  EXPECT_THAT(Answers(), IsEmpty());
}

TEST_F(Companions, WhatTheAgentConfirmsIsLent) {
  AgentKnows();
  h.FromHead(kJob, Ask());
  Report(Granted());
  EXPECT_THAT(Answers(), IsEmpty());
  h.Clear();
  Report(Granted());
  Answer(Truth());
  ASSERT_THAT(Answers(), SizeIs(1));
  const wire::GrantAnswer answer = Answers()[0];
  EXPECT_EQ(answer.slurm_job, kCompanion);
  EXPECT_EQ(answer.slots, 2u);
  ASSERT_THAT(answer.shares, SizeIs(1));
  EXPECT_THAT(answer.shares[0].cores, ElementsAre(4, 5, 6));
  EXPECT_EQ(h.Record(kJob).MemberOn("bn0")->index, answer.members[0]);
  EXPECT_THAT(h.Sent<effect::SendStartJob>(), SizeIs(1));
  EXPECT_EQ(View().state, GrantState::kHeld);
  EXPECT_EQ(View().slurm_job, kCompanion);
}

TEST_F(Companions, CoresOfANodeThatTheJobHasExtendItsMember) {
  AgentKnows();
  h.FromHead(kJob, Ask());
  Report(Granted("cn0"));
  Answer(Truth("cn0"));
  EXPECT_THAT(h.Record(kJob).MemberOn("cn0")->cores, ElementsAre(0, 1, 4, 5, 6));
  h.Clear();
  Tell(kCompanion, true);
  // The head ends what runs on them; the node stays.
  EXPECT_THAT(h.ToJobd<wire::RecallGrant>("cn0"), SizeIs(1));
  ASSERT_NE(h.Record(kJob).MemberOn("cn0"), nullptr);
  h.FromHead(kJob, wire::GrantRelease{View().id});
  EXPECT_THAT(h.Record(kJob).MemberOn("cn0")->cores, ElementsAre(0, 1));
}

TEST_F(Companions, ACoreThatTheJobHasTwiceStaysWithItsOtherShare) {
  AgentKnows();
  h.FromHead(kJob, Ask());
  wire::CompanionGranted granted = Granted("cn0");
  granted.nodes[0].cores = {1, 2};
  Report(granted);
  wire::SlurmJobAnswer truth = Truth("cn0");
  truth.cores[0].cores = {1, 2};
  Answer(truth);
  ASSERT_THAT(h.Record(kJob).MemberOn("cn0")->cores, ElementsAre(0, 1, 2));
  h.FromHead(kJob, wire::GrantRelease{View().id});
  EXPECT_THAT(h.Record(kJob).MemberOn("cn0")->cores, ElementsAre(0, 1));
}

TEST_F(Companions, NodesOfTheJobThatHadNoStepAreTakenBeforeACompanionIsAskedFor) {
  AgentUp();
  h.FromHead(kJob, Ask());
  EXPECT_THAT(Orders(), IsEmpty());
  h.FromHead(kJob, Ask());  // it is repeated each second
  EXPECT_THAT(Orders(), IsEmpty());
  Answer(Own({{"cn0", {0, 1}}, {"cn1", {2, 3}}, {"zz9", {0}}}));
  ASSERT_THAT(Answers(), SizeIs(2));
  ASSERT_THAT(Answers()[0].shares, SizeIs(1));
  EXPECT_EQ(Answers()[0].slurm_job, kJob);
  EXPECT_THAT(Answers()[0].shares[0].cores, ElementsAre(2, 3));
  EXPECT_EQ(Answers()[1].request, 1u);
  EXPECT_EQ(Answers()[1].grant.value, 0u);
  EXPECT_EQ(Answers()[1].reason, "") << "its head looks again, and asks again";
  const wire::Member* member = h.Record(kJob).MemberOn("cn1");
  ASSERT_NE(member, nullptr);
  EXPECT_THAT(member->cores, ElementsAre(2, 3));
  EXPECT_THAT(h.ToJobd<wire::MembersChanged>("cn0"), SizeIs(1));
  // What is short now is asked of Slurm.
  h.FromHead(kJob, Ask());
  EXPECT_THAT(Orders(), ElementsAre(wire::CompanionAsk::kType));
  // With the job the node leaves as any other.
  h.On(event::SlurmJobEnd{"cn1", kJob});
  EXPECT_EQ(h.Record(kJob).MemberOn("cn1"), nullptr);
}

TEST_F(Companions, AComponentWithoutAStepIsFoundByItsLeader) {
  constexpr JobId kOther{8};
  AgentUp();
  wire::SlurmJobsChanged changed;
  wire::SlurmJob component;
  component.job = kOther;
  component.leader = kJob;
  changed.jobs = {component};
  h.On(event::FromSlurmAgent{0, changed});
  h.FromHead(kJob, Ask());
  const auto asked = ToAgent<wire::SlurmJobQuestion>();
  ASSERT_THAT(asked, SizeIs(2));
  h.On(event::FromSlurmAgent{asked[1].id, Own({{"bn0", {0, 1, 2}}}, kOther)});
  EXPECT_THAT(Answers(), IsEmpty());
  h.On(event::FromSlurmAgent{asked[0].id, Own({{"cn0", {0, 1}}})});
  ASSERT_THAT(Answers(), SizeIs(2));
  EXPECT_EQ(Answers()[0].slurm_job, kOther);
  EXPECT_THAT(h.Record(kJob).slurm_jobs, ElementsAre(kJob, kOther));
}

TEST_F(Companions, TheAgentKnowsHowOftenTheJobWasRequeued) {
  AgentUp();
  h.FromHead(kJob, Ask());
  auto own = Own({{"cn0", {0, 1}}});
  own.job.restarts = 2;
  Answer(own);
  h.FromHead(kJob, Ask());
  const auto orders = h.ToJobd<wire::CompanionOrder>("cn0");
  ASSERT_THAT(orders, SizeIs(1));
  EXPECT_EQ(wire::Decode<wire::CompanionAsk>(orders[0].payload)->restarts, 2u);
}

TEST_F(Companions, ARequeuedJobThatRunsWhereItsStepsDoIsNotEnded) {
  AgentUp();
  wire::SlurmJobsChanged changed;
  wire::SlurmJob job;
  job.job = job.leader = kJob;
  job.state = "RUNNING";
  job.restarts = 1;
  job.nodes = {"cn0"};
  changed.jobs = {job};
  h.On(event::FromSlurmAgent{0, changed});
  EXPECT_EQ(h.Record(kJob).slurm_restarts, 1u);
  // Elsewhere it is the next run, and this one's end was not heard of.
  changed.jobs[0].restarts = 2;
  changed.jobs[0].nodes = {"cn1"};
  h.On(event::FromSlurmAgent{0, changed});
  EXPECT_EQ(h.Record(kJob).slurm_restarts, 1u);
}

TEST_F(Companions, WhatIsNotTheJobsOwnIsNotTaken) {
  AgentUp();
  h.FromHead(kJob, Ask());
  auto forged = Own({{"cn1", {0, 1}}});
  forged.job.user.uid = kAda.uid + 1;
  Answer(forged);
  EXPECT_EQ(h.Record(kJob).MemberOn("cn1"), nullptr);
}

TEST_F(Companions, AnAgentThatCannotTellOfTheJobsNodesDelaysNoCompanion) {
  AgentUp();
  h.FromHead(kJob, Ask());
  auto away = Own({});
  away.code = Code::kUnavailable;
  Answer(away);
  EXPECT_THAT(Orders(), ElementsAre(wire::CompanionAsk::kType));
  h.Clear();
  auto second = Ask();
  second.request = 2;
  h.FromHead(kJob, second);
  EXPECT_THAT(Orders(), IsEmpty());
  h.On(event::SlurmAgentLost{});
  EXPECT_THAT(Orders(), ElementsAre(wire::CompanionAsk::kType));
}

TEST_F(Companions, WhatMsaCompanionSaysIsShownAsPlainText) {
  AgentKnows();
  h.FromHead(kJob, Ask());
  wire::CompanionPending pending;
  pending.job = kCompanion;
  pending.message = "it\xff waits\n";
  Report(pending);
  EXPECT_THAT(View().reason, HasSubstr("it? waits?"));
  Report(Granted());
  Answer(Truth());
  wire::CompanionEnded over;
  over.job = kCompanion;
  over.state = "CANCELLED";
  over.message = "by \xfe" + std::string(100'000, 'x');
  Report(over);
  const auto changed = h.ToJobd<wire::MembersChanged>("cn0");
  EXPECT_THAT(changed.back().reason, HasSubstr("CANCELLED: by ?xx"));
  EXPECT_LT(changed.back().reason.size(), 2000u);
}

TEST_F(Companions, AReasonThatAJobDaemonGivesIsShownAsPlainText) {
  auto exit = Harness::ExitOf(kJob, JobState::kFailed, 1);
  exit.message = "rank 0 \xff";
  h.FromHead(kJob, exit);
  EXPECT_EQ(h.Record(kJob).reason, "rank 0 ?");
}

TEST_F(Companions, SlurmsRefusalIsPassedOn) {
  h.FromHead(kJob, Ask());
  wire::CompanionRefused refused;
  refused.code = Code::kDeadlineExceeded;
  refused.message = "Invalid partition name specified";
  Report(refused);
  ASSERT_THAT(Answers(), SizeIs(1));
  EXPECT_EQ(Answers()[0].grant.value, 0u);
  EXPECT_EQ(Answers()[0].reason, "Invalid partition name specified");
  EXPECT_THAT(*h.controller().ListGrants({}), IsEmpty());
}

TEST_F(Companions, AnUnknownModuleOrNodeIsRefusedAtOnce) {
  auto ask = Ask();
  ask.module = "bosster";
  h.FromHead(kJob, ask);
  ask.request = 2;
  ask.module.clear();
  ask.nodes = {"zz9"};
  h.FromHead(kJob, ask);
  ASSERT_THAT(Answers(), SizeIs(2));
  EXPECT_THAT(Answers()[0].reason, HasSubstr("booster"));
  EXPECT_THAT(Answers()[1].reason, HasSubstr("zz9"));
  EXPECT_THAT(Orders(), IsEmpty());
}

TEST_F(Companions, WithoutAnAgentAGrantWaitsForItUntilTheDeadline) {
  h.FromHead(kJob, Ask(1000));
  Report(Granted());
  EXPECT_THAT(View().reason, HasSubstr("msa-slurm-agent"));
  h.Live(Millis(5000));
  EXPECT_THAT(Answers(), IsEmpty());
  AgentUp();
  Answer(Truth());
  ASSERT_THAT(Answers(), SizeIs(1));
  EXPECT_NE(Answers()[0].grant.value, 0u);
}

TEST_F(Companions, AtTheDeadlineItIsRefusedAndReleased) {
  h.FromHead(kJob, Ask(1000));
  Report(Granted());
  h.Live(Millis(20'000));
  ASSERT_THAT(Answers(), SizeIs(1));
  EXPECT_EQ(Answers()[0].grant.value, 0u);
  EXPECT_THAT(Answers()[0].reason, HasSubstr("msa-slurm-agent"));
  EXPECT_THAT(Orders(), ElementsAre(wire::CompanionAsk::kType, wire::CompanionRelease::kType));
  // Nobody has vouched for the job: it may be another's.
  AgentUp();
  h.Live(Millis(20'000));
  EXPECT_THAT(ToAgent<wire::SlurmCancelJob>(), IsEmpty());
}

TEST_F(Companions, AForgedGrantIsRefused) {
  AgentUp();
  std::uint64_t request = 1;
  auto granted = Granted();
  const auto refused = [&](const wire::SlurmJobAnswer& truth) {
    auto ask = Ask();
    ask.request = ++request;
    h.Clear();
    h.FromHead(kJob, ask);
    Report(granted, request);
    Answer(truth);
    return Answers().size() == 1 && Answers()[0].grant.value == 0 ? Answers()[0].reason : "lent";
  };
  auto others = Truth();
  others.job.user = kBob;
  EXPECT_THAT(refused(others), HasSubstr("belongs to uid 1001"));
  auto pending = Truth();
  pending.job.state = "PENDING";
  EXPECT_THAT(refused(pending), HasSubstr("PENDING"));
  EXPECT_THAT(refused(Truth("bn1")), HasSubstr("does not hold bn0"));
  auto fewer = Truth();
  fewer.cores[0].cores = {4};
  EXPECT_THAT(refused(fewer), HasSubstr("not these cores"));
  granted.nodes.push_back(granted.nodes[0]);
  granted.slots = 6;
  EXPECT_THAT(refused(Truth()), HasSubstr("twice"));
  granted = Granted();
  wire::SlurmJobAnswer none;
  none.code = Code::kNotFound;
  none.message = "job 31 is not known";
  EXPECT_THAT(refused(none), HasSubstr("not known"));
  EXPECT_THAT(ToAgent<wire::SlurmCancelJob>(), IsEmpty());
}

TEST_F(Companions, AnEndBeyondAllTimeIsCut) {
  AgentKnows();
  h.FromHead(kJob, Ask());
  auto granted = Granted();
  granted.end = ~std::uint64_t{0} / 4;
  Report(granted);
  Answer(Truth());
  EXPECT_EQ(View().state, GrantState::kHeld);
  EXPECT_GT(View().until, h.now + std::chrono::hours(24 * 365));
  EXPECT_LT(View().until, h.now + std::chrono::hours(24 * 366 * 11));
}

TEST_F(Companions, TwoGrantsDoNotShareACompanion) {
  Lend();
  auto ask = Ask();
  ask.request = 2;
  h.FromHead(kJob, ask);
  Report(Granted(), 2);
  Answer(Truth());
  EXPECT_THAT(Answers().back().reason, HasSubstr("lent already"));
}

TEST_F(Companions, ANodeWithoutANodeDaemonIsRefusedAndGivenBack) {
  AgentKnows();
  h.On(event::NodeLost{"bn0", h.sessions["bn0"]});
  h.sessions.erase("bn0");
  h.FromHead(kJob, Ask());
  Report(Granted());
  Answer(Truth());
  EXPECT_THAT(Answers(), IsEmpty());  // it may come back
  h.Live(Millis(11'000));
  ASSERT_THAT(Answers(), SizeIs(1));
  EXPECT_THAT(Answers()[0].reason, HasSubstr("bn0"));
  EXPECT_EQ(Orders().back(), wire::CompanionRelease::kType);
}

TEST_F(Companions, AWithdrawnAskReleasesItsCompanion) {
  h.FromHead(kJob, Ask());
  h.FromHead(kJob, wire::GrantWithdraw{1});
  EXPECT_EQ(Orders().back(), wire::CompanionRelease::kType);
  EXPECT_THAT(*h.controller().ListGrants({}), IsEmpty());
  // That crossed it on the way.
  h.Clear();
  Report(Granted());
  EXPECT_THAT(Orders(), ElementsAre(wire::CompanionRelease::kType));
  EXPECT_THAT(Answers(), IsEmpty());
}

}  // namespace
}  // namespace msa
