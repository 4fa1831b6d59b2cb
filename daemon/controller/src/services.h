#pragma once

#include <functional>
#include <memory>
#include <string>

#include "msa/adapters/grpc/peer_registry.h"
#include "msa/adapters/process/event_loop.h"
#include "msa/base/ids.h"
#include "msa/base/status.h"

#include "shell.h"
#include "user_names.h"

namespace grpc {
class Service;
class ServerContextBase;
}  // namespace grpc

namespace msa {

// What the rpc edge stands on. Services take calls on gRPC's threads and do their work on the loop's.
struct RpcEdge {
  EventLoop& loop;
  Shell& shell;
  UserNames& users;
  std::uint32_t operator_uid = 0;  // besides root
  std::string directory;
  std::string version;
  Instant started_at;
  // Who calls; set before the first call. Any thread.
  std::function<Result<UserIdentity>(const grpc::ServerContextBase&)> caller;
  // With the process that opened the connection, for people, or the certificate; likewise.
  std::function<Result<Peer>(const grpc::ServerContextBase&)> caller_process;
};

class RpcService {
 public:
  virtual ~RpcService() = default;
  virtual grpc::Service* service() = 0;
  // Ends its streams with UNAVAILABLE: the process is about to end. Loop thread.
  virtual void Stop() {}
};

// `edge` outlives them; they outlive the server.
std::unique_ptr<RpcService> MakeJobService(RpcEdge& edge);
std::unique_ptr<RpcService> MakeTopologyService(RpcEdge& edge);
std::unique_ptr<RpcService> MakeNodeControlService(RpcEdge& edge);
std::unique_ptr<RpcService> MakeRegionService(RpcEdge& edge);

}  // namespace msa
