#pragma once
// Files of a local system in its directory: nothing else in there is ever removed.

#include <sys/types.h>

#include <string>
#include <vector>

#include "msa/base/status.h"
#include "msa/topology/topology.h"

#include "local/local_paths.h"

namespace msa::cli {

// pid of the supervisor, 0 if none runs. A `cluster down` that clears up holds the same lock.
pid_t RunningSupervisor(const LocalPaths& paths);

// kResourceExhausted: the disk under the directory, or under the place for it, is full.
Status CheckSpace(const LocalPaths& paths);

// `cluster up` has made a system in the directory: its supervisor.lock is there.
bool HoldsSystem(const LocalPaths& paths);

// Makes the directory for a system, or takes one that is there: an empty one, or that of an earlier system.
// kInvalidArgument: not a directory, open to others, or holding somebody's files, each with what to do;
// kPermissionDenied: another user's.
Status ClaimDirectory(const LocalPaths& paths);

// May the NAM nodes' memory lie in `backing` (key 'backing' of [nam])? kNotFound: no such directory;
// kInvalidArgument: something else; kPermissionDenied: not to be written, or a node's directory in it is
// another user's; kAlreadyExists: another system's NAM daemon uses one, or two nodes would share one.
Status CheckBacking(const std::string& backing, const SystemTopology& topology);

// What daemons leave behind when they are killed: sockets, run directories, shared memory. Only where
// HoldsSystem.
Status RemoveRunFiles(const LocalPaths& paths);

// The memory of regions in `backing`, likewise: what is not msa-namd's stays, and so does `backing` itself.
Status RemoveBacking(const std::string& backing, const SystemTopology& topology);

// State, regions' memory and logs, and the directory if it is then empty. Else the names that are left: none
// of them is msa's. Only where HoldsSystem.
Result<std::vector<std::string>> RemoveState(const LocalPaths& paths);

}  // namespace msa::cli
