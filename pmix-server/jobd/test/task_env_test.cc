#include "task_env.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace msa::jobd {
namespace {

using ::testing::Contains;
using ::testing::Not;

struct TaskEnvironmentTest : ::testing::Test {
  TaskEnvironmentTest() {
    member.node = "bn0";
    member.module = ModuleId(1);
    member.module_name = "booster";
    member.module_kind = "gpu";
    options.job = JobId(7);
    options.member = &member;
    options.component = 1;
    options.rank = Rank(5);
    options.local_rank = 2;
    options.world_size = 8;
    options.nodes = {"cn0", "bn0"};
    options.job_socket = "/d/job.sock";
    options.open_mpi.shm_directory = "/dev/shm/x";
  }
  wire::Member member;
  TaskEnvironmentOptions options;
};

TEST_F(TaskEnvironmentTest, NamesTheTasksPlace) {
  const auto env = TaskEnvironment(options);
  for (const char* line :
       {"MSA_JOB_ID=7", "MSA_STEP_ID=0", "MSA_NODE=bn0", "MSA_MODULE=booster", "MSA_MODULE_ID=1",
        "MSA_MODULE_KIND=gpu", "MSA_COMPONENT=1", "MSA_RANK=5", "MSA_LOCAL_RANK=2", "MSA_WORLD_SIZE=8",
        "MSA_NODELIST=cn0,bn0", "MSA_JOB_SOCKET=/d/job.sock", "PSP_MSA_MODULE_ID=1"})
    EXPECT_THAT(env, Contains(line));
}

TEST_F(TaskEnvironmentTest, ReplacesAnOuterJobsNamesAndKeepsTheRest) {
  options.base = {"MSA_RANK=0",
                  "PMI_PORT=login:1",
                  "PMI_SPAWNED=1",
                  "PMIX_NAMESPACE=outer",
                  "PMIX_SERVER_URI41=outer",
                  "HOSTNAME=login",
                  "TMPDIR=/t",
                  "SLURM_JOB_ID=1",
                  "MSA_DIR=/d"};
  const auto env = TaskEnvironment(options);
  EXPECT_THAT(env, Not(Contains("MSA_RANK=0")));
  EXPECT_THAT(env, Not(Contains("PMI_PORT=login:1")));
  EXPECT_THAT(env, Not(Contains("PMI_SPAWNED=1")));
  EXPECT_THAT(env, Not(Contains("PMIX_NAMESPACE=outer")));
  EXPECT_THAT(env, Not(Contains("PMIX_SERVER_URI41=outer")));
  for (const char* line : {"HOSTNAME=login", "TMPDIR=/t", "SLURM_JOB_ID=1", "MSA_DIR=/d"})
    EXPECT_THAT(env, Contains(line));
}

TEST_F(TaskEnvironmentTest, TheCommandsOwnWinsOverTheSubmissionAndPmixOverAll) {
  options.base = {"A=1", "B=1"};
  options.app = {"B=2", "PMIX_RANK=9", "OMPI_PARENT_PORT=port"};
  options.pmix = {"PMIX_RANK=5"};
  const auto env = TaskEnvironment(options);
  for (const char* line : {"A=1", "B=2", "PMIX_RANK=5", "OMPI_PARENT_PORT=port"})
    EXPECT_THAT(env, Contains(line));
  EXPECT_EQ(
      std::count_if(env.begin(), env.end(), [](const std::string& line) { return line.starts_with("B="); }),
      1);
}

TEST_F(TaskEnvironmentTest, LeadsToThePmiServer) {
  options.base = {"PMI_FD=3", "PMI_RANK=0", "PMI_SIZE=1", "MPI_LOCALRANKID=0"};
  options.pmi_fd = 20;
  options.local_size = 4;
  const auto env = TaskEnvironment(options);
  for (const char* line : {"PMI_FD=20", "PMI_RANK=5", "PMI_SIZE=8", "MPI_LOCALRANKID=2", "MPI_LOCALNRANKS=4"})
    EXPECT_THAT(env, Contains(line));
  EXPECT_THAT(env, Not(Contains("PMI_FD=3")));
}

TEST_F(TaskEnvironmentTest, ATaskOfSlurmKeepsItsTuningAndItsOwnPreloads) {
  options.mpi_library = "/lib/libmsampi.so";
  options.open_mpi.tasks_on_machine = 8;
  options.open_mpi.machine_cores = 2;
  const auto ready = SlurmEnvironment(TaskEnvironment(options), {"LD_PRELOAD=libtrace.so:/lib/libmsampi.so",
                                                                 "OMPI_MCA_mpi_yield_when_idle=0"});
  EXPECT_THAT(ready.set, Contains("LD_PRELOAD=/lib/libmsampi.so:libtrace.so"));
  EXPECT_THAT(ready.set, Contains("MSA_RANK=5"));
  EXPECT_THAT(ready.set, Not(Contains("OMPI_MCA_mpi_yield_when_idle=1")));
  for (const std::string& line : ready.set)
    EXPECT_FALSE(line.starts_with("PATH=") || line.starts_with("HOME="));
  for (const char* name :
       {"PMI_PORT", "MSA_PARENT_NAMESPACE", "MSA_SPAWN_TICKET", "PMIX_SERVER_URI41", "OMPI_PARENT_PORT"})
    EXPECT_THAT(ready.unset, Contains(name));
  for (const std::string& name : ready.unset)
    EXPECT_TRUE(std::none_of(ready.set.begin(), ready.set.end(), [&](const std::string& line) {
      return line.starts_with(name + "=");
    })) << name;
}

TEST_F(TaskEnvironmentTest, AChildUnderSlurmInheritsNeitherItsParentsPlaceNorItsStepOfSlurm) {
  EXPECT_THAT(InheritedEnvironment({"PATH=/bin", "SLURM_PROCID=3", "SLURMD_NODENAME=cn0", "MSA_RANK=3",
                                    "PMIX_SERVER_URI41=x", "OMPI_PARENT_PORT=y", "MSA_ARCH=booster",
                                    "OMP_NUM_THREADS=4", "MSA_SPAWN_TICKET=t"}),
              ::testing::ElementsAre("PATH=/bin", "OMP_NUM_THREADS=4"));
}

TEST_F(TaskEnvironmentTest, LinesWithoutANameAreDropped) {
  options.base = {"", "=x", "novalue"};
  const auto env = TaskEnvironment(options);
  for (const char* line : {"", "=x", "novalue"}) EXPECT_THAT(env, Not(Contains(line)));
}

}  // namespace
}  // namespace msa::jobd
