// Gateway nodes as a resource: who has which, when a job waits, and when Slurm's are refused.
#include <gmock/gmock.h>

#include "harness.h"

namespace msa {
namespace {

using namespace job_test;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

SystemTopology WithGateways() {
  SystemTopology t = Small();
  t.modules.push_back({ModuleId(4), "edge", "gateway"});
  for (const char* name : {"gw0", "gw1"})
    t.nodes.push_back({.name = name, .module = ModuleId(4), .cores = 1, .synthetic = true});
  return t;
}

class Gateways : public ::testing::Test {
 protected:
  explicit Gateways(ControllerOptions options = {}) : h(options, WithGateways()) { h.RegisterAll(); }

  JobId Submit(std::uint32_t gateways) {
    JobSpec spec = Harness::Spec("cluster", 1);
    spec.gateways = gateways;
    return *h.Submit(Harness::Request(std::move(spec)));
  }

  Harness h;
};

TEST_F(Gateways, AJobHasItsOwnAndTheNextOneWaitsForThem) {
  const JobId first = Submit(1);
  const JobId second = Submit(1);
  const JobId third = Submit(2);
  EXPECT_THAT(h.Record(first).gateways, ElementsAre("gw0"));
  EXPECT_THAT(h.Record(second).gateways, ElementsAre("gw1"));
  EXPECT_EQ(h.State(third), JobState::kPending);
  EXPECT_EQ(h.controller().GetJob(third)->reason, "resources: --gateways 2: 0 of 2 are free");
  h.FromHead(first, wire::JobExit{});
  EXPECT_EQ(h.State(third), JobState::kPending);
  h.FromHead(second, wire::JobExit{});
  EXPECT_THAT(h.Record(third).gateways, ElementsAre("gw0", "gw1"));
  EXPECT_THAT(h.Record(first).gateways, ElementsAre("gw0")) << "kept, for those who look";
}

TEST_F(Gateways, TheJobFindsTheirNamesAndNoneOfAnOuterJob) {
  JobSpec spec = Harness::Spec("cluster", 1);
  spec.env = std::vector<std::string>{"MSA_GATEWAYS=gw7", "MSA_GATEWAYSX=1"};
  spec.gateways = 2;
  h.Clear();
  ASSERT_TRUE(h.Submit(Harness::Request(spec)).ok());
  const std::vector<std::string> env = h.Sent<effect::SendStartJob>()[0].launch->step.env;
  EXPECT_THAT(env, Contains("MSA_GATEWAYS=gw0,gw1"));
  EXPECT_THAT(env, Contains("MSA_GATEWAYSX=1"));
  EXPECT_THAT(env, ::testing::Not(Contains("MSA_GATEWAYS=gw7")));
}

TEST_F(Gateways, OneThatIsDrainedIsNotGivenAndNotCounted) {
  h.On(event::Drain{.caller = kRoot, .nodes = {"gw0"}, .reason = "cable", .reply = 1});
  (void)h.TakeReply();
  const JobId one = Submit(1);
  EXPECT_THAT(h.Record(one).gateways, ElementsAre("gw1"));
  const JobId two = Submit(2);
  EXPECT_THAT(h.controller().GetJob(two)->reason,
              HasSubstr("--gateways 2: 0 of 1 are free, the others are down or drained"));
}

TEST_F(Gateways, OneThatGoesAwayInTheMeantimeTakesNothingFromTheOthers) {
  EXPECT_THAT(h.Record(Submit(1)).gateways, ElementsAre("gw0"));
  h.On(event::Drain{.caller = kRoot, .nodes = {"gw0"}, .reason = "cable", .reply = 1});
  (void)h.TakeReply();
  EXPECT_THAT(h.Record(Submit(1)).gateways, ElementsAre("gw1"));
}

TEST_F(Gateways, MoreThanExistAreRefusedAtOnce) {
  JobSpec spec = Harness::Spec("cluster", 1);
  spec.gateways = 3;
  const auto refused = h.Submit(Harness::Request(std::move(spec)));
  EXPECT_EQ(refused.status().code(), Code::kOutOfRange);
  EXPECT_THAT(refused.status().message(), HasSubstr("--gateways 3: the system has 2"));
}

ControllerOptions BySlurm() {
  ControllerOptions options;
  options.slurm = true;
  options.node_timeout = Millis(60000);  // its nodes send no heartbeats
  return options;
}

class SlurmGateways : public Gateways {
 protected:
  SlurmGateways() : Gateways(BySlurm()) {}

  void Begin(std::uint64_t job, std::uint32_t step, const std::string& gateways) {
    wire::SlurmStepBegin begin;
    begin.job = begin.component_job = JobId(job);
    begin.step = StepId(step);
    begin.user = kAda;
    begin.user_name = "ada";
    begin.ntasks = begin.ntasks_here = 1;
    begin.nodes = {{"cn0", 1}};
    begin.options.gateways = gateways;
    h.Clear();
    h.On(event::SlurmStepBegin{"cn0", begin, "5ec7e7"});
  }
  std::vector<wire::SlurmStepVerdict> Verdicts() const {
    std::vector<wire::SlurmStepVerdict> all;
    for (const auto& e : h.Sent<effect::SlurmVerdict>()) all.push_back(e.verdict);
    return all;
  }
};

TEST_F(SlurmGateways, AreThoseOfTheJobAndOfNoOther) {
  Begin(7, 0, "0:1,1:0");
  EXPECT_THAT(h.Record(JobId(7)).gateways, ElementsAre("gw0"));
  EXPECT_THAT(h.Sent<effect::SendStartJob>()[0].launch->step.env.front(), "MSA_GATEWAYS=gw0");
  Begin(8, 0, "1");
  EXPECT_THAT(h.Record(JobId(8)).gateways, ElementsAre("gw1"));
  Begin(7, 1, "2");
  ASSERT_EQ(Verdicts().size(), 1u);
  EXPECT_THAT(Verdicts()[0].message,
              HasSubstr("--gateways=2: job 7 has 1; give --gateways to sbatch or salloc"));
}

TEST_F(SlurmGateways, OfAJobWhoseEndIsStillOnItsWayAreWaitedFor) {
  Begin(7, 0, "2");
  Begin(8, 0, "1");
  EXPECT_THAT(Verdicts(), IsEmpty());
  h.On(event::SlurmStepEnd{"cn0", {JobId(7), JobId(7), StepId(0)}});
  h.On(event::SlurmJobEnd{"cn0", JobId(7)});
  h.Sleep(Millis(500));
  ASSERT_EQ(Verdicts().size(), 1u);
  EXPECT_TRUE(Verdicts()[0].accepted);
  EXPECT_THAT(h.Record(JobId(8)).gateways, ElementsAre("gw0"));
}

TEST_F(SlurmGateways, ThatStayTakenAreRefusedWithTheRemedy) {
  Begin(7, 0, "2");
  Begin(8, 0, "1");
  h.Sleep(Millis(11000));
  ASSERT_EQ(Verdicts().size(), 1u);
  EXPECT_FALSE(Verdicts()[0].accepted);
  EXPECT_THAT(Verdicts()[0].message, HasSubstr("--gateways=1: 0 of 2 are free; ask for fewer, or let Slurm"));
}

TEST_F(SlurmGateways, MoreThanThereAreAreNotWaitedFor) {
  Begin(8, 0, "3");
  ASSERT_EQ(Verdicts().size(), 1u);
  EXPECT_THAT(Verdicts()[0].message, HasSubstr("--gateways=3: 2 of 2 are free"));
}

}  // namespace
}  // namespace msa
