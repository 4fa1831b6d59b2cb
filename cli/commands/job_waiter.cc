#include "commands/job_waiter.h"

#include <algorithm>

#include "msa/job/records.h"

#include "client/streams.h"
#include "commands/print.h"
#include "run/backoff.h"

namespace msa::cli {
namespace {

// Waits for the end of one job through restarts of the controller.
class Waiter {
 public:
  Waiter(EventLoop& loop, Endpoint endpoint, JobId job)
      : loop_(loop), endpoint_(std::move(endpoint)), job_(job) {}

  // kDeadlineExceeded: `give_up` came first.
  Result<JobInfo> Wait(std::optional<SteadyTime> give_up) {
    Connect();
    while (!ended_ && !failure_) {
      const SteadyTime now = SteadyNow();
      if (give_up && now >= *give_up)
        return Error(Code::kDeadlineExceeded, "job {} has not ended in time; it goes on", job_);
      Millis round{1000};
      if (give_up) round = std::min(round, std::chrono::ceil<Millis>(*give_up - now));
      MSA_RETURN_IF_ERROR(loop_.RunOnce(round));
    }
    if (failure_) return *failure_;
    return *std::move(ended_);
  }

 private:
  void Connect() {
    Result<UniqueFd> socket = TryConnectController(endpoint_);
    if (!socket.ok()) return Again(socket.status());
    link_ = std::make_unique<ControllerLink>(
        loop_, *std::move(socket),
        ControllerLink::Handlers{
            .on_event =
                [this](const JobEvent& event) {
                  away_since_.reset();
                  backoff_ = Millis(0);
                  seen_ = true;
                  if (event.final) ended_ = event.job;
                },
            .on_end =
                [this](const Status& end) {
                  if (!ended_)
                    Again(end.ok() ? Status(Code::kUnavailable, "the controller ended the stream") : end);
                }});
    link_->Watch(job_);
  }

  void Again(const Status& why) {
    const SteadyTime now = SteadyNow();
    const bool worth_waiting = seen_ || IsSupervised(endpoint_);
    if (!away_since_) away_since_ = now;
    if (why.code() != Code::kUnavailable || !worth_waiting || now - *away_since_ > kPatience) {
      failure_ = why;
      return;
    }
    backoff_ = NextBackoff(backoff_);
    loop_.After(backoff_, [this] { Connect(); });
  }

  static constexpr std::chrono::seconds kPatience{60};
  EventLoop& loop_;
  const Endpoint endpoint_;
  const JobId job_;
  std::unique_ptr<ControllerLink> link_;
  std::optional<JobInfo> ended_;
  std::optional<Status> failure_;
  std::optional<SteadyTime> away_since_;
  Millis backoff_{0};
  bool seen_ = false;
};

}  // namespace

int CodeOf(const JobInfo& job) {
  return job.exit_code == 0 && job.state != JobState::kCompleted ? 1 : job.exit_code;
}

void NoteEnd(std::string_view name, const JobInfo& job) {
  if (job.state == JobState::kCompleted) return;
  const std::string& why = job.exit_message.empty() ? job.reason : job.exit_message;
  PrintNote(fmt::format("job {} ended as {}{}{}", name, StateName(job.state), why.empty() ? "" : ": ", why));
}

Result<int> WaitForJob(const Endpoint& endpoint, JobId id, const WaitOptions& options) {
  // Threads of gRPC post to it as long as the process lives.
  static EventLoop* lasting = nullptr;
  if (lasting == nullptr) {
    MSA_ASSIGN_OR_RETURN(std::unique_ptr<EventLoop> loop, EventLoop::Create());
    lasting = loop.release();
  }
  Waiter waiter(*lasting, endpoint, id);
  MSA_ASSIGN_OR_RETURN(const JobInfo job, waiter.Wait(options.give_up));
  if (!options.quiet) NoteEnd(fmt::format("{}", id), job);
  return CodeOf(job);
}

}  // namespace msa::cli
