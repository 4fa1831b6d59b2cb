#include <gtest/gtest.h>

#include "msa/adapters/grpc/convert_job_internal.h"
#include "msa/base/wire.h"

namespace msa {
namespace {

TEST(ConvertJob, ASpecSurvivesTheWayThereAndBack) {
  JobSpec spec;
  spec.name = "name";
  spec.env = {"A=1", "B=\xff"};
  spec.cwd = "/tmp";
  spec.time_limit_s = 7;
  spec.stdio = {.out = "o", .err = "e", .in = "i", .label = true, .append = true};
  spec.kill_policy = wire::KillPolicy::kNever;
  spec.no_bind = spec.oversubscribe = true;
  spec.immediate_s = 9;
  Component component;
  component.resources = {.module = "booster",
                         .min_nodes = 2,
                         .max_nodes = 4,
                         .ntasks = 6,
                         .ntasks_per_node = 3,
                         .cpus_per_task = 2,
                         .memory = Bytes(5),
                         .gpus_per_node = 1,
                         .nodelist = {"bn0", "bn1"},
                         .exclude = {"bn2"},
                         .exclusive = true};
  component.argv = {"./a", "x y"};
  component.env = {"C=3"};
  component.cwd = "/";
  spec.components = {component};
  v1::JobSpec there;
  ToProto(spec, there);
  const auto back = JobSpecFromProto(std::move(there));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(wire::Encode(*back), wire::Encode(spec));
}

TEST(ConvertJob, AKillPolicyThatDoesNotExistIsRefused) {
  v1::JobSpec spec;
  spec.set_kill_policy(static_cast<v1::KillPolicy>(9));
  EXPECT_EQ(JobSpecFromProto(std::move(spec)).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace msa
