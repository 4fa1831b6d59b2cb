#include "session_relay.h"

#include <unistd.h>

#include <utility>
#include <vector>

#include <fmt/format.h>

namespace msa::node {
namespace {

// Frames that a client sends before its job is here: AttachOpen and a first piece of stdin.
constexpr std::size_t kMaxHeld = 256;

}  // namespace

SessionRelay::SessionRelay(EventLoop& loop, Options options, JobdManager& jobds)
    : loop_(loop), options_(std::move(options)), jobds_(jobds) {}

SessionRelay::~SessionRelay() {
  for (auto& [id, session] : sessions_) loop_.Cancel(session.hold_timer);
  for (auto& [key, gone] : gone_) loop_.Cancel(gone.forget_timer);
}

Status SessionRelay::Listen(const std::string& path) {
  AttachServer::Handlers handlers;
  handlers.on_open = [this](AttachServer::Opened opened) { OnOpen(std::move(opened)); };
  handlers.on_frame = [this](SessionId id, wire::Frame frame) { OnClientFrame(id, std::move(frame)); };
  handlers.on_closed = [this](SessionId id, const Status&) { OnClosed(id); };
  AttachServer::Options options;
  options.path = path;
  // Root's node daemon has jobs of every user; OnOpen looks at who comes for whose.
  if (::geteuid() == 0) options.mode = 0666;
  MSA_ASSIGN_OR_RETURN(server_, AttachServer::Create(loop_, std::move(options), std::move(handlers)));
  return Status::Ok();
}

void SessionRelay::OnOpen(AttachServer::Opened opened) {
  const SessionId id = opened.session;
  if (opened.job.value == 0)
    return server_->End(id, Status(Code::kInvalidArgument, "attach names no job; name one"));
  Session session;
  session.key = {opened.job, opened.incarnation};
  session.user = opened.user;
  session.held.push_back(std::move(opened.first));
  session.hold_timer = loop_.After(options_.hold, [this, id] {
    const auto it = sessions_.find(id);
    if (it == sessions_.end()) return;
    Drop(id, Error(Code::kNotFound, "job {} does not run on node {}; see 'msactl job show {}'",
                   it->second.key.job, options_.node, it->second.key.job));
  });
  sessions_.emplace(id, std::move(session));
  const JobKey wanted{opened.job, opened.incarnation};
  const auto here = wanted.incarnation.value == 0 ? jobds_.FindJob(wanted.job)
                    : jobds_.Find(wanted)         ? std::optional<JobKey>(wanted)
                                                  : std::nullopt;
  if (here) return Join(id, *here);
  DropIfGone(id);
}

void SessionRelay::DropIfGone(SessionId id) {
  const JobKey key = sessions_.at(id).key;
  const auto gone = gone_.find(key);
  if (gone != gone_.end())
    Drop(id, Error(Code::kNotFound, "job {} is over on node {}: {}", key.job, options_.node,
                   gone->second.reason));
}

void SessionRelay::Join(SessionId id, const JobKey& key) {
  const auto it = sessions_.find(id);
  const auto info = jobds_.Find(key);
  if (it == sessions_.end() || !info) return;
  Session& session = it->second;
  if (session.user.uid != 0 && session.user.uid != info->user.uid)
    return Drop(id, Error(Code::kPermissionDenied,
                          "job {} belongs to uid {}, you are uid {}; only its owner and root may attach",
                          key.job, info->user.uid, session.user.uid));
  if (!info->is_head)
    return Drop(id, Error(Code::kNotFound,
                          "job {} has its head on another node than {}; 'msactl job show {}' names it",
                          key.job, options_.node, key.job));
  loop_.Cancel(session.hold_timer);
  session.key = key;
  session.joined = true;
  for (wire::Frame& frame : std::exchange(session.held, {})) {
    if (!sessions_.contains(id)) return;  // refused
    ToJobd(id, session, std::move(frame));
  }
}

void SessionRelay::ToJobd(SessionId id, Session& session, wire::Frame frame) {
  const auto info = jobds_.Find(session.key);
  // Root may look on; what runs as the user is started by the user.
  if (frame.type == wire::StepOpen::kType && info && session.user.uid != info->user.uid)
    return Drop(id, Error(Code::kPermissionDenied,
                          "job {} belongs to uid {}, you are uid {}; only its owner may "
                          "run steps in it",
                          session.key.job, info->user.uid, session.user.uid));
  frame.id = id;
  jobds_.Deliver(session.key, std::move(frame));
  if (session.paused || !jobds_.congested(session.key)) return;
  session.paused = true;
  server_->PauseReading(id);
}

void SessionRelay::OnClientFrame(SessionId id, wire::Frame frame) {
  const auto it = sessions_.find(id);
  if (it == sessions_.end()) return;
  // What a client may say to a job daemon; the end of a session is ours to tell.
  if (frame.type >> 8 != 0x04 || frame.type == kSessionEnded)
    return Drop(id, Error(Code::kInvalidArgument,
                          "message of type {:#06x} does not belong into an attach session", frame.type));
  if (it->second.joined) return ToJobd(id, it->second, std::move(frame));
  it->second.held.push_back(std::move(frame));
  if (it->second.held.size() > kMaxHeld)
    Drop(id, Error(Code::kResourceExhausted, "more than {} messages before job {} is there", kMaxHeld,
                   it->second.key.job));
}

void SessionRelay::OnClosed(SessionId id) {
  auto node = sessions_.extract(id);
  if (node.empty()) return;
  loop_.Cancel(node.mapped().hold_timer);
  if (node.mapped().joined) jobds_.Deliver(node.mapped().key, {kSessionEnded, 0, id, {}});
}

void SessionRelay::Drop(SessionId id, Status why) {
  server_->End(id, std::move(why));
  OnClosed(id);
}

void SessionRelay::OnHere(const JobKey& key) {
  std::vector<SessionId> ready;
  for (const auto& [id, session] : sessions_)
    if (!session.joined && session.key.job == key.job &&
        (session.key.incarnation.value == 0 || session.key.incarnation == key.incarnation))
      ready.push_back(id);
  for (const SessionId id : ready) Join(id, key);
}

void SessionRelay::OnJobdFrame(const JobKey& key, wire::Frame frame) {
  const SessionId id = frame.id;
  const auto it = sessions_.find(id);
  if (it == sessions_.end() || !it->second.joined || it->second.key != key) return;
  if (frame.type == kSessionEnded) {
    sessions_.erase(it);
    return server_->End(id, Status::Ok());
  }
  server_->Send(id, std::move(frame));
  if (server_->queued(id) > options_.max_queued)
    Drop(id, Error(Code::kResourceExhausted,
                   "{} bytes of output wait for this client, which does not read; attach again",
                   server_->queued(id)));
}

void SessionRelay::OnSessionsLost(const JobKey& key, const Status& why) {
  std::vector<SessionId> lost;
  for (const auto& [id, session] : sessions_)
    if (session.joined && session.key == key) lost.push_back(id);
  for (const SessionId id : lost) {
    sessions_.erase(id);
    server_->End(id, Status(Code::kUnavailable, why.message()));
  }
}

void SessionRelay::OnGone(const GoneJob& gone) {
  OnSessionsLost(gone.key, Status(Code::kUnavailable, gone.reason));
  // Sessions are with heads; elsewhere it may be launched once more.
  if (!gone.is_head) return;
  Remember(gone.key, gone.reason);
  std::vector<SessionId> waiting;
  for (const auto& [id, session] : sessions_)
    if (!session.joined && session.key == gone.key) waiting.push_back(id);
  for (const SessionId id : waiting) DropIfGone(id);
}

void SessionRelay::Remember(const JobKey& key, const std::string& reason) {
  Gone& gone = gone_[key];
  loop_.Cancel(gone.forget_timer);
  gone.reason = reason;
  gone.forget_timer = loop_.After(options_.gone_hold, [this, key] { gone_.erase(key); });
}

void SessionRelay::OnDrained(const JobKey& key) {
  for (auto& [id, session] : sessions_) {
    if (!session.paused || session.key != key) continue;
    session.paused = false;
    server_->ResumeReading(id);
  }
}

}  // namespace msa::node
