#pragma once
// sqlite3 behind owners and Status. Not thread-safe.

#include <memory>
#include <string>
#include <string_view>

#include <sqlite3.h>

#include "msa/base/status.h"

namespace msa::sqlite {

struct CloseDatabase {
  void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
};
struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
};
using DatabasePtr = std::unique_ptr<sqlite3, CloseDatabase>;

// A prepared statement, used again and again: bind, Step until false, Reset.
class Statement {
 public:
  Statement() = default;
  Statement& Bind(int index, std::int64_t value);
  // `text` must live until Reset.
  Statement& BindText(int index, std::string_view text);
  Statement& BindBlob(int index, std::string_view bytes);
  // True: a row stands ready; false: done.
  Result<bool> Step();
  // Step until done, then Reset: for statements without rows.
  Status Run();
  void Reset();
  std::int64_t Integer(int column) const;
  std::string Text(int column) const;
  std::string Blob(int column) const;

 private:
  friend class Database;
  std::unique_ptr<sqlite3_stmt, FinalizeStatement> statement_;
  const std::string* path_ = nullptr;
};

class Database {
 public:
  // As OpenSqliteStore, without the schema.
  static Result<std::unique_ptr<Database>> Open(const std::string& path, int busy_ms);
  Status Execute(const char* sql);
  Result<Statement> Prepare(const char* sql);
  Result<std::int64_t> QueryInteger(const char* sql);
  sqlite3* get() const noexcept { return db_.get(); }
  const std::string& path() const noexcept { return path_; }

 private:
  Database(DatabasePtr db, std::string path) : db_(std::move(db)), path_(std::move(path)) {}
  DatabasePtr db_;
  std::string path_;
};

// The Status of the last failure on `db`, with the path and what to do.
Status DatabaseError(sqlite3* db, const std::string& path);

}  // namespace msa::sqlite
