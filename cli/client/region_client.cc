#include "client/region_client.h"

#include <poll.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include "msa/base/clock.h"
#include "msa/v1/nam.grpc.pb.h"

#include "client/channel_internal.h"

namespace msa::cli {
namespace {

constexpr std::string_view kController = "the controller";

// A NAM node that is away is the controller's answer, not its absence.
Status ToRegionStatus(const grpc::Status& status) {
  const std::string text = status.error_message();
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE &&
      (text.starts_with("region '") || text.starts_with("no NAM node")))
    return Status(Code::kUnavailable, text);
  return ToStatus(status, kController);
}

wire::NamRegionInfo FromProto(const v1::NamRegion& in) {
  wire::NamRegionInfo out;
  if (const auto uuid = ParseRegionUuid(in.uuid())) out.uuid = *uuid;
  out.generation = Generation(in.generation());
  out.name = in.name();
  out.uid = in.uid();
  out.gid = in.gid();
  out.user_name = in.user();
  out.mode = in.mode();
  for (const auto& entry : in.acl())
    out.acl.push_back({entry.group() ? wire::NamAclKind::kGroup : wire::NamAclKind::kUser, entry.id(),
                       static_cast<NamRights>(entry.rights() & 7U)});
  out.lifetime = static_cast<wire::NamLifetime>(in.lifetime());
  out.placement = static_cast<wire::NamPlacement>(in.placement());
  out.state = static_cast<wire::NamRegionState>(in.state());
  out.job = JobId(in.job());
  out.created_ms = in.created_ms();
  out.bytes = Bytes(in.bytes());
  for (const auto& segment : in.segments())
    out.segments.push_back({Bytes(segment.bytes()), segment.disp_unit(), segment.node()});
  for (const auto& holder : in.holders())
    out.holders.push_back({LeaseId(holder.lease()), JobId(holder.job()), holder.who(), holder.uid(),
                           holder.user(), static_cast<NamRights>(holder.rights() & 7U), holder.since_ms()});
  return out;
}

wire::NamUsage FromProto(const v1::RegionUsageReply& in) {
  wire::NamUsage out;
  for (const auto& node : in.nodes())
    out.nodes.push_back({node.name(), node.up(), Bytes(node.capacity()), Bytes(node.used()), node.regions()});
  for (const auto& user : in.users())
    out.users.push_back({user.uid(), user.name(), Bytes(user.used()), Bytes(user.quota()), user.regions()});
  for (const auto& job : in.jobs())
    out.jobs.push_back({JobId(job.id()), Bytes(job.used()), Bytes(job.allotment())});
  out.reserved = Bytes(in.reserved());
  return out;
}

// Of a NAM node that is just being restarted, or whose controller is: it is there again in a second or two.
constexpr Millis kPatience{4000};
constexpr int kPauseMillis = 50;

// A stub whose channel ends on the thread that opened it, or not before the process. gRPC's own thread, which
// may be the last to hold it, must not: it would end the queue that it serves, and gRPC 1.51 then aborts
// ("assertion failed: prior > 0", CallbackAlternativeCQ).
std::shared_ptr<v1::RegionService::Stub> NewStub(UniqueFd socket) {
  const auto end = [opener = std::this_thread::get_id()](v1::RegionService::Stub* stub) {
    if (std::this_thread::get_id() == opener) delete stub;
  };
  return {v1::RegionService::NewStub(OpenChannel(std::move(socket))).release(), end};
}

// Calls again while a NAM node is away and patience lasts.
template <class Call>
auto Patiently(Call call) {
  for (const SteadyTime end = SteadyNow() + kPatience;;) {
    auto result = call();
    const bool away = result.status().code() == Code::kUnavailable &&
                      result.status().message().find("away") != std::string::npos;
    if (!away || SteadyNow() >= end) return result;
    ::poll(nullptr, 0, kPauseMillis);
  }
}

}  // namespace

