// Grants of jobs that Slurm schedules: asked for by msa-companion, vouched for by msa-slurm-agent.
#include <gmock/gmock.h>

#include "harness.h"

namespace msa {
namespace {

using namespace job_test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr JobId kJob{7};
constexpr JobId kCompanion{31};

class Companions : public ::testing::Test {
 protected:
  Companions() : h(Slurms()) {
    h.RegisterAll();
    Step(kJob, 0, "cn0", {0, 1});
    h.FromHead(kJob, wire::JobStarted{ToUnixMillis(h.now)});
    h.Clear();
  }
  static ControllerOptions Slurms() {
    ControllerOptions options;
    options.slurm = true;
    return options;
  }
  void Step(JobId job, std::uint32_t step, const std::string& node, std::vector<std::uint16_t> cores,
            Incarnation incarnation = Incarnation(0)) {
    wire::SlurmStepBegin begin;
    begin.job = job;
    begin.component_job = job;
    begin.step = StepId(step);
    begin.user = kAda;
    begin.user_name = "ada";
    begin.ntasks = begin.ntasks_here = 1;
    begin.nodes = {{node, 1}};
    begin.cores = std::move(cores);
    begin.incarnation = incarnation;
    h.On(event::SlurmStepBegin{node, begin, "5ec7e7"});
  }
  void AgentUp() {
    wire::SlurmAgentState state;
    state.slurmctld_up = true;
    h.On(event::FromSlurmAgent{0, state});
  }
  // The agent is up and has told what the job itself holds: nothing that its steps have not.
  void AgentKnows() {
    AgentUp();
    wire::GrantAsk first = Ask();
    first.request = 99;
    h.FromHead(kJob, first);
    Answer(Own({{"cn0", {0, 1}}}));
    h.Clear();
  }
  static wire::SlurmJobAnswer Own(std::vector<wire::SlurmNodeCores> cores, JobId component = kJob) {
    wire::SlurmJobAnswer answer;
    answer.job.job = component;
    answer.job.leader = kJob;
    answer.job.user = kAda;
    answer.job.state = "RUNNING";
    answer.cores = std::move(cores);
    return answer;
  }
  wire::GrantAsk Ask(std::int64_t wait_ms = 60'000) {
    wire::GrantAsk ask;
    ask.request = 1;
    ask.slots = 2;
    ask.module = "booster";
    ask.wait_ms = wait_ms;
    return ask;
  }
  template <class M>
  void Report(const M& message, std::uint64_t request = 1) {
    wire::CompanionReport report;
    report.request = request;
    report.type = M::kType;
    report.payload = wire::Encode(message);
    h.FromHead(kJob, report);
  }
  void Gone() {
    wire::CompanionReport report;
    report.request = 1;
    report.payload = "killed";
    h.FromHead(kJob, report);
  }
  static wire::CompanionGranted Granted(const std::string& node = "bn0") {
    wire::CompanionGranted granted;
    granted.job = kCompanion;
    granted.nodes = {{node, {4, 5, 6}}};
    granted.slots = 2;
    return granted;
  }
  static wire::SlurmJobAnswer Truth(const std::string& node = "bn0") {
    wire::SlurmJobAnswer answer;
    answer.job.job = answer.job.leader = kCompanion;
    answer.job.user = kAda;
    answer.job.state = "RUNNING";
    answer.job.nodes = {node};
    answer.cores = {{node, {4, 5, 6, 7}}};
    return answer;
  }
  template <class M>
  std::vector<effect::ToSlurmAgent> ToAgent() const {
    std::vector<effect::ToSlurmAgent> out;
    for (auto& one : h.Sent<effect::ToSlurmAgent>())
      if (one.type == M::kType) out.push_back(one);
    return out;
  }
  void Answer(const wire::SlurmJobAnswer& answer) {
    const auto asked = ToAgent<wire::SlurmJobQuestion>();
    ASSERT_FALSE(asked.empty());
    h.On(event::FromSlurmAgent{asked.back().id, answer});
  }
  std::vector<std::uint16_t> Orders() const {
    std::vector<std::uint16_t> out;
    for (const auto& order : h.ToJobd<wire::CompanionOrder>("cn0")) out.push_back(order.type);
    return out;
  }
  std::vector<wire::GrantAnswer> Answers() const { return h.ToJobd<wire::GrantAnswer>("cn0"); }
  void Lend() {
    AgentKnows();
    h.FromHead(kJob, Ask());
    Report(Granted());
    Answer(Truth());
  }
  // All that Slurm has, as its agent tells it.
  void Tell(JobId id, bool over, bool complete = false) {
    wire::SlurmJobsChanged changed;
    changed.complete = complete;
    wire::SlurmJob job;
    job.job = job.leader = id;
    job.over = over;
    job.state = over ? "CANCELLED" : "RUNNING";
    changed.jobs = {job};
    h.On(event::FromSlurmAgent{0, changed});
  }
  GrantView View() {
    const auto grants = h.controller().ListGrants({.released = true});
    return grants.ok() && !grants->empty() ? grants->front() : GrantView();
  }

  Harness h;
};

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
  const auto refused = [&](const wire::SlurmJobAnswer& truth) {
    auto ask = Ask();
    ask.request = ++request;
    h.Clear();
    h.FromHead(kJob, ask);
    Report(Granted(), request);
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
  wire::SlurmJobAnswer none;
  none.code = Code::kNotFound;
  none.message = "job 31 is not known";
  EXPECT_THAT(refused(none), HasSubstr("not known"));
  EXPECT_THAT(ToAgent<wire::SlurmCancelJob>(), IsEmpty());
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
