#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "msa/adapters/process/event_loop.h"

#include "client/streams.h"
#include "output/line_splitter.h"
#include "run/input_window.h"
#include "run/output_writer.h"
#include "run/stdin_reader.h"

namespace msa::cli {

// The streams of one job: its output to this process's, this process's input to rank 0, signals. Attaches
// again, for a limited time, when the node daemon goes away. One thread, the loop's.
class AttachSession {
 public:
  struct Options {
    bool owner = false;                  // of the job or the step: acknowledges output, sends input
    std::optional<wire::StepOpen> step;  // the session is that of a step inside the job
    bool wants_stdin = false;
    bool label = false;
    std::uint32_t tasks = 0;  // of the step, 0: not known
    Millis patience{60'000};  // for a node daemon that is being restarted
    std::string controller;   // Endpoint::socket
  };
  struct Handlers {
    // All output is written; the job daemon was told so.
    std::function<void(const wire::SessionEnd&)> on_end;
    // No session can be had any more; some output may be missing.
    std::function<void(Status)> on_lost;
    // The job daemon or its node daemon has been silent for a while; or is heard again.
    std::function<void()> on_silent;
    std::function<void()> on_heard;
    // A descriptor takes no more output.
    std::function<void(Status why, bool broken_pipe)> on_output_failed;
    // Of a step: it waits, or runs.
    std::function<void(const wire::StepStatus&)> on_step = {};
  };
  AttachSession(EventLoop& loop, Options options, Handlers handlers);
  ~AttachSession();
  AttachSession(const AttachSession&) = delete;
  AttachSession& operator=(const AttachSession&) = delete;

  struct Target {
    std::string address;  // as DialNode takes it
    JobId job;
    Incarnation incarnation;
    friend bool operator==(const Target&, const Target&) = default;
  };
  // Attaches; the same target again changes nothing.
  void SetTarget(const Target& target);

  // Text of msactl itself, in order with the job's output. To standard error, a newline is added.
  void Say(const std::string& text);
  // True if a notice of the job daemon has said this already.
  bool HasSaid(const std::string& text) const;
  // Notices are dropped from here on.
  void Hush() noexcept { hushed_ = true; }
  // To all tasks of the job, or of the step, which SIGTERM and SIGKILL end. False if there is no session.
  bool Signal(int signal);
  // The job daemon has answered in the present session.
  bool joined() const noexcept { return joined_; }
  // Or in an earlier one.
  bool has_joined() const noexcept { return has_joined_; }
  // Why the last session broke or could not be had; ok: it was answered, or may be yet.
  const Status& trouble() const noexcept { return trouble_; }
  // Output or a notice of the tasks has come.
  bool has_received() const noexcept { return received_ > 0; }
  bool ended() const noexcept { return end_.has_value(); }
  // A question to the job daemon has been open for a while.
  bool silent() const noexcept { return silent_; }
  // Everything that came was written.
  bool Written() const { return writer_.idle(); }
  // What was to be sent has left this process.
  bool Sent() const { return !link_ || link_->sent(); }

 private:
  void Connect();
  void OnFrame(const wire::Frame& frame);
  void OnOutput(wire::Output output);
  void OnNotice(const wire::Notice& notice);
  void OnSessionEnd(wire::SessionEnd end);
  void OnInputAck(const wire::InputAck& ack);
  void OnLinkEnd(const Status& status);
  void OnWritten(std::uint64_t seq);
  void SendAck();
  void PumpInput();
  void TryAgain(const Status& why);
  void Lose(const Status& why);
  bool IsNew(std::uint64_t seq);
  void LimitQueue();
  void WaitForIdle();
  void Watch();
  void Ask();
  void Heard();

  EventLoop& loop_;
  const Options options_;
  const Handlers handlers_;
  OutputWriter writer_;
  LineSplitter lines_;
  InputWindow input_;
  StdinReader stdin_;
  Target target_;
  std::unique_ptr<AttachLink> link_;
  std::optional<wire::SessionEnd> end_;
  bool end_reported_ = false;
  bool joined_ = false;
  bool has_joined_ = false;
  Status trouble_;
  bool lost_ = false;
  bool paused_ = false;
  std::uint64_t received_ = 0;  // last record
  std::uint64_t written_ = 0;
  std::uint64_t acked_ = 0;
  std::uint64_t bytes_since_ack_ = 0;
  Millis backoff_{0};
  std::optional<SteadyTime> away_since_;
  std::optional<TimerId> retry_timer_;
  std::optional<TimerId> ack_timer_;
  std::optional<TimerId> idle_timer_;
  std::optional<TimerId> watch_timer_;
  bool heard_ = false;  // a frame, since the last look
  int unanswered_ = 0;  // questions
  bool silent_ = false;
  std::deque<std::string> notices_;  // the last ones
  bool hushed_ = false;
};

}  // namespace msa::cli
