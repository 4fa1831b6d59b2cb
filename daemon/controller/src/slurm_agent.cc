#include "slurm_agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>

#include <spdlog/spdlog.h>

namespace msa {
namespace {

constexpr Millis kFirstBackoff{200};
constexpr Millis kLongestBackoff{10000};

}  // namespace

SlurmAgent::~SlurmAgent() {
  loop_.Cancel(retry_);
  channel_.reset();
  if (process_.pidfd) loop_.Unwatch(process_.pidfd.get());
}

void SlurmAgent::Start() {
  if (const Status started = Spawn(); !started.ok()) StartLater(started.message());
}

Status SlurmAgent::Spawn() {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return ErrnoError(errno, "socketpair for msa-slurm-agent");
  UniqueFd ours(pair[0]);
  const UniqueFd theirs(pair[1]);
  // No other thread of this process starts programs.
  if (::fcntl(theirs.get(), F_SETFD, 0) != 0) return ErrnoError(errno, "socket of msa-slurm-agent");
  SpawnSpec spec;
  spec.argv = {program_, "--fd", std::to_string(theirs.get())};
  spec.env = CurrentEnvironment();
  spec.err = 2;
  MSA_ASSIGN_OR_RETURN(process_, msa::Spawn(spec));
  MSA_RETURN_IF_ERROR(loop_.Watch(process_.pidfd.get(), EPOLLIN, [this](std::uint32_t) { Reap(); }));
  FrameChannel::Handlers handlers;
  handlers.on_frame = [this](const wire::Frame& frame) { OnFrame(frame); };
  handlers.on_closed = [this](const Status& why) { OnClosed(why); };
  MSA_ASSIGN_OR_RETURN(channel_,
                       FrameChannel::Create(loop_, MakePlainStream(std::move(ours)), std::move(handlers)));
  return Status::Ok();
}

void SlurmAgent::OnFrame(const wire::Frame& frame) {
  backoff_ = Millis(0);
  auto message = DecodeSlurmAgentMessage(frame.type, frame.payload);
  if (!message.ok()) return spdlog::warn("msa-slurm-agent: {}", message.status().message());
  handler_(event::FromSlurmAgent{frame.id, std::move(*message)});
}

// One that says what is no frame is of no use: it ends when it sees that its socket is closed.
void SlurmAgent::OnClosed(const Status& why) {
  channel_.reset();
  handler_(event::SlurmAgentLost{});
  if (!process_.pidfd) return StartLater("it has ended");
  SignalProcess(process_, SIGTERM);
  spdlog::warn("msa-slurm-agent pid={}: {}", process_.pid, why.message());
}

void SlurmAgent::Reap() {
  loop_.Unwatch(process_.pidfd.get());
  const auto status = ReapChild(process_.pid);
  process_ = {};
  const std::string why = status ? DescribeWaitStatus(*status) : "has ended";
  if (!channel_) return StartLater(why);
  // What it said last may lie in the socket still: its end is told by that.
  spdlog::warn("msa-slurm-agent {}", why);
}

void SlurmAgent::StartLater(const std::string& why) {
  backoff_ = std::clamp(backoff_ * 2, kFirstBackoff, kLongestBackoff);
  spdlog::warn("msa-slurm-agent: {}; it is started again in {} ms", why, backoff_.count());
  loop_.Cancel(retry_);
  retry_ = loop_.After(backoff_, [this] { Start(); });
}

void SlurmAgent::Send(const effect::ToSlurmAgent& ask) {
  if (channel_) channel_->Send(wire::Pack(ask.type, ask.id, ask.payload));
}

}  // namespace msa
