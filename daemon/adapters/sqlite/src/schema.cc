#include "schema.h"

#include <array>

#include "record_archive.h"
#include "schema1_records.h"

namespace msa::sqlite {
namespace {

// "msa1": tells our file from any other SQLite database (sqlite.org/fileformat2.html, application id).
constexpr std::int64_t kApplicationId = 0x6d736131;

// The columns besides the record serve people with sqlite3(1); msa reads the record alone.
constexpr const char* kTables =
    R"(CREATE TABLE job (
         id INTEGER PRIMARY KEY, state INTEGER NOT NULL, uid INTEGER NOT NULL, user TEXT NOT NULL, name TEXT NOT NULL,
         submitted_ms INTEGER NOT NULL, started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL,
         exit_code INTEGER NOT NULL, record BLOB NOT NULL);
       CREATE TABLE node (name TEXT PRIMARY KEY, drained INTEGER NOT NULL, reason TEXT NOT NULL) WITHOUT ROWID;
       CREATE TABLE job_grant (id INTEGER PRIMARY KEY, job INTEGER NOT NULL, released INTEGER NOT NULL, record BLOB NOT NULL);
       CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
       INSERT INTO counter VALUES ('job', 0), ('grant', 0);)";

// `uuid` and `region` as 32 hexadecimal digits.
constexpr const char* kNamTables =
    R"(CREATE TABLE region (
         uuid TEXT PRIMARY KEY, name TEXT NOT NULL, uid INTEGER NOT NULL, bytes INTEGER NOT NULL, phase INTEGER NOT NULL,
         record BLOB NOT NULL);
       CREATE TABLE nam_lease (id INTEGER PRIMARY KEY, region TEXT NOT NULL, job INTEGER NOT NULL, record BLOB NOT NULL);
       INSERT INTO counter VALUES ('lease', 0);)";

Status MakeTables(Database& db) { return db.Execute(kTables); }

// Each record of `table` as `convert` gives it back.
template <class Convert>
Status Rewrite(Database& db, const std::string& table, Convert convert) {
  MSA_ASSIGN_OR_RETURN(
      Statement next,
      db.Prepare(fmt::format("SELECT id, record FROM {} WHERE id>?1 ORDER BY id LIMIT 1", table).c_str()));
  MSA_ASSIGN_OR_RETURN(Statement put,
                       db.Prepare(fmt::format("UPDATE {} SET record=?2 WHERE id=?1", table).c_str()));
  for (std::int64_t id = 0;;) {
    MSA_ASSIGN_OR_RETURN(const bool row, next.Bind(1, id).Step());
    if (!row) return Status::Ok();
    id = next.Integer(0);
    const std::string old = next.Blob(1);
    next.Reset();
    const auto record = convert(old);
    if (!record.ok())
      return Error(record.status().code(),
                   "job store '{}': {} {}: {}; bring back a copy, or move the store away to start empty",
                   db.path(), table, id, record.status().message());
    const std::string blob = EncodeRecord(*record);
    MSA_RETURN_IF_ERROR(put.Bind(1, id).BindBlob(2, blob).Run());
  }
}

// Records get lengths, so that fields can be appended from here on.
Status PutLengthsIntoRecords(Database& db) {
  MSA_RETURN_IF_ERROR(Rewrite(db, "job", JobFromSchema1));
  return Rewrite(db, "job_grant", GrantFromSchema1);
}

Status MakeNamTables(Database& db) { return db.Execute(kNamTables); }

// Each takes the database from its index to the next version.
constexpr std::array<Status (*)(Database&), kSchemaVersion> kMigrations = {MakeTables, PutLengthsIntoRecords,
                                                                           MakeNamTables};

Status Step(Database& db, int from) {
  MSA_RETURN_IF_ERROR(db.Execute("BEGIN IMMEDIATE"));
  Status status = kMigrations[static_cast<std::size_t>(from)](db);
  const std::string end =
      fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}; COMMIT;", kApplicationId, from + 1);
  if (status.ok()) status = db.Execute(end.c_str());
  if (status.ok()) return status;
  (void)db.Execute("ROLLBACK");  // fails when sqlite has rolled back itself; `status` tells why
  return status.WithContext(fmt::format("bring the schema to version {}", from + 1));
}

}  // namespace

Result<std::string> Migrate(Database& db) {
  MSA_ASSIGN_OR_RETURN(const std::int64_t version, db.QueryInteger("PRAGMA user_version"));
  MSA_ASSIGN_OR_RETURN(const std::int64_t application, db.QueryInteger("PRAGMA application_id"));
  MSA_ASSIGN_OR_RETURN(const std::int64_t tables, db.QueryInteger("SELECT count(*) FROM sqlite_master"));
  if (tables > 0 && application != kApplicationId)
    return Error(Code::kFailedPrecondition,
                 "job store '{}' is a database of another program; move it away or choose another --dir",
                 db.path());
  if (version > kSchemaVersion)
    return Error(
        Code::kFailedPrecondition,
        "job store '{}' has schema version {}, this msa-controllerd knows versions up to {}; start the "
        "newer msa-controllerd that wrote it, or move the store away to start empty",
        db.path(), version, kSchemaVersion);
  if (version < 0)
    return Error(Code::kDataLoss,
                 "job store '{}' has schema version {}; bring back a copy, or move it away to start empty",
                 db.path(), version);
  for (int from = static_cast<int>(version); from < kSchemaVersion; ++from)
    MSA_RETURN_IF_ERROR(Step(db, from));
  if (version == 0 || version == kSchemaVersion) return std::string();
  MSA_ASSIGN_OR_RETURN(const std::int64_t jobs, db.QueryInteger("SELECT count(*) FROM job"));
  return fmt::format("job store '{}' was brought from schema version {} to {}: {} jobs", db.path(), version,
                     kSchemaVersion, jobs);
}

}  // namespace msa::sqlite
