#pragma once

#include <string>
#include <vector>

#include "msa/base/ids.h"
#include "msa/base/status.h"

namespace msa::cli {

struct DownOptions {
  std::string dir;         // canonical
  bool now = false;        // no grace for jobs
  bool keep_jobs = false;  // jobs that wait start with the next `cluster up`
  bool purge = false;      // remove state and logs too
};

struct DownReport {
  bool was_running = false;
  std::size_t jobs_cancelled = 0;
  std::vector<std::string> killed;  // what did not end by itself: "noded-cn0 (pid 17)"
  std::size_t strays = 0;           // processes that daemons which were killed before had left
  std::vector<std::string> kept;    // purge: names in the directory that are not msa's, so that it stays
};

// Ends the jobs, also those that only the store knows, then the daemons of a local system, and removes what
// they leave but state and logs. Idempotent; does nothing to a directory in which no system was started.
// Blocks for at most half a minute. kPermissionDenied: somebody else's directory; kInvalidArgument: not a
// directory; kFailedPrecondition: purge of a directory in which no system was started; errors of the store:
// jobs are not cancelled, the rest is done.
Result<DownReport> TakeDown(const DownOptions& options);

}  // namespace msa::cli
