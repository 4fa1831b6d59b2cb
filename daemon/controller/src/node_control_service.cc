#include <algorithm>
#include <atomic>

#include <grpcpp/server_context.h>
#include <spdlog/spdlog.h>

#include "msa/adapters/grpc/convert_node_internal.h"
#include "msa/adapters/grpc/frame_bundle.h"
#include "msa/adapters/grpc/status_internal.h"
#include "msa/adapters/grpc/stream_internal.h"
#include "msa/adapters/tls/certificates.h"
#include "msa/base/clock.h"
#include "msa/base/messages.h"
#include "msa/v1/node.grpc.pb.h"

#include "nam_key.h"
#include "secret.h"
#include "services.h"

namespace msa {
namespace {

// The year 9999: later ones are no clocks, and sums with them must not overflow.
constexpr std::int64_t kLatestClock = 253'402'300'799'000;

using NodeStream = BidiStream<v1::NodeReport, v1::NodeCommand>;
using NodeReactor = grpc::ServerBidiReactor<v1::NodeReport, v1::NodeCommand>;

class StreamLink : public NodeLink {
 public:
  StreamLink(EventLoop& loop, std::shared_ptr<NodeStream> stream) : loop_(loop), stream_(std::move(stream)) {}
  void Send(const node_control::Registered& command) override { Queue(node_control::ToProto(command)); }
  void Send(node_control::StartJob command) override { Queue(node_control::ToProto(std::move(command))); }
  void Send(node_control::ToJobd command) override { Queue(node_control::ToProto(std::move(command))); }
  void Send(const node_control::QuitJob& command) override { Queue(node_control::ToProto(command)); }
  void Send(node_control::ToNamd command) override { Queue(node_control::ToProto(std::move(command))); }
  void Send(node_control::ToSlurm command) override { Queue(node_control::ToProto(std::move(command))); }
  void Close(Status why) override { stream_->End(ToGrpc(why)); }

 private:
  // What one turn of the loop has for the node travels together.
  void Queue(v1::NodeCommand command) {
    stream_->Queue(std::move(command));
    if (std::exchange(*posted_, true)) return;
    loop_.Post([stream = stream_, posted = posted_] {
      *posted = false;
      stream->Flush();
    });
  }

  EventLoop& loop_;
  std::shared_ptr<NodeStream> stream_;
  const std::shared_ptr<bool> posted_ = std::make_shared<bool>(false);
};

// Refuses a session at once.
class Refusal : public NodeReactor {
 public:
  explicit Refusal(const Status& why) { Finish(ToGrpc(why)); }
  void OnDone() override { delete this; }
};

// Loop thread, but for `stream`.
struct NodeSession {
  SessionId id = 0;
  UserIdentity user;
  std::string user_name;
  std::string certified;  // the node of its certificate; empty: it is on this host
  std::string node;       // empty: not registered yet
  std::shared_ptr<NodeStream> stream;
};

event::NodeRegistered RegistrationOf(node_control::RegisterNode in, SessionId session) {
  node_control::NodeDescription& node = in.description;
  event::NodeRegistered out{.node = std::move(node.name),
                            .session = session,
                            .facts = {.cores = node.cores,
                                      .machine_cores = node.machine_cores,
                                      .memory = node.memory,
                                      .synthetic = node.synthetic,
                                      .packages = node.packages,
                                      .numa_nodes = node.numa_nodes,
                                      .gpus = node.gpus,
                                      .cpu_model = std::move(node.cpu_model),
                                      .nam = node.nam},
                            .daemon_version = std::move(in.daemon_version),
                            .attach_address = std::move(in.attach_address),
                            .jobd_address = std::move(in.jobd_address)};
  for (const node_control::JobdState& jobd : in.jobds) {
    out.jobds.push_back({.job = jobd.job,
                         .incarnation = jobd.incarnation,
                         .member_index = jobd.member_index,
                         .is_head = jobd.is_head,
                         .ended = jobd.ended});
  }
  return out;
}

Result<Event> SlurmEvent(const std::string& node, const wire::Frame& frame) {
  switch (frame.type) {
    case wire::SlurmStepBegin::kType: {
      MSA_ASSIGN_OR_RETURN(auto begin, wire::Decode<wire::SlurmStepBegin>(frame.payload));
      MSA_ASSIGN_OR_RETURN(std::string secret, MakeSecret());
      return Event(
          event::SlurmStepBegin{.node = node, .begin = std::move(begin), .secret = std::move(secret)});
    }
    case wire::SlurmStepEnd::kType: {
      MSA_ASSIGN_OR_RETURN(const auto end, wire::Decode<wire::SlurmStepEnd>(frame.payload));
      return Event(event::SlurmStepEnd{.node = node, .end = end});
    }
    case wire::SlurmJobEnd::kType: {
      MSA_ASSIGN_OR_RETURN(const auto end, wire::Decode<wire::SlurmJobEnd>(frame.payload));
      return Event(event::SlurmJobEnd{.node = node, .component_job = end.component_job});
    }
    default:
      return Error(Code::kInvalidArgument, "unknown message type {:#06x}", frame.type);
  }
}

// Empty for a process of this host.
Result<std::string> NodeOfCertificate(const std::string& member) {
  if (member.empty()) return std::string();
  MSA_ASSIGN_OR_RETURN(PeerIdentity who, ParseIdentityUri(member));
  if (who.role != PeerRole::kNode)
    return Error(Code::kPermissionDenied, "a certificate of a {} does not speak for a node",
                 ToText(who.role));
  return std::move(who.node);
}

class NodeControlService : public RpcService, public v1::NodeControlService::CallbackService {
 public:
  explicit NodeControlService(RpcEdge& edge) : edge_(edge) {}
  grpc::Service* service() override { return this; }

