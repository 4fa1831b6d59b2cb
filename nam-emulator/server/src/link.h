#pragma once

#include <functional>
#include <memory>
#include <string>

#include "msa/adapters/process/event_loop.h"
#include "msa/adapters/process/frame_channel.h"

namespace msa::namd {

// The connection to the node daemon of this node, which relays to the controller: connects whenever it is not
// connected, after 20 ms and then ever later, up to a second. One thread, the loop's.
class Link {
 public:
  struct Handlers {
    std::function<void()> on_up;  // say hello
    std::function<void(wire::Frame)> on_frame;
    std::function<void(const Status& why)> on_down;  // once for each on_up
    std::function<void()> on_drained;
  };
  Link(EventLoop& loop, std::string path, Handlers handlers);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  void Start() { Connect(); }
  // Does nothing while it is down.
  template <class M>
  void Send(const M& message) {
    if (channel_) channel_->SendMessage(message);
  }
  // The peer is to be given time to read: on_drained follows.
  bool full() const { return channel_ != nullptr && channel_->queued() >= FrameChannel::kHighWater; }

 private:
  void Connect();
  void Retry(const Status& why);

  EventLoop& loop_;
  const std::string path_;
  const Handlers handlers_;
  std::unique_ptr<FrameChannel> channel_;
  Millis delay_;
  TimerId timer_{};
  std::string last_failure_;
};

}  // namespace msa::namd