// Reads one reply, then waits for the end. gRPC's threads call On...; it lives until OnDone.
class OpenedRegion::Stream : public grpc::ClientReadReactor<v1::OpenRegionReply>,
                             public std::enable_shared_from_this<Stream> {
 public:
  explicit Stream(std::shared_ptr<v1::RegionService::Stub> stub) : stub_(std::move(stub)) {}

  void Start(const v1::OpenRegionRequest& request) {
    request_ = request;
    self_ = shared_from_this();
    stub_->async()->Open(&context_, &request_, this);
    StartRead(&reply_);
    StartCall();
  }

  // The lease, or why there is none.
  Status WaitForLease(Millis timeout) {
    std::unique_lock lock(mu_);
    if (!changed_.wait_for(lock, timeout, [this] { return granted_ || ended_; })) {
      lock.unlock();
      context_.TryCancel();
      return Error(Code::kUnavailable, "{} does not answer; see 'msactl cluster status' and 'msactl doctor'",
                   kController);
    }
    if (granted_) return Status::Ok();
    if (!end_.ok()) return end_;
    return Error(Code::kUnavailable, "{} ended the call without a lease", kController);
  }

  // Until the controller knows of it, so that a command that follows finds the region unused.
  void Close() {
    context_.TryCancel();
    std::unique_lock lock(mu_);
    // It does not depend on the controller: gRPC ends a cancelled call by itself.
    changed_.wait(lock, [this] { return ended_; });
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    {
      std::lock_guard lock(mu_);
      if (!granted_) {
        info_ = FromProto(reply_.region());
        lease_ = reply_.lease();
        granted_ = true;
      }
    }
    changed_.notify_all();
    StartRead(&reply_);
  }

  void OnDone(const grpc::Status& status) override {
    // Kept until the notification is over.
    const std::shared_ptr<Stream> self = std::move(self_);
    {
      std::lock_guard lock(mu_);
      end_ = ToRegionStatus(status);
      ended_ = true;
    }
    changed_.notify_all();
  }

  const wire::NamRegionInfo& info() const { return info_; }
  const std::string& lease() const { return lease_; }

 private:
  std::shared_ptr<v1::RegionService::Stub> stub_;
  grpc::ClientContext context_;
  v1::OpenRegionRequest request_;
  v1::OpenRegionReply reply_;
  std::mutex mu_;
  std::condition_variable changed_;
  bool granted_ = false;      // mu_
  bool ended_ = false;        // mu_
  Status end_;                // mu_
  wire::NamRegionInfo info_;  // written before granted_
  std::string lease_;         // likewise
  std::shared_ptr<Stream> self_;
};

OpenedRegion::OpenedRegion(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
OpenedRegion::~OpenedRegion() { stream_->Close(); }
const wire::NamRegionInfo& OpenedRegion::info() const noexcept { return stream_->info(); }
const std::string& OpenedRegion::lease() const noexcept { return stream_->lease(); }

class RegionClient::Impl {
 public:
  Impl(UniqueFd socket, Millis timeout) : timeout_(timeout), stub_(NewStub(std::move(socket))) {}

  template <class Reply, class Method, class Request>
  Result<Reply> Call(Method method, const Request& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + timeout_);
    Reply reply;
    const Status status = ToRegionStatus((stub_.get()->*method)(&context, request, &reply));
    if (!status.ok()) return status;
    return reply;
  }
  Millis timeout() const { return timeout_; }
  const std::shared_ptr<v1::RegionService::Stub>& stub() const { return stub_; }

 private:
  const Millis timeout_;
  const std::shared_ptr<v1::RegionService::Stub> stub_;
};

using Stub = v1::RegionService::Stub;

RegionClient::RegionClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RegionClient::~RegionClient() = default;

Result<std::unique_ptr<RegionClient>> RegionClient::Connect(const Endpoint& endpoint, Millis timeout) {
  MSA_ASSIGN_OR_RETURN(UniqueFd socket, ConnectController(endpoint));
  return std::unique_ptr<RegionClient>(new RegionClient(std::make_unique<Impl>(std::move(socket), timeout)));
}

Result<std::unique_ptr<RegionClient>> RegionClient::TryConnect(const Endpoint& endpoint, Millis timeout) {
  MSA_ASSIGN_OR_RETURN(UniqueFd socket, TryConnectController(endpoint));
  return std::unique_ptr<RegionClient>(new RegionClient(std::make_unique<Impl>(std::move(socket), timeout)));
}

