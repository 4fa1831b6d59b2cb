#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "msa/adapters/process/frame_channel.h"
#include "msa/adapters/process/unix_socket.h"
#include "msa/support/run_until.h"

#include "noded_fixture.h"

namespace msa::node::test {

// One connection to a socket of the node daemon, read in the test's own thread.
class FramePeer {
 public:
  // Waits until something listens at `path`.
  explicit FramePeer(const std::string& path) : loop_(std::move(*EventLoop::Create())) {
    EXPECT_TRUE(Eventually(kLimit, [&] {
      auto fd = ConnectUnix(path);
      if (!fd.ok()) return false;
      FrameChannel::Handlers handlers;
      handlers.on_frame = [this](wire::Frame frame) { frames_.push_back(std::move(frame)); };
      handlers.on_closed = [this](const Status&) { closed_ = true; };
      channel_ =
          std::move(*FrameChannel::Create(*loop_, MakePlainStream(std::move(*fd)), std::move(handlers)));
      return true;
    }));
  }
  FramePeer(const FramePeer&) = delete;
  FramePeer& operator=(const FramePeer&) = delete;

  template <class M>
  void Say(const M& message, std::uint64_t id = 0) {
    channel_->SendMessage(message, id);
  }
  bool Until(const std::function<bool()>& done) { return support::RunUntil(*loop_, kLimit, done); }
  bool UntilClosed() {
    return Until([this] { return closed_; });
  }
  const std::vector<wire::Frame>& frames() const { return frames_; }

 protected:
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<FrameChannel> channel_;
  std::vector<wire::Frame> frames_;
  bool closed_ = false;
};

}  // namespace msa::node::test
