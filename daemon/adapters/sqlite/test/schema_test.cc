// Stores of earlier schema versions, kept as sqlite3's .dump of files that real daemons left.
#include "schema.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/adapters/sqlite/sqlite_store.h"
#include "msa/support/scratch_directory.h"

#include "schema1_records.h"

namespace msa::sqlite {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SchemaTest : public ::testing::Test {
 protected:
  void Make(const std::string& dump) {
    std::stringstream sql;
    sql << std::ifstream(std::string(MSA_STORE_DATA) + "/" + dump).rdbuf();
    ASSERT_FALSE(sql.str().empty()) << dump;
    Sql(sql.str());
  }
  void Sql(const std::string& sql) {
    const auto db = Database::Open(path_, 0);
    ASSERT_TRUE(db.ok()) << db.status().ToString();
    const Status done = (*db)->Execute(sql.c_str());
    ASSERT_TRUE(done.ok()) << done.ToString();
  }
  std::int64_t Integer(const char* sql) {
    const auto db = Database::Open(path_, 0);
    EXPECT_TRUE(db.ok());
    return *(*db)->QueryInteger(sql);
  }
  // What the store holds once it has been opened.
  StoredState Load() {
    const auto store = OpenSqliteStore(path_, {.on_migrated = [this](const auto& what) { told_ += what; }});
    EXPECT_TRUE(store.ok()) << store.status().ToString();
    if (!store.ok()) return {};
    auto state = (*store)->LoadAll();
    EXPECT_TRUE(state.ok()) << state.status().ToString();
    return state.ok() ? *std::move(state) : StoredState{};
  }

