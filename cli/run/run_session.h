#pragma once

#include <memory>
#include <optional>
#include <string>

#include "msa/adapters/process/event_loop.h"

#include "client/endpoint.h"
#include "client/streams.h"
#include "run/alloc_command.h"
#include "run/attach_session.h"
#include "run/signal_watch.h"

namespace msa::cli {

// A job before the user's eyes: `msactl run`, which owns it or a step inside it, `msactl job alloc`, which
// owns it and runs a command beside it, or `msactl job attach`, which looks on. Lives through restarts of the
// controller and of the node daemon. One thread, the loop's; the loop lives as long
// as the process.
class RunSession {
 public:
  struct Options {
    Endpoint endpoint;
    std::optional<JobSpec> spec;         // of a job to be run, and owned
    JobId watch;                         // else: the job to look at, or
    std::optional<wire::StepOpen> step;  // to run this step in
    // Of an allocation: what runs once it is granted; empty: the user's shell.
    std::vector<std::string> command;
    bool until_granted =
        false;  // an allocation that is looked at: done when it is granted; Ctrl-C cancels it
    bool label = false;
    bool wants_stdin = false;
    bool quiet = false;
    int verbose = 0;
    Millis patience{60'000};  // for a controller or node daemon that is being restarted
  };
  RunSession(EventLoop& loop, Options options);
  ~RunSession();
  RunSession(const RunSession&) = delete;
  RunSession& operator=(const RunSession&) = delete;

  // Runs the loop until the job has ended or was detached. The exit code for the shell; an error if there
  // never was a job: its code says which exit code that is.
  Result<int> Run();

 private:
  bool owner() const noexcept { return options_.spec.has_value(); }
  bool is_step() const noexcept { return options_.step.has_value(); }
  bool is_allocation() const noexcept {
    return options_.until_granted || (owner() && options_.spec->mode == wire::JobMode::kAlloc);
  }
  // No task of it is known to run.
  bool waiting() const noexcept {
    return !job_ || job_->state == JobState::kPending || (is_step() && !step_running_);
  }
  std::string JobName() const;
  std::string Subject() const;  // the job, or the step in it

  void Connect();
  void OnEvent(const JobEvent& event);
  void OnQueued();
  void OnPlaced(const JobEvent& event);
  void OnControllerEnd(const Status& status);
  void OnControllerAway(const Status& why);
  void OnNoAnswer();

  void OnSignal(int signal);
  void OnInterrupt();
  void StopSelf();
  // Ends the job; this process will exit with `exit_code`.
  enum class Grace { kYes, kNo };
  void Cancel(const std::string& reason, Grace grace, int exit_code);
  void SendCancel();
  void CancelByJobDaemon();
  void OnOutputFailed(const Status& why, bool broken_pipe);

  // An allocation.
  void OnGranted();
  void OnCommandSignal(int signal);
  void OnCommandEnd(int exit_code);
  void SendGiveBack();
  void OnAllocationOver();

  void OnStep(const wire::StepStatus& status);
  void OnSessionEnd(const wire::SessionEnd& end);
  void OnSessionLost(const Status& why);
  void OnSessionSilent();
  // Ends the session if nothing is to be waited for any more.
  void CheckFinished();
  void FinishAfter(Millis delay);
  void Finish();
  void Leave(int exit_code);
  void LeaveWhenDrained();
  int JobExitCode() const;
  std::string EndText() const;
  // The rest of the output was not got, and there was or may have been one.
  bool OutputIsMissing() const;

  void Say(const std::string& text) { attach_->Say(text); }
  void Inform(const std::string& text) {
    if (!options_.quiet) Say(text);
  }

  EventLoop& loop_;
  const Options options_;
  std::string token_;
  std::unique_ptr<SignalWatch> signals_;
  std::unique_ptr<AttachSession> attach_;
  std::unique_ptr<ControllerLink> link_;
  bool link_open_ = false;

  std::optional<JobInfo> job_;  // as last heard
  std::string head_node_;
  bool final_ = false;
  bool stream_over_ = false;  // the controller said all it had to say
  Status stream_end_;
  bool attached_ = false;  // a session was asked for
  bool lost_ = false;      // and cannot be had any more
  std::optional<wire::SessionEnd> end_;

  std::optional<wire::StepStatus> step_status_;
  bool step_running_ = false;
  bool said_step_waits_ = false;
  std::optional<TimerId> step_timer_;
  std::unique_ptr<AllocCommand> command_;
  bool granted_ = false;
  std::optional<int> command_code_;
  bool give_back_sent_ = false;

  bool said_queued_ = false;
  bool said_placed_ = false;
  bool said_away_ = false;
  std::optional<TimerId> queue_timer_;
  std::optional<TimerId> finish_timer_;
  SteadyTime finish_at_;
  std::optional<TimerId> retry_timer_;
  std::optional<SteadyTime> away_since_;
  std::optional<TimerId> answer_timer_;  // of the first request
  std::optional<TimerId> cancel_timer_;  // of a cancel
  Millis backoff_{0};

  std::optional<SteadyTime> last_interrupt_;
  bool cancel_wanted_ = false;
  bool cancel_sent_ = false;
  Grace cancel_grace_ = Grace::kYes;
  std::string cancel_reason_;
  std::optional<int> forced_code_;
  bool silent_end_ = false;  // the reader of our output has gone: no text about the end
  bool finishing_ = false;
  bool leaving_ = false;
  SteadyTime leave_by_;
  int exit_code_ = 0;
  std::optional<Status> failure_;
};

}  // namespace msa::cli
