#pragma once

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "jobd_harness.h"
#include "slurm_step.h"

namespace msa::jobd {

// A job of Slurm with a node in each of two modules, whose tasks come as SlurmSteps.
class SlurmJobTest : public ::testing::Test {
 protected:
  void Begin() {
    RunSpec spec;
    spec.mode = wire::JobMode::kAlloc;
    spec.slurms = true;
    spec.interactive = false;
    spec.attach = false;
    job.WarmUp();
    job.Launch(spec);
    ASSERT_TRUE(job.Until([&] { return job.started; }));
  }
  // As Slurm's epilog brings about.
  void TearDown() override {
    job.ToHead(wire::CancelJob{wire::JobState::kCompleted, 0, "Slurm has ended it"});
    EXPECT_TRUE(job.UntilOver());
  }
  static SlurmStepSpec Mpi(std::vector<std::string> rank_node, std::vector<std::string> args,
                           const char* program = MSA_TEST_MPI_JOB) {
    SlurmStepSpec spec;
    spec.rank_node = std::move(rank_node);
    spec.argv = {program};
    spec.argv.insert(spec.argv.end(), args.begin(), args.end());
    return spec;
  }

  JobdHarness job{{{"cn0"}, {"bn0", "booster", 1}}};
};

}  // namespace msa::jobd
