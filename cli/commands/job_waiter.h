#pragma once

#include <optional>

#include "msa/base/clock.h"
#include "msa/base/ids.h"
#include "msa/base/status.h"

#include "client/endpoint.h"
#include "client/types.h"

namespace msa::cli {

struct WaitOptions {
  std::optional<SteadyTime> give_up;  // none: as long as it takes
  bool quiet = false;                 // no note about a job that did not complete
};

// Waits for a job's end, through restarts of the controller, and gives its exit code; never 0 for one that
// did not complete. kDeadlineExceeded: `give_up` came first; errors of the controller.
Result<int> WaitForJob(const Endpoint& endpoint, JobId job, const WaitOptions& options);

// Of a job that has ended: its exit code, never 0 for one that did not complete.
int CodeOf(const JobInfo& job);
// Says how it ended, unless it completed; `name` is its id as people know it.
void NoteEnd(std::string_view name, const JobInfo& job);

}  // namespace msa::cli
