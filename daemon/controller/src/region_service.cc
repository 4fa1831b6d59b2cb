#include <set>
#include <utility>

#include <fmt/format.h>
#include <grpcpp/server_context.h>

#include "msa/adapters/grpc/convert_nam_internal.h"
#include "msa/adapters/grpc/status_internal.h"
#include "msa/adapters/grpc/stream_internal.h"
#include "msa/adapters/grpc/unary_internal.h"
#include "msa/v1/nam.grpc.pb.h"

#include "nam_key.h"
#include "services.h"

namespace msa {
namespace {

using OpenReactor = grpc::ServerWriteReactor<v1::OpenRegionReply>;
using OpenStream = SendingStream<OpenReactor, v1::OpenRegionReply>;
using Unary = grpc::ServerUnaryReactor;
using Context = grpc::CallbackServerContext;

Status GoingAway() { return {Code::kUnavailable, "the controller is going away; try again"}; }

// Refuses a stream at once.
class Refusal : public OpenReactor {
 public:
  explicit Refusal(const Status& why) { Finish(ToGrpc(why)); }
  void OnDone() override { delete this; }
};

// An Open call. Loop thread, but for `stream`.
struct OpenCall {
  std::shared_ptr<OpenStream> stream;
  std::uint64_t number = 0;  // NamHolder::call
  bool answered = false;
  bool gone = false;
  Shell::WatchId watch = 0;  // of its lease
};

class RegionService : public RpcService, public v1::RegionService::CallbackService {
 public:
  explicit RegionService(RpcEdge& edge) : edge_(edge) {}
  grpc::Service* service() override { return this; }

  void Stop() override {
    stopped_ = true;
    for (const auto& call : std::exchange(open_, {})) call->stream->End(ToGrpc(GoingAway()));
  }

  Unary* Create(Context* context, const v1::CreateRegionRequest* request,
                v1::CreateRegionReply* reply) override {
    return Call(context, FromProto(*request), [reply](const NamReplyBody& body) {
      if (const auto* lease = std::get_if<NamLeaseReply>(&body))
        ToProto(lease->granted.region, *reply->mutable_region());
    });
  }

  OpenReactor* Open(Context* context, const v1::OpenRegionRequest* request) override {
    Result<NamCaller> caller = CallerOf(*context);
    if (!caller.ok()) return new Refusal(caller.status());
    Result<wire::NamOpen> ask = FromProto(*request);
    if (!ask.ok()) return new Refusal(ask.status());
    auto call = std::make_shared<OpenCall>();
    call->stream = std::make_shared<OpenStream>();
    OpenStream::Hooks hooks;
    hooks.on_gone = [this, call] { edge_.loop.Post([this, call] { Gone(call); }); };
    OpenReactor* const reactor = call->stream->Open(call->stream, std::move(hooks));
    edge_.loop.Post([this, call, caller = *std::move(caller), ask = *std::move(ask)]() mutable {
      if (stopped_) return call->stream->End(ToGrpc(GoingAway()));
      if (call->gone) return;  // before it was asked: nobody would remove it again
      open_.insert(call);
      call->number = caller.holder.call = next_call_++;
      edge_.shell.CallNam(
          {.caller = std::move(caller), .request = std::move(ask), .random = RandomUuid()},
          [this, call](const Status& status, const NamReplyBody& body) { Answered(call, status, body); });
    });
    return reactor;
  }

  Unary* List(Context* context, const v1::ListRegionsRequest* request, v1::ListRegionsReply* reply) override {
    return Call(context, Result<wire::NamList>(FromProto(*request)), FillFrom<wire::NamListing>(reply));
  }
  Unary* Remove(Context* context, const v1::RemoveRegionRequest* request, v1::RemoveRegionReply*) override {
    return Call(context, Result<wire::NamRemove>(FromProto(*request)), {});
  }
  Unary* Resize(Context* context, const v1::ResizeRegionRequest* request, v1::ResizeRegionReply*) override {
    return Call(context, Result<wire::NamResize>(FromProto(*request)), {});
  }
  Unary* SetAccess(Context* context, const v1::SetRegionAccessRequest* request,
                   v1::SetRegionAccessReply*) override {
    return Call(context, FromProto(*request), {});
  }
  Unary* SetLifetime(Context* context, const v1::SetRegionLifetimeRequest* request,
                     v1::SetRegionLifetimeReply*) override {
    return Call(context, FromProto(*request), {});
  }
  Unary* Usage(Context* context, const v1::RegionUsageRequest*, v1::RegionUsageReply* reply) override {
    return Call(context, Result<wire::NamUsageAsk>(wire::NamUsageAsk{}), FillFrom<wire::NamUsage>(reply));
  }
  Unary* Check(Context* context, const v1::CheckRegionsRequest* request,
               v1::CheckRegionsReply* reply) override {
    return Call(context, Result<wire::NamCheckAsk>(FromProto(*request)),
                FillFrom<wire::NamCheckResult>(reply));
  }

