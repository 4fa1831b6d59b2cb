// `msactl run` inside a job, and `msactl job alloc`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "options/run_options.h"
#include "options/step_request.h"
#include "run/alloc_command.h"

namespace msa::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const RunSurroundings kHere{"/home/u", {"PATH=/bin", "MSA_JOB_ID=9", "MSA_DIR=/d"}};

RunRequest Parse(const std::vector<std::string>& args, RunKind kind = RunKind::kRun) {
  auto request = ParseRun(args, kHere, kind);
  EXPECT_TRUE(request.ok()) << request.status().message();
  return request.ok() ? *std::move(request) : RunRequest();
}

TEST(StepOptions, TheEnvironmentNamesTheJobAround) {
  EXPECT_EQ(SurroundingJob({"A=1", "MSA_JOB_ID=12"})->value(), JobId(12));
  EXPECT_FALSE(SurroundingJob({"A=1", "MSA_JOB_ID="})->has_value());
  const auto bad = SurroundingJob({"MSA_JOB_ID=twelve"});
  EXPECT_EQ(bad.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(bad.status().message(), HasSubstr("env -u MSA_JOB_ID"));
}

TEST(StepOptions, ARunIsAStepOfScriptsAndAllocationsThatHaveNotEnded) {
  JobInfo job;
  job.id = JobId(12);
  job.state = JobState::kRunning;
  EXPECT_FALSE(*IsStepOf(job));
  job.mode = wire::JobMode::kBatch;
  EXPECT_TRUE(*IsStepOf(job));
  job.mode = wire::JobMode::kAlloc;
  EXPECT_TRUE(*IsStepOf(job));
  job.state = JobState::kTimeout;
  EXPECT_EQ(IsStepOf(job).status().code(), Code::kFailedPrecondition);
  EXPECT_THAT(IsStepOf(job).status().message(), HasSubstr("job 12 has ended (TIMEOUT)"));
}

TEST(StepOptions, AStepAsksForWhatTheRunSays) {
  const auto step =
      StepOf(Parse({"-n", "2", "--overlap", "-K", "./a", ":", "--het-group", "1", "-N2", "./b", "x"}), "t");
  ASSERT_TRUE(step.ok());
  EXPECT_EQ(step->token, "t");
  EXPECT_TRUE(step->overlap);
  EXPECT_EQ(step->kill_policy, wire::KillPolicy::kAlways);
  ASSERT_EQ(step->components.size(), 2u);
  EXPECT_EQ(step->components[0].component, wire::StepComponent::kAnyComponent);
  EXPECT_EQ(step->components[0].ntasks, 2u);
  EXPECT_EQ(step->components[1].component, 1u);
  EXPECT_EQ(step->components[1].min_nodes, 2u);
  EXPECT_THAT(step->components[1].argv, ElementsAre("./b", "x"));
  EXPECT_THAT(step->env, Contains("MSA_DIR=/d"));
}

TEST(StepOptions, AListOfComponentsRunsTheProgramInEach) {
  const auto step = StepOf(Parse({"--het-group=0,2-3", "./a"}), "t");
  ASSERT_EQ(step->components.size(), 3u);
  EXPECT_EQ(step->components[2].component, 3u);
  EXPECT_FALSE(ParseRun({"--het-group", "3-1", "./a"}, kHere).ok());
  EXPECT_FALSE(ParseRun({"--het-group", "x", "./a"}, kHere).ok());
}

TEST(StepOptions, WhatBelongsToTheJobIsRefusedByName) {
  for (const char* option : {"--mem=1G", "--gpus-per-node=1", "--oversubscribe"}) {
    const auto step = StepOf(Parse({option, "./a"}), "t");
    EXPECT_EQ(step.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(step.status().message(),
                HasSubstr(std::string(option).substr(0, std::string(option).find('='))));
  }
}

TEST(AllocOptions, TheCommandFollowsTheComponents) {
  const auto request = Parse(
      {"-m", "cluster", "-n4", ":", "-m", "booster", "msactl", "run", "./a", ":", "./b"}, RunKind::kAlloc);
  EXPECT_EQ(request.spec.mode, wire::JobMode::kAlloc);
  ASSERT_EQ(request.spec.components.size(), 2u);
  EXPECT_TRUE(request.spec.components[0].argv.empty());
  EXPECT_THAT(request.spec.components[1].argv, ElementsAre("msactl", "run", "./a", ":", "./b"));
  EXPECT_EQ(request.spec.name, "msactl");
}

TEST(AllocOptions, WithoutACommandItIsAShell) {
  const auto request = Parse({"-N2", ":", "-m", "dam"}, RunKind::kAlloc);
  EXPECT_EQ(request.spec.components.size(), 2u);
  EXPECT_EQ(request.spec.name, "shell");
  EXPECT_TRUE(Parse({"--no-shell", "-N2"}, RunKind::kAlloc).no_shell);
  EXPECT_FALSE(ParseRun({"--no-shell", "-N2", "true"}, kHere, RunKind::kAlloc).ok());
  EXPECT_FALSE(ParseRun({"--output=x", "-N2"}, kHere, RunKind::kAlloc).ok());
}

TEST(AllocVariables, NameTheJobItsNodesAndItsComponents) {
  JobInfo job;
  job.id = JobId(12);
  job.name = "shell";
  job.allocations = {{.node = "cn0", .module = "cluster", .component = 0, .tasks = 2},
                     {.node = "cn1", .module = "cluster", .component = 0, .tasks = 2},
                     {.node = "bn0", .module = "booster", .component = 1, .tasks = 8}};
  Endpoint endpoint;
  endpoint.dir = "/d";
  JobSpec spec;
  spec.nam_regions = {{"field", NamRights::kRead}, {"mesh", NamRights::kRead | NamRights::kWrite}};
  const auto lines = AllocVariables(job, spec, endpoint);
  for (const char* line :
       {"MSA_JOB_ID=12", "MSA_DIR=/d", "MSA_NODELIST=cn0,cn1,bn0", "MSA_NNODES=3", "MSA_NTASKS=12",
        "MSA_MODULES=cluster,booster", "MSA_HET_SIZE=2", "MSA_NODELIST_HET_GROUP_0=cn0,cn1",
        "MSA_NTASKS_HET_GROUP_1=8", "MSA_JOB_NAME=shell", "MSA_NAM_REGIONS=field:ro,mesh:rw"})
    EXPECT_THAT(lines, Contains(line));
}

}  // namespace
}  // namespace msa::cli
