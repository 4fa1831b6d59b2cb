#pragma once

#include <grpcpp/support/status.h>

#include "msa/base/status.h"

namespace msa {

// The codes are the same numbers. A message longer than 2 KiB is cut (an HTTP/2 trailer holds 8 KiB, and a
// byte may take three there).
grpc::Status ToGrpc(const Status& status);
// An unreachable peer keeps gRPC's own text.
Status FromGrpc(const grpc::Status& status);

}  // namespace msa
