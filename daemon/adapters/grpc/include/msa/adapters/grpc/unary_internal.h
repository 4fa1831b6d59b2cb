#pragma once

#include <functional>
#include <utility>

#include <grpcpp/support/server_callback.h>

#include "msa/adapters/grpc/status_internal.h"
#include "msa/adapters/process/event_loop.h"
#include "msa/base/ids.h"

namespace msa {

// Ends a unary call; once. The reply is filled in before. Any thread.
class UnaryCall {
 public:
  explicit UnaryCall(grpc::ServerUnaryReactor* reactor) : reactor_(reactor) {}
  void Finish(const Status& status) const { reactor_->Finish(ToGrpc(status)); }

 private:
  grpc::ServerUnaryReactor* reactor_;
};

// Runs work(caller, call) on the loop; a caller that is not known gets its error. Request and reply live
// until Finish.
template <class Work>
grpc::ServerUnaryReactor* RunOnLoop(grpc::CallbackServerContext* context, EventLoop& loop,
                                    const Result<UserIdentity>& caller, Work work) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  if (!caller.ok()) {
    reactor->Finish(ToGrpc(caller.status()));
    return reactor;
  }
  loop.Post([reactor, user = *caller, work = std::move(work)]() mutable { work(user, UnaryCall(reactor)); });
  return reactor;
}

}  // namespace msa
