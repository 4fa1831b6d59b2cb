#pragma once

#include <cstddef>
#include <string>

#include "msa/base/clock.h"
#include "msa/base/status.h"

#include "options.h"

namespace msa {

// Marks the jobs in the store that have not ended as cancelled, for a system whose daemons are all dead:
// nobody is asked, and the next controller starts none of them. How many there were; 0 without a store.
// kAlreadyExists: a controller has the directory; kInvalidArgument: topology file; errors of OpenSqliteStore
// and JobStore.
Result<std::size_t> CancelStoredJobs(const DaemonOptions& options, const std::string& reason, Instant now);

}  // namespace msa
