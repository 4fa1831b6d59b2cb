#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "msa/adapters/process/event_loop.h"
#include "msa/adapters/process/frame_channel.h"
#include "msa/base/messages.h"

namespace msa::jobd {

// The connection to this node's daemon. It is opened again after 20 ms to 1 s whenever it breaks; noded is
// adopted again by a fresh hello. One thread, the loop's.
class NodeLink {
 public:
  struct Handlers {
    std::function<wire::JobdHello()> hello;     // what this job daemon is now
    std::function<void(wire::Frame)> on_frame;  // after the welcome
    std::function<void()> on_up;                // welcomed
    std::function<void(const std::string& why)>
        on_down;  // once for each loss, and at the first failure to connect
  };
  NodeLink(EventLoop& loop, std::string path, Handlers handlers);
  ~NodeLink();
  NodeLink(const NodeLink&) = delete;
  NodeLink& operator=(const NodeLink&) = delete;

  void Connect();
  // Dropped while the link is down: whoever needs an answer sends again in on_up.
  void Send(std::uint16_t type, std::uint64_t id, const std::string& payload);
  bool up() const noexcept { return welcomed_; }
  // When the link went down; meaningless while it is up.
  SteadyTime down_since() const noexcept { return down_since_; }
  // Writes what is queued, at most `limit` long; then `done`. Nothing is read any more.
  void Flush(Millis limit, std::function<void()> done);

 private:
  void Broken(const std::string& why);
  void PollDrained(SteadyTime deadline, std::function<void()> done);

  EventLoop& loop_;
  std::string path_;
  Handlers handlers_;
  std::unique_ptr<FrameChannel> channel_;
  bool welcomed_ = false;
  bool told_down_ = false;
  bool flushing_ = false;
  SteadyTime down_since_;
  Millis backoff_{20};
  TimerId retry_{};
};

}  // namespace msa::jobd
