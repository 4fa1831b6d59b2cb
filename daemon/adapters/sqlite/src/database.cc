#include "database.h"

namespace msa::sqlite {
namespace {

Code CodeOf(int primary) {
  switch (primary) {
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
      return Code::kResourceExhausted;
    case SQLITE_CORRUPT:
      return Code::kDataLoss;
    case SQLITE_NOTADB:
      return Code::kFailedPrecondition;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Code::kUnavailable;
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
      return Code::kPermissionDenied;
    default:
      return Code::kInternal;
  }
}

std::string_view RemedyOf(int primary) {
  switch (primary) {
    case SQLITE_FULL:
    case SQLITE_IOERR:
      return "free space on its file system or raise the quota";
    case SQLITE_CORRUPT:
      return "the store is damaged: move it away to start empty, or bring back a copy";
    case SQLITE_NOTADB:
      return "it is no database of msa: move it away or choose another --dir";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "another process holds it; see 'fuser' on the file";
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
      return "check that the directory exists and that this user may write there";
    default:
      return "see the log";
  }
}

}  // namespace

Status DatabaseError(sqlite3* db, const std::string& path) {
  const int primary = sqlite3_extended_errcode(db) & 0xff;
  return Error(CodeOf(primary), "job store '{}': {}; {}", path, sqlite3_errmsg(db), RemedyOf(primary));
}

Statement& Statement::Bind(int index, std::int64_t value) {
  sqlite3_bind_int64(statement_.get(), index, value);
  return *this;
}

Statement& Statement::BindText(int index, std::string_view text) {
  sqlite3_bind_text64(statement_.get(), index, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  return *this;
}

Statement& Statement::BindBlob(int index, std::string_view bytes) {
  sqlite3_bind_blob64(statement_.get(), index, bytes.data(), bytes.size(), SQLITE_STATIC);
  return *this;
}

Result<bool> Statement::Step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  Status status = DatabaseError(sqlite3_db_handle(statement_.get()), *path_);
  Reset();
  return status;
}

Status Statement::Run() {
  const Result<bool> row = Step();
  Reset();
  return row.status();
}

void Statement::Reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
}

std::int64_t Statement::Integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }

std::string Statement::Text(int column) const { return Blob(column); }

std::string Statement::Blob(int column) const {
  const void* data = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return data == nullptr ? std::string()
                         : std::string(static_cast<const char*>(data), static_cast<std::size_t>(size));
}

Result<std::unique_ptr<Database>> Database::Open(const std::string& path, int busy_ms) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &raw,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  DatabasePtr db(raw);
  if (code != SQLITE_OK) {
    if (raw == nullptr) return Error(Code::kResourceExhausted, "job store '{}': out of memory", path);
    return DatabaseError(raw, path);
  }
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, busy_ms);
  return std::unique_ptr<Database>(new Database(std::move(db), path));
}

Status Database::Execute(const char* sql) {
  if (sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK) return Status::Ok();
  return DatabaseError(db_.get(), path_);
}

Result<Statement> Database::Prepare(const char* sql) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v3(db_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &raw, nullptr) != SQLITE_OK)
    return DatabaseError(db_.get(), path_);
  Statement statement;
  statement.statement_.reset(raw);
  statement.path_ = &path_;
  return statement;
}

Result<std::int64_t> Database::QueryInteger(const char* sql) {
  MSA_ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  MSA_ASSIGN_OR_RETURN(const bool row, statement.Step());
  return row ? statement.Integer(0) : 0;
}

}  // namespace msa::sqlite
