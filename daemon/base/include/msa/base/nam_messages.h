#pragma once
// The messages of the local wire format (msa/base/wire.h) of the network attached memory. Type numbers are
// never reused; fields are only appended to top-level messages.
//
//   0x07xx  a process that uses regions <-> controller. A task sends them over MSA_JOB_SOCKET and its job
//           daemon relays them (0x0310, 0x020c); a process outside any job sends them to the namd of its own
//           host, which relays them (0x0904, 0x0924).
//   0x08xx  a process that uses regions <-> namd, over namd's Unix socket or over the fabric
//   0x09xx  namd <-> controller, relayed unread by the node daemon of namd's node
//
// A request is answered by its reply or by NamFailed, with the request's frame id.

#include "msa/base/nam_daemon.h"
#include "msa/base/nam_lease.h"
#include "msa/base/nam_relay.h"
#include "msa/base/nam_replies.h"
#include "msa/base/nam_requests.h"
#include "msa/base/wire.h"
