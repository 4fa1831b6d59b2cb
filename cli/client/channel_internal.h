#pragma once
// For the units that include gRPC.

#include <memory>

#include <grpcpp/channel.h>
#include <grpcpp/support/status.h>

#include "msa/base/status.h"
#include "msa/base/unique_fd.h"

namespace msa::cli {

// Over a connected socket: no name resolution, no balancing, and no reconnecting, which is the caller's.
std::shared_ptr<grpc::Channel> OpenChannel(UniqueFd socket);

// A connection that broke is kUnavailable with "the controller went away: ..." of `peer`.
Status ToStatus(const grpc::Status& status, std::string_view peer);

}  // namespace msa::cli
