#include "client/system_client.h"

#include <chrono>
#include <utility>

#include <grpcpp/client_context.h>

#include "msa/adapters/grpc/convert_spec_internal.h"
#include "msa/v1/job.grpc.pb.h"
#include "msa/v1/topology.grpc.pb.h"

#include "client/channel_internal.h"
#include "client/convert.h"

namespace msa::cli {
namespace {

template <class Field>
auto ListFrom(const Field& field) {
  std::vector<decltype(FromProto(*field.begin()))> out;
  out.reserve(static_cast<std::size_t>(field.size()));
  for (const auto& item : field) out.push_back(FromProto(item));
  return out;
}

}  // namespace

class SystemClient::Impl {
 public:
  Impl(UniqueFd socket, Millis timeout)
      : timeout_(timeout),
        channel_(OpenChannel(std::move(socket))),
        jobs(v1::JobService::NewStub(channel_)),
        topology(v1::TopologyService::NewStub(channel_)) {}

  // The reply of one call of a stub.
  template <class Reply, class Stub, class Method, class Request>
  Result<Reply> Call(Stub& stub, Method method, const Request& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + timeout_);
    Reply reply;
    const Status status = ToStatus((stub.*method)(&context, request, &reply), "the controller");
    if (!status.ok()) return status;
    return reply;
  }

 private:
  const Millis timeout_;
  std::shared_ptr<grpc::Channel> channel_;

 public:
  const std::unique_ptr<v1::JobService::Stub> jobs;
  const std::unique_ptr<v1::TopologyService::Stub> topology;
};

SystemClient::SystemClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SystemClient::~SystemClient() = default;

Result<std::unique_ptr<SystemClient>> SystemClient::Connect(const Endpoint& endpoint, Millis timeout) {
  MSA_ASSIGN_OR_RETURN(UniqueFd socket, ConnectController(endpoint));
  return std::unique_ptr<SystemClient>(new SystemClient(std::make_unique<Impl>(std::move(socket), timeout)));
}

Result<std::unique_ptr<SystemClient>> SystemClient::TryConnect(const Endpoint& endpoint, Millis timeout) {
  MSA_ASSIGN_OR_RETURN(UniqueFd socket, TryConnectController(endpoint));
  return std::unique_ptr<SystemClient>(new SystemClient(std::make_unique<Impl>(std::move(socket), timeout)));
}

Result<SystemInfo> SystemClient::GetStatus() {
  MSA_ASSIGN_OR_RETURN(const auto reply,
                       impl_->Call<v1::StatusReply>(*impl_->topology, &v1::TopologyService::Stub::GetStatus,
                                                    v1::StatusRequest()));
  return FromProto(reply);
}

Result<std::vector<ModuleInfo>> SystemClient::ListModules() {
  MSA_ASSIGN_OR_RETURN(const auto reply, impl_->Call<v1::ListModulesReply>(
                                             *impl_->topology, &v1::TopologyService::Stub::ListModules,
                                             v1::ListModulesRequest()));
  return ListFrom(reply.modules());
}

Result<std::vector<NodeInfo>> SystemClient::ListNodes(const std::string& module,
                                                      const std::vector<std::string>& names) {
  v1::ListNodesRequest request;
  request.set_module(module);
  for (const std::string& name : names) request.add_names(name);
  MSA_ASSIGN_OR_RETURN(
      const auto reply,
      impl_->Call<v1::ListNodesReply>(*impl_->topology, &v1::TopologyService::Stub::ListNodes, request));
  return ListFrom(reply.nodes());
}

Result<std::vector<NodeInfo>> SystemClient::DrainNodes(const std::vector<std::string>& names,
                                                       const std::string& reason) {
  v1::DrainNodesRequest request;
  for (const std::string& name : names) request.add_names(name);
  request.set_reason(reason);
  MSA_ASSIGN_OR_RETURN(
      const auto reply,
      impl_->Call<v1::ChangeNodesReply>(*impl_->topology, &v1::TopologyService::Stub::DrainNodes, request));
  return ListFrom(reply.nodes());
}