 private:
  using Fill = std::function<void(const NamReplyBody&)>;

  template <class Body, class Reply>
  static Fill FillFrom(Reply* reply) {
    return [reply](const NamReplyBody& body) {
      if (const auto* found = std::get_if<Body>(&body)) ToProto(*found, *reply);
    };
  }

  Result<NamCaller> CallerOf(const Context& context) const {
    MSA_ASSIGN_OR_RETURN(const PeerCredentials peer, edge_.caller_process(context));
    NamCaller out;
    out.user = peer.user;
    out.user_name = edge_.users.Of(peer.user.uid);
    out.groups = edge_.users.GroupsOf(peer.user);
    out.who = fmt::format("msactl of pid {}", peer.pid);
    out.operator_ = peer.user.uid == 0 || peer.user.uid == edge_.operator_uid;
    return out;
  }

  // A unary call. What it may hold (a creation opens what it makes) ends with it.
  template <class Ask>
  Unary* Call(Context* context, Result<Ask> ask, Fill fill) {
    Unary* const reactor = context->DefaultReactor();
    Result<NamCaller> caller = CallerOf(*context);
    const Status wrong = caller.ok() ? ask.status() : caller.status();
    if (!wrong.ok()) {
      reactor->Finish(ToGrpc(wrong));
      return reactor;
    }
    edge_.loop.Post([this, call = UnaryCall(reactor), caller = *std::move(caller), ask = *std::move(ask),
                     fill = std::move(fill)]() mutable {
      const std::uint64_t number = caller.holder.call = next_call_++;
      edge_.shell.CallNam(
          {.caller = std::move(caller), .request = std::move(ask), .random = RandomUuid()},
          [this, call, number, fill = std::move(fill)](const Status& status, const NamReplyBody& body) {
            if (status.ok() && fill) fill(body);
            call.Finish(status);
            if (std::holds_alternative<NamLeaseReply>(body)) edge_.shell.Handle(event::NamCallEnded{number});
          });
    });
    return reactor;
  }

  void Answered(const std::shared_ptr<OpenCall>& call, const Status& status, const NamReplyBody& body) {
    call->answered = true;
    const auto* lease = std::get_if<NamLeaseReply>(&body);
    if (!status.ok() || lease == nullptr) {
      call->stream->End(ToGrpc(status));
    } else if (!call->gone) {
      v1::OpenRegionReply reply;
      ToProto(lease->granted.region, *reply.mutable_region());
      reply.set_lease(lease->granted.blob);
      call->watch = edge_.shell.WatchLease(
          lease->granted.lease, [stream = call->stream, name = lease->granted.region.name] {
            stream->End(ToGrpc(Error(Code::kAborted,
                                     "the lease on region '{}' has ended: it was removed or resized, or your "
                                     "rights to it were changed",
                                     name)));
          });
      call->stream->Send(std::move(reply));
    }
    if (call->gone) edge_.shell.Handle(event::NamCallEnded{call->number});
  }

  // Before the answer there is nothing to end yet: the answer does it.
  void Gone(const std::shared_ptr<OpenCall>& call) {
    call->gone = true;
    open_.erase(call);
    edge_.shell.UnwatchLease(call->watch);
    if (call->answered) edge_.shell.Handle(event::NamCallEnded{call->number});
  }

  RpcEdge& edge_;
  // Loop thread. Numbers of an earlier controller's calls may come again: their leases ended with it.
  bool stopped_ = false;
  std::uint64_t next_call_ = 1;
  std::set<std::shared_ptr<OpenCall>> open_;
};

}  // namespace

std::unique_ptr<RpcService> MakeRegionService(RpcEdge& edge) { return std::make_unique<RegionService>(edge); }

}  // namespace msa
