#pragma once

#include "msa/base/ids.h"
#include "msa/base/status.h"

namespace msa {

// Gives this process, which is root's and has one thread, to `user` for good: supplementary groups, gid, uid,
// HOME. What it holds in memory stays hidden from that user (it is not dumpable) until it executes a program.
// kPermissionDenied, kInternal: the kernel refuses; the process must end then.
Status BecomeUser(const UserIdentity& user);

}  // namespace msa
