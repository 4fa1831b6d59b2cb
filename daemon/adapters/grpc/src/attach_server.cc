#include "msa/adapters/grpc/attach_server.h"

#include <atomic>
#include <unordered_map>
#include <utility>

#include <grpcpp/server_context.h>

#include "msa/adapters/grpc/convert_node_internal.h"
#include "msa/adapters/grpc/grpc_server_internal.h"
#include "msa/adapters/grpc/status_internal.h"
#include "msa/adapters/grpc/stream_internal.h"
#include "msa/v1/node.grpc.pb.h"

namespace msa {
namespace {

using AttachStream = BidiStream<v1::AttachFrame, v1::AttachFrame>;

// Refuses a call at once.
class Refusal : public grpc::ServerBidiReactor<v1::AttachFrame, v1::AttachFrame> {
 public:
  explicit Refusal(const Status& why) { Finish(ToGrpc(why)); }
  void OnDone() override { delete this; }
};

}  // namespace

class AttachServer::Impl : public v1::NodeService::CallbackService,
                           public std::enable_shared_from_this<Impl> {
 public:
  Impl(EventLoop& loop, Options options, Handlers handlers)
      : loop_(loop), options_(std::move(options)), handlers_(std::move(handlers)) {}

  Status Start() {
    MSA_ASSIGN_OR_RETURN(server_,
                         GrpcServer::Start(loop_, {.path = options_.path, .mode = options_.mode}, {this}));
    return Status::Ok();
  }

  void Take(UniqueFd connection, const Peer& peer) { server_->Take(std::move(connection), peer); }

  void Stop() {
    stopped_ = true;
    server_->StopAccepting();
    for (auto& [id, session] : sessions_) {
      session->phase = Session::Phase::kOver;
      session->stream->End(ToGrpc(Status(Code::kUnavailable, "the node daemon is going away; attach again")));
    }
    sessions_.clear();
    server_->Shutdown(kGrace);
  }

  grpc::ServerBidiReactor<v1::AttachFrame, v1::AttachFrame>* Attach(
      grpc::CallbackServerContext* context) override {
    const Result<UserIdentity> user = server_->Caller(*context);
    if (!user.ok()) return new Refusal(user.status());
    if (open_ >= options_.max_sessions) {
      return new Refusal(Error(Code::kResourceExhausted,
                               "{} sessions are attached to this node already; end one of them",
                               options_.max_sessions));
    }
    open_ += 1;
    auto session = std::make_shared<Session>();
    session->id = next_id_++;
    session->user = *user;
    session->stream = std::make_shared<AttachStream>();
    auto self = shared_from_this();
    AttachStream::Base::Hooks hooks;
    hooks.high_water = kHighWater;
    hooks.low_water = kLowWater;
    hooks.on_drained = [self, session] { self->loop_.Post([self, session] { self->Drained(*session); }); };
    hooks.on_gone = [self, session] {
      self->open_ -= 1;
      self->loop_.Post([self, session] { self->Closed(session); });
    };
    auto on_read = [self, session](std::optional<v1::AttachFrame> in) {
      self->loop_.Post([self, session, in = std::move(in)]() mutable {
        if (in) {
          self->Read(session, std::move(*in));
        } else {
          self->Closed(session);
        }
      });
    };
    return session->stream->OpenBoth(session->stream, std::move(hooks), std::move(on_read));
  }

  void Send(SessionId id, wire::Frame frame) {
    const auto it = sessions_.find(id);
    if (it == sessions_.end()) return;
    frame.id = 0;
    v1::AttachFrame out;
    node_control::ToProto(std::move(frame), *out.mutable_frame());
    it->second->stream->Send(std::move(out));
  }

  std::size_t queued(SessionId id) const {
    const auto it = sessions_.find(id);
    return it == sessions_.end() ? 0 : it->second->stream->queued();
  }

  void Pause(SessionId id) {
    if (const auto it = sessions_.find(id); it != sessions_.end()) it->second->paused = true;
  }

  void Resume(SessionId id) {
    const auto it = sessions_.find(id);
    if (it == sessions_.end()) return;
    it->second->paused = false;
    if (std::exchange(it->second->read_due, false)) it->second->stream->ReadNext();
  }

  void End(SessionId id, const Status& status) {
    const auto it = sessions_.find(id);
    if (it == sessions_.end()) return;
    it->second->stream->End(ToGrpc(status));
    it->second->phase = Session::Phase::kOver;
    sessions_.erase(it);
  }

 private:
  struct Session {
    enum class Phase { kNew, kOpen, kOver };
    SessionId id = 0;
    UserIdentity user;
    std::shared_ptr<AttachStream> stream;
    // Loop thread.
    Phase phase = Phase::kNew;
    bool paused = false;
    bool read_due = false;  // a frame was taken while paused
  };
  static constexpr Millis kGrace{200};  // what is queued reaches a client that reads

  void Read(const std::shared_ptr<Session>& session, v1::AttachFrame in) {
    if (stopped_ || session->phase == Session::Phase::kOver) return;
    Result<wire::Frame> frame = node_control::FromProto(std::move(*in.mutable_frame()));
    if (session->phase == Session::Phase::kNew) {
      Open(session, in, std::move(frame));
    } else if (frame.ok()) {
      handlers_.on_frame(session->id, *std::move(frame));
    } else {
      End(session->id, frame.status());
      handlers_.on_closed(session->id, frame.status());
    }
    if (session->phase != Session::Phase::kOpen) return;
    if (session->paused) {
      session->read_due = true;
    } else {
      session->stream->ReadNext();
    }
  }

  void Open(const std::shared_ptr<Session>& session, const v1::AttachFrame& in, Result<wire::Frame> frame) {
    Status status = frame.status();
    if (status.ok() && in.job_id() == 0) {
      status =
          Status(Code::kInvalidArgument, "the first frame of a session names job 0; expected a job's id");
    }
    if (!status.ok()) {
      session->phase = Session::Phase::kOver;
      session->stream->End(ToGrpc(status));
      return;
    }
    session->phase = Session::Phase::kOpen;
    sessions_.emplace(session->id, session);
    handlers_.on_open({.session = session->id,
                       .user = session->user,
                       .job = JobId(in.job_id()),
                       .incarnation = Incarnation(in.incarnation()),
                       .first = *std::move(frame)});
  }

  void Closed(const std::shared_ptr<Session>& session) {
    const auto before = std::exchange(session->phase, Session::Phase::kOver);
    if (before == Session::Phase::kOver) return;
    session->stream->End(grpc::Status::OK);
    sessions_.erase(session->id);
    if (before == Session::Phase::kOpen && !stopped_) {
      handlers_.on_closed(session->id, Status(Code::kUnavailable, "the client has gone"));
    }
  }

  void Drained(const Session& session) {
    if (!stopped_ && session.phase == Session::Phase::kOpen && handlers_.on_drained)
      handlers_.on_drained(session.id);
  }

  EventLoop& loop_;
  const Options options_;
  const Handlers handlers_;
  std::unique_ptr<GrpcServer> server_;
  std::atomic<SessionId> next_id_ = 1;
  std::atomic<std::size_t> open_ = 0;
  // Loop thread.
  bool stopped_ = false;
  std::unordered_map<SessionId, std::shared_ptr<Session>> sessions_;  // those that are open
};

Result<std::unique_ptr<AttachServer>> AttachServer::Create(EventLoop& loop, Options options,
                                                           Handlers handlers) {
  auto impl = std::make_shared<Impl>(loop, std::move(options), std::move(handlers));
  MSA_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<AttachServer>(new AttachServer(std::move(impl)));
}

AttachServer::AttachServer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
AttachServer::~AttachServer() { impl_->Stop(); }

void AttachServer::Take(UniqueFd connection, const Peer& peer) { impl_->Take(std::move(connection), peer); }
void AttachServer::Send(SessionId session, wire::Frame frame) { impl_->Send(session, std::move(frame)); }
std::size_t AttachServer::queued(SessionId session) const { return impl_->queued(session); }
void AttachServer::PauseReading(SessionId session) { impl_->Pause(session); }
void AttachServer::ResumeReading(SessionId session) { impl_->Resume(session); }
void AttachServer::End(SessionId session, Status status) { impl_->End(session, status); }

}  // namespace msa