  NodeReactor* Session(grpc::CallbackServerContext* context) override {
    const Result<Peer> caller = edge_.caller_process(*context);
    if (!caller.ok()) return new Refusal(caller.status());
    const std::uint32_t uid = caller->user.uid;
    if (uid != 0 && uid != edge_.operator_uid) {
      return new Refusal(
          Error(Code::kPermissionDenied,
                "uid {} may not speak for a node; node daemons run as root or as the controller's user {}",
                uid, edge_.operator_uid));
    }
    const Result<std::string> node = NodeOfCertificate(caller->member);
    if (!node.ok()) return new Refusal(node.status());
    auto session = std::make_shared<NodeSession>();
    session->id = next_session_++;
    session->user = caller->user;
    session->certified = *node;
    session->user_name = edge_.users.Of(uid);
    session->stream = std::make_shared<NodeStream>();
    NodeStream::Base::Hooks hooks;
    hooks.on_gone = [this, session] { edge_.loop.Post([this, session] { Gone(*session); }); };
    auto on_read = [this, session](std::optional<v1::NodeReport> report) {
      if (!report) {
        session->stream->End(grpc::Status::OK);
        return;
      }
      edge_.loop.Post(
          [this, session, report = std::move(*report)]() mutable { Read(*session, std::move(report)); });
    };
    return session->stream->OpenBoth(session->stream, std::move(hooks), std::move(on_read));
  }

 private:
  void Read(NodeSession& session, v1::NodeReport report) {
    Status status;
    for (v1::NodeReport& one : Scatter(std::move(report)))
      if (status.ok())
        status = session.node.empty() ? Register(session, std::move(one)) : Take(session, std::move(one));
    if (status.ok()) {
      session.stream->ReadNext();
      return;
    }
    spdlog::warn("node={} session={} refused: {}", session.node.empty() ? "?" : session.node, session.id,
                 status.ToString());
    session.stream->End(ToGrpc(status));
  }

  Status Register(NodeSession& session, v1::NodeReport report) {
    if (!report.has_register_()) {
      return Status(Code::kInvalidArgument, "the first message of a node's session is not a registration");
    }
    node_control::RegisterNode in = node_control::FromProto(report.register_());
    if (!session.certified.empty() && session.certified != in.description.name)
      return Error(Code::kPermissionDenied, "node daemon of '{}' registers as '{}'", session.certified,
                   in.description.name);
    if (in.protocol_version != wire::kProtocolVersion) {
      return Error(Code::kFailedPrecondition,
                   "node '{}' speaks protocol version {} (msa {}), the controller version {} (msa {}); run "
                   "one version of msa on "
                   "all nodes",
                   in.description.name, in.protocol_version, in.daemon_version, wire::kProtocolVersion,
                   edge_.version);
    }
    const auto index = edge_.shell.controller().topology().SelectNode(in.description.name);
    if (!index.ok()) return index.status();
    session.node = in.description.name;
    edge_.shell.AddLink(session.node, session.id, std::make_shared<StreamLink>(edge_.loop, session.stream));
    event::NodeRegistered registration = RegistrationOf(std::move(in), session.id);
    registration.uid = session.user.uid;
    registration.user_name = session.user_name;
    edge_.shell.Handle(std::move(registration));
    return Status::Ok();
  }

  Status Take(NodeSession& session, v1::NodeReport report) {
    switch (report.what_case()) {
      case v1::NodeReport::kHeartbeat: {
        const node_control::Heartbeat beat = node_control::FromProto(report.heartbeat());
        edge_.shell.Handle(event::NodeHeartbeat{
            .node = session.node,
            .session = session.id,
            .load = beat.load,
            .jobd_warm = beat.jobd_warm,
            .memory_free = beat.memory_free,
            .clock = FromUnixMillis(std::clamp<std::int64_t>(beat.clock_ms, 0, kLatestClock))});
        return Status::Ok();
      }
      case v1::NodeReport::kFromJobd:
        return TakeFromJobd(session, std::move(*report.mutable_from_jobd()));
      case v1::NodeReport::kJobdGone: {
        node_control::JobdGone gone = node_control::FromProto(report.jobd_gone());
        edge_.shell.Handle(event::JobdGone{.node = session.node,
                                           .job = gone.job,
                                           .incarnation = gone.incarnation,
                                           .reason = std::move(gone.reason),
                                           .clean = gone.clean});
        return Status::Ok();
      }
      case v1::NodeReport::kFromNamd:
        return TakeFromNamd(session, std::move(*report.mutable_from_namd()));
      case v1::NodeReport::kNamdGone:
        edge_.shell.Handle(event::NamdLost{
            .node = session.node, .session = session.id, .reason = report.namd_gone().reason()});
        return Status::Ok();
      case v1::NodeReport::kFromSlurm:
        return TakeFromSlurm(session, std::move(*report.mutable_from_slurm()));
      case v1::NodeReport::kRegister:
        return Status(Code::kInvalidArgument, "a second registration in one session; open a new one");
      case v1::NodeReport::WHAT_NOT_SET:
        return Status::Ok();  // of a newer node daemon
    }
    return Status::Ok();
  }

