// Jobs that Slurm schedules: what their steps report, and Slurm's word of their end.
#include <gmock/gmock.h>

#include "harness.h"

namespace msa {
namespace {

using namespace job_test;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

ControllerOptions Slurms() {
  ControllerOptions options;
  options.slurm = true;
  return options;
}

class SlurmSteps : public ::testing::Test {
 protected:
  struct Part {
    std::string node;
    std::uint64_t component;
    std::uint32_t tasks;
    std::vector<std::uint16_t> cores;
  };
  explicit SlurmSteps(ControllerOptions options = Slurms()) : h(options) {
    h.RegisterAll();
    Component(8, 7);
  }
  // As Slurm's agent tells it.
  void Component(std::uint64_t job, std::uint64_t leader) {
    wire::SlurmJobsChanged changed;
    changed.jobs.emplace_back();
    changed.jobs[0].job = JobId(job);
    changed.jobs[0].leader = JobId(leader);
    h.On(event::FromSlurmAgent{0, changed});
  }

  static wire::SlurmStepBegin Begin(std::uint64_t job, std::uint32_t step, const std::vector<Part>& all,
                                    const Part& part) {
    wire::SlurmStepBegin begin;
    begin.job = JobId(job);
    begin.component_job = JobId(part.component);
    begin.step = StepId(step);
    begin.user = kAda;
    begin.user_name = "ada";
    begin.job_name = "coupled";
    begin.ntasks_here = part.tasks;
    begin.cores = part.cores;
    for (const Part& one : all) {
      begin.ntasks += one.tasks;
      begin.nodes.push_back({one.node, one.tasks});
    }
    return begin;
  }
  void Report(std::uint64_t job, std::uint32_t step, const std::vector<Part>& all, std::size_t which) {
    h.On(event::SlurmStepBegin{all[which].node, Begin(job, step, all, all[which]), "5ec7e7"});
  }
  void ReportAll(std::uint64_t job, std::uint32_t step, const std::vector<Part>& all) {
    for (std::size_t i = 0; i < all.size(); ++i) Report(job, step, all, i);
  }
  // Its node daemon has accepted it already.
  void ReportAccepted(std::uint64_t job, std::uint32_t step, const std::vector<Part>& all,
                      std::size_t which) {
    wire::SlurmStepBegin begin = Begin(job, step, all, all[which]);
    begin.incarnation = h.Record(JobId(job)).incarnation;
    begin.accepted_here = true;
    h.On(event::SlurmStepBegin{all[which].node, begin, "5ec7e7"});
  }
  void EndStep(std::uint64_t job, std::uint32_t step, const std::vector<Part>& all) {
    for (const Part& part : all)
      h.On(event::SlurmStepEnd{part.node, {JobId(job), JobId(part.component), StepId(step)}});
  }
  std::vector<std::string> Verdicts(bool accepted) const {
    std::vector<std::string> nodes;
    for (const auto& e : h.Sent<effect::SlurmVerdict>())
      if (e.verdict.accepted == accepted) nodes.push_back(e.node);
    return nodes;
  }
  std::string Refusal() const {
    const auto all = h.Sent<effect::SlurmVerdict>();
    return all.empty() ? "" : all.back().verdict.message;
  }
  std::vector<std::string> Started() const {
    std::vector<std::string> nodes;
    for (const auto& e : h.Sent<effect::SendStartJob>()) nodes.push_back(e.node);
    return nodes;
  }

