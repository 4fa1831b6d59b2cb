#include "companion.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "msa/job/slurm_reasons.h"

#include "companion_text.h"
#include "reason_text.h"

namespace msa::companion {
namespace {

// A look costs slurmctld about a millisecond; what starts within the first second is seen at once.
constexpr Millis kFirstPoll{50};
constexpr Millis kLastPoll{1000};
constexpr Millis kHeldPoll{15000};  // slurmctld tells of a job's end; this is for when the word is lost
constexpr Millis kAwayPause{500};
// A call that is under way at the deadline mostly ends within this; libslurm waits ten seconds.
constexpr Millis kGrace{1000};
// What a job that asks for more than there is waits for, and for a moment every job that is not looked at
// yet.
constexpr std::string_view kConfigReason = "PartitionConfig";
constexpr Millis kConfigPatience{2000};
// Slurm's end is in whole minutes after the start.
constexpr std::uint64_t kEndSlackS = 60;

JobFacts* FactsOf(Reply& reply) { return reply.ok() ? std::get_if<JobFacts>(&*reply) : nullptr; }

}  // namespace

std::optional<SteadyTime> Companion::due() const {
  if (finished_) return std::nullopt;
  const bool limited = answered_ == Answered::kNo && !leaving_;
  if (busy()) return limited ? std::optional(limit_ + kGrace) : std::nullopt;
  return limited ? std::min(not_before_, limit_) : not_before_;
}

void Companion::OnAsk(wire::CompanionAsk ask, Moment now) {
  ask_ = std::move(ask);
  std::erase(ask_.alternatives, 0U);  // which needs no job
  range_ = ask_.wait_ms == 0 && !ask_.alternatives.empty();
  limit_ = now.steady + Millis(ask_.wait_ms > 0 ? ask_.wait_ms : ask_.settle_ms);
  doubts_ = ask_.again ? 1 : 0;
  not_before_ = now.steady;
  if (const Status status = CheckAsk(ask_); !status.ok()) {
    doubts_ = 0;
    Refuse(status.code(), status.message());
  }
  Next(now);
}

void Companion::OnShrink(wire::CompanionShrink shrink, Moment now) {
  if (answered_ != Answered::kGranted || leaving_) {
    Send(wire::CompanionKept{.message = "there is no granted job of which nodes could be given back"});
    return;
  }
  if (!MayShrink(ask_)) {
    Send(wire::CompanionKept{
        .message =
            fmt::format("job {} has its nodes for itself: Slurm takes such back only with the job", job_)});
    return;
  }
  shrink_ = std::move(shrink);
  not_before_ = now.steady;
  Next(now);
}

void Companion::OnRelease(Moment now) {
  if (refusal_) return;
  leaving_ = true;
  again_ = false;
  want_ended_ = true;
  not_before_ = now.steady;
  Next(now);
}

void Companion::OnClosed(Moment now) {
  closed_ = true;
  leaving_ = true;
  again_ = false;
  not_before_ = std::min(not_before_, now.steady);
  Next(now);
}

void Companion::OnNotice(Moment now) {
  look_now_ = true;
  Next(now);
}

void Companion::OnTime(Moment now) {
  if (busy() && answered_ == Answered::kNo && !leaving_ && now.steady >= limit_ + kGrace) {
    Refuse(Code::kUnavailable,
           fmt::format(
               "no {} within {}: slurmctld does not answer; what it may have queued of this is cancelled "
               "as soon as it does",
               What(), SpanText(Millis(ask_.wait_ms))));
    SendRefusal();
  }
  Next(now);
}

void Companion::OnReply(Reply reply, Moment now) {
  now_s_ = now.unix_s;
  const Call call = std::move(*std::exchange(under_way_, std::nullopt));
  if (Away(reply, now)) {
    if (std::holds_alternative<Submit>(call)) doubts_ = 2;
    return Next(now);
  }
  switch (call.index()) {
    case 0:
      OnParent(std::move(reply), now);
      break;
    case 1:
      OnPartition(std::move(reply), now);
      break;
    case 2:
      OnMine(std::move(reply), now);
      break;
    case 3:
      OnSubmitted(std::move(reply), now);
      break;
    case 4:
      OnLooked(std::move(reply), now);
      break;
    case 5:
      OnCancelled(std::move(reply), now);
      break;
    case 6:
      OnKept(std::move(reply), now);
      break;
    default:
      OnEndSet(now);
      break;
  }
  Next(now);
}

void Companion::Begin(Call call) {
  under_way_ = std::move(call);
  outlet_.Ask(*under_way_);
}

void Companion::Next(Moment now) {
  now_s_ = now.unix_s;
  if (busy() || finished_) return;
  const bool limited = answered_ == Answered::kNo && !leaving_ && now.steady >= limit_;
  if (now.steady < not_before_ && !limited && !look_now_) return;
  if (leaving_) return NextOfLeaving(now);
  if (answered_ == Answered::kGranted) return NextOfHeld(now);
  if (limited) {
    GiveUp(away_told_ ? Code::kUnavailable : Code::kDeadlineExceeded, WaitedFor(), now);
    return NextOfLeaving(now);
  }
  NextOfAsk(now);
}

void Companion::NextOfAsk(Moment now) {
  look_now_ = false;
  if (!parent_) return Begin(AskParent{ask_.parent});
  if (doubts_ > 0) return Begin(AskMine{MarkOf(ask_)});
  const bool sized = range_ && ask_.slots_per_node == 0 && ask_.nodes_exactly == 0;
  if (!partition_ && (sized || !ask_.nodes.empty())) return Begin(AskPartition{ask_.partition});
  if (job_.value != 0) return Begin(Look{job_});
  Submit submit = MakeSubmit(now);
  if (!ask_.nodes.empty()) {
    auto excluded = ExcludedNodes(ask_, partition_->nodes);
    if (!excluded.ok()) {
      Refuse(excluded.status().code(), excluded.status().message());
      return NextOfLeaving(now);
    }
    submit.exclude = std::move(*excluded);
  }
  poll_ = kFirstPoll;
  Begin(std::move(submit));
}

void Companion::NextOfHeld(Moment now) {
  look_now_ = false;
  if (!shrink_) return Begin(Look{job_});
  const std::vector<std::string>& keep = shrink_->keep;
  const bool there = std::all_of(keep.begin(), keep.end(), [&](const std::string& name) {
    return std::any_of(last_.nodes.begin(), last_.nodes.end(),
                       [&](const auto& node) { return node.node == name; });
  });
  if (keep.empty() || !there) {
    Send(wire::CompanionKept{
        .message = fmt::format("nodes to keep must be some of job {}'s; to give back all of them release it",
                               job_)});
    shrink_.reset();
    return Wait(now, kHeldPoll);
  }
  Begin(Keep{job_, keep});
}

void Companion::NextOfLeaving(Moment now) {
  look_now_ = false;
  if (doubts_ > 0) return Begin(AskMine{MarkOf(ask_)});
  if (job_.value != 0) return Begin(Cancel{job_});
  if (again_) {
    again_ = leaving_ = away_told_ = false;
    limit_ = std::max(limit_, now.steady + Millis(ask_.settle_ms));
    not_before_ = now.steady;
    return NextOfAsk(now);
  }
  SendRefusal();
  if (want_ended_)
    Send(wire::CompanionEnded{.job = last_.job,
                              .state = last_.job.value != 0 ? "CANCELLED" : "",
                              .message = "released by its job daemon"});
  finished_ = true;
  outlet_.Finish();
}

bool Companion::Away(const Reply& reply, Moment now) {
  if (reply.status().code() != Code::kUnavailable) {
    away_told_ = false;
    return false;
  }
  away_text_ = reply.status().message();
  parent_aged_ = true;
  if (!away_told_ && answered_ == Answered::kNo && !leaving_)
    Send(wire::CompanionPending{.reason = "", .message = "slurmctld does not answer: " + away_text_});
  away_told_ = true;
  told_job_ = JobId();
  SendRefusal();  // with what is left to cancel later
  Wait(now, kAwayPause);
  return true;
}

void Companion::OnParent(Reply reply, Moment now) {
  if (leaving_) return;
  if (!reply.ok()) return Refuse(reply.status().code(), reply.status().message());
  parent_ = std::get<ParentFacts>(std::move(*reply));
  parent_aged_ = false;
  if (!parent_->running)
    return Refuse(Code::kFailedPrecondition,
                  fmt::format("job {} is {}: it can have no further nodes", ask_.parent, parent_->state));
  if (parent_->end != 0 && parent_->end <= now.unix_s)
    return Refuse(
        Code::kFailedPrecondition,
        fmt::format("job {} is at the end of its time limit: it can have no further nodes", ask_.parent));
  if (ask_.partition.empty()) ask_.partition = parent_->partition;
  // Asked again, since that has started.
  if (job_.value != 0) return OnRunning(last_, now);
  // The controller may not know it yet, and the agent cancels what is of a run before.
  ask_.restarts = parent_->restarts;
}

void Companion::OnPartition(Reply reply, Moment now) {
  if (leaving_) return;
  if (!reply.ok()) return Refuse(reply.status().code(), reply.status().message());
  partition_ = std::get<PartitionFacts>(std::move(*reply));
  if (!too_large_.empty()) return GiveUp(Code::kOutOfRange, std::exchange(too_large_, {}), now);
  if (job_.value == 0) return;
  // It waits though nothing is to be waited for, unless nodes are about to be free.
  for (const NodeFacts& node : partition_->nodes) completing_seen_ = completing_seen_ || node.completing;
  if (!completing_seen_) GiveUp(Code::kDeadlineExceeded, WaitedFor(), now);
}

void Companion::OnMine(Reply reply, Moment now) {
  const JobFacts* facts = FactsOf(reply);
  if (facts == nullptr) return Wait(now, kAwayPause);
  poll_ = kFirstPoll;
  job_ = facts->job;
  if (job_.value == 0) {
    if (--doubts_ > 0) Wait(now, kLastPoll);
    return;
  }
  last_ = *facts;
  config_since_ = now.steady;
  doubts_ = leaving_ ? 1 : 0;
}

void Companion::OnSubmitted(Reply reply, Moment now) {
  if (const JobFacts* facts = FactsOf(reply)) {
    job_ = facts->job;
    last_ = *facts;
    config_since_ = now.steady;
    return;
  }
  if (leaving_) return;
  const Status status = reply.status();
  std::string text = fmt::format("Slurm refuses {}: {}", What(), status.message());
  if (status.code() == Code::kResourceExhausted) text += "; " + Remedy("AccountingPolicy");
  if (status.code() == Code::kOutOfRange) return GiveUp(status.code(), text, now);
  Refuse(status.code(), text);
}

void Companion::OnLooked(Reply reply, Moment now) {
  if (leaving_) return;
  JobFacts* facts = FactsOf(reply);
  if (facts == nullptr && reply.status().code() != Code::kNotFound) return Wait(now, kLastPoll);
  if (answered_ == Answered::kGranted) {
    if (facts == nullptr || facts->over) return OnOver(facts == nullptr ? JobFacts{.job = job_} : *facts);
    last_ = std::move(*facts);
    if (std::exchange(shrunk_, false)) return Grant(last_, now);
    return Wait(now, kHeldPoll);
  }
  if (facts == nullptr) {
    job_ = JobId();  // a slurmctld that came back without it
    return Wait(now, kAwayPause);
  }
  if (facts->over) return OnOver(*facts);
  if (facts->pending || facts->preparing) return OnPending(*facts, now);
  OnRunning(std::move(*facts), now);
}

void Companion::OnPending(const JobFacts& facts, Moment now) {
  last_ = facts;
  parent_aged_ = true;
  const std::string reason = facts.preparing ? "Prolog" : facts.reason;
  const std::string text = PendingText(reason, facts.detail);
  if (reason != told_reason_ || facts.job != told_job_)
    Send(wire::CompanionPending{.job = facts.job,
                                .reason = reason,
                                // To be done while it waits.
                                .message = IsHeld(reason) ? text + "; " + Remedy(reason) : text,
                                .expected_start = facts.pending ? facts.start : 0});
  told_reason_ = reason;
  told_job_ = facts.job;
  Wait(now, poll_);
  poll_ = std::min(poll_ * 3 / 2, kLastPoll);
  const Prospect prospect = ProspectOf(reason);
  const std::string never =
      fmt::format("Slurm cannot start {}: {} ({}); {}", What(), text, reason, Remedy(reason));
  if (prospect == Prospect::kDenied) return Refuse(Code::kPermissionDenied, never);
  if (reason != kConfigReason) config_since_ = now.steady;
  if (prospect == Prospect::kNever || now.steady - config_since_ >= kConfigPatience) {
    if (reason != kConfigReason || ask_.alternatives.empty() || partition_)
      return GiveUp(Code::kOutOfRange, never, now);
    // What the partition has says which member of the set to try next.
    too_large_ = never;
    return Begin(AskPartition{ask_.partition});
  }
  if (ask_.wait_ms > 0 || completing_seen_) return;
  if (prospect == Prospect::kLimited) return GiveUp(Code::kDeadlineExceeded, WaitedFor(), now);
  if (prospect == Prospect::kBusy && !facts.preparing) Begin(AskPartition{ask_.partition});
}

void Companion::OnRunning(JobFacts facts, Moment now) {
  last_ = facts;
  const std::optional<Fit> fit = ChooseFit(ask_, facts.nodes);
  if (!fit) {
    std::size_t cores = 0;
    for (const auto& node : facts.nodes) cores += node.cores.size();
    return Refuse(Code::kInternal,
                  fmt::format("Slurm's job {} has {} cores, too few for {}", job_, cores, What()));
  }
  slots_ = fit->slots;
  if (MayShrink(ask_) && fit->keep.size() < facts.nodes.size() && !std::exchange(trimmed_, true))
    return Begin(Keep{job_, fit->keep});
  // Its limit may have been changed meanwhile.
  if (parent_aged_) return Begin(AskParent{ask_.parent});
  const bool too_long = parent_->end != 0 && (facts.end == 0 || facts.end > parent_->end + kEndSlackS);
  if (too_long && !std::exchange(end_set_, true)) return Begin(SetEnd{job_, parent_->end});
  Grant(facts, now);
}

void Companion::Grant(const JobFacts& facts, Moment now) {
  answered_ = Answered::kGranted;
  std::size_t cores = 0;
  for (const auto& node : facts.nodes) cores += node.cores.size();
  slots_ = static_cast<std::uint32_t>(std::min<std::size_t>(slots_, cores));
  Send(wire::CompanionGranted{.job = facts.job,
                              .nodes = facts.nodes,
                              .slots = slots_,
                              .start = facts.start,
                              .end = facts.end,
                              .time_limit_s = facts.time_limit_s,
                              .partition = facts.partition,
                              .account = facts.account,
                              .qos = facts.qos});
  Wait(now, kHeldPoll);
}

void Companion::OnOver(const JobFacts& facts) {
  const JobId job = std::exchange(job_, JobId());
  if (answered_ == Answered::kGranted) {
    Send(wire::CompanionEnded{.job = job, .state = facts.state, .message = EndText(facts.state)});
    leaving_ = true;
    want_ended_ = false;
    not_before_ = SteadyTime{};
    return;
  }
  Refuse(Code::kAborted,
         fmt::format("Slurm's job {} for {} ended before it started: {}", job, What(), EndText(facts.state)));
}

void Companion::OnCancelled(Reply reply, Moment now) {
  if (reply.ok() || reply.status().code() == Code::kNotFound) {
    job_ = JobId();
    return;
  }
  SendRefusal();
  Wait(now, kLastPoll);
}

void Companion::OnKept(Reply reply, Moment now) {
  not_before_ = now.steady;  // a look follows
  if (leaving_ || answered_ != Answered::kGranted) return;
  shrink_.reset();
  if (!reply.ok()) {
    Send(wire::CompanionKept{.message = reply.status().message()});
    return Wait(now, kHeldPoll);
  }
  shrunk_ = true;
}

void Companion::OnEndSet(Moment now) { not_before_ = now.steady; }  // a look follows

void Companion::GiveUp(Code code, std::string why, Moment now) {
  const bool smaller = code == Code::kOutOfRange && !ask_.alternatives.empty();
  const bool any = !range_ && !ask_.alternatives.empty() && code != Code::kUnavailable;
  if (!smaller && !any) return Refuse(code, std::move(why));
  if (smaller) {
    // Not one by one: a set may have thousands of members, and each try is a job.
    std::vector<std::uint32_t>& others = ask_.alternatives;
    auto next = others.begin() + static_cast<std::ptrdiff_t>((others.size() + 1) / 2 - 1);
    // Once: other limits of the partition may be lower than its size.
    const auto fits = std::find_if(others.begin(), others.end(),
                                   [most = PartitionSlots()](std::uint32_t n) { return n <= most; });
    if (told_reason_ == kConfigReason && partition_ && fits != others.end() && !std::exchange(sized_, true))
      next = fits;
    ask_.slots = *next;
    others.erase(others.begin(), next + 1);
  } else {
    range_ = completing_seen_ = true;  // the latter so that all of settle_ms is waited
  }
  again_ = leaving_ = true;
  not_before_ = now.steady;
}

void Companion::Refuse(Code code, std::string message) {
  Leave({.code = code, .job = last_.job, .reason = told_reason_, .message = std::move(message)});
}

void Companion::Leave(wire::CompanionRefused refusal) {
  refusal_ = std::move(refusal);
  leaving_ = true;
  not_before_ = SteadyTime{};
}

void Companion::SendRefusal() {
  if (!refusal_ || answered_ == Answered::kRefused) return;
  answered_ = Answered::kRefused;
  Send(*refusal_);
}

void Companion::Send(const Message& message) {
  if (!closed_) outlet_.Send(message);
}

std::uint64_t Companion::PartitionSlots() const {
  std::uint64_t slots = 0;
  if (!partition_) return slots;
  for (const NodeFacts& node : partition_->nodes) {
    const bool named =
        ask_.nodes.empty() || std::find(ask_.nodes.begin(), ask_.nodes.end(), node.name) != ask_.nodes.end();
    if (named) slots += ask_.slots_per_node > 0 ? std::min(node.cores, ask_.slots_per_node) : node.cores;
  }
  return slots;
}

Submit Companion::MakeSubmit(Moment now) const {
  std::uint64_t left_s = 0;
  if (parent_->end != 0) left_s = parent_->end > now.unix_s ? parent_->end - now.unix_s : 1;
  const auto asked_s = static_cast<std::uint64_t>((ask_.time_ms + 999) / 1000);
  if (asked_s != 0) left_s = left_s == 0 ? asked_s : std::min(left_s, asked_s);
  static const std::vector<NodeFacts> kUnknown;
  return {.mark = MarkOf(ask_),
          .account = parent_->account,
          .qos = parent_->qos,
          .partition = ask_.partition,
          .features = ask_.features,
          .exclude = {},
          .size = range_ ? RangeRequest(ask_, partition_ ? partition_->nodes : kUnknown) : ExactRequest(ask_),
          .time_limit_min =
              static_cast<std::uint32_t>(std::min<std::uint64_t>((left_s + 59) / 60, UINT32_MAX / 4))};
}

std::string Companion::What() const {
  std::string what = fmt::format("{} slot{}", ask_.slots, ask_.slots == 1 ? "" : "s");
  if (range_) what = fmt::format("{} slots or fewer", ask_.slots);
  if (ask_.nodes_exactly > 0) what += fmt::format(" on {} nodes", ask_.nodes_exactly);
  if (ask_.slots_per_node > 0) what += fmt::format(", at most {} on a node,", ask_.slots_per_node);
  if (!ask_.partition.empty()) what += fmt::format(" in partition '{}'", ask_.partition);
  return what;
}

std::string Companion::WaitedFor() const {
  const std::string within =
      ask_.wait_ms > 0 ? fmt::format("within {}", SpanText(Millis(ask_.wait_ms))) : std::string("now");
  if (away_told_)
    return fmt::format("no {} {}: slurmctld does not answer ({}); see 'scontrol ping'", What(), within,
                       away_text_);
  if (last_.job.value == 0) return fmt::format("no {} {}: Slurm has not looked at it yet", What(), within);
  return fmt::format("no {} {}: Slurm's job {} waited for {}: {}{}; {}", What(), within, last_.job,
                     told_reason_.empty() ? "None" : told_reason_, PendingText(told_reason_, last_.detail),
                     ExpectedText(last_.start, now_s_), Remedy(told_reason_));
}

std::string Companion::Remedy(std::string_view reason) const {
  SlurmJobNames names{.job = fmt::format("{}", last_.job), .partition = ask_.partition};
  if (parent_) names.qos = parent_->qos, names.account = parent_->account;
  return RemedyText(reason, RemedyFor::kCompanion, names);
}

}  // namespace msa::companion
