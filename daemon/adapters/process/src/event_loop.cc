#include "msa/adapters/process/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace msa {

Result<std::unique_ptr<EventLoop>> EventLoop::Create() {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return ErrnoError(errno, "epoll_create1");
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return ErrnoError(errno, "eventfd");
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 0}};
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) return ErrnoError(errno, "epoll_ctl");
  return std::unique_ptr<EventLoop>(new EventLoop(std::move(epoll), std::move(wake)));
}

EventLoop::EventLoop(UniqueFd epoll, UniqueFd wake) : epoll_(std::move(epoll)), wake_(std::move(wake)) {}
EventLoop::~EventLoop() = default;

// The generation in the event's data tells an event of a descriptor that was closed and reused in the same
// round.
namespace {
constexpr std::uint64_t Key(int fd, std::uint64_t generation) {
  return generation << 32 | static_cast<std::uint32_t>(fd);
}

// The loop whose callbacks this thread is in.
thread_local const EventLoop* running = nullptr;

class Running {
 public:
  explicit Running(const EventLoop* loop) : before_(std::exchange(running, loop)) {}
  ~Running() { running = before_; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  const EventLoop* const before_;
};
}  // namespace

Status EventLoop::Watch(int fd, std::uint32_t events, FdCallback callback) {
  if (watched_.contains(fd)) return Error(Code::kAlreadyExists, "descriptor {} is watched already", fd);
  const std::uint64_t generation = next_generation_++ & 0x7fffffff;
  epoll_event event{.events = events, .data = {.u64 = Key(fd, generation + 1)}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return ErrnoError(errno, "epoll_ctl");
  watched_.emplace(fd, Watched{generation + 1, std::make_shared<FdCallback>(std::move(callback)), events});
  return Status::Ok();
}

void EventLoop::Modify(int fd, std::uint32_t events) {
  const auto it = watched_.find(fd);
  if (it == watched_.end() || std::exchange(it->second.events, events) == events) return;
  epoll_event event{.events = events, .data = {.u64 = Key(fd, it->second.generation)}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void EventLoop::Unwatch(int fd) {
  if (watched_.erase(fd) > 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

TimerId EventLoop::After(Millis delay, Callback callback) {
  const SteadyTime due = SteadyNow() + delay;
  const std::uint64_t id = next_timer_++;
  timers_.emplace(std::pair(due, id), std::move(callback));
  timer_due_.emplace(id, due);
  return TimerId{id};
}

void EventLoop::Cancel(TimerId timer) {
  const auto id = static_cast<std::uint64_t>(timer);
  const auto it = timer_due_.find(id);
  if (it == timer_due_.end()) return;
  timers_.erase(std::pair(it->second, id));
  timer_due_.erase(it);
}

void EventLoop::Post(Callback callback) {
  {
    MutexLock lock(mu_);
    posted_.push_back(std::move(callback));
    if (posted_.size() > 1) return;  // the first one has rung already
  }
  if (running == this) return;  // it looks before it waits
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = ::write(wake_.get(), &one, sizeof one);
}

void EventLoop::Stop() {
  stop_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = ::write(wake_.get(), &one, sizeof one);
}

bool EventLoop::HasPosted() const {
  MutexLock lock(mu_);
  return !posted_.empty();
}

void EventLoop::RunPosted() {
  std::vector<Callback> work;
  {
    MutexLock lock(mu_);
    work.swap(posted_);
  }
  for (Callback& callback : work) callback();
}

void EventLoop::RunTimers() {
  const SteadyTime now = SteadyNow();
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    auto node = timers_.extract(timers_.begin());
    timer_due_.erase(node.key().second);
    node.mapped()();
  }
}

int EventLoop::WaitMillis(Millis limit) const {
  if (HasPosted()) return 0;
  if (timers_.empty()) return static_cast<int>(limit.count());
  // Rounded up: a timer never runs early, and the loop does not spin in its last millisecond.
  const auto left = std::chrono::ceil<Millis>(timers_.begin()->first.first - SteadyNow());
  const auto wait = std::max<std::int64_t>(left.count(), 0);
  return static_cast<int>(limit.count() < 0 ? std::min<std::int64_t>(wait, 3'600'000)
                                            : std::min<std::int64_t>(wait, limit.count()));
}

Status EventLoop::RunOnce(Millis timeout) {
  const Running here(this);
  std::array<epoll_event, 64> events;
  const int n =
      ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), WaitMillis(timeout));
  if (n < 0 && errno != EINTR) return ErrnoError(errno, "epoll_wait");
  for (int i = 0; i < n; ++i) {
    const std::uint64_t key = events[i].data.u64;
    if (key == 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const auto got = ::read(wake_.get(), &count, sizeof count);
      continue;
    }
    const auto it = watched_.find(static_cast<int>(key & 0xffffffff));
    if (it == watched_.end() || it->second.generation != key >> 32) continue;
    const auto callback = it->second.callback;  // survives its own Unwatch
    (*callback)(events[i].events);
  }
  RunPosted();
  RunTimers();
  return Status::Ok();
}

Status EventLoop::Run() {
  while (!stop_) MSA_RETURN_IF_ERROR(RunOnce(Millis(-1)));
  return Status::Ok();
}

}  // namespace msa
