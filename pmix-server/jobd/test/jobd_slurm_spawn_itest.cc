// MPI_Comm_spawn in jobs of Slurm: a stand-in for srun starts the children.
#include <stdlib.h>

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "slurm_job_fixture.h"

namespace msa::jobd {
namespace {

using ::testing::HasSubstr;

class JobdSlurmSpawn : public SlurmJobTest {
 protected:
  void TearDown() override {
    ::unsetenv("MSA_TEST_SRUN_FAILS");
    SlurmJobTest::TearDown();
  }
};

TEST_F(JobdSlurmSpawn, ChildrenComeBySrunOntoTheFreeSlotsOfTheJob) {
  Begin();
  SlurmStep step(job, Mpi({"bn0", "cn0"}, {"spawn", "3", "2"}));
  step.Start();
  ASSERT_TRUE(step.UntilOver()) << step.AllErr();
  EXPECT_EQ(step.Out(0), "round 0: 5 together\nround 1: 5 together\n") << step.AllErr();
  EXPECT_EQ(step.codes[0], 0);
  EXPECT_EQ(step.codes[1], 0);
}

TEST_F(JobdSlurmSpawn, TheyRunWhereTheProgramSaidAndWriteWhereRankZeroWrites) {
  Begin();
  SlurmStep step(job, Mpi({"cn0"}, {"spawn", "2", "1", "bn0:2"}));
  step.Start();
  ASSERT_TRUE(step.UntilOver()) << step.AllErr();
  EXPECT_THAT(step.Out(0), HasSubstr("child 0 of 2 on bn0\n")) << step.AllErr();
  EXPECT_THAT(step.Out(0), HasSubstr("child 1 of 2 on bn0\n"));
}

TEST_F(JobdSlurmSpawn, SeveralCommandsAreOneWorldOfOneSrun) {
  Begin();
  SlurmStep step(job, Mpi({"cn0"}, {"multiple", "1", "2"}));
  step.Start();
  ASSERT_TRUE(step.UntilOver()) << step.AllErr();
  EXPECT_THAT(step.Out(0), HasSubstr("multiple: 4 together\n")) << step.AllErr();
}

TEST_F(JobdSlurmSpawn, DirectoryAndEnvironmentReachTheChild) {
  Begin();
  SlurmStep step(job, Mpi({"cn0"}, {"where", "/usr"}));
  step.Start();
  ASSERT_TRUE(step.UntilOver()) << step.AllErr();
  EXPECT_THAT(step.Out(0), HasSubstr("cwd /usr word hello\n")) << step.AllErr();
}

TEST_F(JobdSlurmSpawn, ChildrenSpawnToo) {
  Begin();
  SlurmStep step(job, Mpi({"cn0"}, {"nested", "3"}));
  step.Start();
  ASSERT_TRUE(step.UntilOver()) << step.AllErr();
  EXPECT_THAT(step.Out(0), HasSubstr("depth 1\n")) << step.AllErr();
  EXPECT_EQ(step.codes[0], 0);
}

TEST_F(JobdSlurmSpawn, WhatSrunSaysWhenItFailsIsTheSpawnsError) {
  ::setenv("MSA_TEST_SRUN_FAILS", "Unable to create step for job 7: Invalid job id", 1);
  Begin();
  SlurmStep step(job, Mpi({"cn0"}, {"spawn", "2", "1"}));
  step.Start();
  ASSERT_TRUE(step.UntilOver()) << step.AllErr();
  EXPECT_THAT(step.Out(0), HasSubstr("spawn failed"));
  EXPECT_THAT(step.Err(0), HasSubstr("srun --jobid=7 ended with code 1: srun: error: Unable to create step"));
}

TEST_F(JobdSlurmSpawn, AProgramThatIsNotThereFailsTheSpawn) {
  Begin();
  SlurmStep step(job, Mpi({"cn0"}, {"missing"}));
  step.Start();
  ASSERT_TRUE(step.UntilOver()) << step.AllErr();
  EXPECT_EQ(step.codes[0], 7);
  EXPECT_THAT(step.Err(0), HasSubstr("/nonexistent/program"));
}

TEST_F(JobdSlurmSpawn, AnAbortOfAConnectedChildEndsItsParent) {
  Begin();
  SlurmStep step(job, Mpi({"cn0"}, {"childabort"}));
  step.Start();
  ASSERT_TRUE(step.UntilOver()) << step.AllErr();
  EXPECT_NE(step.codes[0], 0);
  EXPECT_THAT(step.Err(0), HasSubstr("spawn 1 is aborted by task 0 with code 9"));
}

TEST_F(JobdSlurmSpawn, ACompanionHasTheTimeToCancelItsJobWhenTheJobDaemonLeaves) {
  Begin();
  wire::CompanionAsk ask;
  ask.request = 5;
  ask.partition = "booster";
  job.ToHead(wire::CompanionOrder::Of(5, ask));
  ASSERT_TRUE(job.Until([&] { return !job.companions.empty(); }));
  ASSERT_EQ(job.companions[0].type, wire::CompanionGranted::kType);
  job.ToHead(wire::CancelJob{wire::JobState::kCompleted, 0, "Slurm has ended it"});
  ASSERT_TRUE(job.UntilOver());
  EXPECT_TRUE(std::filesystem::exists(job.directory() + "/cancelled.5"));
}

}  // namespace
}  // namespace msa::jobd
