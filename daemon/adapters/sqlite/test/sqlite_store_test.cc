#include "msa/adapters/sqlite/sqlite_store.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "msa/base/wire.h"
#include "msa/support/scratch_directory.h"

namespace msa {
namespace {

class SqliteStoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<JobStore> MustOpen(const SqliteOptions& options = {}) {
    auto store = OpenSqliteStore(path_, options);
    EXPECT_TRUE(store.ok()) << store.status().ToString();
    return store.ok() ? std::move(*store) : nullptr;
  }

  static JobRecord SomeJob(std::uint64_t id) {
    JobRecord job;
    job.id = JobId(id);
    job.token = "token";
    job.user = {1000, 100};
    job.user_name = "ada";
    job.spec.name = "hello";
    job.spec.components.resize(2);
    job.spec.components[1].argv = {"./b", "-x", ""};
    job.spec.env = {"A=1", std::string("B=\0x", 4)};
    job.state = JobState::kRunning;
    job.submitted_at = FromUnixMillis(1'700'000'000'123);
    job.members.resize(2);
    job.members[1].cores = {0, 3, 65535};
    job.allocations.resize(1);
    job.allocations[0].memory = Bytes(1u << 30);
    job.epoch = Epoch(7);
    return job;
  }

  // Overwrites or damages the file by plain SQL or bytes, as another program would.
  void Sql(const char* sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);
  }

  support::ScratchDirectory scratch_;
  const std::string path_ = scratch_ / "state.db";
};

TEST_F(SqliteStoreTest, RegionsAndLeasesSurviveAndTheirNumbersAreNotReused) {
  RegionRecord region;
  region.uuid = {0xdead, 0xbeef};
  region.name = "grid";
  region.token = "t";
  region.owner = {1000, 100};
  region.user_name = "ada";
  region.mode = 0640;
  region.acl = {{wire::NamAclKind::kGroup, 7, NamRights::kRead}};
  region.lifetime = wire::NamLifetime::kPersistent;
  region.phase = RegionPhase::kCommitted;
  region.created_at = FromUnixMillis(1'700'000'000'123);
  region.extents = {{"nam0", Bytes(192)}, {"nam1", Bytes(64), true, true}};
  region.segments = {{0, 0, 0, Bytes(100), 8}, {0, 1, 128, Bytes(64), 1}, {1, 0, 0, Bytes(64), 4}};
  LeaseRecord lease;
  lease.id = LeaseId(9);
  lease.region = region.uuid;
  lease.holder.job = JobId(3);
  lease.holder.client = NamClientId(~std::uint64_t{0});
  lease.groups = {4, 5};
  {
    const auto store = MustOpen();
    ASSERT_TRUE(store->Commit({nam_effect::PutRegion{region}, nam_effect::PutLease{lease}}).ok());
    region.generation = Generation(2);
    ASSERT_TRUE(store->Commit({nam_effect::PutRegion{region}}).ok());
  }
  {
    const auto store = MustOpen();
    const auto state = store->LoadAll();
    ASSERT_TRUE(state.ok());
    ASSERT_EQ(state->nam.regions.size(), 1u);
    EXPECT_EQ(wire::Encode(state->nam.regions[0]), wire::Encode(region));
    EXPECT_EQ(state->nam.regions[0].bytes(), Bytes(228));
    ASSERT_EQ(state->nam.leases.size(), 1u);
    EXPECT_EQ(wire::Encode(state->nam.leases[0]), wire::Encode(lease));
    ASSERT_TRUE(
        store->Commit({nam_effect::DeleteLease{lease.id}, nam_effect::DeleteRegion{region.uuid}}).ok());
  }
  const auto state = MustOpen()->LoadAll();
  ASSERT_TRUE(state.ok());
  EXPECT_TRUE(state->nam.regions.empty());
  EXPECT_TRUE(state->nam.leases.empty());
  EXPECT_EQ(state->nam.last_lease, LeaseId(9));
}

