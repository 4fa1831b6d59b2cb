// How job daemons come to their node daemon: over the socket jobd.sock, with JobdHello first.
#include <sys/epoll.h>
#include <unistd.h>

#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "msa/adapters/process/byte_stream.h"
#include "msa/adapters/process/unix_socket.h"

#include "jobd_manager.h"

namespace msa::node {
namespace {

// A local process says hello at once; what does not within this is none of ours.
constexpr Millis kStrangerTimeout{5'000};
constexpr std::size_t kMaxStrangers = 256;

// Where frames of a connection go: to nobody known until the hello, then to a job daemon.
struct Route {
  std::uint64_t stranger = 0;
  std::uint64_t seq = 0;
};

}  // namespace

Status JobdManager::Listen() {
  // As root the job daemons of other users connect as well; who they are is checked by SO_PEERCRED and
  // cookie.
  MSA_ASSIGN_OR_RETURN(listener_, ListenUnix(options_.paths.jobd_socket(), ::geteuid() == 0 ? 0666 : 0600));
  return loop_.Watch(listener_.get(), EPOLLIN, [this](std::uint32_t) { Accept(); });
}

void JobdManager::Accept() {
  for (;;) {
    auto fd = AcceptUnix(listener_.get());
    if (!fd.ok()) {
      spdlog::error("accept a job daemon: {}", fd.status().message());
      // Out of descriptors: level-triggered, it would spin. Those that wait are taken a little later.
      loop_.Modify(listener_.get(), 0);
      loop_.After(Millis(100), [this] { loop_.Modify(listener_.get(), EPOLLIN); });
      return;
    }
    if (!*fd) return;
    if (strangers_.size() >= kMaxStrangers) {
      spdlog::warn("refused a connection: {} have not said who they are", strangers_.size());
      continue;
    }
    const auto route = std::make_shared<Route>(Route{next_stranger_++, 0});
    const std::uint64_t id = route->stranger;
    auto channel = FrameChannel::Create(
        loop_, MakePlainStream(std::move(*fd)),
        {.on_frame =
             [this, route](wire::Frame frame) {
               if (route->seq != 0) return OnFrame(route->seq, std::move(frame));
               OnStrangerFrame(route->stranger, frame);
               if (!strangers_.contains(route->stranger)) route->seq = last_welcomed_;
             },
         .on_closed =
             [this, route](const Status& why) {
               if (route->seq != 0) return OnChannelClosed(route->seq, why);
               if (const auto it = strangers_.find(route->stranger); it != strangers_.end()) {
                 loop_.Cancel(it->second.timer);
                 strangers_.erase(it);
               }
             },
         .on_drained =
             [this, route] {
               const auto it = jobds_.find(route->seq);
               if (it != jobds_.end() && it->second->record.job.value != 0 && handlers_.on_drained)
                 handlers_.on_drained(it->second->record.key());
             }});
    if (!channel.ok()) {
      spdlog::error("accept a job daemon: {}", channel.status().message());
      continue;
    }
    const TimerId timer = loop_.After(kStrangerTimeout, [this, id] { strangers_.erase(id); });
    strangers_.emplace(id, Stranger{std::move(*channel), timer});
  }
}

void JobdManager::OnStrangerFrame(std::uint64_t stranger, const wire::Frame& frame) {
  auto node = strangers_.extract(stranger);
  if (node.empty()) return;
  loop_.Cancel(node.mapped().timer);
  last_welcomed_ = 0;
  auto hello = frame.type == wire::JobdHello::kType
                   ? wire::Decode<wire::JobdHello>(frame.payload)
                   : Result<wire::JobdHello>(
                         Error(Code::kInvalidArgument, "first message is of type {:#06x}", frame.type));
  const Status welcomed = hello.ok() ? Welcome(std::move(node.mapped()), *hello) : hello.status();
  if (!welcomed.ok()) spdlog::warn("refused a job daemon: {}", welcomed.message());
}

Status JobdManager::Recognise(Jobd& jobd, const wire::JobdHello& hello, pid_t pid, const UserIdentity& user) {
  JobdRecord& record = jobd.record;
  if (user.uid != record.user.uid)
    return Error(Code::kPermissionDenied, "pid {} of uid {} has the cookie of a job daemon of uid {}", pid,
                 user.uid, record.user.uid);
  if (hello.version != wire::kProtocolVersion)
    return Error(Code::kFailedPrecondition,
                 "pid {} speaks protocol version {}, this node daemon {}; install msa-jobd and msa-noded of "
                 "one release",
                 pid, hello.version, wire::kProtocolVersion);
  if (record.pid != 0 && static_cast<pid_t>(record.pid) != pid)
    return Error(Code::kPermissionDenied, "pid {} has the cookie of the job daemon with pid {}", pid,
                 record.pid);
  if (hello.job.value != 0 && record.job.value != 0 && JobKey{hello.job, hello.incarnation} != record.key())
    return Error(Code::kInternal, "pid {} runs job {}.{}, but was given {}.{}", pid, hello.job,
                 hello.incarnation, record.job, record.incarnation);
  if (jobd.phase == Phase::kEnded) return Error(Code::kFailedPrecondition, "pid {} has ended", pid);
  if (jobd.process.pidfd) return Status::Ok();
  // Started by a node daemon that died before it could note the pid.
  record.pid = static_cast<std::uint32_t>(pid);
  record.process_start = ProcessStart(record.pid);
  MSA_ASSIGN_OR_RETURN(jobd.process, OpenProcess(pid));
  return WatchProcess(jobd);
}

Status JobdManager::Welcome(Stranger stranger, const wire::JobdHello& hello) {
  MSA_ASSIGN_OR_RETURN(const PeerCredentials peer, GetPeerCredentials(stranger.channel->fd()));
  for (auto& [seq, jobd] : jobds_) {
    if (jobd->record.cookie != hello.cookie) continue;
    MSA_RETURN_IF_ERROR(Recognise(*jobd, hello, peer.pid, peer.user));
    if (jobd->channel) OnChannelClosed(seq, Status(Code::kUnavailable, "the job daemon connected again"));
    jobd->channel = std::move(stranger.channel);
    last_welcomed_ = seq;
    OnConnected(*jobd, hello);
    return Status::Ok();
  }
  return Error(Code::kPermissionDenied, "pid {} of uid {} has no cookie of this node daemon", peer.pid,
               peer.user.uid);
}

void JobdManager::OnConnected(Jobd& jobd, const wire::JobdHello& hello) {
  JobdRecord& record = jobd.record;
  loop_.Cancel(jobd.hello_timer);
  jobd.hello_timer = {};
  jobd.channel->SendMessage(wire::JobdWelcome{});
  if (hello.job.value != 0) {
    const bool unknown = record.job.value == 0;
    record.job = hello.job;
    record.incarnation = hello.incarnation;
    record.member_index = hello.member_index;
    record.is_head = hello.is_head;
    jobd.job_ended = hello.ended;
    jobd.phase = Phase::kAssigned;
    if (unknown)
      if (const Status saved = SaveRecord(options_.paths, record); !saved.ok())
        spdlog::warn("{}", saved.message());
    spdlog::info("job {}.{}: job daemon {} (pid {}) is back", record.job, record.incarnation, record.seq,
                 record.pid);
  } else if (record.job.value != 0) {
    // It was given away just before the node daemon was killed, and the message was lost.
    jobd.phase = Phase::kAssigned;
    jobd.channel->Send(wire::Pack(wire::LaunchJob::kType, 0, record.launch));
  } else {
    jobd.phase = Phase::kWarm;
    failures_ = 0;
  }
  for (const wire::Frame& frame : std::exchange(jobd.undelivered, {}))
    jobd.channel->Send(wire::Pack(frame.type, frame.id, frame.payload));
  if (jobd.quitting) jobd.channel->SendMessage(wire::JobdQuit{"asked to leave"});
  if (const auto reason = std::exchange(jobd.quit_reason, std::nullopt))
    QuitUnlessEnded(record.key(), *reason);
  if (jobd.phase == Phase::kAssigned && handlers_.on_here) handlers_.on_here(record.key());
  if (jobd.phase == Phase::kWarm && !jobd.quitting) {
    for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
      if (it->second.start.user.uid != record.user.uid) continue;
      auto waiting = waiting_.extract(it);
      return Give(jobd, std::move(waiting.mapped()));
    }
    Balance();
  }
}

void JobdManager::OnFrame(std::uint64_t seq, wire::Frame frame) {
  const auto it = jobds_.find(seq);
  if (it == jobds_.end()) return;
  Jobd& jobd = *it->second;
  // Also of one that has died: what it wrote before counts.
  if (jobd.record.job.value == 0) {
    spdlog::warn("job daemon {} without a job sent a message of type {:#06x}", seq, frame.type);
    return;
  }
  if (frame.id != 0) return handlers_.on_session_frame(jobd.record.key(), std::move(frame));
  // The job daemon is its user's: what it may not send, or at that length, does not leave this node.
  constexpr std::size_t kMostBytes = std::size_t{8} << 20;
  if (frame.type < 0x0301 || frame.type > 0x03fe || frame.payload.size() > kMostBytes) {
    spdlog::warn("job {}: a message of type {:#06x} and {} bytes of its job daemon is dropped",
                 jobd.record.job, frame.type, frame.payload.size());
    return;
  }
  if (frame.type == wire::JobExit::kType) jobd.job_ended = true;
  handlers_.on_report(jobd.record.key(), std::move(frame));
}

void JobdManager::OnChannelClosed(std::uint64_t seq, const Status& why) {
  const auto it = jobds_.find(seq);
  if (it == jobds_.end()) return;
  Jobd& jobd = *it->second;
  jobd.channel.reset();
  if (jobd.phase == Phase::kEnded) return;
  if (jobd.phase == Phase::kAssigned)
    handlers_.on_sessions_lost(
        jobd.record.key(),
        why.WithContext(fmt::format("job daemon of job {} on {}", jobd.record.job, options_.node)));
  if (jobd.phase == Phase::kWarm) jobd.phase = Phase::kStarting;
  // Normally it is dead or will be in a moment, which its process descriptor tells. If it is not, it connects
  // again.
  jobd.hello_timer = loop_.After(options_.hello_timeout, [this, seq] {
    const auto late = jobds_.find(seq);
    if (late == jobds_.end()) return;
    spdlog::error("job daemon {} (pid {}) lost its connection and did not come back within {} ms; killing it",
                  seq, late->second->record.pid, options_.hello_timeout.count());
    Kill(*late->second);
  });
}

}  // namespace msa::node
