// The sruns of spawned children, with a runner in the place of the launcher.
#include "srun_steps.h"

#include <signal.h>
#include <stdlib.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace msa::jobd {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::StartsWith;

class Runner final : public launch::TaskRunner {
 public:
  void Start(std::vector<launch::TaskSpec> tasks, Started) override {
    for (launch::TaskSpec& task : tasks) started.push_back(std::move(task));
  }
  int Signal(const std::string& nspace, int signal) override {
    signals.emplace_back(nspace, signal);
    return 1;
  }
  void MarkConnected(const std::string&, Rank) override {}
  void PauseOutput(const std::string&) override {}
  void ResumeOutput(const std::string&) override {}
  void WriteStdin(const std::string&, Rank, std::string, bool) override {}
  void KillAll(const std::string&, std::function<void(int)>) override {}
  std::vector<std::string> Inherited(const std::string&, Rank) const override { return {}; }
  void Forget(const std::string&) override {}

  std::vector<launch::TaskSpec> started;
  std::vector<std::pair<std::string, int>> signals;
};

class SrunStepsTest : public ::testing::Test {
 protected:
  SrunStepsTest() {
    SrunSteps::Handlers handlers;
    handlers.ended = [this](const SrunEnded& end) { ended.push_back(end); };
    handlers.output = [](const std::string&) { return UniqueFd(); };
    handlers.error = [](const std::string&, const std::string&) { return true; };
    sruns = std::make_unique<SrunSteps>(runner, SrunOptions{"srun", "/opt/msa-exec"}, std::move(handlers));
  }
  void Start(std::uint32_t part) {
    SrunStart order;
    order.nspace = "msa.7.1.0.1";
    order.part = part;
    order.job = JobId(7 + part);
    order.hosts = {"cn0"};
    sruns->Start(order);
  }
  Runner runner;
  std::vector<SrunEnded> ended;
  std::unique_ptr<SrunSteps> sruns;
};

TEST_F(SrunStepsTest, TheEndOfAPartIsNothingToTheOthers) {
  Start(0);
  Start(1);
  ASSERT_THAT(runner.started, SizeIs(2));
  sruns->End("msa.7.1.0.1", 1);
  EXPECT_THAT(runner.signals, ElementsAre(Pair(runner.started[1].nspace, SIGTERM)));
  launch::TaskExit exit;
  exit.nspace = runner.started[1].nspace;
  sruns->OnExit(exit);
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_EQ(ended[0].part, 1u);
  sruns->End("msa.7.1.0.1", 1);
  EXPECT_THAT(runner.signals, SizeIs(1)) << "it runs no more";
}

TEST_F(SrunStepsTest, TheChildrensSrunKnowsNothingOfTheStepThatSpawnsAndIsMsas) {
  ::setenv("MSA_SLURM_USE", "no", 1);
  ::setenv("SLURM_JOB_ID", "5", 1);
  ::setenv("SLURM_CONF", "/etc/slurm.conf", 1);
  Start(0);
  for (const char* name : {"MSA_SLURM_USE", "SLURM_JOB_ID", "SLURM_CONF"}) ::unsetenv(name);
  ASSERT_THAT(runner.started, SizeIs(1));
  const std::vector<std::string>& env = runner.started[0].env;
  EXPECT_THAT(env, Contains("MSA_SLURM_USE=yes"));
  EXPECT_THAT(env, Not(Contains("MSA_SLURM_USE=no")));
  EXPECT_THAT(env, Not(Contains(StartsWith("SLURM_JOB_ID="))));
  EXPECT_THAT(env, Contains("SLURM_CONF=/etc/slurm.conf"));
  EXPECT_THAT(env, Contains("MSA_SPAWN_TICKET=msa.7.1.0.1"));
  EXPECT_THAT(runner.started[0].argv, Contains(HasSubstr("--jobid=7")));
}

}  // namespace
}  // namespace msa::jobd