Result<std::vector<NodeInfo>> SystemClient::ResumeNodes(const std::vector<std::string>& names) {
  v1::ResumeNodesRequest request;
  for (const std::string& name : names) request.add_names(name);
  MSA_ASSIGN_OR_RETURN(
      const auto reply,
      impl_->Call<v1::ChangeNodesReply>(*impl_->topology, &v1::TopologyService::Stub::ResumeNodes, request));
  return ListFrom(reply.nodes());
}

Result<std::vector<JobInfo>> SystemClient::ListJobs(const JobQuery& query) {
  v1::ListJobsRequest request;
  request.set_ended(query.ended);
  request.set_limit(query.limit);
  for (const JobId id : query.ids) request.add_ids(id.value);
  request.set_user(query.user);
  request.set_since_ms(query.since_ms);
  request.set_until_ms(query.until_ms);
  for (const JobState state : query.states) request.add_states(static_cast<v1::JobState>(state));
  request.set_name(query.name);
  request.set_namespaces(query.namespaces);
  MSA_ASSIGN_OR_RETURN(const auto reply, impl_->Call<v1::ListJobsReply>(
                                             *impl_->jobs, &v1::JobService::Stub::ListJobs, request));
  return ListFrom(reply.jobs());
}

Result<JobInfo> SystemClient::GetJob(JobId job) {
  v1::GetJobRequest request;
  request.set_job_id(job.value);
  MSA_ASSIGN_OR_RETURN(const auto reply,
                       impl_->Call<v1::Job>(*impl_->jobs, &v1::JobService::Stub::GetJob, request));
  return FromProto(reply);
}

Result<JobInfo> SystemClient::CancelJob(JobId job, const CancelOptions& options) {
  v1::CancelJobRequest request;
  request.set_job_id(job.value);
  request.set_reason(options.reason);
  request.set_now(options.now);
  MSA_ASSIGN_OR_RETURN(const auto reply, impl_->Call<v1::CancelJobReply>(
                                             *impl_->jobs, &v1::JobService::Stub::CancelJob, request));
  return FromProto(reply.job());
}

Status SystemClient::SignalJob(JobId job, int signal) {
  v1::SignalJobRequest request;
  request.set_job_id(job.value);
  request.set_signal(signal);
  return impl_->Call<v1::SignalJobReply>(*impl_->jobs, &v1::JobService::Stub::SignalJob, request).status();
}

Result<std::vector<GrantInfo>> SystemClient::ListGrants(const GrantQuery& query) {
  v1::ListGrantsRequest request;
  request.set_job_id(query.job.value);
  request.set_user(query.user);
  request.set_released(query.released);
  for (const std::uint64_t id : query.ids) request.add_ids(id);
  MSA_ASSIGN_OR_RETURN(const auto reply, impl_->Call<v1::ListGrantsReply>(
                                             *impl_->jobs, &v1::JobService::Stub::ListGrants, request));
  return ListFrom(reply.grants());
}

Result<GrantInfo> SystemClient::ReleaseGrant(std::uint64_t grant, InUse in_use) {
  v1::ReleaseGrantRequest request;
  request.set_grant_id(grant);
  request.set_force(in_use == InUse::kEndNamespaces);
  MSA_ASSIGN_OR_RETURN(const auto reply, impl_->Call<v1::ReleaseGrantReply>(
                                             *impl_->jobs, &v1::JobService::Stub::ReleaseGrant, request));
  return FromProto(reply.grant());
}

Result<JobId> SystemClient::Submit(const JobSpec& spec, const std::string& token) {
  v1::SubmitRequest request;
  ToProto(spec, *request.mutable_spec());
  request.set_submit_token(token);
  MSA_ASSIGN_OR_RETURN(const auto reply,
                       impl_->Call<v1::SubmitReply>(*impl_->jobs, &v1::JobService::Stub::Submit, request));
  return JobId(reply.job_id());
}

}  // namespace msa::cli
