#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "msa/adapters/process/frame_channel.h"
#include "msa/adapters/process/unix_socket.h"
#include "msa/support/run_until.h"
#include "msa/support/scratch_directory.h"

namespace msa::node::test {

// What listens on a socket in a directory of its own, and its clients, on one loop.
class LoopTest : public ::testing::Test {
 protected:
  bool Until(const std::function<bool()>& done) { return support::RunUntil(*loop_, Millis(10'000), done); }
  // A client of the socket of this name in dir_.
  std::unique_ptr<FrameChannel> ConnectTo(const std::string& name, FrameChannel::Handlers handlers) {
    return std::move(*FrameChannel::Create(*loop_, MakePlainStream(std::move(*ConnectUnix(dir_ / name))),
                                           std::move(handlers)));
  }

  support::ScratchDirectory dir_;
  std::unique_ptr<EventLoop> loop_ = std::move(*EventLoop::Create());
};

}  // namespace msa::node::test
