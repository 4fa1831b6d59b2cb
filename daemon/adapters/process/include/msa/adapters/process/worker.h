#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "msa/adapters/process/event_loop.h"
#include "msa/base/mutex.h"

namespace msa {

// A thread for work on the file system and /proc that may take long: one task after the other. `done` runs on
// the loop.
class Worker {
 public:
  explicit Worker(EventLoop& loop);
  // Waits for the task that runs; those behind it and their `done` are dropped.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Loop's thread.
  void Run(std::function<void()> task, std::function<void()> done) MSA_EXCLUDES(mu_);

 private:
  struct Item {
    std::function<void()> task;
    std::function<void()> done;
  };
  void Loop() MSA_EXCLUDES(mu_);

  EventLoop& loop_;
  Mutex mu_;
  CondVar wake_;
  std::deque<Item> queue_ MSA_GUARDED_BY(mu_);
  bool stop_ MSA_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace msa
