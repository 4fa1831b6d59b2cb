// Batch scripts, allocations and the steps inside them under real job daemons.
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jobd_harness.h"

namespace msa::jobd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string ReadAll(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

RunSpec Batch(std::string script, std::vector<std::string> args = {}) {
  RunSpec spec;
  spec.mode = wire::JobMode::kBatch;
  spec.script = std::move(script);
  wire::App app;
  app.argv = {"job.sh"};
  app.argv.insert(app.argv.end(), args.begin(), args.end());
  spec.apps = {app};
  spec.stdio.out = "out";
  spec.stdio.in = "none";
  spec.interactive = false;
  spec.attach = false;
  return spec;
}

TEST(JobdBatch, AScriptRunsWithItsArgumentsAndItsCodeIsTheJobs) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1, 8}});
  job.Run(Batch("#!/bin/sh\necho \"$# $1|$2\"; pwd; stat -c %a \"$0\"; exit 7\n", {"a b", "c"}));
  ASSERT_TRUE(job.exit.has_value());
  EXPECT_EQ(job.exit->exit_code, 7) << job.exit->message;
  EXPECT_EQ(job.exit->state, wire::JobState::kFailed);
  EXPECT_TRUE(job.started);
  EXPECT_EQ(ReadAll(job.directory() + "/out"), "2 a b|c\n" + job.directory() + "\n700\n");
  EXPECT_THAT(job.exit->message, HasSubstr("the batch script exited with exit code 7"));
  EXPECT_FALSE(std::filesystem::exists(job.RunDirectory("cn0")));
}

TEST(JobdBatch, TheScriptKnowsItsJobAndNothingOfALauncher) {
  JobdHarness job({{"cn0"}, {"cn1"}, {"bn0", "booster", 1, 8}});
  RunSpec spec = Batch("#!/bin/sh\nenv\n");
  spec.env = {"MSA_JOB_NAME=outer", "MSA_NODELIST_HET_GROUP_9=outer", "JSM_JSRUN_PORT=1",
              "PMIX_RANK=3",        "OMPI_COMM_WORLD_SIZE=4",         "MSA_RANK=2",
              "PWD=/submitted/here"};
  job.Run(spec);
  const std::string env = ReadAll(job.directory() + "/out");
  for (const char* line :
       {"MSA_JOB_ID=7\n", "MSA_JOB_NAME=test\n", "MSA_NODELIST=cn0,cn1,bn0\n", "MSA_NNODES=3\n",
        "MSA_NTASKS=16\n", "MSA_MODULES=cluster,booster\n", "MSA_HET_SIZE=2\n",
        "MSA_NODELIST_HET_GROUP_0=cn0,cn1\n", "MSA_NTASKS_HET_GROUP_0=8\n", "MSA_NODELIST_HET_GROUP_1=bn0\n",
        "MSA_NTASKS_HET_GROUP_1=8\n", "MSA_NODE=cn0\n", "MSA_SUBMIT_DIR=/submitted/here\n"})
    EXPECT_THAT(env, HasSubstr(line));
  EXPECT_THAT(env, HasSubstr("MSA_DIR=" + job.directory() + "\n"));
  for (const char* name :
       {"PMIX_", "PMI_", "JSM_", "OMPI_", "MSA_RANK", "MSA_STEP_ID", "LD_PRELOAD", "outer"})
    EXPECT_THAT(env, Not(HasSubstr(name)));
}

TEST(JobdBatch, AnMpiProgramThatTheScriptRunsByItselfIsAWorldOfOne) {
  JobdHarness job({{"cn0"}});
  job.Run(Batch("#!/bin/sh\nexec " MSA_TEST_MPI_JOB " hello\n"));
  EXPECT_EQ(job.exit->exit_code, 0) << job.exit->message << ReadAll(job.directory() + "/out");
  EXPECT_THAT(ReadAll(job.directory() + "/out"), HasSubstr("rank 0 of 1"));
}

TEST(JobdBatch, ACancelTermsTheScriptAndKillsItAfterTheGrace) {
  JobdHarness job({{"cn0"}});
  job.WarmUp();
  job.Launch(Batch("#!/bin/sh\ntrap 'echo term' TERM\necho up\nwhile :; do sleep 0.05; done\n"));
  ASSERT_TRUE(job.Until([&] { return ReadAll(job.directory() + "/out") == "up\n"; }));
  job.ToHead(wire::CancelJob{wire::JobState::kTimeout, 300, "time limit of 1 s reached"});
  ASSERT_TRUE(job.UntilOver());
  EXPECT_EQ(job.exit->state, wire::JobState::kTimeout);
  EXPECT_EQ(job.exit->message, "time limit of 1 s reached");
  EXPECT_THAT(ReadAll(job.directory() + "/out"), HasSubstr("term"));
}

}  // namespace
}  // namespace msa::jobd