TEST_F(SqliteStoreTest, GivesBackEveryFieldOfWhatWasCommitted) {
  const JobRecord job = SomeJob(3);
  GrantRecord grant;
  grant.id = GrantId(9);
  grant.job = JobId(3);
  grant.members = {4, 5};
  {
    auto store = MustOpen();
    ASSERT_TRUE(
        store->Commit({effect::PutJob{job}, effect::PutNode{{"bn0", true, "fan"}}, effect::PutGrant{grant}})
            .ok());
  }
  const auto state = MustOpen()->LoadAll();
  ASSERT_TRUE(state.ok()) << state.status().ToString();
  ASSERT_EQ(state->jobs.size(), 1u);
  EXPECT_EQ(wire::Encode(state->jobs[0]), wire::Encode(job));
  ASSERT_EQ(state->nodes.size(), 1u);
  EXPECT_EQ(state->nodes[0].name, "bn0");
  EXPECT_TRUE(state->nodes[0].drained);
  EXPECT_EQ(state->nodes[0].reason, "fan");
  ASSERT_EQ(state->grants.size(), 1u);
  EXPECT_EQ(wire::Encode(state->grants[0]), wire::Encode(grant));
}

TEST_F(SqliteStoreTest, PutReplacesAndDeleteRemoves) {
  auto store = MustOpen();
  JobRecord job = SomeJob(1);
  ASSERT_TRUE(store->Commit({effect::PutJob{job}, effect::PutJob{SomeJob(2)}}).ok());
  job.state = JobState::kCompleted;
  ASSERT_TRUE(store->Commit({effect::PutJob{job}, effect::DeleteJob{JobId(2)}}).ok());
  const auto state = store->LoadAll();
  ASSERT_TRUE(state.ok());
  ASSERT_EQ(state->jobs.size(), 1u);
  EXPECT_EQ(state->jobs[0].state, JobState::kCompleted);
}

TEST_F(SqliteStoreTest, RemembersTheHighestIdsOfRecordsThatAreGone) {
  {
    auto store = MustOpen();
    GrantRecord grant;
    grant.id = GrantId(12);
    ASSERT_TRUE(store->Commit({effect::PutJob{SomeJob(41)}, effect::PutGrant{grant}}).ok());
    ASSERT_TRUE(store
                    ->Commit({effect::DeleteJob{JobId(41)}, effect::DeleteGrant{GrantId(12)},
                              effect::PutJob{SomeJob(3)}})
                    .ok());
  }
  const auto state = MustOpen()->LoadAll();
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->last_job, JobId(41));
  EXPECT_EQ(state->last_grant, GrantId(12));
}

TEST_F(SqliteStoreTest, SurvivesSigkillRightAfterACommit) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto store = OpenSqliteStore(path_);
    if (store.ok() && (*store)->Commit({effect::PutJob{SomeJob(5)}}).ok()) ::kill(::getpid(), SIGKILL);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const auto state = MustOpen()->LoadAll();
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->jobs.size(), 1u);
}

TEST_F(SqliteStoreTest, NeverShowsHalfACommitWheneverTheWriterIsKilled) {
  for (std::uint64_t round = 1; round <= 8; ++round) {
    int started[2];
    ASSERT_EQ(::pipe(started), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto store = OpenSqliteStore(path_);
      for (std::uint64_t n = round * 1'000'000; store.ok(); ++n) {
        if ((*store)
                ->Commit({effect::PutJob{SomeJob(n)}, effect::PutNode{{"bn0", true, std::to_string(n)}}})
                .ok())
          if (::write(started[1], "x", 1) != 1) break;
      }
      ::_exit(1);
    }
    ::close(started[1]);
    // Killed after a different number of commits each round, wherever the writer is then.
    char byte = 0;
    for (std::uint64_t i = 0; i < round; ++i) ASSERT_EQ(::read(started[0], &byte, 1), 1);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(started[0]);
    const auto state = MustOpen()->LoadAll();
    ASSERT_TRUE(state.ok()) << state.status().ToString();
    ASSERT_EQ(state->nodes.size(), 1u);
    EXPECT_EQ(state->nodes[0].reason, std::to_string(state->jobs.back().id.value));
    EXPECT_GE(state->jobs.size(), round);
  }
}

