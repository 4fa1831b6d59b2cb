#include "watcher.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>
#include <utility>
#include <vector>

namespace msa::nam {
namespace {

// A restarted namd listens again within tens of milliseconds; one that stays away is asked once a second.
constexpr auto kFirstPause = Millis(10);
constexpr auto kLongestPause = Millis(1000);
// Instead of a connection's number: the lease is asked for no more.
constexpr std::uint64_t kGone = ~std::uint64_t{0};

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
    Wake();
  }
  void Add(const std::shared_ptr<Lease>& lease) {
    {
      const MutexLock lock(mu_);
      std::erase_if(kept_, [](const Kept& k) { return k.lease.expired(); });
      kept_.push_back({lease, Control::Get().connection().number, {}});
      if (!running_) Start();
      running_ = true;
    }
    Wake();
  }
  pid_t process() const { return process_; }

 private:
  struct Watched {
    std::weak_ptr<Extent> extent;
    SteadyTime retry;  // of one whose connection has ended
    Millis pause = kFirstPause;
  };

  struct Kept {
    std::weak_ptr<Lease> lease;
    std::uint64_t connection = 0;  // by which it is held
    SteadyTime retry;
    Millis pause = kFirstPause;
  };

  void Wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
  }

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
      for (const int fd : Attend(timeout)) polled.push_back({fd, 0, 0});
      if (const int fd = KeepLeases(timeout); fd >= 0) polled.push_back({fd, 0, 0});
      poll(polled.data(), polled.size(), timeout);
      std::uint64_t count;
      [[maybe_unused]] const ssize_t got = read(wake_.get(), &count, sizeof count);
    }
  }

  // Attaches those again whose connection has ended; the others' descriptors. `timeout` in milliseconds.
  std::vector<int> Attend(int& timeout) {
    std::vector<Watched> watched;
    {
      const MutexLock lock(mu_);
      std::erase_if(watched_, [](const Watched& w) { return w.extent.expired(); });
      watched = watched_;
    }
    std::vector<int> fds;
    for (Watched& w : watched) {
      const std::shared_ptr<Extent> extent = w.extent.lock();
      if (!extent || extent->stale()) continue;
      const int fd = extent->WatchedFd();
      pollfd one{fd, 0, 0};
      if (fd >= 0 && poll(&one, 1, 0) == 0) {
        fds.push_back(fd);
        continue;
      }
      Retry(*extent, w);
      WakeBy(w.retry, timeout);
    }
    const MutexLock lock(mu_);
    for (Watched& known : watched_)
      for (const Watched& w : watched)
        if (!w.extent.owner_before(known.extent) && !known.extent.owner_before(w.extent)) known = w;
    return fds;
  }

  static void WakeBy(SteadyTime when, int& timeout) {
    const auto left = std::chrono::ceil<Millis>(when - SteadyNow()).count();
    const int soon = static_cast<int>(std::clamp<long>(left, 1, kLongestPause.count()));
    timeout = timeout < 0 ? soon : std::min(timeout, soon);
  }

  // Asks for those again whose connection has ended; the present one's descriptor, -1: nothing to wait for.
  int KeepLeases(int& timeout) {
    std::vector<Kept> kept;
    {
      const MutexLock lock(mu_);
      std::erase_if(kept_, [](const Kept& k) { return k.lease.expired(); });
      kept = std::exchange(kept_, {});
    }
    for (Kept& k : kept) {
      const std::shared_ptr<Lease> lease = k.lease.lock();
      if (lease && !IsOpen(k.connection)) Refresh(*lease, k, timeout);
    }
    const MutexLock lock(mu_);
    std::erase_if(kept, [](const Kept& k) { return k.connection == kGone; });
    kept_.insert(kept_.end(), kept.begin(), kept.end());
    return kept_.empty() ? -1 : Control::Get().connection().fd;
  }

  static bool IsOpen(std::uint64_t number) {
    const Control::Connection now = Control::Get().connection();
    pollfd one{now.fd, 0, 0};
    return now.number == number && now.fd >= 0 && poll(&one, 1, 0) == 0;
  }

  static void Refresh(Lease& lease, Kept& k, int& timeout) {
    if (SteadyNow() >= k.retry) {
      const Status refreshed = lease.Refresh(SteadyNow() + kLongestPause);
      const Code code = refreshed.code();
      if (refreshed.ok()) {
        k.connection = Control::Get().connection().number;
        k.pause = kFirstPause;
        return;
      }
      // The region is gone; its extents tell.
      if (code != Code::kUnavailable && code != Code::kDeadlineExceeded) {
        k.connection = kGone;
        return;
      }
      k.retry = SteadyNow() + k.pause;
      k.pause = std::min(k.pause * 2, kLongestPause);
    }
    WakeBy(k.retry, timeout);
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
  std::vector<Kept> kept_ MSA_GUARDED_BY(mu_);
};

Watcher& TheWatcher() {
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
  return *watcher;
}

}  // namespace

void Watch(const std::shared_ptr<Extent>& extent) { TheWatcher().Add(extent); }

void Keep(const std::shared_ptr<Lease>& lease) { TheWatcher().Add(lease); }

}  // namespace msa::nam
