#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "msa/base/ids.h"

namespace msa {

// Kills all that a dead job daemon left behind on this machine: every process whose environment at exec held
// "MSA_JOB_SOCKET=<job_socket>", and their descendants. Repeats until none is left or `limit` has passed (it
// blocks that long at most). Returns the number of processes killed. Processes of other users are left alone
// unless root.
int SweepLeftovers(const std::string& job_socket, Millis limit);

// The same for any "NAME=value" in the environment at exec.
int SweepEnvironment(const std::string& entry, Millis limit);

// SIGKILL to every living child of this process that is not spared: what was reparented to it as a subreaper.
// `spared` is asked for each after all were listed. Call it again until it returns 0, since the children of a
// stray come next; and reap. Returns how many were killed. The caller's thread must be the one that starts
// children.
int KillStrayChildren(const std::function<bool(pid_t)>& spared);

}  // namespace msa