  support::ScratchDirectory scratch_;
  const std::string path_ = scratch_ / "state.db";
  std::string told_;
};

TEST_F(SchemaTest, JobsOfVersionOneAreAllThere) {
  Make("schema1.sql");
  const StoredState state = Load();
  EXPECT_THAT(told_, AllOf(HasSubstr(path_), HasSubstr("from schema version 1 to 3"), HasSubstr("6 jobs")));
  ASSERT_EQ(state.jobs.size(), 6u);
  std::vector<std::string> names;
  std::vector<JobState> states;
  for (const JobRecord& job : state.jobs) {
    names.push_back(job.spec.name);
    states.push_back(job.state);
    EXPECT_EQ(job.user_name, "root");
    EXPECT_EQ(job.token.size(), 32u);
    EXPECT_EQ(job.spec.cwd, "/tmp/msa-fxw");
  }
  EXPECT_THAT(names, ElementsAre("ok", "bad", "pair", "lend", "waits", "gone"));
  EXPECT_THAT(states, ElementsAre(JobState::kCompleted, JobState::kFailed, JobState::kRunning,
                                  JobState::kRunning, JobState::kPending, JobState::kCancelled));
  EXPECT_EQ(state.last_job, JobId(6));
  EXPECT_EQ(state.last_grant, GrantId(1));
  ASSERT_EQ(state.nodes.size(), 1u);
  EXPECT_EQ(state.nodes[0].reason, "fan is loud");
}

TEST_F(SchemaTest, AJobOfVersionOneKeepsItsContent) {
  Make("schema1.sql");
  const StoredState state = Load();
  ASSERT_EQ(state.jobs.size(), 6u);
  const JobRecord& bad = state.jobs[1];
  EXPECT_EQ(bad.exit_code, 3);
  EXPECT_EQ(bad.tasks_failed, 1u);
  EXPECT_EQ(bad.reason, "cn0: task 0: exited with exit code 3");
  EXPECT_EQ(bad.spec.time_limit_s, 300u);
  EXPECT_EQ(ToUnixMillis(bad.submitted_at), 1795278410932);
  EXPECT_EQ(ToUnixMillis(bad.started_at), 1795278410947);
  EXPECT_EQ(ToUnixMillis(bad.ended_at), 1795278410962);
  ASSERT_EQ(bad.namespaces.size(), 1u);
  EXPECT_EQ(bad.namespaces[0].nspace, "msa.2.1.0");

  const JobRecord& pair = state.jobs[2];
  ASSERT_EQ(pair.spec.components.size(), 2u);
  EXPECT_THAT(pair.spec.components[1].argv, ElementsAre("sh", "-c", "sleep 600; echo \"a b\""));
  EXPECT_EQ(pair.spec.components[0].resources.module, "booster");
  EXPECT_EQ(pair.spec.components[0].resources.cpus_per_task, 1u);
  EXPECT_EQ(pair.spec.kill_policy, wire::KillPolicy::kAlways);
  EXPECT_TRUE(pair.spec.no_bind);
  EXPECT_TRUE(pair.spec.stdio.append);
  EXPECT_EQ(pair.stdout_path, "/tmp/msa-fxw/pair-3.out");
  EXPECT_EQ(pair.secret.size(), 64u);
  ASSERT_EQ(pair.members.size(), 3u);
  EXPECT_EQ(pair.members[1].node, "bn1");
  EXPECT_EQ(pair.members[2].module_name, "cluster");
  EXPECT_TRUE(pair.members[0].oversubscribed);
  ASSERT_EQ(pair.allocations.size(), 3u);
  EXPECT_THAT(pair.allocations[0].cores, ElementsAre(0, 1));
  // What this build has added is as if nobody had asked for it.
  EXPECT_EQ(pair.spec.mode, wire::JobMode::kStep);
  EXPECT_TRUE(pair.spec.dependencies.empty());

  const JobRecord& waits = state.jobs[4];
  EXPECT_TRUE(waits.spec.oversubscribe);
  EXPECT_TRUE(waits.spec.no_mpi_library);
  EXPECT_TRUE(waits.spec.components[0].resources.exclusive);
  EXPECT_THAT(waits.spec.components[0].resources.nodelist, ElementsAre("bn0", "bn1"));
  EXPECT_EQ(waits.spec.components[0].resources.memory, Bytes(1u << 30));
  EXPECT_EQ(waits.spec.stdio.out, "/tmp/msa-fxw/w-%t.out");
  EXPECT_FALSE(waits.spec.env.empty());
}

TEST_F(SchemaTest, AGrantOfVersionOneKeepsItsContent) {
  Make("schema1.sql");
  const StoredState state = Load();
  ASSERT_EQ(state.grants.size(), 1u);
  EXPECT_EQ(state.grants[0].job, JobId(4));
  EXPECT_EQ(state.grants[0].incarnation, Incarnation(1));
  EXPECT_THAT(state.grants[0].members, ElementsAre(1u));
  EXPECT_FALSE(state.grants[0].released);
  ASSERT_EQ(state.jobs.size(), 6u);
  const JobRecord& job = state.jobs[3];
  ASSERT_EQ(job.members.size(), 2u);
  EXPECT_EQ(job.members[1].grant, GrantId(1));
  EXPECT_EQ(job.spec.on_child_failure, wire::OnChildFailure::kEvent);
  EXPECT_TRUE(job.HoldsShareOf(GrantId(1)));
}

TEST_F(SchemaTest, AStoreOfTheFirstBuildOfVersionTwoKeepsItsRecordsAndGetsTheTablesOfRegions) {
  Make("schema2.sql");
  const StoredState now = Load();
  EXPECT_THAT(told_, AllOf(HasSubstr("from schema version 2 to 3"), HasSubstr("6 jobs")));
  EXPECT_TRUE(now.nam.regions.empty());
  EXPECT_TRUE(now.nam.leases.empty());
  EXPECT_EQ(now.nam.last_lease, LeaseId(0));
  for (const JobRecord& job : now.jobs) {
    EXPECT_EQ(job.nam, Bytes(0));
    EXPECT_EQ(job.spec.nam, Bytes(0));
    EXPECT_TRUE(job.spec.nam_regions.empty());
  }
  EXPECT_EQ(Integer("SELECT count(*) FROM region"), 0);
  EXPECT_EQ(Integer("SELECT count(*) FROM nam_lease"), 0);
  std::filesystem::remove(path_);
  Make("schema1.sql");
  const StoredState before = Load();
  ASSERT_EQ(now.jobs.size(), 6u);
  ASSERT_EQ(before.jobs.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_EQ(wire::Encode(now.jobs[i]), wire::Encode(before.jobs[i])) << "job " << i + 1;
  ASSERT_EQ(now.grants.size(), 1u);
  EXPECT_EQ(wire::Encode(now.grants[0]), wire::Encode(before.grants[0]));
}

TEST_F(SchemaTest, AStoreIsBroughtUpToDateOnce) {
  Make("schema1.sql");
  (void)Load();
  EXPECT_EQ(Integer("PRAGMA user_version"), kSchemaVersion);
  told_.clear();
  EXPECT_EQ(Load().jobs.size(), 6u);
  EXPECT_EQ(told_, "");
}

TEST_F(SchemaTest, ARecordThatIsNotOfItsVersionStopsTheStepAndChangesNothing) {
  Make("schema1.sql");
  Sql("UPDATE job SET record = substr(record, 1, length(record) - 1) WHERE id=5");
  const auto store = OpenSqliteStore(path_);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.status().code(), Code::kDataLoss);
  EXPECT_THAT(store.status().message(),
              AllOf(HasSubstr("job 5"), HasSubstr(path_), HasSubstr("bring back a copy")));
  EXPECT_EQ(Integer("PRAGMA user_version"), 1);
  EXPECT_EQ(Integer("SELECT length(record) FROM job WHERE id=1"), 406) << "a half-made step was kept";
}

TEST_F(SchemaTest, AStoreOfANewerVersionIsRefusedWithBothVersionsAndARemedy) {
  Make("schema1.sql");
  Sql(fmt::format("PRAGMA user_version = {}", kSchemaVersion + 1));
  const auto store = OpenSqliteStore(path_);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.status().code(), Code::kFailedPrecondition);
  EXPECT_THAT(store.status().message(),
              AllOf(HasSubstr(fmt::format("schema version {}", kSchemaVersion + 1)),
                    HasSubstr(fmt::format("up to {}", kSchemaVersion)), HasSubstr("start the newer"),
                    testing::Not(HasSubstr("damaged"))));
}

TEST_F(SchemaTest, ARecordOfTheWrongLayoutIsNotTakenForOne) {
  EXPECT_EQ(JobFromSchema1("").status().code(), Code::kDataLoss);
  EXPECT_EQ(GrantFromSchema1(std::string(53, '\1')).status().code(), Code::kDataLoss);
  EXPECT_EQ(GrantFromSchema1(std::string(54, '\0')).status().code(), Code::kDataLoss);
}

}  // namespace
}  // namespace msa::sqlite