  const std::vector<Part> het = {{"bn0", 8, 2, {0, 1}}, {"cn0", 7, 2, {0, 1}}, {"cn1", 7, 1, {2}}};
  Harness h;
};

TEST_F(SlurmSteps, AStepBecomesAJobWhenAllOfItsNodesHaveReported) {
  Report(7, 0, het, 0);
  Report(7, 0, het, 2);
  EXPECT_THAT(h.Sent<effect::SlurmVerdict>(), IsEmpty());
  EXPECT_THAT(Started(), IsEmpty());
  Report(7, 0, het, 1);
  EXPECT_THAT(Verdicts(true), UnorderedElementsAre("bn0", "cn0", "cn1"));
  EXPECT_THAT(Started(), UnorderedElementsAre("bn0", "cn0", "cn1"));
  const auto launch = h.Sent<effect::SendStartJob>()[0].launch;
  EXPECT_EQ(launch->job, JobId(7));
  EXPECT_TRUE(launch->slurms);
  EXPECT_EQ(launch->mode, wire::JobMode::kAlloc);
  EXPECT_EQ(launch->members.size(), 3u);
  const JobRecord& record = h.Record(JobId(7));
  EXPECT_EQ(record.user.uid, kAda.uid);
  EXPECT_THAT(record.MemberOn("cn1")->cores, ElementsAre(2));
  EXPECT_EQ(record.MemberOn("bn0")->module_name, "booster");
  h.FromHead(JobId(7), wire::JobStarted{ToUnixMillis(h.now)});
  EXPECT_EQ(h.State(JobId(7)), JobState::kRunning);
}

TEST_F(SlurmSteps, ALaterStepBringsItsNodesIntoTheJob) {
  const std::vector<Part> first = {{"cn0", 7, 1, {0}}};
  ReportAll(7, 0, first);
  const JobId id(7);
  const Epoch before = h.Record(id).epoch;
  h.Clear();
  ReportAll(7, 1, het);
  EXPECT_THAT(Started(), UnorderedElementsAre("bn0", "cn1"));
  EXPECT_THAT(h.ToJobd<wire::MembersChanged>("cn0"), ::testing::SizeIs(1));
  EXPECT_GT(h.Record(id).epoch, before);
  EXPECT_EQ(h.Record(id).members.size(), 3u);
  // The third uses what is there.
  h.Clear();
  ReportAll(7, 2, het);
  EXPECT_THAT(Started(), IsEmpty());
  EXPECT_THAT(Verdicts(true), UnorderedElementsAre("bn0", "cn0", "cn1"));
}

TEST_F(SlurmSteps, AStepThatNodesHaveAcceptedIsJudgedAllTheSame) {
  ReportAll(7, 0, het);
  h.Clear();
  for (std::size_t part = 0; part < het.size(); ++part) ReportAccepted(7, 1, het, part);
  EXPECT_THAT(h.Sent<effect::SlurmVerdict>(), IsEmpty()) << "they were right";
  // One of its nodes had to ask.
  ReportAccepted(7, 2, het, 0);
  Report(7, 2, het, 1);
  EXPECT_THAT(h.Sent<effect::SlurmVerdict>(), IsEmpty());
  ReportAccepted(7, 2, het, 2);
  EXPECT_THAT(Verdicts(true), ElementsAre("cn0"));
  // One of its nodes is silent: its tasks may be over.
  h.Clear();
  ReportAccepted(7, 3, het, 0);
  ReportAccepted(7, 3, het, 1);
  h.Live(Millis(25'100));
  EXPECT_THAT(h.Sent<effect::SlurmVerdict>(), IsEmpty());
  // One of its nodes is away.
  h.On(event::NodeLost{"cn1", h.sessions["cn1"]});
  ReportAccepted(7, 4, het, 0);
  ReportAccepted(7, 4, het, 1);
  h.Live(Millis(5'100));
  EXPECT_THAT(Verdicts(false), UnorderedElementsAre("bn0", "cn0"));
  EXPECT_TRUE(h.Sent<effect::SlurmVerdict>()[0].verdict.withdrawn);
  EXPECT_THAT(Refusal(), HasSubstr("cn1"));
}

TEST_F(SlurmSteps, WhatNodesHaveAcceptedForAJobThatHasEndedIsNoPartOfTheNext) {
  ReportAll(7, 0, het);
  ReportAccepted(7, 1, het, 1);
  h.On(event::JobdGone{"bn0", JobId(7), Incarnation(1), "killed", false});
  ASSERT_TRUE(IsFinal(h.State(JobId(7))));
  h.Clear();
  Report(7, 1, het, 0);
  Report(7, 1, het, 2);
  EXPECT_THAT(Started(), IsEmpty());
}

TEST_F(SlurmSteps, TwoComponentsOnOneNodeAreOneMember) {
  const std::vector<Part> shared = {{"cn0", 7, 1, {0}}, {"cn0", 8, 1, {1}}};
  std::vector<Part> listed = {{"cn0", 0, 2, {}}};
  for (const Part& part : shared) {
    auto begin = Begin(7, 0, listed, part);
    h.On(event::SlurmStepBegin{"cn0", begin, "5ec7e7"});
  }
  EXPECT_THAT(Verdicts(true), ElementsAre("cn0"));
  EXPECT_THAT(h.Record(JobId(7)).MemberOn("cn0")->cores, ElementsAre(0, 1));
  h.Clear();
  h.On(event::SlurmJobEnd{"cn0", JobId(8)});
  EXPECT_FALSE(IsFinal(h.State(JobId(7))));
  EXPECT_THAT(h.Record(JobId(7)).MemberOn("cn0")->cores, ElementsAre(0)) << "no child is put on the other";
  ASSERT_THAT(h.ToJobd<wire::MembersChanged>("cn0"), ::testing::SizeIs(1));
  EXPECT_THAT(h.ToJobd<wire::MembersChanged>("cn0")[0].members[0].cores, ElementsAre(0));
  h.On(event::SlurmJobEnd{"cn0", JobId(7)});
  EXPECT_EQ(h.State(JobId(7)), JobState::kCompleted);
}

TEST_F(SlurmSteps, TheHeadIsToldWhichCoresOfANodeAreOfWhichComponent) {
  ReportAll(7, 0, {{"cn0", 7, 1, {0}}});
  EXPECT_THAT(h.ToJobd<wire::GrantAnswer>("cn0"), IsEmpty()) << "of a plain job there is nothing to tell";
  ReportAll(7, 1, {{"cn0", 8, 1, {2, 3}}});
  const auto told = h.ToJobd<wire::GrantAnswer>("cn0");
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].slurm_job, JobId(7));
  EXPECT_EQ(told[1].slurm_job, JobId(8));
  EXPECT_EQ(told[1].request, 0u);
  ASSERT_EQ(told[1].shares.size(), 1u);
  EXPECT_EQ(told[0].shares.at(0).member, told[1].shares[0].member);
  EXPECT_THAT(told[0].shares[0].cores, ElementsAre(0));
  EXPECT_THAT(told[1].shares[0].cores, ElementsAre(2, 3));
}

class SlurmLeaders : public SlurmSteps {
 protected:
  void AgentUp() {
    wire::SlurmAgentState state;
    state.slurmctld_up = true;
    h.On(event::FromSlurmAgent{0, state});
  }
  std::uint64_t Question() const {
    const auto asked = h.Sent<effect::ToSlurmAgent>();
    EXPECT_THAT(asked, ::testing::SizeIs(1));
    return asked.empty() ? 0 : asked[0].id;
  }
  static wire::SlurmJobAnswer Answer(std::uint64_t job, std::uint64_t leader) {
    wire::SlurmJobAnswer answer;
    answer.job.job = JobId(job);
    answer.job.leader = JobId(leader);
    answer.job.user = kAda;
    answer.job.state = "RUNNING";
    return answer;
  }
  // Of job 7 by its environment, of job 9 by slurmstepd.
  const std::vector<Part> one = {{"cn0", 9, 1, {0}}};
};

TEST_F(SlurmLeaders, AreBelievedWhenSlurmNamesThemToo) {
  AgentUp();
  h.Clear();
  Report(7, 0, one, 0);
  EXPECT_THAT(h.Sent<effect::SlurmVerdict>(), IsEmpty());
  h.On(event::FromSlurmAgent{Question(), Answer(9, 7)});
  EXPECT_THAT(Verdicts(true), ElementsAre("cn0"));
  EXPECT_EQ(h.State(JobId(7)), JobState::kStarting);
  // The next step is as quick as any.
  h.Clear();
  Report(7, 1, one, 0);
  EXPECT_THAT(Verdicts(true), ElementsAre("cn0"));
  EXPECT_THAT(h.Sent<effect::ToSlurmAgent>(), IsEmpty());
}

TEST_F(SlurmLeaders, ThatAreForgedGiveNobodyAnothersNumber) {
  AgentUp();
  h.Clear();
  Report(7, 0, one, 0);
  h.On(event::FromSlurmAgent{Question(), Answer(9, 9)});
  EXPECT_THAT(Verdicts(false), ElementsAre("cn0"));
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("job 9"), HasSubstr("SLURM_JOB_ID")));
  EXPECT_FALSE(h.controller().GetJob(JobId(7)).ok());
  // The job itself is not touched by it.
  h.Clear();
  ReportAll(7, 0, {{"cn1", 7, 1, {0}}});
  EXPECT_THAT(Verdicts(true), ElementsAre("cn1"));
}

TEST_F(SlurmLeaders, AreAskedForAgainWhileSlurmctldIsAway) {
  AgentUp();
  h.Clear();
  Report(7, 0, one, 0);
  wire::SlurmJobAnswer away;
  away.code = Code::kUnavailable;
  h.On(event::FromSlurmAgent{Question(), away});
  EXPECT_THAT(h.Sent<effect::SlurmVerdict>(), IsEmpty());
  h.Clear();
  h.Live(Millis(2'000));
  h.On(event::FromSlurmAgent{Question(), Answer(9, 7)});
  EXPECT_THAT(Verdicts(true), ElementsAre("cn0"));
}

TEST_F(SlurmLeaders, ThatNobodyCanConfirmAreRefusedBeforeThePluginsPatienceEnds) {
  h.Clear();
  Report(7, 0, one, 0);
  h.Live(Millis(24'000));
  EXPECT_THAT(h.Sent<effect::SlurmVerdict>(), IsEmpty());
  h.Live(Millis(2'000));
  EXPECT_THAT(Verdicts(false), ElementsAre("cn0"));
  EXPECT_THAT(Refusal(), HasSubstr("msa-slurm-agent"));
}

TEST_F(SlurmSteps, ANodeWithoutDaemonIsNamedAndEveryNodeHearsOfIt) {
  h.On(event::NodeLost{"cn1", h.sessions["cn1"]});
  h.sessions.erase("cn1");
  h.Live(Millis(20'000));
  h.Clear();
  Report(7, 0, het, 0);
  Report(7, 0, het, 1);
  EXPECT_THAT(h.Sent<effect::SlurmVerdict>(), IsEmpty()) << "it may just be restarting";
  h.Live(Millis(6'000));
  EXPECT_THAT(Verdicts(false), UnorderedElementsAre("bn0", "cn0"));
  EXPECT_THAT(Refusal(),
              AllOf(HasSubstr("step 7.0"), HasSubstr("cn1"), HasSubstr("msa-noded"), HasSubstr("--msa=no")));
  EXPECT_THAT(Started(), IsEmpty());
  // Its slurmstepd comes late: it hears the same.
  h.Clear();
  h.Register("cn1");
  Report(7, 0, het, 2);
  EXPECT_THAT(Verdicts(false), ElementsAre("cn1"));
}

TEST_F(SlurmSteps, ANodeThatHasNotReportedSinceARestartIsNotTakenForOneWithoutDaemon) {
  h.Restart();
  for (const char* node : {"bn0", "bn1", "cn0", "dn0"}) h.Register(node);
  h.Clear();
  Component(8, 7);
  Report(7, 0, het, 0);
  Report(7, 0, het, 1);
  h.Live(Millis(8'000));
  EXPECT_THAT(h.Sent<effect::SlurmVerdict>(), IsEmpty()) << "it has 10 s to register";
  h.Register("cn1");
  Report(7, 0, het, 2);
  EXPECT_THAT(Verdicts(true), UnorderedElementsAre("bn0", "cn0", "cn1"));
}

TEST_F(SlurmSteps, ASlurmstepdThatNeverComesIsGivenUpBeforeThePluginsPatienceEnds) {
  Report(7, 0, het, 0);
  Report(7, 0, het, 1);
  h.Live(Millis(24'000));
  EXPECT_THAT(h.Sent<effect::SlurmVerdict>(), IsEmpty());
  h.Live(Millis(2'000));
  EXPECT_THAT(Verdicts(false), UnorderedElementsAre("bn0", "cn0"));
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("cn1"), HasSubstr("plugstack.conf")));
}

TEST_F(SlurmSteps, ANodeOutsideTheTopologyIsRefusedAtOnce) {
  const std::vector<Part> strange = {{"cn0", 7, 1, {0}}, {"xn9", 7, 1, {0}}};
  Report(7, 0, strange, 0);
  EXPECT_THAT(Verdicts(false), ElementsAre("cn0"));
  EXPECT_THAT(Refusal(), HasSubstr("xn9"));
}

TEST_F(SlurmSteps, TheEpilogOnTheHeadsNodeEndsTheJobAndThatOnAnotherANode) {
  ReportAll(7, 0, het);
  EndStep(7, 0, het);
  h.Clear();
  h.On(event::SlurmJobEnd{"cn1", JobId(7)});
  EXPECT_FALSE(IsFinal(h.State(JobId(7))));
  EXPECT_THAT(h.QuitNodes(), ElementsAre("cn1"));
  EXPECT_EQ(h.Record(JobId(7)).members.size(), 2u);
  const std::string head = h.HeadNode(JobId(7));
  h.On(event::SlurmJobEnd{head, head == "bn0" ? JobId(8) : JobId(7)});
  EXPECT_EQ(h.State(JobId(7)), JobState::kCompleted);
  EXPECT_EQ(h.CoresUsed(), 0u);
}

TEST_F(SlurmSteps, ARequeuedJobBeginsAgainUnderItsOwnNumber) {
  const std::vector<Part> one = {{"cn0", 7, 1, {0}}};
  ReportAll(7, 0, one);
  const Incarnation first = h.Record(JobId(7)).incarnation;
  EndStep(7, 0, one);
  auto again = Begin(7, 0, one, one[0]);
  again.restart_count = 1;
  h.Clear();
  h.On(event::SlurmStepBegin{"cn0", again, "0ther"});
  EXPECT_THAT(Verdicts(true), ElementsAre("cn0"));
  EXPECT_GT(h.Record(JobId(7)).incarnation, first);
  EXPECT_EQ(h.Record(JobId(7)).secret, "0ther");
  EXPECT_EQ(h.controller().System().jobs_running, 1u);
}

TEST_F(SlurmSteps, ARestartKeepsTheJobAndAnswersAStepAgain) {
  ReportAll(7, 0, het);
  h.FromHead(JobId(7), wire::JobStarted{ToUnixMillis(h.now)});
  const std::string head = h.HeadNode(JobId(7));
  h.Restart();
  for (const Part& part : het) {
    const JobRecord& record = h.Record(JobId(7));
    h.Register(part.node,
               {{JobId(7), record.incarnation, record.MemberOn(part.node)->index, part.node == head, false}});
  }
  h.Clear();
  ReportAll(7, 0, het);
  EXPECT_THAT(Verdicts(true), UnorderedElementsAre("bn0", "cn0", "cn1"));
  EXPECT_THAT(Started(), IsEmpty());
  EXPECT_EQ(h.State(JobId(7)), JobState::kRunning);
}

TEST_F(SlurmSteps, AnAcceptanceNamesTheRunOfTheJob) {
  ReportAll(7, 0, het);
  for (const auto& e : h.Sent<effect::SlurmVerdict>()) EXPECT_EQ(e.verdict.incarnation, Incarnation(1));
}

TEST_F(SlurmSteps, WhatRunsIsTakenUpAgainNodeByNode) {
  ReportAll(7, 0, het);
  h.FromHead(JobId(7), wire::JobStarted{ToUnixMillis(h.now)});
  const std::string head = h.HeadNode(JobId(7));
  h.Restart();
  // One of its nodes takes longer to come back than a step that begins is given.
  for (std::size_t i = 0; i < het.size(); ++i) {
    if (i == 1) h.Live(Millis(6'000));
    const JobRecord& record = h.Record(JobId(7));
    h.Register(het[i].node, {{JobId(7), record.incarnation, record.MemberOn(het[i].node)->index,
                              het[i].node == head, false}});
    auto begin = Begin(7, 0, het, het[i]);
    begin.incarnation = Incarnation(1);
    h.On(event::SlurmStepBegin{het[i].node, begin, "0ther"});
  }
  EXPECT_THAT(Verdicts(false), IsEmpty());
  EXPECT_EQ(h.State(JobId(7)), JobState::kRunning);
  EXPECT_EQ(h.Record(JobId(7)).incarnation, Incarnation(1));
}

TEST_F(SlurmSteps, AStepThatRunsInAJobThatHasEndedBeginsNoOther) {
  const std::vector<Part> one = {{"cn0", 7, 1, {0}}};
  ReportAll(7, 0, one);
  h.On(event::JobdGone{"cn0", JobId(7), Incarnation(1), "killed", false});
  ASSERT_TRUE(IsFinal(h.State(JobId(7))));
  auto begin = Begin(7, 0, one, one[0]);
  begin.incarnation = Incarnation(1);
  h.Clear();
  h.On(event::SlurmStepBegin{"cn0", begin, "0ther"});
  EXPECT_THAT(Started(), IsEmpty());
  EXPECT_TRUE(IsFinal(h.State(JobId(7))));
  // But a new step of it does: the job goes on in Slurm.
  Report(7, 1, one, 0);
  EXPECT_THAT(Started(), ElementsAre("cn0"));
  EXPECT_EQ(h.Record(JobId(7)).incarnation, Incarnation(2));
}

TEST_F(SlurmSteps, AJobOfWhichItsNodesSayNothingAfterARestartEnds) {
  ReportAll(7, 0, het);
  h.Restart();
  for (const Part& part : het) h.Register(part.node);
  h.Clear();
  h.Live(Millis(4'000));
  EXPECT_TRUE(IsFinal(h.State(JobId(7))));
  EXPECT_THAT(Started(), IsEmpty()) << "nothing is started for a job that Slurm has ended";
}

TEST_F(SlurmSteps, ALaunchThatWasLostWithTheSessionIsSentAgainWhereAStepWaitsForIt) {
  const std::vector<Part> one = {{"cn0", 7, 1, {0}}};
  ReportAll(7, 0, one);
  h.Register("cn0");
  h.Clear();
  Report(7, 0, one, 0);
  EXPECT_THAT(Verdicts(true), ElementsAre("cn0"));
  h.Live(Millis(3'000));
  EXPECT_THAT(Started(), ElementsAre("cn0"));
  EXPECT_FALSE(IsFinal(h.State(JobId(7))));
}

TEST_F(SlurmSteps, AHeadThatIsLostBeforeTheStepBeginsRefusesItOnAllNodes) {
  ReportAll(7, 0, het);
  const std::string head = h.HeadNode(JobId(7));
  h.Clear();
  h.On(event::JobdGone{head, JobId(7), Incarnation(1), "no job daemon could be started", false});
  EXPECT_THAT(Verdicts(false), UnorderedElementsAre("bn0", "cn0", "cn1"));
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("step 7.0"), HasSubstr("no job daemon could be started")));
}

TEST_F(SlurmSteps, ANodeWhoseJobDaemonWasLostIsOfTheJobAgainWithItsNextStep) {
  ReportAll(7, 0, het);
  const std::uint32_t before = h.Record(JobId(7)).MemberOn("cn1")->index;
  h.On(event::JobdGone{"cn1", JobId(7), Incarnation(1), "killed", false});
  ASSERT_EQ(h.Record(JobId(7)).MemberOn("cn1"), nullptr);
  EndStep(7, 0, het);
  h.Clear();
  ReportAll(7, 1, het);
  EXPECT_THAT(Verdicts(true), UnorderedElementsAre("bn0", "cn0", "cn1"));
  EXPECT_THAT(Started(), ElementsAre("cn1"));
  ASSERT_NE(h.Record(JobId(7)).MemberOn("cn1"), nullptr);
  EXPECT_NE(h.Record(JobId(7)).MemberOn("cn1")->index, before);
  EXPECT_THAT(h.Record(JobId(7)).MemberOn("cn1")->cores, ElementsAre(2));
  // It leaves the job as any other.
  EndStep(7, 1, het);
  h.Clear();
  h.On(event::SlurmJobEnd{"cn1", JobId(7)});
  EXPECT_THAT(h.QuitNodes(), ElementsAre("cn1"));
  EXPECT_EQ(h.Record(JobId(7)).MemberOn("cn1"), nullptr);
}

TEST_F(SlurmSteps, AStepWaitsWhereALostJobDaemonIsStillLeaving) {
  ReportAll(7, 0, het);
  wire::MemberFailed failed;
  failed.index = h.Record(JobId(7)).MemberOn("cn1")->index;
  failed.reason = "its peers do not reach it";
  h.On(event::FromJobd{"cn1", JobId(7), Incarnation(1), failed});
  ASSERT_THAT(h.QuitNodes(), ElementsAre("cn1"));
  EndStep(7, 0, het);
  h.Clear();
  ReportAll(7, 1, het);
  EXPECT_THAT(h.Sent<effect::SlurmVerdict>(), IsEmpty()) << "its launch would find the old one there";
  h.On(event::JobdGone{"cn1", JobId(7), Incarnation(1), "asked to leave", true});
  EXPECT_THAT(Verdicts(true), UnorderedElementsAre("bn0", "cn0", "cn1"));
  EXPECT_THAT(Started(), ElementsAre("cn1"));
  // One that takes longer than its time has swallowed the launch: it is sent again.
  h.Clear();
  h.On(event::JobdGone{"cn1", JobId(7), Incarnation(1), "asked to leave", true});
  h.Live(Millis(4'000));
  EXPECT_THAT(Started(), ElementsAre("cn1"));
}

TEST_F(SlurmSteps, AJobWaitsForStepsThatAreStillBeingEndedElsewhere) {
  ReportAll(7, 0, het);
  const std::string head = h.HeadNode(JobId(7));
  const auto part = std::find_if(het.begin(), het.end(), [&](const Part& p) { return p.node == head; });
  h.On(event::SlurmStepEnd{head, {JobId(7), JobId(part->component), StepId(0)}});
  h.On(event::SlurmJobEnd{head, JobId(part->component)});
  EXPECT_FALSE(IsFinal(h.State(JobId(7)))) << "tasks on other nodes have their time to end";
  EndStep(7, 0, het);
  EXPECT_EQ(h.State(JobId(7)), JobState::kCompleted);
}

TEST_F(SlurmSteps, ANodeThatDiesDoesNotKeepAnEndedJobUp) {
  ReportAll(7, 0, het);
  const std::string head = h.HeadNode(JobId(7));
  for (const Part& part : het)
    if (part.node == head) {
      h.On(event::SlurmStepEnd{head, {JobId(7), JobId(part.component), StepId(0)}});
      h.On(event::SlurmJobEnd{head, JobId(part.component)});
    }
  for (const Part& part : het)
    if (part.node != head) {
      h.On(event::NodeLost{part.node, h.sessions[part.node]});
      h.sessions.erase(part.node);
    }
  h.Live(Millis(15'000));
  EXPECT_TRUE(IsFinal(h.State(JobId(7))));
}

TEST_F(SlurmSteps, JobsMayShareCoresAsSlurmSays) {
  const std::vector<Part> one = {{"cn0", 7, 1, {0}}};
  const std::vector<Part> other = {{"cn0", 8, 1, {0}}};
  ReportAll(7, 0, one);
  ReportAll(8, 0, other);
  EXPECT_EQ(Verdicts(true).size(), 2u);
  h.Restart();
  EXPECT_EQ(h.controller().System().jobs_running, 2u);
}

TEST_F(SlurmSteps, ARequeuedScriptIsNotTakenForTheOneBefore) {
  const std::vector<Part> one = {{"cn0", 7, 1, {0}}};
  const std::uint32_t script = wire::kBatchStep.value;
  ReportAll(7, script, one);
  auto again = Begin(7, script, one, one[0]);
  again.restart_count = 1;
  h.Clear();
  h.On(event::SlurmStepBegin{"cn0", again, "0ther"});
  ASSERT_THAT(Verdicts(true), ElementsAre("cn0"));
  EXPECT_EQ(h.Sent<effect::SlurmVerdict>().back().verdict.incarnation, Incarnation(2));
}

TEST_F(SlurmSteps, OnlySlurmEndsItsJobs) {
  const std::vector<Part> one = {{"cn0", 7, 1, {0}}};
  ReportAll(7, 0, one);
  h.On(event::Cancel{.caller = kAda, .job = JobId(7), .reply = 1});
  EXPECT_THAT(h.TakeReply().status.message(), HasSubstr("scancel 7"));
  EXPECT_FALSE(IsFinal(h.State(JobId(7))));
}

TEST_F(SlurmSteps, AllotmentsAreCheckedBeforeAnyTaskStarts) {
  const std::vector<Part> one = {{"cn0", 7, 1, {0}}};
  auto begin = Begin(7, 0, one, one[0]);
  begin.options.nam = "0:1G,1:2G";
  h.On(event::SlurmStepBegin{"cn0", begin, "5ec7e7"});
  EXPECT_THAT(Verdicts(false), ElementsAre("cn0")) << "this system has no network attached memory";
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("--nam=0:1G,1:2G"), HasSubstr("0 of network attached memory")));
  const std::vector<Part> other = {{"cn0", 9, 1, {1}}};
  begin = Begin(9, 0, other, other[0]);
  begin.options.nam_region = "field:rx";
  h.On(event::SlurmStepBegin{"cn0", begin, "5ec7e7"});
  EXPECT_THAT(Refusal(), HasSubstr("rx"));
}

TEST_F(SlurmSteps, ANameOfAnyBytesIsShownAsPlainText) {
  const std::vector<Part> one = {{"cn0", 7, 1, {0}}};
  auto begin = Begin(7, 0, one, one[0]);
  begin.job_name = "run\xff\n" + std::string(300, 'x');
  begin.user_name = "ada\x80";
  h.On(event::SlurmStepBegin{"cn0", begin, "5ec7e7"});
  EXPECT_EQ(h.Record(JobId(7)).spec.name, "run??" + std::string(250, 'x'));
  EXPECT_EQ(h.Record(JobId(7)).user_name, "ada?");
}

TEST_F(SlurmSteps, SubmissionsGoToSlurm) {
  const auto id = h.Submit(Harness::Request(Harness::Spec("cluster", 1)));
  EXPECT_THAT(id.status().message(), HasSubstr("sbatch"));
}

class WithoutSlurm : public SlurmSteps {
 protected:
  WithoutSlurm() : SlurmSteps({}) {}
};

TEST_F(WithoutSlurm, AStepIsRefusedWithWhatToStart) {
  Report(7, 0, het, 0);
  EXPECT_THAT(Verdicts(false), ElementsAre("bn0"));
  EXPECT_THAT(Refusal(), HasSubstr("--scheduler=slurm"));
}

}  // namespace
}  // namespace msa
