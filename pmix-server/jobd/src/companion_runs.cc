#include "companion_runs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <utility>

#include <fmt/format.h>

namespace msa::jobd {
namespace {

// Answers of asks that are over, kept since the controller may have missed them.
constexpr std::size_t kMaxKept = 256;

bool IsLast(std::uint16_t type) {
  return type == wire::CompanionRefused::kType || type == wire::CompanionEnded::kType;
}

// srun's and slurmstepd's variables are of another job than the one that is asked for.
std::vector<std::string> HelperEnvironment() {
  std::vector<std::string> env = CurrentEnvironment();
  std::erase_if(env, [](const std::string& line) {
    return line.starts_with("SLURM_") && !line.starts_with("SLURM_CONF=");
  });
  return env;
}

}  // namespace

CompanionRuns::~CompanionRuns() {
  for (auto& [request, run] : runs_)
    if (run.process.pidfd) loop_.Unwatch(run.process.pidfd.get());
}

void CompanionRuns::On(const wire::CompanionOrder& order) {
  if (order.type == wire::CompanionAsk::kType) return Start(order);
  const auto it = runs_.find(order.request);
  if (it == runs_.end() || !it->second.channel) {
    if (it == runs_.end() || !it->second.answered)
      return TellGone(order.request, "msa-companion does not run");
    return outlet_(it->second.last);
  }
  it->second.channel->Send(wire::Pack(order.type, 0, order.payload));
}

void CompanionRuns::Start(const wire::CompanionOrder& order) {
  auto ask = wire::Decode<wire::CompanionAsk>(order.payload);
  if (!ask.ok()) return TellGone(order.request, ask.status().message());
  if (const auto known = runs_.find(order.request); known != runs_.end()) {
    if (known->second.process.pidfd || known->second.answered) {
      if (known->second.last.type != 0) outlet_(wire::CompanionReport(known->second.last));
      return;
    }
    // One that died has left its job in Slurm, maybe.
    ask->again = true;
    runs_.erase(known);
  }
  Run& run = runs_[order.request];
  if (const Status started = Spawn(run, order.request); !started.ok())
    return TellGone(order.request, started.message());
  run.channel->SendMessage(*ask);
}

Status CompanionRuns::Spawn(Run& run, std::uint64_t request) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return ErrnoError(errno, "socketpair for msa-companion");
  UniqueFd ours(pair[0]);
  const UniqueFd theirs(pair[1]);
  // No other thread of this process starts programs.
  if (::fcntl(theirs.get(), F_SETFD, 0) != 0) return ErrnoError(errno, "socket of msa-companion");
  SpawnSpec spec;
  spec.argv = {program_, "--fd", std::to_string(theirs.get())};
  spec.env = HelperEnvironment();
  spec.err = 2;
  MSA_ASSIGN_OR_RETURN(run.process, msa::Spawn(spec));
  MSA_RETURN_IF_ERROR(
      loop_.Watch(run.process.pidfd.get(), EPOLLIN, [this, request](std::uint32_t) { OnExit(request); }));
  FrameChannel::Handlers handlers;
  handlers.on_frame = [this, request](wire::Frame frame) { OnFrame(request, std::move(frame)); };
  // Its end tells, or it does nothing more: the controller hears of that by the agent.
  handlers.on_closed = [](const Status&) {};
  MSA_ASSIGN_OR_RETURN(run.channel,
                       FrameChannel::Create(loop_, MakePlainStream(std::move(ours)), std::move(handlers)));
  return Status::Ok();
}

void CompanionRuns::OnFrame(std::uint64_t request, wire::Frame frame) {
  const auto it = runs_.find(request);
  if (it == runs_.end()) return;
  wire::CompanionReport& last = it->second.last;
  last.request = request;
  last.type = frame.type;
  last.payload = std::move(frame.payload);
  it->second.answered = IsLast(frame.type);
  outlet_(wire::CompanionReport(last));
}

void CompanionRuns::OnExit(std::uint64_t request) {
  const auto it = runs_.find(request);
  if (it == runs_.end()) return;
  Run& run = it->second;
  loop_.Unwatch(run.process.pidfd.get());
  const auto status = ReapChild(run.process.pid);
  run.process = {};
  // What it said last may lie in the socket still.
  loop_.After(Millis(0), [this, request, status] {
    if (closing_) return CheckClosed();
    const auto ended = runs_.find(request);
    if (ended == runs_.end() || ended->second.process.pidfd) return;
    ended->second.channel.reset();
    if (!ended->second.answered)
      TellGone(request, "msa-companion " + (status ? DescribeWaitStatus(*status) : std::string("has ended")));
    Trim();
  });
}

void CompanionRuns::TellGone(std::uint64_t request, std::string why) {
  wire::CompanionReport report;
  report.request = request;
  report.payload = std::move(why);
  outlet_(report);
}

void CompanionRuns::Trim() {
  for (auto it = runs_.begin(); it != runs_.end() && runs_.size() > kMaxKept;)
    it = it->second.process.pidfd ? std::next(it) : runs_.erase(it);
}

void CompanionRuns::Close(std::function<void()> done) {
  closing_ = true;
  on_closed_ = std::move(done);
  for (auto& [request, run] : runs_) run.channel.reset();
  loop_.After(Millis(0), [this] { CheckClosed(); });
}

void CompanionRuns::CheckClosed() {
  if (running() == 0 && on_closed_) std::exchange(on_closed_, nullptr)();
}

std::size_t CompanionRuns::running() const {
  std::size_t count = 0;
  for (const auto& [request, run] : runs_) count += run.process.pidfd ? 1 : 0;
  return count;
}

}  // namespace msa::jobd
