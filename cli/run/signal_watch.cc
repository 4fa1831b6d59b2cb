#include "run/signal_watch.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

namespace msa::cli {

Result<std::unique_ptr<SignalWatch>> SignalWatch::Create(EventLoop& loop,
                                                         std::function<void(int)> on_signal) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT}) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) ::sigaddset(&set, signal);
  }
  ::signal(SIGTTIN, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  if (const int error = ::pthread_sigmask(SIG_BLOCK, &set, nullptr))
    return ErrnoError(error, "block signals");
  UniqueFd fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd) return ErrnoError(errno, "watch signals");
  std::unique_ptr<SignalWatch> out(new SignalWatch(loop, std::move(fd), std::move(on_signal)));
  MSA_RETURN_IF_ERROR(
      loop.Watch(out->fd_.get(), EPOLLIN, [watch = out.get()](std::uint32_t) { watch->Read(); }));
  return out;
}

SignalWatch::SignalWatch(EventLoop& loop, UniqueFd fd, std::function<void(int)> on_signal)
    : loop_(loop), fd_(std::move(fd)), on_signal_(std::move(on_signal)) {}

SignalWatch::~SignalWatch() { loop_.Unwatch(fd_.get()); }

void SignalWatch::Read() {
  signalfd_siginfo info{};
  while (::read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
    on_signal_(static_cast<int>(info.ssi_signo));
}

}  // namespace msa::cli
