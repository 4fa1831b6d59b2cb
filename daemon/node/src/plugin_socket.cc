#include "plugin_socket.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "msa/adapters/process/unix_socket.h"

namespace msa::node {
namespace {

// Out of descriptors: level-triggered, the listener would spin.
constexpr Millis kAcceptPause{100};
// Slurm's programs run as other users too before they say who they are: it is the kernel that says so.
constexpr mode_t kForEverybody = 0666;

}  // namespace

PluginSocket::PluginSocket(EventLoop& loop, Options options, Handlers handlers)
    : loop_(loop), options_(std::move(options)), handlers_(std::move(handlers)) {}

PluginSocket::~PluginSocket() {
  for (auto& [id, peer] : peers_) loop_.Cancel(peer.begin_timer);
  loop_.Cancel(resume_timer_);
  if (!listener_) return;
  loop_.Unwatch(listener_.get());
  ::unlink(options_.path.c_str());
}

Status PluginSocket::Listen() {
  MSA_ASSIGN_OR_RETURN(listener_, ListenUnix(options_.path, kForEverybody));
  return loop_.Watch(listener_.get(), EPOLLIN, [this](std::uint32_t) { Accept(); });
}

void PluginSocket::Accept() {
  for (;;) {
    auto fd = AcceptUnix(listener_.get());
    if (!fd.ok()) {
      spdlog::error("accept a plugin of Slurm: {}", fd.status().message());
      loop_.Modify(listener_.get(), 0);
      resume_timer_ = loop_.After(kAcceptPause, [this] { loop_.Modify(listener_.get(), EPOLLIN); });
      return;
    }
    if (!*fd) return;
    if (const Status admitted = Admit(std::move(*fd)); !admitted.ok())
      spdlog::warn("refused a plugin of Slurm: {}", admitted.message());
  }
}

Status PluginSocket::Admit(UniqueFd fd) {
  MSA_ASSIGN_OR_RETURN(const PeerCredentials who, GetPeerCredentials(fd.get()));
  if (who.user.uid != 0 && who.user.uid != ::geteuid())
    return Error(Code::kPermissionDenied,
                 "pid {} of uid {} connected; only slurmd and slurmstepd, as root, may", who.pid,
                 who.user.uid);
  if (peers_.size() >= options_.max_connections)
    return Error(Code::kResourceExhausted, "{} connections are open, the limit", peers_.size());
  const std::uint64_t id = next_peer_++;
  MSA_ASSIGN_OR_RETURN(
      auto channel,
      FrameChannel::Create(loop_, MakePlainStream(std::move(fd)),
                           {.on_frame = [this, id](const wire::Frame& frame) { OnFrame(id, frame); },
                            .on_closed = [this, id](const Status&) { OnClosed(id); }},
                           wire::kMaxSlurmPayload));
  Peer& peer = peers_[id];
  peer.channel = std::move(channel);
  peer.pid = who.pid;
  peer.begin_timer = loop_.After(options_.begin_timeout, [this, id] { OnClosed(id); });
  return Status::Ok();
}

void PluginSocket::OnFrame(std::uint64_t id, const wire::Frame& frame) {
  const auto it = peers_.find(id);
  if (it == peers_.end()) return;
  if (const Status handled = Handle(it->second, frame); !handled.ok()) {
    spdlog::warn("a plugin of Slurm (pid {}): {}; its connection is closed", it->second.pid,
                 handled.message());
    OnClosed(id);
  }
}

Status PluginSocket::Handle(Peer& peer, const wire::Frame& frame) {
  switch (frame.type) {
    case wire::SlurmStepBegin::kType: {
      MSA_ASSIGN_OR_RETURN(wire::SlurmStepBegin begin, wire::Decode<wire::SlurmStepBegin>(frame.payload));
      return OnBegin(peer, std::move(begin));
    }
    case wire::SlurmTaskBegin::kType:
      return OnTask(peer, frame, handlers_.on_task_begin);
    case wire::SlurmTaskEnd::kType:
      return OnTask(peer, frame, handlers_.on_task_end);
    case wire::SlurmJobEnd::kType: {
      MSA_ASSIGN_OR_RETURN(const wire::SlurmJobEnd end, wire::Decode<wire::SlurmJobEnd>(frame.payload));
      handlers_.on_job_end(end);
      return Status::Ok();
    }
    default:
      return Error(Code::kInvalidArgument, "a message of type {:#06x}", frame.type);
  }
}

template <class M>
Status PluginSocket::OnTask(const Peer& peer, const wire::Frame& frame,
                            const std::function<void(const M&)>& handler) {
  MSA_ASSIGN_OR_RETURN(const M message, wire::Decode<M>(frame.payload));
  if (!peer.begin || peer.begin->job != message.job || peer.begin->step != message.step)
    return Error(Code::kInvalidArgument, "word of a task of step {}.{}, which is not its own", message.job,
                 message.step);
  handler(message);
  return Status::Ok();
}

Status PluginSocket::OnBegin(Peer& peer, wire::SlurmStepBegin begin) {
  if (peer.begin) return Error(Code::kInvalidArgument, "a second step on one connection");
  loop_.Cancel(std::exchange(peer.begin_timer, {}));
  if (begin.version != wire::kSlurmPluginVersion) {
    wire::SlurmStepVerdict verdict;
    verdict.job = begin.job;
    verdict.step = begin.step;
    verdict.message = fmt::format(
        "node {}: msa_spank.so speaks version {} of its protocol, msa-noded {}; install both of one release",
        options_.node, begin.version, wire::kSlurmPluginVersion);
    spdlog::warn("{}", verdict.message);
    peer.answered = true;
    peer.channel->SendMessage(verdict);
    return Status::Ok();
  }
  begin.incarnation = Incarnation();  // not the plugin's to say
  begin.accepted_here = false;
  peer.begin = std::move(begin);
  handlers_.on_begin(*peer.begin);
  return Status::Ok();
}

void PluginSocket::OnClosed(std::uint64_t id) {
  const auto node = peers_.extract(id);
  if (node.empty()) return;
  const Peer& peer = node.mapped();
  loop_.Cancel(peer.begin_timer);
  if (!peer.begin) return;
  wire::SlurmStepEnd end;
  end.job = peer.begin->job;
  end.component_job = peer.begin->component_job;
  end.step = peer.begin->step;
  handlers_.on_step_end(end);
}

void PluginSocket::Answer(const wire::SlurmStepVerdict& verdict) {
  for (auto& [id, peer] : peers_) {
    if (!peer.begin || peer.answered || peer.begin->job != verdict.job || peer.begin->step != verdict.step)
      continue;
    peer.answered = true;
    peer.accepted = verdict.accepted;
    peer.channel->SendMessage(verdict);
  }
}

void PluginSocket::Abort(const wire::SlurmStepAbort& abort) {
  for (auto& [id, peer] : peers_)
    if (peer.accepted && peer.begin->job == abort.job && peer.begin->step == abort.step)
      peer.channel->SendMessage(abort);
}

std::vector<PluginSocket::Part> PluginSocket::Steps() const {
  std::vector<Part> steps;
  for (const auto& [id, peer] : peers_)
    if (peer.begin) steps.push_back({*peer.begin, peer.accepted});
  return steps;
}

}  // namespace msa::node
