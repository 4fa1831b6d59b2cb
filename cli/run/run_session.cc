#include "run/run_session.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "msa/job/records.h"
#include "msa/topology/host_list.h"

#include "output/job_texts.h"
#include "output/text.h"
#include "run/backoff.h"
#include "run/token.h"

namespace msa::cli {
namespace {

// A job that waits longer than this is said to wait.
constexpr Millis kQueueNotice{500};
// For the controller's answer to the first request. A pass of its scheduler over 10,000 nodes takes 0.3 s.
constexpr Millis kFirstAnswer{10'000};
// For its answer to a cancel, until the job's own daemon is asked to end the tasks.
constexpr Millis kCancelAnswer{2'000};
// The window for the second Ctrl-C, as srun's is 1 s: too short for hands that are not on the keyboard.
constexpr std::chrono::seconds kSecondInterrupt{5};
// After all output, for the controller's last word: it may be away.
constexpr Millis kFinalEventWait{250};
// After the controller's last word, for a session that has not been answered: a launch that failed early.
constexpr Millis kJoinWait{500};
// The same, for a session that broke at the job's end or came too late for it: as long as the job's head
// keeps the output. A head that is gone is not waited for, its node daemon says so.
constexpr Millis kOutputWait{10'000};
// The same, for a node that does not answer: it may be coming back just then.
constexpr Millis kSilentWait{3'000};
// After a cancel, for the job's end: SIGTERM, 5 s, SIGKILL and a slow file system. Without the 5 s for one
// who has pressed Ctrl-C twice.
constexpr Millis kCancelWait{20'000};
constexpr Millis kKillWait{10'000};
// For the last acknowledgement to leave this process: a node daemon that does not take it is not waited for.
constexpr Millis kLastAckWait{250};
constexpr Millis kDrainStep{1};
constexpr int kBrokenPipeCode = 128 + SIGPIPE;
constexpr int kInterruptCode = 128 + SIGINT;
// A step whose end nobody can tell any more: the job daemon is gone.
constexpr int kLauncherCode = 125;

// 0 if the controller decides.
std::uint32_t TaskCount(const JobSpec& spec) {
  std::uint32_t tasks = 0;
  for (const Component& component : spec.components) {
    const ComponentRequest& ask = component.resources;
    const bool plain = ask.max_nodes <= 1 && ask.ntasks_per_node <= 1 && ask.nodelist.size() <= 1;
    if (ask.ntasks == 0 && !plain) return 0;
    tasks += std::max(ask.ntasks, 1U);
  }
  return tasks;
}

}  // namespace

RunSession::RunSession(EventLoop& loop, Options options) : loop_(loop), options_(std::move(options)) {}
RunSession::~RunSession() = default;

Result<int> RunSession::Run() {
  MSA_ASSIGN_OR_RETURN(signals_, SignalWatch::Create(loop_, [this](int signal) { OnSignal(signal); }));
  if (owner()) {
    MSA_ASSIGN_OR_RETURN(token_, MakeToken());
  }
  AttachSession::Options attach;
  attach.owner = owner() || is_step();
  attach.step = options_.step;
  attach.wants_stdin = options_.wants_stdin;
  attach.label = options_.label;
  attach.patience = options_.patience;
  attach.controller = options_.endpoint.socket;
  if (owner()) attach.tasks = TaskCount(*options_.spec);
  attach_ = std::make_unique<AttachSession>(
      loop_, attach,
      AttachSession::Handlers{
          .on_end = [this](const wire::SessionEnd& end) { OnSessionEnd(end); },
          .on_lost = [this](const Status& why) { OnSessionLost(why); },
          .on_silent = [this] { OnSessionSilent(); },
          .on_heard = [this] { Inform(fmt::format("node {} answers again", head_node_)); },
          .on_output_failed = [this](const Status& why, bool pipe) { OnOutputFailed(why, pipe); },
          .on_step = [this](const wire::StepStatus& status) { OnStep(status); }});
  Connect();
  MSA_RETURN_IF_ERROR(loop_.Run());
  if (failure_) return *failure_;
  return exit_code_;
}

std::string RunSession::JobName() const { return job_ ? fmt::format("job {}", job_->id) : "the job"; }

std::string RunSession::Subject() const {
  return step_status_ ? fmt::format("step {} of {}", step_status_->step, JobName()) : JobName();
}

// ---- the controller

void RunSession::Connect() {
  Result<UniqueFd> socket = TryConnectController(options_.endpoint);
  if (!socket.ok()) return OnControllerAway(socket.status());
  link_ = std::make_unique<ControllerLink>(
      loop_, *std::move(socket),
      ControllerLink::Handlers{.on_event = [this](const JobEvent& event) { OnEvent(event); },
                               .on_end = [this](const Status& end) { OnControllerEnd(end); }});
  link_open_ = true;
  // A job that is known goes on without the controller, and so does this process.
  if (!job_ && !answer_timer_) answer_timer_ = loop_.After(kFirstAnswer, [this] { OnNoAnswer(); });
  if (owner()) {
    link_->Run(*options_.spec, token_);
  } else {
    link_->Watch(options_.watch);
  }
}

// It is there, takes the connection and says nothing: stopped, or it hangs. What it has not answered it has
// not accepted; a request that it finds later is that of an owner who is gone.
void RunSession::OnNoAnswer() {
  answer_timer_.reset();
  if (job_ || leaving_ || !link_open_) return;
  if (cancel_wanted_) return Leave(*forced_code_);
  failure_ =
      Error(Code::kUnavailable,
            "the controller at '{}' takes connections but has not answered within {}; see 'msactl cluster "
            "status{}' and its log, or try again later",
            options_.endpoint.socket, ShowDuration(kFirstAnswer), options_.endpoint.flag);
  loop_.Stop();
}

void RunSession::OnControllerAway(const Status& why) {
  link_open_ = false;
  if (answer_timer_) loop_.Cancel(*std::exchange(answer_timer_, std::nullopt));
  const bool known = job_ || away_since_;
  if (leaving_ || final_) return CheckFinished();
  if (cancel_wanted_ && !job_) return Leave(*forced_code_);
  const bool worth_waiting = known || IsSupervised(options_.endpoint);
  // A step that runs, or a command beside an allocation, needs no controller.
  const bool patient = (is_step() && attach_->joined()) || (command_ && !command_code_);
  const SteadyTime now = SteadyNow();
  if (!away_since_) away_since_ = now;
  if (!patient &&
      (why.code() != Code::kUnavailable || !worth_waiting || now - *away_since_ >= options_.patience)) {
    failure_ = job_ ? why.WithContext(JobName() + " is left alone") : why;
    return loop_.Stop();
  }
  if (!said_away_ && !patient && backoff_ >= kFirstBackoff * 4) {
    said_away_ = true;
    Inform(fmt::format("the controller is away; {}connecting again for up to {}",
                       job_ ? JobName() + " goes on, " : "", ShowDuration(options_.patience)));
  }
  backoff_ = NextBackoff(backoff_);
  retry_timer_ = loop_.After(backoff_, [this] {
    retry_timer_.reset();
    Connect();
  });
}

void RunSession::OnControllerEnd(const Status& status) {
  link_open_ = false;
  const bool broken = status.code() == Code::kUnavailable || status.code() == Code::kCancelled;
  if (final_ || (!broken && !status.ok())) {
    stream_over_ = true;
    stream_end_ = status;
    if (!job_ || (!final_ && !status.ok())) {
      failure_ = status;
      return loop_.Stop();
    }
    return CheckFinished();
  }
  OnControllerAway(status.ok() ? Status(Code::kUnavailable, "the controller ended the stream") : status);
}

void RunSession::OnEvent(const JobEvent& event) {
  if (std::exchange(said_away_, false)) Inform("connected to the controller again");
  away_since_.reset();
  backoff_ = Millis(0);
  job_ = event.job;
  if (!event.head_node.empty()) head_node_ = event.head_node;
  if (answer_timer_) loop_.Cancel(*std::exchange(answer_timer_, std::nullopt));
  if (cancel_wanted_ && !cancel_sent_ && !event.final) SendCancel();
  if (event.job.state == JobState::kPending) {
    if (!queue_timer_ && !said_queued_) queue_timer_ = loop_.After(kQueueNotice, [this] { OnQueued(); });
  } else {
    OnPlaced(event);
  }
  if (command_code_ && !event.final) SendGiveBack();
  if (event.final) {
    final_ = true;
    if (granted_ && owner()) return command_code_ ? Leave(*command_code_) : OnAllocationOver();
    CheckFinished();
  }
}

void RunSession::OnQueued() {
  queue_timer_.reset();
  if (!job_ || job_->state != JobState::kPending || cancel_wanted_) return;
  said_queued_ = true;
  Inform(fmt::format("{} is queued: {}", JobName(),
                     job_->reason.empty() ? "waiting for the scheduler" : job_->reason));
}

void RunSession::OnPlaced(const JobEvent& event) {
  if (queue_timer_) loop_.Cancel(*std::exchange(queue_timer_, std::nullopt));
  if (std::exchange(said_queued_, false) && !wire::IsFinal(event.job.state))
    Inform(JobName() + " has started");
  if (options_.verbose > 0 && !said_placed_ && !event.job.allocations.empty()) {
    said_placed_ = true;
    std::vector<std::string> nodes;
    for (const AllocationInfo& allocation : event.job.allocations) nodes.push_back(allocation.node);
    Inform(fmt::format("{}: {} on {}, head {}", JobName(), Count(event.job.tasks, "task"),
                       CompressHostList(nodes), event.head_node));
  }
  if (is_allocation()) {
    if (event.job.state == JobState::kRunning) OnGranted();
    return;
  }
  if (event.attach_address.empty() || lost_) return;
  attached_ = true;
  attach_->SetTarget({event.attach_address, event.job.id, event.job.incarnation});
}

// ---- signals

void RunSession::OnSignal(int signal) {
  // The reader of our output is slow, and somebody wants the prompt back.
  if (leaving_) return loop_.Stop();
  if (command_ && !command_code_) return OnCommandSignal(signal);
  if (!owner() && !is_step() && !options_.until_granted) {
    if (signal == SIGTSTP) return StopSelf();
    if (signal == SIGCONT) return;
    Inform(fmt::format("detached from {}, which goes on", JobName()));
    return Leave(signal == SIGINT ? 0 : 128 + signal);
  }
  switch (signal) {
    case SIGINT:
      return OnInterrupt();
    case SIGTERM:
    case SIGHUP:
      return Cancel(fmt::format("msactl run got signal {} ({})", signal, ::sigdescr_np(signal)),
                    cancel_wanted_ ? Grace::kNo : Grace::kYes, 128 + signal);
    case SIGTSTP:
      // The tasks' groups have no terminal: the kernel drops SIGTSTP there, SIGSTOP it does not.
      attach_->Signal(SIGSTOP);
      return StopSelf();
    default:
      attach_->Signal(signal);
  }
}

void RunSession::StopSelf() {
  if (!attach_->Sent()) {
    loop_.After(kDrainStep, [this] { StopSelf(); });
    return;
  }
  ::raise(SIGSTOP);
}

void RunSession::OnInterrupt() {
  const SteadyTime now = SteadyNow();
  if (cancel_wanted_) {
    // The third: whoever presses it wants the prompt back. The controller ends the job, its owner being gone.
    if (cancel_grace_ == Grace::kNo) return Leave(kInterruptCode);
    return Cancel("Ctrl-C", Grace::kNo, kInterruptCode);
  }
  const bool again = last_interrupt_ && now - *last_interrupt_ <= kSecondInterrupt;
  // Of a launch that is under way: the signal would reach those tasks alone that run already. One who sees
  // output knows that they run, whatever the controller has told so far.
  const bool starting = link_open_ && job_ && job_->state == JobState::kStarting && !attach_->has_received();
  if (waiting() || starting || again) return Cancel("Ctrl-C", Grace::kNo, kInterruptCode);
  last_interrupt_ = now;
  if (!attach_->Signal(SIGINT)) return Cancel("Ctrl-C", Grace::kNo, kInterruptCode);
  Say(fmt::format("SIGINT sent to the tasks of {}; press Ctrl-C again within 5 s to end the {}", Subject(),
                  is_step() ? "step" : "job"));
}

void RunSession::Cancel(const std::string& reason, Grace grace, int exit_code) {
  cancel_grace_ = cancel_wanted_ && cancel_grace_ == Grace::kNo ? Grace::kNo : grace;
  cancel_reason_ = reason;
  cancel_sent_ = false;
  if (!forced_code_) forced_code_ = exit_code;
  if (!std::exchange(cancel_wanted_, true)) {
    loop_.After(cancel_grace_ == Grace::kNo ? kKillWait : kCancelWait, [this] {
      Inform(fmt::format("{} has not ended yet; see 'msactl job show'", Subject()));
      Leave(*forced_code_);
    });
  }
  if (job_) return SendCancel();
  // Not queued yet as far as we know: if the request got through, the job ends with its owner.
  if (!link_open_) Leave(*forced_code_);
}

void RunSession::SendCancel() {
  if (is_step()) {
    // The head of the job ends it, with SIGKILL after a while.
    if (!attach_->Signal(cancel_grace_ == Grace::kNo ? SIGKILL : SIGTERM)) Leave(*forced_code_);
    return;
  }
  if (cancel_timer_) loop_.Cancel(*std::exchange(cancel_timer_, std::nullopt));
  if (!link_open_) return CancelByJobDaemon();
  cancel_sent_ = true;
  link_->Cancel(job_->id, cancel_reason_, cancel_grace_ == Grace::kNo, [this](const Status& status) {
    if (cancel_timer_) loop_.Cancel(*std::exchange(cancel_timer_, std::nullopt));
    if (status.code() == Code::kUnavailable) cancel_sent_ = false;
  });
  cancel_timer_ = loop_.After(kCancelAnswer, [this] {
    cancel_timer_.reset();
    CancelByJobDaemon();
  });
}

// The controller is away or hangs: the job's own daemon does not.
void RunSession::CancelByJobDaemon() { attach_->Signal(cancel_grace_ == Grace::kNo ? SIGKILL : SIGTERM); }

void RunSession::OnOutputFailed(const Status& why, bool broken_pipe) {
  if (!owner() && !is_step()) return Leave(broken_pipe ? kBrokenPipeCode : 1);
  if (broken_pipe) {
    silent_end_ = true;
    attach_->Hush();
    return Cancel("the reader of its output has gone", Grace::kNo, kBrokenPipeCode);
  }
  Say(fmt::format("{}; {} is cancelled", why.message(), Subject()));
  silent_end_ = true;
  Cancel(why.message(), Grace::kNo, 1);
}

// ---- a step inside a job

void RunSession::OnStep(const wire::StepStatus& status) {
  step_status_ = status;
  if (status.running) {
    if (std::exchange(step_running_, true)) return;
    if (step_timer_) loop_.Cancel(*std::exchange(step_timer_, std::nullopt));
    if (said_step_waits_) Inform(Subject() + " has started");
    return;
  }
  if (step_timer_ || said_step_waits_) return;
  step_timer_ = loop_.After(kQueueNotice, [this] {
    step_timer_.reset();
    if (step_running_ || cancel_wanted_) return;
    said_step_waits_ = true;
    Inform(fmt::format("{} waits: {}", Subject(), step_status_->reason));
  });
}

// ---- an allocation

void RunSession::OnGranted() {
  if (std::exchange(granted_, true)) return;
  std::vector<std::string> nodes;
  for (const AllocationInfo& allocation : job_->allocations)
    if (std::find(nodes.begin(), nodes.end(), allocation.node) == nodes.end())
      nodes.push_back(allocation.node);
  Inform(fmt::format("granted {} (nodes {})", JobName(), CompressHostList(nodes)));
  if (!owner()) return Leave(0);
  auto command =
      AllocCommand::Start(loop_, options_.command, AllocVariables(*job_, *options_.spec, options_.endpoint),
                          [this](int code) { OnCommandEnd(code); });
  if (command.ok()) {
    command_ = std::move(*command);
    return;
  }
  Say(command.status().message());
  OnCommandEnd(126);
}

// The terminal gives Ctrl-C and the like to the command itself.
void RunSession::OnCommandSignal(int signal) {
  if (signal == SIGINT || signal == SIGQUIT || signal == SIGCONT) return;
  if (signal == SIGTSTP) return StopSelf();
  command_->Signal(signal);
}

void RunSession::OnCommandEnd(int exit_code) {
  command_code_ = exit_code;
  if (final_) {
    // Whatever the command made of it: its nodes were taken away.
    const bool lost = exit_code == 0 && job_->state != JobState::kCompleted;
    return Leave(lost ? 1 : exit_code);
  }
  loop_.After(kCancelWait, [this] {
    Inform(fmt::format("{} has not ended yet; see 'msactl job show'", JobName()));
    Leave(*command_code_);
  });
  SendGiveBack();
}

void RunSession::SendGiveBack() {
  if (!link_open_ || std::exchange(give_back_sent_, true)) return;
  link_->GiveBack(job_->id, *command_code_, [this](const Status& status) {
    if (status.code() == Code::kUnavailable) {
      give_back_sent_ = false;  // with the next event of a controller that is back
      return;
    }
    if (status.ok() || final_) return;  // with the final event
    Inform(status.message());
    Leave(*command_code_);
  });
}

void RunSession::OnAllocationOver() {
  const std::string& why = job_->exit_message.empty() ? job_->reason : job_->exit_message;
  Say(fmt::format("{} has ended ({}{}{}); no more steps can run in it", JobName(), StateName(job_->state),
                  why.empty() ? "" : ": ", why));
  if (options_.command.empty()) command_->Signal(SIGHUP);
}

// ---- the end

void RunSession::OnSessionEnd(const wire::SessionEnd& end) {
  end_ = end;
  CheckFinished();
}

void RunSession::OnSessionLost(const Status& why) {
  lost_ = true;
  if (is_step() && !step_status_ && !final_) {
    failure_ = why;  // refused before it was taken up: nothing of it runs
    return Leave(kLauncherCode);
  }
  const auto inform =
      [this, text = fmt::format("no connection to the output of {}: {}", JobName(), why.message())] {
        if (!final_ && !leaving_) Inform(text);
      };
  // Of a job that has ended the controller says so in a moment.
  if (is_step())
    inform();
  else
    loop_.After(kJoinWait, inform);
  CheckFinished();
}

void RunSession::OnSessionSilent() {
  if (leaving_ || finishing_) return;
  Inform(fmt::format(
      "node {} does not answer: its node daemon or the job's daemon hangs or is away; waiting for it, see "
      "'msactl node show {}'",
      head_node_, head_node_));
  CheckFinished();
}

void RunSession::CheckFinished() {
  if (finishing_ || leaving_) return;
  if (granted_) return;  // the end of its command ends an allocation's
  const bool output_done = end_ || lost_ || !attached_;
  // The job around it may wait for this very step.
  if (is_step() && (end_ || lost_)) return Finish();
  if (final_ && output_done) {
    // A job that never started may have a reason that only the stream's status tells.
    if (stream_over_ || job_->started_at_ms != 0) return Finish();
    return FinishAfter(kFinalEventWait);
  }
  if (end_) return FinishAfter(kFinalEventWait);
  // Of a node that hangs the controller has the last word.
  if (final_ && attach_->silent()) return FinishAfter(kSilentWait);
  if (final_ && !attach_->joined()) FinishAfter(OutputIsMissing() ? kOutputWait : kJoinWait);
}

void RunSession::FinishAfter(Millis delay) {
  const SteadyTime at = SteadyNow() + delay;
  if (finish_timer_ && finish_at_ <= at) return;
  if (finish_timer_) loop_.Cancel(*finish_timer_);
  finish_at_ = at;
  finish_timer_ = loop_.After(delay, [this] {
    finish_timer_.reset();
    // A session that came up meanwhile is read to its end.
    if (!end_ && !lost_ && attached_ && attach_->joined() && !attach_->silent()) return;
    Finish();
  });
}

int RunSession::JobExitCode() const {
  if (is_step() && end_ && end_->refusal != 0) return end_->refusal;
  if (is_step() && !end_) return kLauncherCode;
  if (is_step()) return end_->exit_code == 0 && end_->state != JobState::kCompleted ? 1 : end_->exit_code;
  const JobState state = final_ ? job_->state : end_->state;
  const int code = final_ ? job_->exit_code : end_->exit_code;
  // A job that did not complete is never a success, whatever its tasks returned.
  return code == 0 && state != JobState::kCompleted ? 1 : code;
}

std::string RunSession::EndText() const {
  if (silent_end_) return "";
  std::string text;
  if (end_ && !end_->message.empty()) {
    text = end_->message;
  } else if (final_ && job_->state != JobState::kCompleted) {
    text = !job_->exit_message.empty() ? job_->exit_message : job_->reason;
    if (text.empty()) text = fmt::format("{} ended as {}", JobName(), StateName(job_->state));
  }
  // The session may have broken after a notice said it and before its own end did.
  return attach_->HasSaid(text) ? "" : text;
}

bool RunSession::OutputIsMissing() const {
  if (!attached_ || end_ || is_step() || !job_ || job_->started_at_ms == 0) return false;
  if (!owner()) return attach_->has_joined();
  return CarriesOutput(options_.spec->stdio);
}

void RunSession::Finish() {
  if (std::exchange(finishing_, true)) return;
  const bool never_started = final_ && job_->started_at_ms == 0 && !end_ && !is_step();
  if (never_started && !stream_end_.ok() && stream_end_.code() != Code::kCancelled && !forced_code_) {
    failure_ = stream_end_;
    return loop_.Stop();
  }
  if (const std::string text = EndText(); !text.empty()) Say(text);
  if (OutputIsMissing() && !silent_end_)
    Say(MissingOutputText(*job_, attach_->silent() ? Status::Ok() : attach_->trouble()));
  Leave(forced_code_.value_or(JobExitCode()));
}

void RunSession::Leave(int exit_code) {
  if (std::exchange(leaving_, true)) return;
  exit_code_ = exit_code;
  leave_by_ = SteadyNow() + kLastAckWait;
  LeaveWhenDrained();
}

void RunSession::LeaveWhenDrained() {
  const bool written = attach_->Written() || silent_end_;
  if (written && (attach_->Sent() || SteadyNow() >= leave_by_)) return loop_.Stop();
  loop_.After(kDrainStep, [this] { LeaveWhenDrained(); });
}

}  // namespace msa::cli
