#include "msa/adapters/process/worker.h"

#include <utility>

namespace msa {

Worker::Worker(EventLoop& loop) : loop_(loop), thread_([this] { Loop(); }) {}

Worker::~Worker() {
  {
    MutexLock lock(mu_);
    stop_ = true;
  }
  wake_.NotifyOne();
  thread_.join();
}

void Worker::Run(std::function<void()> task, std::function<void()> done) {
  {
    MutexLock lock(mu_);
    queue_.push_back({std::move(task), std::move(done)});
  }
  wake_.NotifyOne();
}

void Worker::Loop() {
  for (;;) {
    Item item;
    {
      MutexLock lock(mu_);
      while (!stop_ && queue_.empty()) wake_.Wait(mu_);
      if (stop_) return;
      item = std::move(queue_.front());
      queue_.pop_front();
    }
    item.task();
    if (item.done) loop_.Post(std::move(item.done));
  }
}

}  // namespace msa
