#include "schema.h"

#include <array>

namespace msa::sqlite {
namespace {

// "msa1": tells our file from any other SQLite database (sqlite.org/fileformat2.html, application id).
constexpr std::int64_t kApplicationId = 0x6d736131;

// The columns besides the record serve people with sqlite3(1); msa reads the record alone.
constexpr std::array<const char*, kSchemaVersion> kMigrations = {
    R"(CREATE TABLE job (
         id INTEGER PRIMARY KEY, state INTEGER NOT NULL, uid INTEGER NOT NULL, user TEXT NOT NULL, name TEXT NOT NULL,
         submitted_ms INTEGER NOT NULL, started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL,
         exit_code INTEGER NOT NULL, record BLOB NOT NULL);
       CREATE TABLE node (name TEXT PRIMARY KEY, drained INTEGER NOT NULL, reason TEXT NOT NULL) WITHOUT ROWID;
       CREATE TABLE job_grant (id INTEGER PRIMARY KEY, job INTEGER NOT NULL, released INTEGER NOT NULL, record BLOB NOT NULL);
       CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
       INSERT INTO counter VALUES ('job', 0), ('grant', 0);)",
};

}  // namespace

Status Migrate(Database& db) {
  MSA_ASSIGN_OR_RETURN(const std::int64_t version, db.QueryInteger("PRAGMA user_version"));
  MSA_ASSIGN_OR_RETURN(const std::int64_t application, db.QueryInteger("PRAGMA application_id"));
  MSA_ASSIGN_OR_RETURN(const std::int64_t tables, db.QueryInteger("SELECT count(*) FROM sqlite_master"));
  if (tables > 0 && application != kApplicationId)
    return Error(Code::kFailedPrecondition,
                 "job store '{}' is a database of another program; move it away or choose another --dir",
                 db.path());
  if (version > kSchemaVersion)
    return Error(Code::kFailedPrecondition,
                 "job store '{}' has schema version {}, this program knows {}; start the newer "
                 "msa-controllerd that wrote it",
                 db.path(), version, kSchemaVersion);
  for (int step = static_cast<int>(version); step < kSchemaVersion; ++step) {
    const std::string sql =
        fmt::format("BEGIN IMMEDIATE; {} PRAGMA application_id = {}; PRAGMA user_version = {}; COMMIT;",
                    kMigrations[static_cast<std::size_t>(step)], kApplicationId, step + 1);
    if (Status status = db.Execute(sql.c_str()); !status.ok()) {
      (void)db.Execute("ROLLBACK");  // fails when sqlite has rolled back itself; `status` tells why
      return status.WithContext(fmt::format("bring the schema to version {}", step + 1));
    }
  }
  return Status::Ok();
}

}  // namespace msa::sqlite
