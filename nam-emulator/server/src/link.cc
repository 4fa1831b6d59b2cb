#include "link.h"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "msa/adapters/process/unix_socket.h"

namespace msa::namd {
namespace {

// A node daemon that was restarted listens again within some ten milliseconds; one that stays away is asked
// once a second, which costs nothing that could be measured.
constexpr Millis kFirstDelay{20};
constexpr Millis kLongestDelay{1'000};

}  // namespace

Link::Link(EventLoop& loop, std::string path, Handlers handlers)
    : loop_(loop), path_(std::move(path)), handlers_(std::move(handlers)), delay_(kFirstDelay) {}

Link::~Link() { loop_.Cancel(timer_); }

void Link::Connect() {
  auto fd = ConnectUnix(path_);
  if (!fd.ok()) return Retry(fd.status());
  FrameChannel::Handlers handlers;
  handlers.on_frame = [this](wire::Frame frame) {
    delay_ = kFirstDelay;
    handlers_.on_frame(std::move(frame));
  };
  handlers.on_closed = [this](const Status& why) {
    channel_.reset();
    handlers_.on_down(why);
    Retry(why);
  };
  handlers.on_drained = [this] { handlers_.on_drained(); };
  auto channel = FrameChannel::Create(loop_, MakePlainStream(std::move(*fd)), std::move(handlers));
  if (!channel.ok()) return Retry(channel.status());
  channel_ = std::move(*channel);
  last_failure_.clear();
  handlers_.on_up();
}

void Link::Retry(const Status& why) {
  if (why.message() != last_failure_) spdlog::info("no node daemon: {}; trying again", why.message());
  last_failure_ = why.message();
  timer_ = loop_.After(delay_, [this] { Connect(); });
  delay_ = std::min(delay_ * 2, kLongestDelay);
}

}  // namespace msa::namd
