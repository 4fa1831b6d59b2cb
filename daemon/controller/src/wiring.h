#pragma once

#include "msa/base/status.h"

#include "options.h"

namespace msa {

// Runs the controller until SIGTERM or SIGINT, which must be blocked in the calling thread before any other
// thread starts. Jobs go on when it returns. kAlreadyExists: another controller has the directory; else what
// does not let it start: topology file, database, socket.
Status RunController(const DaemonOptions& options);

}  // namespace msa
