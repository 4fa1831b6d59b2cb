// Steps whose tasks Slurm starts, under real job daemons and real MPIs.
#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "slurm_job_fixture.h"

namespace msa::jobd {
namespace {

using ::testing::AnyOf;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Not;

class JobdSlurm : public SlurmJobTest {
 protected:
  void SetUp() override { Begin(); }
  static SlurmStepSpec Mpi(std::uint32_t step, std::vector<std::string> rank_node,
                           std::vector<std::string> args, const char* program = MSA_TEST_MPI_JOB) {
    SlurmStepSpec spec = SlurmJobTest::Mpi(std::move(rank_node), std::move(args), program);
    spec.step = step;
    return spec;
  }
  // As users' steps have it.
  static SlurmStepSpec WithLibrary(SlurmStepSpec spec) {
    spec.env.push_back("LD_PRELOAD=" MSA_TEST_MPI_LIBRARY);
    return spec;
  }
  std::vector<wire::NamespaceReport> Ended() const {
    std::vector<wire::NamespaceReport> out;
    for (const auto& report : job.reports)
      if (report.ended) out.push_back(report);
    return out;
  }
};

TEST_F(JobdSlurm, TheTasksOfAStepAreOneWorldWhereverSlurmPutThem) {
  SlurmStep step(job, Mpi(0, {"cn0", "bn0", "bn0", "cn0"}, {"hello"}));
  step.Start();
  ASSERT_TRUE(step.UntilOver()) << step.AllErr();
  for (std::uint32_t rank = 0; rank < 4; ++rank) EXPECT_EQ(step.codes[rank], 0) << step.Err(rank);
  EXPECT_EQ(step.Out(0), "rank 0 of 4 on cn0\n");
  EXPECT_EQ(step.Out(1), "rank 1 of 4 on bn0\n");
  EXPECT_EQ(step.Out(2), "rank 2 of 4 on bn0\n");
  EXPECT_EQ(step.Out(3), "rank 3 of 4 on cn0\n");
  EXPECT_EQ(step.AllErr(), "");
  ASSERT_TRUE(job.Until([&] { return !Ended().empty(); }));
  EXPECT_EQ(Ended()[0].nspace, "msa.7.1.0");
  EXPECT_EQ(Ended()[0].size, 4u);
  EXPECT_EQ(Ended()[0].exit_code, 0);
}

TEST_F(JobdSlurm, MessagesPassBetweenTheTasksAndTheirEnvironmentIsTheirs) {
  SlurmStepSpec spec = Mpi(0, {"cn0", "bn0"}, {"ring", "100000"});
  spec.argv_of[1] = {"/bin/sh", "-c",
                     "echo $MSA_RANK/$MSA_WORLD_SIZE $MSA_NODE $MSA_MODULE_ID $MSA_COMPONENT $LD_PRELOAD "
                     "$SLURM_PROCID $MSA_JOB_ID.$MSA_STEP_ID ${PMI_PORT-none} $HOME; exec " MSA_TEST_MPI_JOB
                     " ring 100000"};
  spec.component_of[1] = 8;
  spec.env = {"LD_PRELOAD=libm.so.6", "PMI_PORT=outer:1", "MSA_RANK=77", "HOME=/somewhere"};
  SlurmStep step(job, spec);
  step.Start();
  ASSERT_TRUE(step.UntilOver()) << step.AllErr();
  EXPECT_EQ(step.Out(0), "ring done\n") << step.AllErr();
  EXPECT_EQ(step.Out(1), "1/2 bn0 1 1 libm.so.6 1 7.0 none /somewhere\n");
}

TEST_F(JobdSlurm, MpichFindsItsWorldByTheDescriptorThatComesWithTheAnswer) {
  SlurmStep step(job, Mpi(0, {"cn0", "bn0", "cn0"}, {"hello"}, MSA_TEST_MPICH_JOB));
  step.Start();
  ASSERT_TRUE(step.UntilOver()) << step.AllErr();
  EXPECT_EQ(step.Out(2), "rank 2 of 3 on cn0\n") << step.AllErr();
  EXPECT_EQ(step.codes[1], 0);
}

TEST_F(JobdSlurm, AbortEndsEveryTaskAndRankZeroReadsWhy) {
  SlurmStep step(job, Mpi(0, {"cn0", "bn0", "cn0", "bn0"}, {"abort", "1", "3"}));
  step.Start();
  ASSERT_TRUE(step.UntilOver()) << step.AllErr();
  // Its own exit races with the signal that ends them all.
  EXPECT_THAT(step.codes[1], AnyOf(Eq(3), Eq(137), Eq(143)));
  for (const std::uint32_t rank : {0u, 2u, 3u}) EXPECT_THAT(step.codes[rank], AnyOf(Eq(137), Eq(143)));
  EXPECT_THAT(step.Err(0), HasSubstr("msa: step 0 is aborted by task 1 with code 3"));
  EXPECT_THAT(step.Err(1), Not(HasSubstr("msa: ")));
}

TEST_F(JobdSlurm, ATaskThatLeavesItsWorldEndsTheOthersAndSlurmSaysHowItEnded) {
  SlurmStep step(job, Mpi(0, {"cn0", "bn0"}, {"leave", "1", "6"}));
  step.Start();
  ASSERT_TRUE(step.UntilOver()) << step.AllErr();
  EXPECT_EQ(step.codes[1], 6);
  EXPECT_THAT(step.codes[0], AnyOf(Eq(137), Eq(143)));
  EXPECT_THAT(step.Err(0), HasSubstr("msa: bn0: task 1 of step 0 ended without MPI_Finalize"));
  EXPECT_THAT(step.Err(0), Not(HasSubstr("exited with exit code 6")));
  ASSERT_TRUE(job.Until([&] { return !Ended().empty(); }));
  EXPECT_EQ(Ended()[0].exit_code, 6);
}

TEST_F(JobdSlurm, WithTheMpiLibraryEveryTaskLeavesWithTheCodeOfTheAbort) {
  std::uint32_t step_id = 0;
  for (const char* program : {MSA_TEST_MPI_JOB, MSA_TEST_MPICH_JOB}) {
    SlurmStep step(job, WithLibrary(Mpi(step_id++, {"cn0", "bn0", "cn0"}, {"abort", "1", "17"}, program)));
    step.Start();
    ASSERT_TRUE(step.UntilOver()) << step.AllErr();
    for (std::uint32_t rank = 0; rank < 3; ++rank) EXPECT_EQ(step.codes[rank], 17) << step.AllErr();
  }
}

TEST_F(JobdSlurm, WithTheMpiLibraryTheOthersLeaveWithTheCodeOfTheTaskThatFailed) {
  SlurmStep leaves(job, WithLibrary(Mpi(0, {"cn0", "bn0"}, {"leave", "1", "6"})));
  leaves.Start();
  ASSERT_TRUE(leaves.UntilOver()) << leaves.AllErr();
  EXPECT_EQ(leaves.codes[0], 6);
  SlurmStep dies(job, WithLibrary(Mpi(1, {"cn0", "bn0"}, {"crash", "1"})));
  dies.Start();
  ASSERT_TRUE(dies.UntilOver()) << dies.AllErr();
  EXPECT_EQ(dies.codes[1], 139);
  EXPECT_EQ(dies.codes[0], 139);
}

TEST_F(JobdSlurm, AScriptAroundAProgramThatAbortsIsEndedBySigterm) {
  SlurmStepSpec spec = WithLibrary(Mpi(0, {"cn0", "bn0"}, {"abort", "1", "17"}));
  spec.argv_of[0] = {"/bin/sh", "-c", MSA_TEST_MPI_JOB " abort 1 17; echo ended with $?"};
  SlurmStep step(job, spec);
  step.Start();
  ASSERT_TRUE(step.UntilOver()) << step.AllErr();
  EXPECT_EQ(step.codes[0], 143);
  EXPECT_EQ(step.codes[1], 17);
  EXPECT_EQ(step.Out(0), "");
}

TEST_F(JobdSlurm, ProgramsWithoutMpiEndAsTheyLike) {
  SlurmStepSpec spec = Mpi(0, {"cn0", "bn0"}, {});
  spec.argv = {"/bin/sh", "-c", "exit $((SLURM_PROCID * 5))"};
  SlurmStep step(job, spec);
  step.Start();
  ASSERT_TRUE(step.UntilOver());
  EXPECT_EQ(step.codes[0], 0);
  EXPECT_EQ(step.codes[1], 5);
  EXPECT_EQ(step.AllErr(), "");
}

TEST_F(JobdSlurm, TwoStepsAtOnceAreTwoWorldsAndAThirdFollows) {
  SlurmStep first(job, Mpi(0, {"cn0", "bn0"}, {"linger", "1"}));
  SlurmStep second(job, Mpi(1, {"bn0", "cn0", "bn0"}, {"hello"}));
  first.Start();
  second.Start();
  ASSERT_TRUE(second.UntilOver()) << second.AllErr();
  EXPECT_EQ(second.Out(0), "rank 0 of 3 on bn0\n");
  EXPECT_EQ(second.Out(1), "rank 1 of 3 on cn0\n");
  ASSERT_TRUE(first.UntilOver()) << first.AllErr();
  EXPECT_EQ(first.Out(1), "rank 1 of 2\n");
  SlurmStep third(job, Mpi(2, {"bn0"}, {"hello"}));
  third.Start();
  ASSERT_TRUE(third.UntilOver()) << third.AllErr();
  EXPECT_EQ(third.Out(0), "rank 0 of 1 on bn0\n");
  EXPECT_EQ(first.AllErr() + second.AllErr() + third.AllErr(), "");
}

TEST_F(JobdSlurm, AScriptHasNoWorldAndItsMpiProgramIsOneOfItsOwn) {
  SlurmStepSpec spec = Mpi(0xfffffffb, {"cn0"}, {});
  spec.argv = {"/bin/sh", "-c",
               "echo $MSA_JOB_ID ${MSA_RANK-none} ${PMIX_RANK-none}; exec " MSA_TEST_MPI_JOB " hello"};
  spec.env = {"MSA_RANK=77", "PMIX_RANK=5"};
  SlurmStep script(job, spec);
  script.Start();
  ASSERT_TRUE(script.UntilOver()) << script.AllErr();
  EXPECT_THAT(script.Out(0), HasSubstr("7 none none\nrank 0 of 1"));
}

TEST_F(JobdSlurm, ATaskThatDiesBeforeTheWorldIsCompleteFreesTheOthers) {
  SlurmStep step(job, Mpi(0, {"cn0", "bn0", "bn0"}, {"hello"}));
  step.StartRank(0);
  step.StartRank(1);
  ASSERT_TRUE(job.Until([&] { return step.Poll() || step.Joined(1); }));
  step.Kill(1, SIGKILL);
  ASSERT_TRUE(job.Until([&] {
    step.Poll();
    return step.codes[0] != -1;
  }));
  EXPECT_EQ(step.codes[0], 1);
  EXPECT_THAT(step.Err(0), HasSubstr("step 0 does not start: bn0: task 1 of step 0"));
  // One that comes now hears the same.
  step.StartRank(2);
  ASSERT_TRUE(job.Until([&] { return step.Poll(); }));
  EXPECT_THAT(step.Err(2), HasSubstr("step 0 does not start"));
}

TEST_F(JobdSlurm, AnEndThatNobodyTellsIsSeen) {
  SlurmStepSpec spec = Mpi(0, {"cn0", "bn0"}, {"hello"});
  spec.tell_ends = false;
  SlurmStep step(job, spec);
  step.Start();
  ASSERT_TRUE(step.UntilOver()) << step.AllErr();
  EXPECT_EQ(step.Out(0), "rank 0 of 2 on cn0\n");
  ASSERT_TRUE(job.Until([&] { return !Ended().empty(); }));
  EXPECT_EQ(Ended()[0].exit_code, 0);
}

TEST_F(JobdSlurm, TheEndOfTheJobEndsItsTasksAndRefusesThoseThatWait) {
  SlurmStep running(job, Mpi(0, {"cn0", "bn0"}, {"linger", "100"}));
  running.Start();
  SlurmStep waiting(job, Mpi(1, {"cn0", "bn0"}, {"hello"}));
  waiting.StartRank(0);
  ASSERT_TRUE(job.Until([&] { return running.Out(0) != "" && waiting.Joined(0); })) << running.AllErr();
  job.ToHead(wire::CancelJob{wire::JobState::kCancelled, 1000, "cancelled by ada"});
  ASSERT_TRUE(running.UntilOver());
  EXPECT_EQ(running.codes[1], 143);
  ASSERT_TRUE(job.Until([&] {
    waiting.Poll();
    return waiting.codes[0] == 1;
  }));
  EXPECT_THAT(waiting.Err(0), HasSubstr("cancelled by ada"));
}

TEST_F(JobdSlurm, ATaskThatCountsOthersIsRefusedAlone) {
  SlurmStepSpec wrong = Mpi(0, {"cn0", "cn0"}, {"hello"});
  SlurmStep step(job, wrong);
  step.StartRank(0);
  ASSERT_TRUE(job.Until([&] { return step.Joined(0); }));
  wrong.ntasks = 3;
  wrong.tell_ends = false;  // one slurmstepd has both
  SlurmStep other(job, wrong);
  other.StartRank(1);
  ASSERT_TRUE(job.Until([&] {
    other.Poll();
    return other.codes[1] == 1;
  }));
  EXPECT_THAT(other.Err(1), HasSubstr("task 1 of step 0 counts 3 tasks; expected 2"));
  step.StartRank(1);
  ASSERT_TRUE(step.UntilOver());
  EXPECT_EQ(step.Out(1), "rank 1 of 2 on cn0\n") << step.AllErr();
}

}  // namespace
}  // namespace msa::jobd
