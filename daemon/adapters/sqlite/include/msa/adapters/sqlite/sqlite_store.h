#pragma once

#include <functional>
#include <memory>
#include <string>

#include "msa/ports/job_store.h"

namespace msa {

struct SqliteOptions {
  Millis busy_wait{2000};  // for another process that reads, e.g. a backup
  // Upper bound of the file in pages of 4 KiB; 0: none. A full database answers as a full disk does.
  std::uint64_t max_pages = 0;
  // Told when the store of an earlier version was brought up to date, a line for the log.
  std::function<void(const std::string& what)> on_migrated;
};

// Opens or makes the database at `path` (WAL, synchronous=FULL, mode 0600) and brings its schema up to date.
// kFailedPrecondition: on NFS or Lustre (WAL needs shared memory of one host), a schema newer than this
// program (both versions named), not a database; kUnavailable: another controller has it open; kDataLoss:
// damaged; kPermissionDenied, kNotFound, kResourceExhausted: as the file system says. Messages name the path
// and the remedy. Used from one thread at a time.
Result<std::unique_ptr<JobStore>> OpenSqliteStore(const std::string& path, const SqliteOptions& options = {});

}  // namespace msa
