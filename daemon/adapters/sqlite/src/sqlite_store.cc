#include "msa/adapters/sqlite/sqlite_store.h"

#include <sys/stat.h>
#include <sys/statfs.h>

#include <cerrno>
#include <type_traits>

#include "database.h"
#include "record_archive.h"
#include "schema.h"

namespace msa {
namespace {

using sqlite::Database;
using sqlite::DatabaseError;
using sqlite::Statement;

// statfs(2): the magic numbers of file systems on which WAL's shared memory does not hold between hosts.
constexpr long kNfsMagic = 0x6969;
constexpr long kLustreMagic = 0x0bd00bd0;

std::string DirectoryOf(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Status CheckFileSystem(const std::string& path) {
  const std::string directory = DirectoryOf(path);
  struct statfs info {};
  if (::statfs(directory.c_str(), &info) != 0)
    return ErrnoError(errno, "directory '" + directory + "' of the job store");
  const char* name = info.f_type == kNfsMagic                         ? "NFS"
                     : static_cast<long>(info.f_type) == kLustreMagic ? "Lustre"
                                                                      : nullptr;
  if (name == nullptr) return Status::Ok();
  return Error(Code::kFailedPrecondition,
               "job store '{}' is on {}, which cannot hold a write-ahead log; choose a --dir on a local disk",
               path, name);
}

template <class Record>
Result<Record> ReadRecord(const std::string& blob, const std::string& path, std::string_view what) {
  Record record;
  if (sqlite::DecodeRecord(blob, record)) return record;
  return Error(Code::kDataLoss,
               "job store '{}': a {} record of {} bytes is damaged; bring back a copy, or move the store "
               "away to start empty",
               path, what, blob.size());
}

class SqliteStore final : public JobStore {
 public:
  explicit SqliteStore(std::unique_ptr<Database> db) : db_(std::move(db)) {}

  Status Prepare() {
    MSA_ASSIGN_OR_RETURN(begin_, db_->Prepare("BEGIN IMMEDIATE"));
    MSA_ASSIGN_OR_RETURN(commit_, db_->Prepare("COMMIT"));
    MSA_ASSIGN_OR_RETURN(rollback_, db_->Prepare("ROLLBACK"));
    MSA_ASSIGN_OR_RETURN(put_job_,
                         db_->Prepare("INSERT OR REPLACE INTO job VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)"));
    MSA_ASSIGN_OR_RETURN(delete_job_, db_->Prepare("DELETE FROM job WHERE id=?1"));
    MSA_ASSIGN_OR_RETURN(put_node_, db_->Prepare("INSERT OR REPLACE INTO node VALUES (?1,?2,?3)"));
    MSA_ASSIGN_OR_RETURN(put_grant_, db_->Prepare("INSERT OR REPLACE INTO job_grant VALUES (?1,?2,?3,?4)"));
    MSA_ASSIGN_OR_RETURN(delete_grant_, db_->Prepare("DELETE FROM job_grant WHERE id=?1"));
    MSA_ASSIGN_OR_RETURN(put_region_,
                         db_->Prepare("INSERT OR REPLACE INTO region VALUES (?1,?2,?3,?4,?5,?6)"));
    MSA_ASSIGN_OR_RETURN(delete_region_, db_->Prepare("DELETE FROM region WHERE uuid=?1"));
    MSA_ASSIGN_OR_RETURN(put_lease_, db_->Prepare("INSERT OR REPLACE INTO nam_lease VALUES (?1,?2,?3,?4)"));
    MSA_ASSIGN_OR_RETURN(delete_lease_, db_->Prepare("DELETE FROM nam_lease WHERE id=?1"));
    MSA_ASSIGN_OR_RETURN(raise_counter_,
                         db_->Prepare("UPDATE counter SET value=?2 WHERE name=?1 AND value<?2"));
    return Status::Ok();
  }

  Result<StoredState> LoadAll() override {
    StoredState state;
    MSA_ASSIGN_OR_RETURN(Statement jobs, db_->Prepare("SELECT record FROM job ORDER BY id"));
    MSA_RETURN_IF_ERROR(LoadRecords(jobs, "job", state.jobs));
    MSA_ASSIGN_OR_RETURN(Statement grants, db_->Prepare("SELECT record FROM job_grant ORDER BY id"));
    MSA_RETURN_IF_ERROR(LoadRecords(grants, "grant", state.grants));
    MSA_ASSIGN_OR_RETURN(Statement nodes,
                         db_->Prepare("SELECT name, drained, reason FROM node ORDER BY name"));
    for (;;) {
      MSA_ASSIGN_OR_RETURN(const bool row, nodes.Step());
      if (!row) break;
      state.nodes.push_back({nodes.Text(0), nodes.Integer(1) != 0, nodes.Text(2)});
    }
    MSA_ASSIGN_OR_RETURN(const std::int64_t last_job,
                         db_->QueryInteger("SELECT value FROM counter WHERE name='job'"));
    MSA_ASSIGN_OR_RETURN(const std::int64_t last_grant,
                         db_->QueryInteger("SELECT value FROM counter WHERE name='grant'"));
    state.last_job = JobId(static_cast<std::uint64_t>(last_job));
    state.last_grant = GrantId(static_cast<std::uint64_t>(last_grant));
    MSA_RETURN_IF_ERROR(LoadNam(state.nam));
    return state;
  }

  Status Commit(const std::vector<StoreChange>& changes) override {
    if (changes.empty()) return Status::Ok();
    MSA_RETURN_IF_ERROR(begin_.Run());
    Status status = Write(changes);
    if (status.ok()) status = commit_.Run();
    if (!status.ok()) {
      // After some errors SQLite has rolled back already (sqlite.org/lang_transaction.html).
      if (sqlite3_get_autocommit(db_->get()) == 0) (void)rollback_.Run();
      return status;
    }
    return Status::Ok();
  }

  std::int64_t SizeBytes() const override {
    std::int64_t total = 0;
    for (const char* suffix : {"", "-wal"}) {
      struct stat info {};
      if (::stat((db_->path() + suffix).c_str(), &info) == 0) total += info.st_size;
    }
    return total;
  }

 private:
  Status LoadNam(StoredNam& nam) {
    MSA_ASSIGN_OR_RETURN(Statement regions, db_->Prepare("SELECT record FROM region ORDER BY uuid"));
    MSA_RETURN_IF_ERROR(LoadRecords(regions, "region", nam.regions));
    MSA_ASSIGN_OR_RETURN(Statement leases, db_->Prepare("SELECT record FROM nam_lease ORDER BY id"));
    MSA_RETURN_IF_ERROR(LoadRecords(leases, "lease", nam.leases));
    MSA_ASSIGN_OR_RETURN(const std::int64_t last,
                         db_->QueryInteger("SELECT value FROM counter WHERE name='lease'"));
    nam.last_lease = LeaseId(static_cast<std::uint64_t>(last));
    return Status::Ok();
  }

  template <class Record>
  Status LoadRecords(Statement& rows, std::string_view what, std::vector<Record>& out) {
    for (;;) {
      MSA_ASSIGN_OR_RETURN(const bool row, rows.Step());
      if (!row) return Status::Ok();
      MSA_ASSIGN_OR_RETURN(Record record, ReadRecord<Record>(rows.Blob(0), db_->path(), what));
      out.push_back(std::move(record));
    }
  }

  Status Write(const std::vector<StoreChange>& changes) {
    for (const StoreChange& change : changes)
      MSA_RETURN_IF_ERROR(std::visit([this](const auto& c) { return Apply(c); }, change));
    return Status::Ok();
  }

  Status Raise(std::string_view counter, std::uint64_t value) {
    return raise_counter_.BindText(1, counter).Bind(2, static_cast<std::int64_t>(value)).Run();
  }

  Status Apply(const effect::PutJob& change) {
    const JobRecord& job = change.record;
    const std::string blob = sqlite::EncodeRecord(job);
    MSA_RETURN_IF_ERROR(put_job_.Bind(1, static_cast<std::int64_t>(job.id.value))
                            .Bind(2, static_cast<std::int64_t>(job.state))
                            .Bind(3, job.user.uid)
                            .BindText(4, job.user_name)
                            .BindText(5, job.spec.name)
                            .Bind(6, ToUnixMillis(job.submitted_at))
                            .Bind(7, ToUnixMillis(job.started_at))
                            .Bind(8, ToUnixMillis(job.ended_at))
                            .Bind(9, job.exit_code)
                            .BindBlob(10, blob)
                            .Run());
    return Raise("job", job.id.value);
  }
  Status Apply(const effect::DeleteJob& change) {
    return delete_job_.Bind(1, static_cast<std::int64_t>(change.job.value)).Run();
  }
  Status Apply(const effect::PutNode& change) {
    return put_node_.BindText(1, change.record.name)
        .Bind(2, change.record.drained ? 1 : 0)
        .BindText(3, change.record.reason)
        .Run();
  }
  Status Apply(const effect::PutGrant& change) {
    const GrantRecord& grant = change.record;
    const std::string blob = sqlite::EncodeRecord(grant);
    MSA_RETURN_IF_ERROR(put_grant_.Bind(1, static_cast<std::int64_t>(grant.id.value))
                            .Bind(2, static_cast<std::int64_t>(grant.job.value))
                            .Bind(3, grant.released ? 1 : 0)
                            .BindBlob(4, blob)
                            .Run());
    return Raise("grant", grant.id.value);
  }
  Status Apply(const nam_effect::PutRegion& change) {
    const RegionRecord& region = change.record;
    const std::string uuid = ToText(region.uuid);
    const std::string blob = sqlite::EncodeRecord(region);
    return put_region_.BindText(1, uuid)
        .BindText(2, region.name)
        .Bind(3, region.owner.uid)
        .Bind(4, static_cast<std::int64_t>(region.bytes().value))
        .Bind(5, static_cast<std::int64_t>(region.phase))
        .BindBlob(6, blob)
        .Run();
  }
  Status Apply(const nam_effect::DeleteRegion& change) {
    const std::string uuid = ToText(change.uuid);
    return delete_region_.BindText(1, uuid).Run();
  }
  Status Apply(const nam_effect::PutLease& change) {
    const LeaseRecord& lease = change.record;
    const std::string region = ToText(lease.region);
    const std::string blob = sqlite::EncodeRecord(lease);
    MSA_RETURN_IF_ERROR(put_lease_.Bind(1, static_cast<std::int64_t>(lease.id.value))
                            .BindText(2, region)
                            .Bind(3, static_cast<std::int64_t>(lease.holder.job.value))
                            .BindBlob(4, blob)
                            .Run());
    return Raise("lease", lease.id.value);
  }
  Status Apply(const nam_effect::DeleteLease& change) {
    return delete_lease_.Bind(1, static_cast<std::int64_t>(change.lease.value)).Run();
  }
  Status Apply(const effect::DeleteGrant& change) {
    return delete_grant_.Bind(1, static_cast<std::int64_t>(change.grant.value)).Run();
  }

  std::unique_ptr<Database> db_;  // outlives the statements below
  Statement begin_, commit_, rollback_, put_job_, delete_job_, put_node_, put_grant_, delete_grant_,
      put_region_, delete_region_, put_lease_, delete_lease_, raise_counter_;
};

Status Configure(Database& db, const SqliteOptions& options) {
  // The file is ours alone from its first byte on; the log's files get the database's mode.
  if (::chmod(db.path().c_str(), 0600) != 0)
    return ErrnoError(errno, "set mode of job store '" + db.path() + "'");
  // EXCLUSIVE: one writer for the life of the process, and a second controller is refused at once.
  MSA_RETURN_IF_ERROR(
      db.Execute("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA "
                 "temp_store=MEMORY;"));
  if (options.max_pages > 0)
    MSA_RETURN_IF_ERROR(db.Execute(fmt::format("PRAGMA max_page_count={}", options.max_pages).c_str()));
  return Status::Ok();
}

}  // namespace

Result<std::unique_ptr<JobStore>> OpenSqliteStore(const std::string& path, const SqliteOptions& options) {
  MSA_RETURN_IF_ERROR(CheckFileSystem(path));
  MSA_ASSIGN_OR_RETURN(std::unique_ptr<Database> db,
                       Database::Open(path, static_cast<int>(options.busy_wait.count())));
  MSA_RETURN_IF_ERROR(Configure(*db, options));
  MSA_ASSIGN_OR_RETURN(const std::string migrated, sqlite::Migrate(*db));
  if (!migrated.empty() && options.on_migrated) options.on_migrated(migrated);
  auto store = std::make_unique<SqliteStore>(std::move(db));
  MSA_RETURN_IF_ERROR(store->Prepare());
  return std::unique_ptr<JobStore>(std::move(store));
}

}  // namespace msa
