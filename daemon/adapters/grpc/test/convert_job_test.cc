#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/adapters/grpc/convert_job_internal.h"
#include "msa/base/wire.h"

namespace msa {
namespace {

using ::testing::ElementsAre;

// A job of cn0 and bn0 to which cn1 and dn0 were lent; cn1 it has given back.
JobRecord Lent() {
  JobRecord job;
  job.id = JobId(5);
  job.state = JobState::kRunning;
  const auto add = [&](const char* node, std::uint32_t member, std::uint64_t grant, bool held) {
    job.allocations.push_back({.node = node, .module = "m", .grant = GrantId(grant), .member = member});
    if (!held) return;
    wire::Member& m = job.members.emplace_back();
    m.index = member;
    m.node = node;
  };
  add("cn0", 0, 0, true);
  add("bn0", 1, 0, true);
  add("cn1", 2, 1, false);
  add("dn0", 3, 2, true);
  return job;
}

v1::Job Listed(const JobRecord& job) {
  JobView view;
  view.record = &job;
  v1::Job out;
  ToProto(view, JobDetail::kListed, out);
  return out;
}

std::vector<bool> Held(const v1::Job& job) {
  std::vector<bool> out;
  for (const v1::Allocation& share : job.allocations()) out.push_back(share.held());
  return out;
}

TEST(ConvertJob, ARunningJobHasTheNodesThatItHoldsNow) {
  const v1::Job job = Listed(Lent());
  EXPECT_EQ(job.nodes(), 3u);
  EXPECT_THAT(Held(job), ElementsAre(true, true, false, true));
}

TEST(ConvertJob, AJobThatHasEndedHasAllTheNodesThatItHad) {
  JobRecord job = Lent();
  job.state = JobState::kCompleted;
  job.members.clear();
  EXPECT_EQ(Listed(job).nodes(), 4u);
  EXPECT_THAT(Held(Listed(job)), ElementsAre(false, false, false, false));
}

TEST(ConvertJob, AJobThatWaitsHasTheNodesThatItNeedsAtLeast) {
  JobRecord job;
  job.spec.components.resize(2);
  job.spec.components[0].resources.min_nodes = 2;
  job.spec.components[1].resources.min_nodes = 3;
  EXPECT_EQ(Listed(job).nodes(), 5u);
}

TEST(ConvertJob, AJobThatWaitsHasTheNodesThatItIsExpectedToGet) {
  JobRecord job;
  job.spec.components.resize(1);
  job.spec.components[0].resources.min_nodes = 1;
  v1::Job out;
  ToProto({.record = &job, .expected_nodes = 2}, JobDetail::kListed, out);
  EXPECT_EQ(out.nodes(), 2u);
}

TEST(ConvertJob, NamespacesAreToldWhereTheyAreAskedFor) {
  JobRecord job;
  job.namespaces = {
      {"msa.7.1.0.1", "msa.7.1.0", 2, {"bn0"}, "./c", false, 0, GrantId(4), {GrantId(3), GrantId(4)}}};
  v1::Job listed, with, full;
  ToProto({.record = &job}, JobDetail::kListed, listed);
  ToProto({.record = &job}, JobDetail::kNamespaces, with);
  ToProto({.record = &job}, JobDetail::kFull, full);
  EXPECT_EQ(listed.namespaces_size(), 0);
  ASSERT_EQ(with.namespaces_size(), 1);
  EXPECT_EQ(with.namespaces(0).grant(), 4u);
  ASSERT_EQ(with.namespaces(0).grants_size(), 2);
  EXPECT_EQ(with.namespaces(0).grants(0), 3u);
  EXPECT_FALSE(with.has_spec());
  EXPECT_EQ(full.namespaces_size(), 1);
  EXPECT_TRUE(full.has_spec());
}

TEST(ConvertJob, AGrantKeepsAllOfItsFields) {
  JobRecord job;
  job.id = JobId(7);
  job.user_name = "ada";
  GrantView view;
  view.id = GrantId(3);
  view.job = &job;
  view.request = 2;
  view.state = GrantState::kReleased;
  view.shares.resize(1);
  view.shares[0].node = "bn0";
  view.slots = 8;
  view.module = "booster";
  view.asked_at = FromUnixMillis(10);
  view.since = FromUnixMillis(20);
  view.until = FromUnixMillis(30);
  view.namespaces = {"msa.7.1.0.1"};
  view.reason = "released by ada";
  v1::Grant out;
  ToProto(view, out);
  EXPECT_EQ(out.id(), 3u);
  EXPECT_EQ(out.job_id(), 7u);
  EXPECT_EQ(out.request(), 2u);
  EXPECT_EQ(out.user(), "ada");
  EXPECT_EQ(out.state(), v1::GRANT_STATE_RELEASED);
  EXPECT_EQ(out.allocations(0).node(), "bn0");
  EXPECT_EQ(out.slots(), 8u);
  EXPECT_EQ(out.module(), "booster");
  EXPECT_EQ(out.asked_at_ms(), 10);
  EXPECT_EQ(out.since_ms(), 20);
  EXPECT_EQ(out.until_ms(), 30);
  EXPECT_EQ(out.namespaces(0), "msa.7.1.0.1");
  EXPECT_EQ(out.reason(), "released by ada");
}

TEST(ConvertJob, ASpecSurvivesTheWayThereAndBack) {
  JobSpec spec;
  spec.name = "name";
  spec.env = {"A=1", "B=\xff"};
  spec.cwd = "/tmp";
  spec.time_limit_s = 7;
  spec.stdio = {.out = "o", .err = "e", .in = "i", .label = true, .append = true};
  spec.kill_policy = wire::KillPolicy::kNever;
  spec.no_bind = spec.oversubscribe = spec.no_mpi_library = true;
  spec.on_child_failure = wire::OnChildFailure::kEvent;
  spec.immediate_s = 9;
  spec.nam = Bytes(64 << 20);
  spec.nam_regions = {{"field", NamRights::kRead}, {"mesh", NamRights::kRead | NamRights::kWrite}};
  Component component;
  spec.limits = {{7, 512, 1024}, {4, 0, ~0ull}};
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

TEST(ConvertJob, ABindingWithRightsThatNoJobGetsIsRefused) {
  for (const std::uint32_t rights : {0u, 2u, 4u, 7u, 257u}) {
    v1::JobSpec spec;
    spec.add_nam_regions()->set_rights(rights);
    EXPECT_EQ(JobSpecFromProto(std::move(spec)).status().code(), Code::kInvalidArgument) << rights;
  }
}

TEST(ConvertJob, AKillPolicyThatDoesNotExistIsRefused) {
  v1::JobSpec spec;
  spec.set_kill_policy(static_cast<v1::KillPolicy>(9));
  EXPECT_EQ(JobSpecFromProto(std::move(spec)).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace msa
