#include <unistd.h>

#include <grpcpp/server_context.h>

#include "msa/adapters/grpc/convert_topology_internal.h"
#include "msa/adapters/grpc/unary_internal.h"
#include "msa/base/clock.h"
#include "msa/v1/topology.grpc.pb.h"

#include "services.h"

namespace msa {
namespace {

// More names than the largest system has nodes.
constexpr int kMaxNodeNames = 65536;

Result<std::vector<std::string>> NamesOf(const google::protobuf::RepeatedPtrField<std::string>& names) {
  if (names.size() > kMaxNodeNames) {
    return Error(Code::kInvalidArgument, "{} node names; at most {} are possible in one request",
                 names.size(), kMaxNodeNames);
  }
  return std::vector<std::string>(names.begin(), names.end());
}

class TopologyService : public RpcService, public v1::TopologyService::CallbackService {
 public:
  explicit TopologyService(RpcEdge& edge) : edge_(edge) {}
  grpc::Service* service() override { return this; }

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context, const v1::StatusRequest*,
                                      v1::StatusReply* reply) override {
    return RunOnLoop(context, edge_.loop, edge_.caller(*context),
                     [this, reply](const UserIdentity&, UnaryCall call) {
                       const Controller& controller = edge_.shell.controller();
                       ToProto(controller.System(), *reply);
                       reply->set_version(edge_.version);
                       reply->set_pid(static_cast<std::uint32_t>(::getpid()));
                       reply->set_started_at_ms(ToUnixMillis(edge_.started_at));
                       reply->set_system_name(controller.topology().system_name);
                       reply->set_nam_user_quota(controller.topology().nam_user_quota.value);
                       reply->set_nam_job_quota(controller.topology().nam_job_quota.value);
                       reply->set_nam_job_default(controller.topology().nam_job_default.value);
                       reply->set_directory(edge_.directory);
                       reply->set_store_bytes(edge_.shell.store().SizeBytes());
                       call.Finish(Status::Ok());
                     });
  }

  grpc::ServerUnaryReactor* ListModules(grpc::CallbackServerContext* context, const v1::ListModulesRequest*,
                                        v1::ListModulesReply* reply) override {
    return RunOnLoop(context, edge_.loop, edge_.caller(*context),
                     [this, reply](const UserIdentity&, UnaryCall call) {
                       for (const ModuleView& module : edge_.shell.controller().ListModules())
                         ToProto(module, *reply->add_modules());
                       call.Finish(Status::Ok());
                     });
  }

  grpc::ServerUnaryReactor* ListNodes(grpc::CallbackServerContext* context,
                                      const v1::ListNodesRequest* request,
                                      v1::ListNodesReply* reply) override {
    return RunOnLoop(context, edge_.loop, edge_.caller(*context),
                     [this, request, reply](const UserIdentity&, UnaryCall call) {
                       const auto names = NamesOf(request->names());
                       call.Finish(names.ok() ? AddNodes(request->module(), *names, reply->mutable_nodes())
                                              : names.status());
                     });
  }

  grpc::ServerUnaryReactor* DrainNodes(grpc::CallbackServerContext* context,
                                       const v1::DrainNodesRequest* request,
                                       v1::ChangeNodesReply* reply) override {
    return RunOnLoop(context, edge_.loop, edge_.caller(*context),
                     [this, request, reply](const UserIdentity& caller, UnaryCall call) {
                       Change(event::Drain{.caller = caller, .reason = request->reason()}, request->names(),
                              reply, call);
                     });
  }

  grpc::ServerUnaryReactor* ResumeNodes(grpc::CallbackServerContext* context,
                                        const v1::ResumeNodesRequest* request,
                                        v1::ChangeNodesReply* reply) override {
    return RunOnLoop(context, edge_.loop, edge_.caller(*context),
                     [this, request, reply](const UserIdentity& caller, UnaryCall call) {
                       Change(event::Resume{.caller = caller}, request->names(), reply, call);
                     });
  }

 private:
  using NodeList = google::protobuf::RepeatedPtrField<v1::Node>;

  Status AddNodes(const std::string& module, const std::vector<std::string>& names, NodeList* out) const {
    MSA_ASSIGN_OR_RETURN(const std::vector<NodeView> nodes,
                         edge_.shell.controller().ListNodes(module, names));
    for (const NodeView& node : nodes) ToProto(node, *out->Add());
    return Status::Ok();
  }

  template <class ChangeEvent>
  void Change(ChangeEvent event, const google::protobuf::RepeatedPtrField<std::string>& requested,
              v1::ChangeNodesReply* reply, UnaryCall call) {
    auto names = NamesOf(requested);
    if (!names.ok()) {
      call.Finish(names.status());
      return;
    }
    event.nodes = *names;
    edge_.shell.Request(std::move(event), [this, names = *names, reply, call](const Status& status, JobId) {
      call.Finish(status.ok() ? AddNodes("", names, reply->mutable_nodes()) : status);
    });
  }

  RpcEdge& edge_;
};

}  // namespace

std::unique_ptr<RpcService> MakeTopologyService(RpcEdge& edge) {
  return std::make_unique<TopologyService>(edge);
}

}  // namespace msa
