#pragma once

#include <optional>
#include <string>
#include <vector>

#include "msa/base/ids.h"
#include "msa/base/status.h"
#include "msa/topology/topology.h"

#include "client/types.h"
#include "local/local_paths.h"

namespace msa::cli {

struct UpOptions {
  std::string dir;       // canonical
  std::string flag;      // " --dir DIR" as the user gave it, for texts
  std::string topology;  // file; empty: the default system
  Millis timeout{30'000};
};

struct RunningSystem {
  SystemTopology topology;
  pid_t supervisor = 0;
  std::vector<ModuleInfo> modules;
};

// Checks everything that can be checked before, starts a supervisor, and waits until every node is up. What
// it has started is taken down again if that fails. Blocks. kInvalidArgument: topology file, directory or
// socket path; kAlreadyExists: a system runs there; kFailedPrecondition: daemons of a killed supervisor run
// with another topology; kNotFound: an executable is missing; kPermissionDenied: somebody else's directory;
// kDeadlineExceeded: nodes that did not come up, with what they logged.
Result<RunningSystem> BringUp(const UpOptions& options);

// The body of the supervisor process; returns when it was told to end.
Status Supervise(const LocalPaths& paths);

// Names of the nodes in file order.
std::vector<std::string> NodeNames(const SystemTopology& topology);
// kInvalidArgument: a socket of a node would have a path that is too long; names the longest.
Status CheckSocketPaths(const LocalPaths& paths, const SystemTopology& topology);

}  // namespace msa::cli
