// msa-gatewayd: takes the interface and runs the relay until a signal ends it.
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "options.h"
#include "relay.h"

namespace msa::gateway {
namespace {

int ExitCode(const Status& status) {
  switch (status.code()) {
    case Code::kInvalidArgument:
      return 2;
    case Code::kPermissionDenied:
      return 4;
    case Code::kFailedPrecondition:
      return 7;
    default:
      return 1;
  }
}

void StartLog(const Options& options) {
  auto logger = spdlog::stderr_logger_mt("gatewayd");
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l gatewayd [%P] %v", spdlog::pattern_time_type::utc);
  logger->set_level(spdlog::level::from_str(options.log_level));
  spdlog::set_default_logger(std::move(logger));
}

Result<UniqueFd> BlockSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) ::sigaddset(&set, signal);
  if (::sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return ErrnoError(errno, "block signals");
  UniqueFd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return ErrnoError(errno, "signalfd");
  return fd;
}

void LogCounters(const Counters& counters) {
  spdlog::info("forwarded {} packets, {} bytes; dropped {} for want of room, {} that the kernel refused",
               counters.packets, counters.bytes, counters.dropped_full, counters.dropped_refused);
}

timespec UntilDue(SteadyTime due) {
  const auto left = std::max(due - SteadyNow(), SteadyTime::duration::zero());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  return {.tv_sec = seconds.count(), .tv_nsec = std::chrono::nanoseconds(left - seconds).count()};
}

// False: a signal asks the relay to end.
bool GoesOn(int signals, const Counters& counters) {
  signalfd_siginfo info{};
  while (::read(signals, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo != SIGUSR1) return false;
    LogCounters(counters);
  }
  return true;
}

Status Run(const Options& options) {
  MSA_ASSIGN_OR_RETURN(const UniqueFd signals, BlockSignals());
  ::prctl(PR_SET_TIMERSLACK, 1UL);  // delays of some microseconds
  MSA_ASSIGN_OR_RETURN(Tun tun, Tun::Open(options.tun));
  Relay relay(std::move(tun), {.delay = options.delay,
                               .bits_per_second = options.bits_per_second,
                               .capacity = options.queue_mib << 20U});
  spdlog::info("relays on interface '{}': delay {} ns, rate {} bit/s (0: no limit)", options.tun,
               options.delay.count(), options.bits_per_second);
  for (;;) {
    MSA_ASSIGN_OR_RETURN(const std::optional<SteadyTime> due, relay.Turn());
    std::array<pollfd, 2> polled{{{relay.fd(), POLLIN, 0}, {signals.get(), POLLIN, 0}}};
    timespec wait{};
    if (due) wait = UntilDue(*due);
    if (::ppoll(polled.data(), polled.size(), due ? &wait : nullptr, nullptr) < 0 && errno != EINTR)
      return ErrnoError(errno, "poll");
    if ((polled[0].revents & POLLERR) != 0)
      return Error(Code::kUnavailable, "interface '{}' was removed", options.tun);
    if (polled[1].revents != 0 && !GoesOn(signals.get(), relay.counters())) break;
  }
  LogCounters(relay.counters());
  return Status::Ok();
}

}  // namespace
}  // namespace msa::gateway

int main(int argc, char** argv) {
  auto parsed = msa::gateway::ParseOptions(argc, argv);
  if (parsed.exit_now) return parsed.exit_code;
  msa::gateway::StartLog(parsed.options);
  const msa::Status status = msa::gateway::Run(parsed.options);
  if (status.ok()) return 0;
  spdlog::critical("{}", status.message());
  return msa::gateway::ExitCode(status);
}
