#include "run/attach_session.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "msa/base/ping.h"

#include "client/far_link.h"
#include "run/backoff.h"

namespace msa::cli {
namespace {

// An acknowledgement at least each so many bytes, and when output pauses for kAckDelay (messages.h).
constexpr std::uint64_t kAckBytes = 256u << 10;
constexpr Millis kAckDelay{20};
// Twice this at most until a prompt shows, LineSplitter::kBusyRounds times where other tasks write meanwhile;
// the rest of a line that was cut follows within it.
constexpr Millis kIdleLine{50};
// A session that says nothing for so long is asked whether it is there. The third question that would be due
// is not asked: it hangs. A job daemon that starts thousands of tasks answers within 0.1 s. Questions are
// counted, not seconds: this process may have been stopped itself.
constexpr Millis kPingAfter{1'500};
constexpr int kUnanswered = 2;
// Of a job that dies on all its nodes each tells its part, and the first is the one told as the job's end.
constexpr std::size_t kNoticesKept = 4096;
// What a slow reader of ours may let pile up here.
constexpr std::size_t kPauseAbove = wire::kStdioWindowBytes;
constexpr std::size_t kResumeBelow = wire::kStdioWindowBytes / 4;

OutputWriter::To ToOf(wire::Stream stream) {
  return stream == wire::Stream::kErr ? OutputWriter::To::kErr : OutputWriter::To::kOut;
}

}  // namespace

AttachSession::AttachSession(EventLoop& loop, Options options, Handlers handlers)
    : loop_(loop),
      options_(options),
      handlers_(std::move(handlers)),
      writer_(loop, STDOUT_FILENO, STDERR_FILENO,
              {.on_written = [this](std::uint64_t seq) { OnWritten(seq); },
               .on_failed = [this](OutputWriter::To, Status why,
                                   bool pipe) { handlers_.on_output_failed(std::move(why), pipe); }}),
      lines_(options.label ? LineSplitter::Labels::kYes : LineSplitter::Labels::kNo, options.tasks),
      stdin_(loop, STDIN_FILENO, input_, [this] { PumpInput(); }) {}

AttachSession::~AttachSession() {
  if (retry_timer_) loop_.Cancel(*retry_timer_);
  if (ack_timer_) loop_.Cancel(*ack_timer_);
  if (idle_timer_) loop_.Cancel(*idle_timer_);
  if (watch_timer_) loop_.Cancel(*watch_timer_);
}

void AttachSession::SetTarget(const Target& target) {
  if (target == target_ || ended()) return;
  target_ = target;
  lost_ = false;
  away_since_.reset();
  backoff_ = Millis(0);
  Connect();
}

void AttachSession::Connect() {
  link_.reset();
  joined_ = false;
  paused_ = false;
  input_.BeginSession();
  Result<UniqueFd> socket = DialNode(options_.controller, target_.address);
  if (!socket.ok()) return TryAgain(socket.status());
  link_ = std::make_unique<AttachLink>(
      loop_, *std::move(socket),
      AttachLink::Handlers{.on_frame = [this](const wire::Frame& frame) { OnFrame(frame); },
                           .on_end = [this](const Status& status) { OnLinkEnd(status); },
                           .on_sent = {}});
  const bool wants_stdin = options_.wants_stdin && !input_.closed();
  if (options_.step) {
    wire::StepOpen open = *options_.step;
    open.acked = received_;
    open.wants_stdin = wants_stdin;
    link_->Open(target_.job, target_.incarnation, open);
  } else {
    wire::AttachOpen open;
    open.owner = options_.owner;
    open.acked = received_;
    open.wants_stdin = wants_stdin;
    link_->Open(target_.job, target_.incarnation, open);
  }
  heard_ = false;
  unanswered_ = 0;
  Watch();
}

void AttachSession::Watch() {
  if (watch_timer_) loop_.Cancel(*watch_timer_);
  watch_timer_ = loop_.After(kPingAfter, [this] {
    watch_timer_.reset();
    if (!link_ || ended() || lost_) return;
    Ask();
    Watch();
  });
}

void AttachSession::Ask() {
  // A reader of ours that is slow keeps the answers from coming.
  if (std::exchange(heard_, false) || paused_) {
    unanswered_ = 0;
  } else if (unanswered_ < kUnanswered) {
    ++unanswered_;
    link_->Send(wire::Ping{});
  } else if (!std::exchange(silent_, true)) {
    handlers_.on_silent();
  }
}

void AttachSession::Heard() {
  heard_ = true;
  unanswered_ = 0;
  if (std::exchange(silent_, false)) handlers_.on_heard();
}

void AttachSession::TryAgain(const Status& why) {
  trouble_ = why;
  const SteadyTime now = SteadyNow();
  if (!away_since_) away_since_ = now;
  if (now - *away_since_ >= options_.patience) return Lose(why);
  backoff_ = NextBackoff(backoff_);
  if (retry_timer_) loop_.Cancel(*retry_timer_);
  retry_timer_ = loop_.After(backoff_, [this] {
    retry_timer_.reset();
    if (!ended()) Connect();
  });
}

void AttachSession::Lose(const Status& why) {
  lost_ = true;
  trouble_ = why;
  handlers_.on_lost(why);
}

void AttachSession::OnLinkEnd(const Status& status) {
  joined_ = false;
  if (ended() || lost_) return;
  // A session that the job daemon ended without a word is as good as one that broke.
  if (status.ok() || status.code() == Code::kUnavailable || status.code() == Code::kCancelled)
    return TryAgain(status);
  Lose(status);
}

void AttachSession::OnFrame(const wire::Frame& frame) {
  joined_ = true;
  has_joined_ = true;
  if (!trouble_.ok()) trouble_ = Status::Ok();
  away_since_.reset();
  backoff_ = Millis(0);
  Heard();
  switch (frame.type) {
    case wire::Output::kType:
      if (auto output = wire::Decode<wire::Output>(frame.payload); output.ok()) OnOutput(*std::move(output));
      break;
    case wire::Notice::kType:
      if (auto notice = wire::Decode<wire::Notice>(frame.payload); notice.ok()) OnNotice(*notice);
      break;
    case wire::InputAck::kType:
      if (auto ack = wire::Decode<wire::InputAck>(frame.payload); ack.ok()) OnInputAck(*ack);
      break;
    case wire::StepStatus::kType:
      if (auto step = wire::Decode<wire::StepStatus>(frame.payload); step.ok() && handlers_.on_step)
        handlers_.on_step(*step);
      break;
    case wire::SessionEnd::kType:
      if (auto end = wire::Decode<wire::SessionEnd>(frame.payload); end.ok()) OnSessionEnd(*std::move(end));
      break;
    default:
      break;  // of a newer job daemon
  }
}

// A session that resumes may repeat what was on its way when it broke.
bool AttachSession::IsNew(std::uint64_t seq) {
  if (seq <= received_) return false;
  received_ = seq;
  return true;
}

void AttachSession::OnOutput(wire::Output output) {
  if (!IsNew(output.seq)) return;
  const auto to = ToOf(output.stream);
  bytes_since_ack_ += output.data.size();
  writer_.Write(to, lines_.Add(output), output.seq);
  LimitQueue();
  WaitForIdle();
}

void AttachSession::OnNotice(const wire::Notice& notice) {
  if (!IsNew(notice.seq)) return;
  notices_.push_back(notice.text);
  if (notices_.size() > kNoticesKept) notices_.pop_front();
  writer_.Write(OutputWriter::To::kErr, hushed_ ? "" : "msactl: " + notice.text + "\n", notice.seq);
}

void AttachSession::OnSessionEnd(wire::SessionEnd end) {
  if (ended()) return;
  received_ = std::max(received_, end.seq);
  end_ = std::move(end);
  writer_.Write(OutputWriter::To::kOut, lines_.Rest(wire::Stream::kOut), 0);
  writer_.Write(OutputWriter::To::kErr, lines_.Rest(wire::Stream::kErr), 0);
  writer_.Write(OutputWriter::To::kOut, "", received_);
}

void AttachSession::OnInputAck(const wire::InputAck& ack) {
  if (!options_.wants_stdin) return;
  input_.OnAck(ack);
  PumpInput();
  stdin_.Resume();
}

void AttachSession::PumpInput() {
  wire::Input piece;
  while (link_ && joined_ && input_.Next(&piece)) link_->Send(piece);
}

void AttachSession::OnWritten(std::uint64_t seq) {
  written_ = seq;
  if (paused_ && writer_.queued() < kResumeBelow && link_) {
    paused_ = false;
    link_->ResumeReading();
  }
  const bool last = ended() && writer_.idle();
  if (last || bytes_since_ack_ >= kAckBytes) {
    SendAck();
  } else if (!ack_timer_) {
    ack_timer_ = loop_.After(kAckDelay, [this] {
      ack_timer_.reset();
      SendAck();
    });
  }
  if (!last || std::exchange(end_reported_, true)) return;
  loop_.Post([this] { handlers_.on_end(*end_); });
}

void AttachSession::SendAck() {
  if (!options_.owner || !link_ || !joined_ || acked_ >= written_) return;
  link_->Send(wire::OutputAck{written_});
  acked_ = written_;
  bytes_since_ack_ = 0;
}

void AttachSession::LimitQueue() {
  if (paused_ || writer_.queued() < kPauseAbove || !link_) return;
  paused_ = true;
  link_->PauseReading();
}

// A part of a line that nobody adds to is a prompt, most likely: it is shown.
void AttachSession::WaitForIdle() {
  if (idle_timer_ || !lines_.waits_for_idle()) return;
  idle_timer_ = loop_.After(kIdleLine, [this] {
    idle_timer_.reset();
    writer_.Write(OutputWriter::To::kOut, lines_.Idle(wire::Stream::kOut), 0);
    writer_.Write(OutputWriter::To::kErr, lines_.Idle(wire::Stream::kErr), 0);
    WaitForIdle();
  });
}

bool AttachSession::HasSaid(const std::string& text) const {
  return std::find(notices_.begin(), notices_.end(), text) != notices_.end();
}

void AttachSession::Say(const std::string& text) {
  writer_.Write(OutputWriter::To::kErr, "msactl: " + text + "\n", 0);
}

bool AttachSession::Signal(int signal) {
  if (!link_ || !joined_ || ended()) return false;
  link_->Send(wire::ClientSignal{signal});
  return true;
}

}  // namespace msa::cli
