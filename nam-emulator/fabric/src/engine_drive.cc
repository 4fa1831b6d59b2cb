// Who makes progress, and when he sleeps.

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <csignal>

#include "engine.h"

namespace msa::nam {
namespace {

// A small transfer takes 10 us, one of 64 KiB 25, one to a server that has to wake up 150: if the client
// slept that soon, each would sleep whenever the other answers. Who waits longer waits for something slow.
constexpr auto kSpin = std::chrono::microseconds(500);
constexpr auto kTick = std::chrono::milliseconds(1);

}  // namespace

void Engine::Drive(const bool& finished, SteadyTime deadline) {
  Driver self;
  while (!finished && SteadyNow() < deadline) {
    if (driver_ != nullptr && !driver_->is_thread && !driver_->asleep) {
      Follow(finished, deadline);
      continue;
    }
    if (driver_ != nullptr && driver_->asleep) Kick();
    driver_ = &self;
    PollUntil(self, finished, deadline);
    if (driver_ == &self) driver_ = nullptr;
  }
  HandOver();
}

void Engine::PollUntil(Driver& self, const bool& finished, SteadyTime deadline) {
  SteadyTime active = SteadyNow();
  while (driver_ == &self) {
    const bool came = Poll();
    if (finished) return;
    const SteadyTime now = SteadyNow();
    if (came) active = now;
    if (now >= next_tick_) {
      next_tick_ = now + kTick;
      Tick(now);
      // A link that has broken wakes nobody: who waits for it must not go to sleep now.
      if (finished) return;
    }
    if (self.is_thread ? stop_ || asynchronous_ == 0 : now >= deadline) return;
    if (gate_.contended())
      gate_.GiveWay();
    else if (now - active > kSpin)
      Sleep(self, deadline);
  }
}

void Engine::Sleep(Driver& self, SteadyTime deadline) {
  // A driver who was relieved in his sleep may not have woken yet, and could miss what is meant for him if
  // another slept at the same place.
  if (sleepers_ > 0) {
    gate_.Unlock();
    sched_yield();
    gate_.Lock();
    return;
  }
  if (!port_.MaySleep()) return;
  int millis = SleepMillis();
  if (deadline != SteadyTime::max()) {
    const auto left = std::chrono::ceil<Millis>(deadline - SteadyNow()).count();
    if (left <= 0) return;
    if (millis < 0 || left < millis) millis = static_cast<int>(std::min<std::int64_t>(left, 1000));
  }
  self.asleep = true;
  ++sleepers_;
  gate_.Unlock();
  pollfd fds[] = {{port_.wait_fd(), POLLIN, 0}, {kick_.get(), POLLIN, 0}};
  poll(fds, std::size(fds), millis);
  gate_.Lock();
  --sleepers_;
  self.asleep = false;
  std::uint64_t count = 0;
  (void)!read(kick_.get(), &count, sizeof count);
}

void Engine::Kick() {
  const std::uint64_t one = 1;
  (void)!write(kick_.get(), &one, sizeof one);
}

void Engine::Follow(const bool& finished, SteadyTime deadline) {
  Follower self;
  self.finished = &finished;
  const auto at = followers_.insert(followers_.end(), &self);
  gate_.WaitUntil(self.changed, deadline);
  followers_.erase(at);
}

void Engine::TellFollowers() {
  for (Follower* follower : followers_)
    if (*follower->finished) follower->changed.notify_one();
  if (driver_ != nullptr && driver_->asleep) Kick();
}

void Engine::HandOver() {
  if (driver_ != nullptr) return;
  if (!followers_.empty()) return followers_.front()->changed.notify_one();
  if (asynchronous_ == 0) return;
  if (!thread_.joinable()) thread_ = std::thread([this] { RunThread(); });
  thread_wanted_.notify_one();
}

void Engine::Nudge() {
  if (driver_ != nullptr && !driver_->asleep && !driver_->is_thread) return;
  Poll();
  const SteadyTime now = SteadyNow();
  if (now < next_tick_) return;
  next_tick_ = now + kTick;
  Tick(now);
}

void Engine::RunThread() {
  // Signals are for the program's own threads; faults stay with who makes them.
  sigset_t set;
  sigfillset(&set);
  for (const int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&set, fault);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  const GateLock lock(gate_);
  while (!stop_) {
    if (asynchronous_ == 0 || driver_ != nullptr || !followers_.empty()) {
      gate_.Wait(thread_wanted_);
      continue;
    }
    Driver self;
    self.is_thread = true;
    driver_ = &self;
    PollUntil(self, stop_, SteadyTime::max());
    if (driver_ == &self) driver_ = nullptr;
  }
}

}  // namespace msa::nam
