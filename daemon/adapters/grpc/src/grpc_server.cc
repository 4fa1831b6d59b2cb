#include <sys/epoll.h>

#include <grpc/grpc.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>

#include "msa/adapters/grpc/grpc_server_internal.h"
#include "msa/adapters/process/unix_socket.h"

#include "keep_grpc.h"

namespace msa {
namespace {
constexpr Millis kAcceptPause{100};
}  // namespace

Result<std::unique_ptr<GrpcServer>> GrpcServer::Start(EventLoop& loop, Options options,
                                                      const std::vector<grpc::Service*>& services) {
  MSA_ASSIGN_OR_RETURN(UniqueFd listener, ListenUnix(options.path, options.mode));
  std::unique_ptr<GrpcServer> server(new GrpcServer(loop, std::move(listener)));
  KeepGrpc();
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  for (grpc::Service* service : services) builder.RegisterService(service);
  builder.SetMaxReceiveMessageSize(options.max_message_bytes);
  builder.SetMaxSendMessageSize(options.max_message_bytes);
  // Small messages now and then: a probe of the bandwidth at each would be two more.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  // No port is added: connections come from Accept alone.
  server->server_ = builder.BuildAndStart();
  if (!server->server_) return Error(Code::kInternal, "gRPC server for '{}' does not start", options.path);
  GrpcServer* const self = server.get();
  MSA_RETURN_IF_ERROR(loop.Watch(self->listener_.get(), EPOLLIN, [self](std::uint32_t) { self->Accept(); }));
  if (auto* health = self->server_->GetHealthCheckService()) health->SetServingStatus(true);
  return server;
}

GrpcServer::GrpcServer(EventLoop& loop, UniqueFd listener) : loop_(loop), listener_(std::move(listener)) {}

GrpcServer::~GrpcServer() {
  StopAccepting();
  Shutdown(Millis(0));
}

void GrpcServer::Accept() {
  for (;;) {
    Result<UniqueFd> connection = AcceptUnix(listener_.get());
    if (!connection.ok()) {
      PauseAccepting();
      return;
    }
    if (!*connection) return;
    Result<UniqueFd> admitted = peers_.Admit(*std::move(connection));
    if (!admitted.ok()) continue;
    grpc::AddInsecureChannelFromFd(server_.get(), admitted->release());
  }
}

void GrpcServer::Take(UniqueFd connection, const Peer& peer) {
  Result<UniqueFd> admitted = peers_.Claim(std::move(connection), peer);
  if (admitted.ok()) grpc::AddInsecureChannelFromFd(server_.get(), admitted->release());
}

void GrpcServer::PauseAccepting() {
  // No descriptor left, as a rule. The listener stays readable: without the pause the loop would spin.
  loop_.Modify(listener_.get(), 0);
  resume_ = loop_.After(kAcceptPause, [this] {
    resume_.reset();
    loop_.Modify(listener_.get(), EPOLLIN);
  });
}

Result<UserIdentity> GrpcServer::Caller(const grpc::ServerContextBase& context) const {
  return peers_.Find(context.peer());
}

Result<Peer> GrpcServer::CallerProcess(const grpc::ServerContextBase& context) const {
  return peers_.FindProcess(context.peer());
}

void GrpcServer::StopAccepting() {
  if (!listener_) return;
  if (resume_) loop_.Cancel(*resume_);
  resume_.reset();
  loop_.Unwatch(listener_.get());
  listener_.reset();
  if (server_) {
    if (auto* health = server_->GetHealthCheckService()) health->Shutdown();
  }
}

void GrpcServer::Shutdown(Millis grace) {
  if (!server_) return;
  server_->Shutdown(std::chrono::system_clock::now() + grace);
  server_.reset();
}

}  // namespace msa
