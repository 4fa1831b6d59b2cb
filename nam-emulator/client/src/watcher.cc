#include "watcher.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>
#include <vector>

namespace msa::nam {
namespace {

// A restarted namd listens again within tens of milliseconds; one that stays away is asked once a second.
constexpr auto kFirstPause = Millis(10);
constexpr auto kLongestPause = Millis(1000);

class Watcher {
 public:
  explicit Watcher(pid_t process) : process_(process), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  void Add(const std::shared_ptr<Extent>& extent) {
    {
      const MutexLock lock(mu_);
      std::erase_if(watched_, [](const Watched& w) { return w.extent.expired(); });
      watched_.push_back({extent, {}, kFirstPause});
      if (!running_) Start();
      running_ = true;
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
  }
  pid_t process() const { return process_; }

 private:
  struct Watched {
    std::weak_ptr<Extent> extent;
    SteadyTime retry;  // of one whose connection has ended
    Millis pause = kFirstPause;
  };

  void Start() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this] { Run(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void Run() {
    std::vector<pollfd> polled;
    for (;;) {
      int timeout = -1;
      polled.assign(1, {wake_.get(), POLLIN, 0});
      for (const pollfd& one : Attend(timeout)) polled.push_back(one);
      poll(polled.data(), polled.size(), timeout);
      std::uint64_t count;
      [[maybe_unused]] const ssize_t got = read(wake_.get(), &count, sizeof count);
    }
  }

  // Attaches those again one of whose connections has ended; what to wait for at the others. `timeout` in ms.
  std::vector<pollfd> Attend(int& timeout) {
    std::vector<Watched> watched;
    {
      const MutexLock lock(mu_);
      std::erase_if(watched_, [](const Watched& w) { return w.extent.expired(); });
      watched = watched_;
    }
    std::vector<pollfd> fds;
    for (Watched& w : watched) {
      const std::shared_ptr<Extent> extent = w.extent.lock();
      if (!extent || extent->stale()) continue;
      extent->Hear();
      if (extent->stale()) continue;
      if (extent->IsHeld(fds)) continue;
      Retry(*extent, w);
      const auto left = std::chrono::ceil<Millis>(w.retry - SteadyNow()).count();
      const int soon = static_cast<int>(std::clamp<long>(left, 1, kLongestPause.count()));
      timeout = timeout < 0 ? soon : std::min(timeout, soon);
    }
    const MutexLock lock(mu_);
    for (Watched& known : watched_)
      for (const Watched& w : watched)
        if (!w.extent.owner_before(known.extent) && !known.extent.owner_before(w.extent)) known = w;
    return fds;
  }

  static void Retry(Extent& extent, Watched& w) {
    if (SteadyNow() < w.retry) return;
    const Status attached = extent.AttachAgain(SteadyNow() + kLongestPause);
    if (attached.ok()) {
      w.pause = kFirstPause;
      w.retry = SteadyNow();
      return;
    }
    const Code code = attached.code();
    if (code != Code::kUnavailable && code != Code::kDeadlineExceeded) extent.MarkStale(attached);
    w.retry = SteadyNow() + w.pause;
    w.pause = std::min(w.pause * 2, kLongestPause);
  }

  const pid_t process_;
  const UniqueFd wake_;
  Mutex mu_;
  bool running_ MSA_GUARDED_BY(mu_) = false;
  std::vector<Watched> watched_ MSA_GUARDED_BY(mu_);
};

}  // namespace

void Watch(const std::shared_ptr<Extent>& extent) {
  // Never destroyed: its thread runs as long as the process. A forked child has no thread of its parent's.
  static std::atomic<Watcher*> the_watcher{nullptr};
  Watcher* watcher = the_watcher.load();
  if (watcher == nullptr || watcher->process() != getpid()) {
    auto* fresh = new Watcher(getpid());
    if (the_watcher.compare_exchange_strong(watcher, fresh))
      watcher = fresh;
    else
      delete fresh;
  }
  watcher->Add(extent);
}

}  // namespace msa::nam