TEST_F(SqliteStoreTest, SaysThatTheFileIsDamaged) {
  {
    auto store = MustOpen();
    for (std::uint64_t id = 1; id <= 200; ++id)
      ASSERT_TRUE(store->Commit({effect::PutJob{SomeJob(id)}}).ok());
  }
  {
    // Every page but the first, which holds the header.
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096);
    file << std::string(std::filesystem::file_size(path_) - 4096, '\x5a');
  }
  const auto store = OpenSqliteStore(path_);
  const Status status = store.ok() ? (*store)->LoadAll().status() : store.status();
  EXPECT_EQ(status.code(), Code::kDataLoss) << status.ToString();
  EXPECT_NE(status.message().find(path_), std::string::npos);
  EXPECT_NE(status.message().find("move it away"), std::string::npos) << status.message();
}

TEST_F(SqliteStoreTest, AFullStoreChangesNothingAndSaysSo) {
  auto store = MustOpen({.max_pages = 24});
  ASSERT_TRUE(store->Commit({effect::PutJob{SomeJob(1)}}).ok());
  JobRecord big = SomeJob(2);
  big.spec.env = {std::string(200'000, 'x')};
  const Status full = store->Commit({effect::PutJob{SomeJob(3)}, effect::PutJob{big}});
  EXPECT_EQ(full.code(), Code::kResourceExhausted);
  EXPECT_NE(full.message().find(path_), std::string::npos) << full.message();
  EXPECT_NE(full.message().find("free space"), std::string::npos) << full.message();
  const auto state = store->LoadAll();
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->jobs.size(), 1u);
  EXPECT_TRUE(store->Commit({effect::PutJob{SomeJob(4)}}).ok())
      << "a store must go on when a smaller change fits";
}

TEST_F(SqliteStoreTest, RefusesASecondController) {
  auto store = MustOpen();
  ASSERT_TRUE(store->Commit({effect::PutJob{SomeJob(1)}}).ok());
  const auto second = OpenSqliteStore(path_, {.busy_wait = Millis(1)});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), Code::kUnavailable) << second.status().ToString();
}

TEST_F(SqliteStoreTest, RefusesANewerSchema) {
  MustOpen();
  Sql("PRAGMA user_version = 99");
  const auto store = OpenSqliteStore(path_);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.status().code(), Code::kFailedPrecondition);
  EXPECT_NE(store.status().message().find("99"), std::string::npos) << store.status().message();
}

TEST_F(SqliteStoreTest, RefusesTheDatabaseOfAnotherProgram) {
  Sql("CREATE TABLE songs (title TEXT)");
  const auto store = OpenSqliteStore(path_);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.status().code(), Code::kFailedPrecondition) << store.status().ToString();
}

TEST_F(SqliteStoreTest, RefusesAFileThatIsNoDatabase) {
  std::ofstream(path_) << std::string(8192, 'q');
  const auto store = OpenSqliteStore(path_);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.status().code(), Code::kFailedPrecondition) << store.status().ToString();
}

TEST_F(SqliteStoreTest, SaysThatARecordIsDamaged) {
  {
    auto store = MustOpen();
    ASSERT_TRUE(store->Commit({effect::PutJob{SomeJob(1)}}).ok());
  }
  Sql("UPDATE job SET record = substr(record, 1, length(record) - 3)");
  const auto state = MustOpen()->LoadAll();
  ASSERT_FALSE(state.ok());
  EXPECT_EQ(state.status().code(), Code::kDataLoss);
}

TEST_F(SqliteStoreTest, SaysThatTheDirectoryIsMissing) {
  const auto store = OpenSqliteStore(scratch_ / "none/state.db");
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.status().code(), Code::kNotFound) << store.status().ToString();
}

TEST_F(SqliteStoreTest, KeepsItsFilesToItsUser) {
  auto store = MustOpen();
  ASSERT_TRUE(store->Commit({effect::PutJob{SomeJob(1)}}).ok());
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_GT(store->SizeBytes(), 0);
}

}  // namespace
}  // namespace msa
