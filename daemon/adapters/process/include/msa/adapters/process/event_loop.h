#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "msa/base/clock.h"
#include "msa/base/mutex.h"
#include "msa/base/status.h"
#include "msa/base/unique_fd.h"

namespace msa {

enum class TimerId : std::uint64_t {};

// One thread's loop over epoll: descriptors, timers, and work posted by other threads. All members but Post()
// and Stop() belong to the thread that calls Run(). A callback may remove any watch or timer, its own
// included.
class EventLoop {
 public:
  using FdCallback = std::function<void(std::uint32_t events)>;  // EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR
  using Callback = std::function<void()>;

  // kResourceExhausted: no descriptors left.
  static Result<std::unique_ptr<EventLoop>> Create();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Level-triggered. The loop does not own `fd`: Unwatch it before it is closed. kAlreadyExists: watched
  // already.
  Status Watch(int fd, std::uint32_t events, FdCallback callback);
  // Changes the events of a watched descriptor; 0 keeps only errors and hang-up.
  void Modify(int fd, std::uint32_t events);
  // No callback for `fd` runs after this returns. Unknown descriptors are ignored.
  void Unwatch(int fd);

  // Once, not before `delay` has passed. Never returns a value-initialised id.
  TimerId After(Millis delay, Callback callback);
  // Unknown or past timers are ignored.
  void Cancel(TimerId timer);

  // Runs `callback` on the loop's thread, in order of posting. Any thread; also before Run and after Stop
  // (then it runs never).
  void Post(Callback callback) MSA_EXCLUDES(mu_);

  // Until Stop(). kInternal: epoll failed.
  Status Run();
  // One round: waits at most `timeout`, runs what is due. For tests and for loops inside other loops.
  Status RunOnce(Millis timeout);
  // Any thread.
  void Stop();

 private:
  struct Watched {
    std::uint64_t generation = 0;
    std::shared_ptr<FdCallback> callback;
    std::uint32_t events = 0;
  };
  EventLoop(UniqueFd epoll, UniqueFd wake);
  void RunPosted() MSA_EXCLUDES(mu_);
  void RunTimers();
  bool HasPosted() const MSA_EXCLUDES(mu_);
  int WaitMillis(Millis limit) const;

  UniqueFd epoll_;
  UniqueFd wake_;
  std::unordered_map<int, Watched> watched_;
  std::uint64_t next_generation_ = 1;
  std::map<std::pair<SteadyTime, std::uint64_t>, Callback> timers_;
  std::unordered_map<std::uint64_t, SteadyTime> timer_due_;
  std::uint64_t next_timer_ = 1;
  std::atomic<bool> stop_ = false;
  mutable Mutex mu_;
  std::vector<Callback> posted_ MSA_GUARDED_BY(mu_);
};

}  // namespace msa
