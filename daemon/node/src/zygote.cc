#include "zygote.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <spdlog/spdlog.h>

#include "jobd_record.h"

namespace msa::node {

Zygote::Zygote(EventLoop& loop, Options options, Handlers handlers)
    : loop_(loop), options_(std::move(options)), handlers_(std::move(handlers)) {}

Zygote::~Zygote() {
  if (socket_) loop_.Unwatch(socket_.get());
}

Status Zygote::Start() {
  UniqueFd log(::open(options_.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!log) return ErrnoError(errno, "open log '" + options_.log + "'");
  MSA_ASSIGN_OR_RETURN(ForkSockets sockets, MakeForkSockets());
  SpawnSpec spec;
  spec.argv = options_.argv;
  spec.argv.insert(spec.argv.end(), {"--zygote", "0"});
  spec.env = CurrentEnvironment();
  std::erase_if(spec.env, [](const std::string& entry) {
    return entry.starts_with("MSA_JOBD_COOKIE=") || entry.starts_with("MSA_JOB_SOCKET=");
  });
  // Each job daemon writes its cookie in this place, by which a later node daemon finds one that it has never
  // seen.
  spec.env.push_back("MSA_JOBD_COOKIE=" + std::string(kCookieCharacters, '0'));
  // Symbols are looked up once, not in each job daemon again.
  spec.env.push_back("LD_BIND_NOW=1");
  spec.in = sockets.server.get();
  spec.out = log.get();
  spec.err = log.get();
  MSA_ASSIGN_OR_RETURN(process_, Spawn(spec));
  socket_ = std::move(sockets.ours);
  has_forked_ = false;
  return loop_.Watch(socket_.get(), EPOLLIN, [this](std::uint32_t) { Drain(); });
}

Status Zygote::Order(std::uint64_t number, std::vector<std::string> words) {
  // One at a time: the last one may still be leaving.
  if (stopped_ || SteadyNow() < backoff_until_ || (!socket_ && process_.pid != 0))
    return Status(Code::kUnavailable, "the process that forks job daemons is not there");
  if (!socket_)
    if (const Status started = Start(); !started.ok()) {
      Ended(started.message());
      return started;
    }
  MSA_RETURN_IF_ERROR(SendForkOrder(socket_.get(), {number, std::move(words)}));
  outstanding_.insert(number);
  return Status::Ok();
}

void Zygote::Drain() {
  while (socket_) {
    const auto report = ReceiveForkReport(socket_.get());
    if (!report.ok()) return Ended(report.status().message());
    if (!*report) return;
    const ForkReport& fork = **report;
    if (outstanding_.erase(fork.number) == 0) continue;
    if (fork.pid == 0) {
      handlers_.on_refused(fork.number, ErrnoError(fork.error, "fork a job daemon").message());
      continue;
    }
    has_forked_ = true;
    failures_ = 0;
    handlers_.on_forked(fork.number, fork.pid);
  }
}

void Zygote::Ended(const std::string& why) {
  if (socket_) loop_.Unwatch(socket_.get());
  socket_.reset();
  Kill();  // whatever became of its socket
  if (!has_forked_) {
    const auto shift = std::min<std::uint32_t>(failures_++, 16);
    const Millis delay = std::min(options_.min_backoff * (std::int64_t{1} << shift), options_.max_backoff);
    backoff_until_ = SteadyNow() + delay;
    if (!stopped_) spdlog::warn("{}; job daemons are started one by one for {} ms", why, delay.count());
  } else if (!stopped_) {
    spdlog::warn("{}; the next job daemon starts another", why);
  }
  has_forked_ = false;
  for (const std::uint64_t number : std::exchange(outstanding_, {})) handlers_.on_lost(number);
}

void Zygote::OnReaped() {
  Drain();
  process_ = {};
  handlers_.on_reaped();
}

void Zygote::Kill() {
  if (process_.pidfd) SignalProcess(process_, SIGKILL);
}

void Zygote::Stop() {
  if (std::exchange(stopped_, true)) return;
  // It reads the end of its orders, and what it has forked is reported before it ends.
  if (socket_) ::shutdown(socket_.get(), SHUT_WR);
}

}  // namespace msa::node
