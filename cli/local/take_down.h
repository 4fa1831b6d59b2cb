#pragma once

#include <string>
#include <vector>

#include "msa/base/ids.h"
#include "msa/base/status.h"

namespace msa::cli {

struct DownOptions {
  std::string dir;     // canonical
  bool now = false;    // no grace for jobs
  bool purge = false;  // remove state and logs too
};

struct DownReport {
  bool was_running = false;
  std::size_t jobs_cancelled = 0;
  std::vector<std::string> killed;  // what did not end by itself: "noded-cn0 (pid 17)"
};

// Ends the jobs, then the daemons of a local system, and removes what they leave but state and logs.
// Idempotent. Blocks for at most half a minute. kPermissionDenied: somebody else's directory.
Result<DownReport> TakeDown(const DownOptions& options);

}  // namespace msa::cli
