#pragma once

#include <stdlib.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "msa/adapters/process/event_loop.h"
#include "msa/adapters/process/files.h"

namespace msa::test {

// A directory of its own, removed at the end.
class TempDir {
 public:
  TempDir() {
    char pattern[] = "/tmp/msa-grpc-XXXXXX";
    path_ = ::mkdtemp(pattern);
  }
  ~TempDir() { EXPECT_TRUE(RemoveTree(path_).ok()); }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

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

// Polls on the calling thread.
inline bool Eventually(Millis limit, const std::function<bool()>& condition) {
  const auto deadline = SteadyNow() + limit;
  while (!condition()) {
    if (SteadyNow() > deadline) return false;
    std::this_thread::sleep_for(Millis(2));
  }
  return true;
}

}  // namespace msa::test