Result<wire::NamRegionInfo> RegionClient::Create(const wire::NamCreate& in) {
  v1::CreateRegionRequest request;
  request.set_token(in.token);
  request.set_name(in.name);
  request.set_mode(in.mode);
  request.set_placement(static_cast<v1::NamPlacement>(in.placement));
  for (const wire::NamSegmentSpec& segment : in.segments) {
    v1::NamSegment& out = *request.add_segments();
    out.set_bytes(segment.bytes.value);
    out.set_disp_unit(segment.disp_unit);
  }
  for (const std::string& node : in.nodes) request.add_nodes(node);
  const auto reply = Patiently([&] { return impl_->Call<v1::CreateRegionReply>(&Stub::Create, request); });
  if (!reply.ok()) return reply.status();
  return FromProto(reply->region());
}

Result<std::unique_ptr<OpenedRegion>> RegionClient::Open(const std::string& region, NamRights rights) {
  v1::OpenRegionRequest request;
  request.set_region(region);
  request.set_rights(static_cast<std::uint32_t>(rights));
  return Patiently([&]() -> Result<std::unique_ptr<OpenedRegion>> {
    auto stream = std::make_shared<OpenedRegion::Stream>(impl_->stub());
    stream->Start(request);
    MSA_RETURN_IF_ERROR(stream->WaitForLease(impl_->timeout()));
    return std::unique_ptr<OpenedRegion>(new OpenedRegion(std::move(stream)));
  });
}

Result<std::vector<wire::NamRegionInfo>> RegionClient::List(const wire::NamList& in) {
  v1::ListRegionsRequest request;
  request.set_region(in.region);
  request.set_user(in.user);
  MSA_ASSIGN_OR_RETURN(const auto reply, impl_->Call<v1::ListRegionsReply>(&Stub::List, request));
  std::vector<wire::NamRegionInfo> out;
  for (const auto& region : reply.regions()) out.push_back(FromProto(region));
  return out;
}

Status RegionClient::Remove(const wire::NamRemove& in) {
  v1::RemoveRegionRequest request;
  request.set_region(in.region);
  request.set_force(in.force);
  return impl_->Call<v1::RemoveRegionReply>(&Stub::Remove, request).status();
}

Status RegionClient::Resize(const wire::NamResize& in) {
  v1::ResizeRegionRequest request;
  request.set_region(in.region);
  for (const Bytes bytes : in.segments) request.add_segments(bytes.value);
  return impl_->Call<v1::ResizeRegionReply>(&Stub::Resize, request).status();
}

Status RegionClient::SetAccess(const wire::NamSetAccess& in) {
  v1::SetRegionAccessRequest request;
  request.set_region(in.region);
  if (in.mode) request.set_mode(*in.mode);
  if (in.gid) request.set_gid(*in.gid);
  for (const wire::NamAclEntry& entry : in.set) {
    v1::NamAclEntry& out = *request.add_set();
    out.set_group(entry.kind == wire::NamAclKind::kGroup);
    out.set_id(entry.id);
    out.set_rights(static_cast<std::uint32_t>(entry.rights));
  }
  request.set_clear(in.clear);
  return impl_->Call<v1::SetRegionAccessReply>(&Stub::SetAccess, request).status();
}

Result<wire::NamUsage> RegionClient::Usage() {
  MSA_ASSIGN_OR_RETURN(const auto reply,
                       impl_->Call<v1::RegionUsageReply>(&Stub::Usage, v1::RegionUsageRequest()));
  return FromProto(reply);
}

Result<wire::NamCheckResult> RegionClient::Check(const wire::NamCheckAsk& in) {
  v1::CheckRegionsRequest request;
  request.set_repair(in.repair);
  MSA_ASSIGN_OR_RETURN(const auto reply, impl_->Call<v1::CheckRegionsReply>(&Stub::Check, request));
  wire::NamCheckResult out;
  for (const auto& finding : reply.findings())
    out.findings.push_back({finding.node(), finding.region(), finding.what(), finding.repaired()});
  out.away.assign(reply.away().begin(), reply.away().end());
  return out;
}

}  // namespace msa::cli
