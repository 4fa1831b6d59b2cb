// msa-slurm-agent: looks at Slurm's jobs each second, tells the controller what changed, does what it asks.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>

#include <algorithm>

#include <fmt/format.h>

#include "msa/base/clock.h"

#include "helper_link.h"
#include "job_book.h"
#include "slurm_calls.h"

namespace msa::companion {
namespace {

constexpr const char* kHelp = R"(Usage: msa-slurm-agent [--fd N] [--poll-ms MS]

Tells msa-controllerd what happens to Slurm's jobs, answers its questions about them, and cancels companion jobs
(msa-companion) whose parent is over. msa-controllerd starts it, as SlurmUser or another user with operator rights in
Slurm, with one end of a socket pair, and it ends when that socket closes.

Options:
  --fd N        the socket (default: 3)
  --poll-ms MS  how often it asks slurmctld whether any job has changed (default: 1000)
  --version     the version
  -h, --help    this text

Exit codes: 0 the controller is gone; 1 failed; 2 usage.
)";

constexpr std::size_t kJobsPerFrame = 1000;

class Agent {
 public:
  Agent(HelperLink link, Millis period) : link_(std::move(link)), period_(period) {}

  int Run() {
    for (;;) {
      if (SteadyNow() >= next_look_) {
        LookAtJobs();
        next_look_ = SteadyNow() + period_;
      }
      if (gone_) return 0;
      const auto left = std::chrono::ceil<Millis>(next_look_ - SteadyNow()).count();
      pollfd polled{link_.fd(), POLLIN, 0};
      if (::poll(&polled, 1, static_cast<int>(std::max<std::int64_t>(left, 0))) < 0 && errno != EINTR)
        return 1;
      if (polled.revents == 0) continue;
      const bool open = link_.Read();
      while (const std::optional<wire::Frame> frame = link_.Next()) OnFrame(*frame);
      if (!open) return 0;
    }
  }

 private:
  template <class M>
  void Send(const M& message, std::uint64_t id = 0) {
    if (!link_.Send(message, id).ok()) gone_ = true;
  }

  void LookAtJobs() {
    Result<JobList> list = LoadJobs(since_);
    if (!list.ok()) return TellDown(list.status());
    if (told_up_ != 1) TellUp();
    if (!list->changed) return;
    for (const wire::SlurmJobsChanged& frame : book_.Update(std::move(list->jobs), kJobsPerFrame))
      Send(frame);
    Sweep({}, 0);
  }

  void TellUp() {
    told_up_ = 1;
    const Result<std::string> cluster = LoadClusterName();
    if (cluster.ok()) cluster_ = *cluster;
    Send(wire::SlurmAgentState{.slurmctld_up = true, .cluster = cluster_, .slurm_version = SlurmVersion()});
  }

  void TellDown(const Status& status) {
    since_ = 0;
    book_.Forget();
    if (std::exchange(told_up_, 0) == 0) return;
    Send(wire::SlurmAgentState{.slurmctld_up = false,
                               .message = status.message(),
                               .cluster = cluster_,
                               .slurm_version = SlurmVersion()});
  }

  // One that cannot be cancelled now is tried again at the next change, or ask.
  void Sweep(const std::map<JobId, Incarnation>& over, std::uint64_t id) {
    wire::SlurmOrphansCancelled done;
    const Result<std::vector<JobId>> orphans = book_.Orphans(over);
    if (!orphans.ok()) {
      done.code = orphans.status().code();
      done.message = orphans.status().message();
      return Send(done, id);
    }
    for (const JobId job : *orphans) {
      const Status status = SignalJob(job, SIGKILL);
      if (status.ok() || status.code() == Code::kNotFound) {
        done.jobs.push_back(job);
        continue;
      }
      done.code = status.code();
      done.message = status.message();
    }
    const bool first = done.jobs != told_orphans_ || !done.message.empty();
    told_orphans_ = done.jobs;
    if (id != 0 || (first && (!done.jobs.empty() || !done.message.empty()))) Send(done, id);
  }

  void OnFrame(const wire::Frame& frame) {
    switch (frame.type) {
      case wire::SlurmJobQuestion::kType:
        return On<wire::SlurmJobQuestion>(frame);
      case wire::SlurmCancelOrphans::kType:
        return On<wire::SlurmCancelOrphans>(frame);
      case wire::SlurmKillStep::kType:
        return On<wire::SlurmKillStep>(frame);
      case wire::SlurmCancelJob::kType:
        return On<wire::SlurmCancelJob>(frame);
      default:
        return;  // of a newer controller
    }
  }

  template <class M>
  void On(const wire::Frame& frame) {
    const Result<M> message = wire::Decode<M>(frame.payload);
    if (message.ok()) return Answer(*message, frame.id);
    fmt::print(stderr, "msa-slurm-agent: {}\n", message.status().message());
  }

  void Answer(const wire::SlurmJobQuestion& question, std::uint64_t id) {
    Result<wire::SlurmJobAnswer> answer = LoadJob(question.job);
    if (answer.ok()) return Send(*answer, id);
    Send(wire::SlurmJobAnswer{.code = answer.status().code(), .message = answer.status().message()}, id);
  }
  void Answer(const wire::SlurmCancelOrphans& ask, std::uint64_t id) {
    since_ = 0;  // what happened since the last look counts
    LookAtJobs();
    constexpr Incarnation kAll{~std::uint32_t{0}};
    std::map<JobId, Incarnation> over;
    for (std::size_t i = 0; i < ask.parents.size(); ++i)
      over[ask.parents[i]] = i < ask.incarnations.size() ? ask.incarnations[i] : kAll;
    Sweep(over, id);
  }
  void Answer(const wire::SlurmKillStep& ask, std::uint64_t id) {
    Done(SignalStep(ask.job, ask.step, ask.signal), id);
  }
  void Answer(const wire::SlurmCancelJob& ask, std::uint64_t id) { Done(SignalJob(ask.job, ask.signal), id); }
  void Done(const Status& status, std::uint64_t id) {
    Send(wire::SlurmDone{.code = status.code(), .message = status.message()}, id);
  }

  HelperLink link_;
  Millis period_;
  SteadyTime next_look_{};
  std::int64_t since_ = 0;
  JobBook book_;
  std::vector<JobId> told_orphans_;
  std::string cluster_;
  int told_up_ = -1;   // -1: nothing was told yet
  bool gone_ = false;  // the controller
};

int Main(int argc, char** argv) {
  const HelperStart start = ParseHelperOptions(argc, argv, kHelp, true);
  if (start.exit_code) return *start.exit_code;
  auto link = HelperLink::Take(start.options.fd);
  if (!link.ok()) {
    fmt::print(stderr, "msa-slurm-agent: {}\n", link.status().message());
    return 2;
  }
  StartSlurm();
  return Agent(std::move(*link), Millis(start.options.poll_ms)).Run();
}

}  // namespace
}  // namespace msa::companion

int main(int argc, char** argv) { return msa::companion::Main(argc, argv); }
