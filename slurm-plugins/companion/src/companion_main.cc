// msa-companion: the socket to the job daemon, a thread that calls libslurm, and companion.h between them.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <thread>

#include <fmt/format.h>

#include "msa/base/mutex.h"

#include "companion.h"
#include "helper_link.h"
#include "slurm_calls.h"

namespace msa::companion {
namespace {

constexpr const char* kHelp = R"(Usage: msa-companion [--fd N]

Asks Slurm for nodes in the name of the user who runs it, for a job of his that wants to grow
(MPI_Comm_spawn, msactl alloc): a companion job, named msa:<parent>.<request>, with the account, the QOS and the end of
its parent. A job daemon of msa (msa-jobd) starts one for each such ask, with one end of a socket pair; it cancels
the companion when that socket closes and ends with it.

Options:
  --fd N      the socket (default: 3)
  --version   the version
  -h, --help  this text

Exit codes: 0 the ask was answered and nothing of it is left in Slurm; 1 failed; 2 usage.
)";

// A counter that another thread may raise and poll sees.
class Bell {
 public:
  Bell() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  void Ring() const {
    const std::uint64_t one = 1;
    (void)!::write(fd_.get(), &one, sizeof(one));
  }
  bool Rang() const {
    std::uint64_t count = 0;
    return ::read(fd_.get(), &count, sizeof(count)) == sizeof(count);
  }
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
};

// Does one call at a time. The thread is not joined at the end: a call may hang for ten seconds, and whoever
// ends the program then has no use for its answer.
class Caller {
 public:
  explicit Caller(std::uint16_t notice_port) : calls_(notice_port) {
    std::thread([this] { Run(); }).detach();
  }
  void Ask(const Call& call) {
    {
      const MutexLock lock(mutex_);
      call_ = call;
    }
    asked_.NotifyOne();
  }
  std::optional<Reply> Take() {
    const MutexLock lock(mutex_);
    return std::exchange(reply_, std::nullopt);
  }
  const Bell& bell() const { return done_; }

 private:
  void Run() {
    for (;;) {
      std::optional<Call> call;
      {
        const MutexLock lock(mutex_);
        while (!call_) asked_.Wait(mutex_);
        call = std::exchange(call_, std::nullopt);
      }
      Reply reply = calls_.Do(*call);
      {
        const MutexLock lock(mutex_);
        reply_ = std::move(reply);
      }
      done_.Ring();
    }
  }

  SlurmCalls calls_;  // of the thread alone
  Bell done_;
  Mutex mutex_;
  CondVar asked_;
  std::optional<Call> call_ MSA_GUARDED_BY(mutex_);
  std::optional<Reply> reply_ MSA_GUARDED_BY(mutex_);
};

class Program final : public Outlet {
 public:
  Program(HelperLink link, Caller& caller, const Bell& notice, UniqueFd signals)
      : link_(std::move(link)), caller_(caller), notice_(notice), signals_(std::move(signals)) {}

  int Run() {
    while (!finished_) {
      std::array<pollfd, 4> polled{{{closed_ ? -1 : link_.fd(), POLLIN, 0},
                                    {caller_.bell().fd(), POLLIN, 0},
                                    {notice_.fd(), POLLIN, 0},
                                    {signals_.get(), POLLIN, 0}}};
      if (::poll(polled.data(), polled.size(), WaitMs()) < 0 && errno != EINTR) return 1;
      if (caller_.bell().Rang())
        if (std::optional<Reply> reply = caller_.Take()) companion_.OnReply(std::move(*reply), At());
      if (polled[0].revents != 0) OnSocket();
      if (notice_.Rang() && asked_) companion_.OnNotice(At());
      if (polled[3].revents != 0) OnSignal();
      if (asked_) companion_.OnTime(At());
    }
    return 0;
  }

  void Ask(const Call& call) override { caller_.Ask(call); }
  void Send(const Message& message) override {
    std::visit([this](const auto& one) { (void)link_.Send(one); }, message);
  }
  void Finish() override { finished_ = true; }

 private:
  static Moment At() {
    return {.steady = SteadyNow(), .unix_s = static_cast<std::uint64_t>(ToUnixMillis(Now()) / 1000)};
  }

  int WaitMs() const {
    const std::optional<SteadyTime> due = companion_.due();
    if (!due || !asked_) return -1;
    const auto left = std::chrono::ceil<Millis>(*due - SteadyNow()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
  }

  void OnSocket() {
    const bool open = link_.Read();
    while (const std::optional<wire::Frame> frame = link_.Next()) OnFrame(*frame);
    if (!open) Close();
  }

  void OnFrame(const wire::Frame& frame) {
    if (frame.type == wire::CompanionAsk::kType && !asked_) {
      auto ask = wire::Decode<wire::CompanionAsk>(frame.payload);
      if (!ask.ok()) return Close();
      asked_ = true;
      companion_.OnAsk(std::move(*ask), At());
    } else if (frame.type == wire::CompanionShrink::kType && asked_) {
      auto shrink = wire::Decode<wire::CompanionShrink>(frame.payload);
      if (shrink.ok()) companion_.OnShrink(std::move(*shrink), At());
    } else if (frame.type == wire::CompanionRelease::kType && asked_) {
      companion_.OnRelease(At());
    }
  }

  void OnSignal() {
    signalfd_siginfo info{};
    (void)!::read(signals_.get(), &info, sizeof(info));
    Close();
  }

  void Close() {
    closed_ = true;
    if (!asked_)
      finished_ = true;
    else
      companion_.OnClosed(At());
  }

  HelperLink link_;
  Caller& caller_;
  const Bell& notice_;
  UniqueFd signals_;
  Companion companion_{*this};
  bool asked_ = false;
  bool closed_ = false;
  bool finished_ = false;
};

// SIGTERM and SIGINT are the end of the socket: what is in Slurm is cancelled first.
UniqueFd BlockSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  return UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC));
}

int Main(int argc, char** argv) {
  const HelperStart start = ParseHelperOptions(argc, argv, kHelp, false);
  if (start.exit_code) return *start.exit_code;
  auto link = HelperLink::Take(start.options.fd);
  if (!link.ok()) {
    fmt::print(stderr, "msa-companion: {}\n", link.status().message());
    return 2;
  }
  UniqueFd signals = BlockSignals();
  static const Bell notice;
  StartSlurm();
  const JobListener& listener = JobListener::Start([] { notice.Ring(); });
  // Never destroyed: its thread outlives this function where a call hangs.
  auto* caller = new Caller(listener.port());
  const int code = Program(std::move(*link), *caller, notice, std::move(signals)).Run();
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace
}  // namespace msa::companion

int main(int argc, char** argv) { return msa::companion::Main(argc, argv); }
