#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <grpcpp/server.h>
#include <grpcpp/server_context.h>

#include "msa/adapters/grpc/peer_registry.h"
#include "msa/adapters/process/event_loop.h"
#include "msa/base/ids.h"
#include "msa/base/status.h"

namespace msa {

// A gRPC server on a Unix socket whose callers are known by uid (SO_PEERCRED): the accept loop is ours and
// runs on an EventLoop. Serves grpc.health.v1 besides the given services.
class GrpcServer {
 public:
  struct Options {
    std::string path;                  // of the socket; a stale one is replaced
    std::uint32_t mode = 0600;         // 0666 when other users may call
    int max_message_bytes = 16 << 20;  // a job specification with 1 MiB of environment, with room to spare
  };

  // The services must outlive the server and use the callback API. Errors as ListenUnix; kInternal: gRPC does
  // not start.
  static Result<std::unique_ptr<GrpcServer>> Start(EventLoop& loop, Options options,
                                                   const std::vector<grpc::Service*>& services);
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  // Who calls. kUnauthenticated: not a connection of ours. Any thread.
  Result<UserIdentity> Caller(const grpc::ServerContextBase& context) const;

  // With the process that opened the connection, or the certificate. Errors as Caller. Any thread.
  Result<Peer> CallerProcess(const grpc::ServerContextBase& context) const;

  // Serves a connection that somebody else has accepted and authenticated (msa/adapters/tls/tls_pump.h), too.
  // Any thread, until Shutdown.
  void Take(UniqueFd connection, const Peer& peer);

  // No new connection, health NOT_SERVING. Loop thread.
  void StopAccepting();
  // Ends every call that is not done within `grace` with CANCELLED, and waits for all. Any thread but the
  // loop's while calls need the loop to finish. Once, after StopAccepting.
  void Shutdown(Millis grace);

 private:
  GrpcServer(EventLoop& loop, UniqueFd listener);
  void Accept();
  void PauseAccepting();

  EventLoop& loop_;
  UniqueFd listener_;
  std::optional<TimerId> resume_;
  PeerRegistry peers_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace msa
