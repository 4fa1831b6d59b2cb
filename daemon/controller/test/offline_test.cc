#include "offline.h"

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/adapters/process/files.h"
#include "msa/adapters/process/lock_file.h"
#include "msa/adapters/sqlite/sqlite_store.h"
#include "msa/support/scratch_directory.h"

namespace msa {
namespace {

using ::testing::HasSubstr;

constexpr char kTopology[] =
    "[[module]]\nname = 'cluster'\nid = 0\n[[module.node]]\nnames = 'cn0'\ncores = 4\n";

class Offline : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.directory = scratch_.path();
    options_.topology = scratch_.Write("topology.toml", kTopology);
  }

  static JobRecord Job(std::uint64_t id, JobState state) {
    JobRecord job;
    job.id = JobId(id);
    job.token = fmt::format("token-{}", id);
    job.user = {1000, 1000};
    job.user_name = "ada";
    job.spec.name = fmt::format("job-{}", id);
    job.spec.cwd = "/";
    Component component;
    component.argv = {"true"};
    component.resources.module = "cluster";
    component.resources.ntasks = component.resources.cpus_per_task = 1;
    component.resources.min_nodes = component.resources.max_nodes = 1;
    job.spec.components = {component};
    job.state = state;
    job.submitted_at = FromUnixMillis(1000);
    if (state != JobState::kRunning) return job;
    wire::Member member;
    member.index = 0;
    member.node = "cn0";
    member.cores = {0};
    job.members = {member};
    job.next_member = 1;
    job.placed_at = job.started_at = FromUnixMillis(2000);
    job.allocations = {{.node = "cn0", .module = "cluster", .cores = {0}, .tasks = 1}};
    return job;
  }
  StoredState Stored() const { return *(*OpenSqliteStore(options_.directory + "/state.db"))->LoadAll(); }

  support::ScratchDirectory scratch_;
  DaemonOptions options_;
};

TEST_F(Offline, CancelsWhatHasNotEndedAndKeepsTheRest) {
  {
    auto store = OpenSqliteStore(options_.directory + "/state.db");
    ASSERT_TRUE(store.ok()) << store.status().message();
    GrantRecord grant;
    grant.id = GrantId(1);
    grant.job = JobId(2);
    ASSERT_TRUE(
        (*store)
            ->Commit({effect::PutJob{Job(1, JobState::kCompleted)},
                      effect::PutJob{Job(2, JobState::kRunning)}, effect::PutJob{Job(3, JobState::kPending)},
                      effect::PutGrant{grant}, effect::PutNode{{"cn0", true, "fan"}}})
            .ok());
  }
  const Instant now = FromUnixMillis(5000);
  const auto cancelled = CancelStoredJobs(options_, "the system was taken down", now);
  ASSERT_TRUE(cancelled.ok()) << cancelled.status().message();
  EXPECT_EQ(*cancelled, 2u);
  const StoredState state = Stored();
  ASSERT_EQ(state.jobs.size(), 3u);
  EXPECT_EQ(state.jobs[0].state, JobState::kCompleted);
  for (const JobRecord& job : {state.jobs[1], state.jobs[2]}) {
    EXPECT_EQ(job.state, JobState::kCancelled) << job.spec.name;
    EXPECT_THAT(job.reason, HasSubstr("the system was taken down"));
    EXPECT_EQ(job.ended_at, now);
    EXPECT_TRUE(job.members.empty());
  }
  EXPECT_TRUE(state.grants.empty());
  ASSERT_EQ(state.nodes.size(), 1u);
  EXPECT_EQ(state.nodes[0].reason, "fan");
  EXPECT_EQ(*CancelStoredJobs(options_, "again", now), 0u);
}

TEST_F(Offline, MakesNoStoreWhereThereIsNone) {
  EXPECT_EQ(*CancelStoredJobs(options_, "down", FromUnixMillis(5000)), 0u);
  EXPECT_NE(::access((options_.directory + "/state.db").c_str(), F_OK), 0);
}

TEST_F(Offline, LeavesARunningControllersStoreAlone) {
  { ASSERT_TRUE(OpenSqliteStore(options_.directory + "/state.db").ok()); }
  const auto lock = LockFile::Acquire(options_.directory + "/controller.lock", "msa-controllerd");
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(CancelStoredJobs(options_, "down", FromUnixMillis(5000)).status().code(), Code::kAlreadyExists);
}

}  // namespace
}  // namespace msa
