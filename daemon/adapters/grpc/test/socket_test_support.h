#pragma once

#include <future>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include "msa/adapters/process/event_loop.h"
#include "msa/support/eventually.h"
#include "msa/support/scratch_directory.h"

namespace msa::test {

using support::Eventually;

// An event loop on a thread of its own.
class LoopThread {
 public:
  LoopThread()
      : loop_(std::move(*EventLoop::Create())), thread_([this] { EXPECT_TRUE(loop_->Run().ok()); }) {}
  ~LoopThread() {
    loop_->Stop();
    thread_.join();
  }
  EventLoop& loop() { return *loop_; }
  // Runs `work` on the loop and returns its result.
  template <class F>
  auto Call(F work) {
    std::packaged_task<decltype(work())()> task(std::move(work));
    auto future = task.get_future();
    auto shared = std::make_shared<decltype(task)>(std::move(task));
    loop_->Post([shared] { (*shared)(); });
    return future.get();
  }

 private:
  std::unique_ptr<EventLoop> loop_;
  std::thread thread_;
};

}  // namespace msa::test