  Status TakeFromJobd(const NodeSession& session, v1::FromJobd in) {
    MSA_ASSIGN_OR_RETURN(node_control::FromJobd from, node_control::FromProto(std::move(in)));
    const Result<std::vector<wire::Frame>> frames = node_control::Unbundle(std::move(from.frame));
    if (!frames.ok()) {
      spdlog::warn("job={} node={} messages of its job daemon dropped: {}", from.job, session.node,
                   frames.status().ToString());
      return Status::Ok();
    }
    for (const wire::Frame& frame : *frames) {
      Result<JobdMessage> message = DecodeJobdMessage(frame.type, frame.payload);
      if (!message.ok()) {
        // The node relays unread: it is not to blame, and its other jobs go on.
        spdlog::warn("job={} node={} message of its job daemon dropped: {}", from.job, session.node,
                     message.status().ToString());
        continue;
      }
      event::FromJobd event{.node = session.node,
                            .job = from.job,
                            .incarnation = from.incarnation,
                            .message = *std::move(message)};
      if (std::holds_alternative<wire::NamFromTask>(event.message)) {
        event.random = RandomUuid();
        if (const auto job = edge_.shell.controller().GetJob(from.job); job.ok())
          event.groups = edge_.users.GroupsOf(job->record->user);
      }
      edge_.shell.Handle(std::move(event));
    }
    return Status::Ok();
  }

  // As with a job daemon's, what cannot be read costs nobody else the session.
  Status TakeFromNamd(const NodeSession& session, v1::FromNamd in) {
    MSA_ASSIGN_OR_RETURN(const node_control::FromNamd from, node_control::FromProto(std::move(in)));
    const wire::Frame& frame = from.frame;
    const Status taken =
        frame.type == wire::NamdHello::kType ? TakeHello(session, frame.payload) : TakeNamds(session, frame);
    if (!taken.ok()) spdlog::warn("node={} message of its namd dropped: {}", session.node, taken.ToString());
    return Status::Ok();
  }

  Status TakeHello(const NodeSession& session, const std::string& payload) {
    MSA_ASSIGN_OR_RETURN(wire::NamdHello hello, wire::Decode<wire::NamdHello>(payload));
    edge_.shell.Handle(event::NamdUp{.node = session.node, .session = session.id, .hello = std::move(hello)});
    return Status::Ok();
  }

  Status TakeNamds(const NodeSession& session, const wire::Frame& frame) {
    MSA_ASSIGN_OR_RETURN(NamdMessage message, DecodeNamdMessage(frame.type, frame.payload));
    event::FromNamd event{.node = session.node, .session = session.id, .message = std::move(message)};
    if (const auto* asks = std::get_if<wire::NamFromLocal>(&event.message)) {
      event.random = RandomUuid();
      event.user_name = edge_.users.Of(asks->uid);
    }
    edge_.shell.Handle(std::move(event));
    return Status::Ok();
  }

  // Likewise: a plugin of another release costs its own step.
  Status TakeFromSlurm(const NodeSession& session, v1::FromSlurm in) {
    MSA_ASSIGN_OR_RETURN(const node_control::FromSlurm from, node_control::FromProto(std::move(in)));
    Result<Event> event = SlurmEvent(session.node, from.frame);
    if (!event.ok()) {
      spdlog::warn("node={} message of Slurm's plugin dropped: {}", session.node, event.status().ToString());
      return Status::Ok();
    }
    // Slurm does not name the user of a script, and of a step it is a variable that users can set.
    if (auto* begin = std::get_if<event::SlurmStepBegin>(&*event))
      begin->begin.user_name = edge_.users.Of(begin->begin.user.uid);
    edge_.shell.Handle(*std::move(event));
    return Status::Ok();
  }

  void Gone(const NodeSession& session) {
    if (!session.node.empty()) edge_.shell.DropLink(session.node, session.id);
  }

  RpcEdge& edge_;
  std::atomic<SessionId> next_session_ = 1;
};

}  // namespace

std::unique_ptr<RpcService> MakeNodeControlService(RpcEdge& edge) {
  return std::make_unique<NodeControlService>(edge);
}

}  // namespace msa
