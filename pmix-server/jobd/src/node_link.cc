#include "node_link.h"

#include <algorithm>

#include "msa/adapters/process/unix_socket.h"

namespace msa::jobd {
namespace {

// 20 ms: noded is restarted by its supervisor within 50; 1 s: an absent one costs nothing.
constexpr Millis kFirstBackoff{20};
constexpr Millis kLastBackoff{1'000};

}  // namespace

NodeLink::NodeLink(EventLoop& loop, std::string path, Handlers handlers)
    : loop_(loop), path_(std::move(path)), handlers_(std::move(handlers)), down_since_(SteadyNow()) {}

NodeLink::~NodeLink() { loop_.Cancel(retry_); }

void NodeLink::Connect() {
  if (flushing_) return;
  auto fd = ConnectUnix(path_);
  if (!fd.ok()) return Broken(fd.status().message());
  FrameChannel::Handlers handlers;
  handlers.on_frame = [this](wire::Frame frame) {
    if (welcomed_) return handlers_.on_frame(std::move(frame));
    if (frame.type == wire::JobdQuit::kType) return handlers_.on_frame(std::move(frame));
    if (frame.type != wire::JobdWelcome::kType) return;
    welcomed_ = true;
    told_down_ = false;
    backoff_ = kFirstBackoff;
    handlers_.on_up();
  };
  handlers.on_closed = [this](Status why) { Broken(why.message()); };
  auto channel = FrameChannel::Create(loop_, MakePlainStream(std::move(*fd)), std::move(handlers));
  if (!channel.ok()) return Broken(channel.status().message());
  channel_ = std::move(*channel);
  channel_->SendMessage(handlers_.hello());
}

void NodeLink::Broken(const std::string& why) {
  if (welcomed_ || !told_down_) {
    if (welcomed_) down_since_ = SteadyNow();
    welcomed_ = false;
    told_down_ = true;
    handlers_.on_down(why);
  }
  if (flushing_) return;
  retry_ = loop_.After(backoff_, [this] { Connect(); });
  backoff_ = std::min(backoff_ * 2, kLastBackoff);
}

void NodeLink::Send(std::uint16_t type, std::uint64_t id, const std::string& payload) {
  if (welcomed_ && channel_ != nullptr) channel_->Send(wire::Pack(type, id, payload));
}

void NodeLink::Flush(Millis limit, std::function<void()> done) {
  flushing_ = true;
  loop_.Cancel(retry_);
  if (channel_ == nullptr || channel_->closed()) return done();
  channel_->PauseReading();
  PollDrained(SteadyNow() + limit, std::move(done));
}

// The channel tells when it falls below its low-water mark, not when it is empty; this runs once in a
// process's life.
void NodeLink::PollDrained(SteadyTime deadline, std::function<void()> done) {
  if (channel_->closed() || channel_->queued() == 0 || SteadyNow() >= deadline) return done();
  loop_.After(Millis(1),
              [this, deadline, done = std::move(done)]() mutable { PollDrained(deadline, std::move(done)); });
}

}  // namespace msa::jobd
