#include "shell.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include <spdlog/spdlog.h>

#include "msa/base/clock.h"
#include "msa/base/fault.h"

#include "unwritten.h"

namespace msa {
namespace {

// A pass over a long queue takes milliseconds. After one that took longer than this, the next one waits
// kPassRest times as long, so that scheduling takes at most a fifth of the thread. A launch in a queue of few
// jobs, whose pass takes 50 us, never waits.
constexpr std::chrono::microseconds kShortPass{250};
constexpr int kPassRest = 4;
constexpr Millis kLongestRest{1000};
constexpr char kUnchanged[] = "nothing was changed, the controller cannot write its state";
constexpr char kCarriedOut[] =
    "the request is carried out, but the controller cannot write its state until there is room";
constexpr char kGoingAway[] = "the controller is going away; try again";

template <class T>
constexpr bool kIsChange = std::is_constructible_v<StoreChange, T>;

// Of several records of one job the last: it is written whole.
std::vector<StoreChange> ChangesOf(const std::vector<Effect>& effects) {
  std::vector<StoreChange> out;
  std::unordered_map<JobId, std::size_t> last;
  for (std::size_t i = 0; i < effects.size(); ++i)
    if (const auto* put = std::get_if<effect::PutJob>(&effects[i])) last[put->record.id] = i;
  for (std::size_t i = 0; i < effects.size(); ++i) {
    if (const auto* put = std::get_if<effect::PutJob>(&effects[i]);
        put != nullptr && last[put->record.id] != i)
      continue;
    std::visit(
        [&out](const auto& one) {
          if constexpr (kIsChange<std::decay_t<decltype(one)>>) out.emplace_back(one);
        },
        effects[i]);
  }
  return out;
}

// Of what waits for a store that is full: beyond it nothing more is taken that could go on without.
constexpr std::size_t kMostHeld = 100'000;

// One transaction holds so many events at most: a reply waits for the whole of it.
constexpr std::size_t kMostInACommit = 1024;

bool IsSubmit(const Event& event) { return std::holds_alternative<event::Submit>(event); }

// What a node tells of its tasks is stamped when it came, however long the store could not be written.
bool IsReport(const Event& event) {
  return std::holds_alternative<event::FromJobd>(event) || std::holds_alternative<event::JobdGone>(event);
}

// Of the reports, what a process waits for.
bool IsAsk(const Event& event) {
  const auto* from = std::get_if<event::FromJobd>(&event);
  return from != nullptr && std::holds_alternative<wire::NamFromTask>(from->message);
}

// One behind the other they may be committed together: nobody is answered or told before.
bool MayShare(const Event& first, const Event& next) {
  return (IsSubmit(first) && IsSubmit(next)) || (IsReport(first) && IsReport(next));
}

bool IsExtentDone(const Event& event) {
  const auto* from = std::get_if<event::FromNamd>(&event);
  return from != nullptr && std::holds_alternative<wire::NamExtentDone>(from->message);
}

// Of events that somebody waits for; 0 of others.
ReplyTag TagOf(const Event& event) {
  return std::visit(
      [](const auto& one) -> ReplyTag {
        if constexpr (requires { one.reply; }) return one.reply;
        return 0;
      },
      event);
}

}  // namespace

Shell::Shell(EventLoop& loop, Controller& controller, JobStore& store, Options options)
    : loop_(loop), controller_(controller), store_(store), options_(std::move(options)) {}

Shell::~Shell() {
  *alive_ = false;
  loop_.Cancel(retry_timer_);
  loop_.Cancel(pass_timer_);
  loop_.Cancel(tick_timer_);
}

Status Shell::Start() {
  MSA_ASSIGN_OR_RETURN(StoredState state, store_.LoadAll());
  MSA_ASSIGN_OR_RETURN(std::vector<Effect> effects, controller_.Restore(std::move(state), Now()));
  MSA_RETURN_IF_ERROR(Commit(effects).WithContext("take up the jobs of before"));
  Execute(std::move(effects));
  return Status::Ok();
}

void Shell::Handle(Event event) {
  const bool may_gather = IsReport(event) && !IsAsk(event);
  Accept(std::move(event));
  if (!may_gather) return ProcessWaiting();
  // After what other threads have posted already: the reports among it share a commit.
  if (std::exchange(reports_posted_, true)) return;
  loop_.Post([this, alive = alive_] {
    if (!*alive) return;
    reports_posted_ = false;
    ProcessWaiting();
  });
}

void Shell::RequestAll(std::vector<Submission> submissions) {
  for (Submission& one : submissions) {
    one.submit.reply = Expect(std::move(one.reply));
    Accept(std::move(one.submit));
  }
  ProcessWaiting();
}

void Shell::Accept(Event event) {
  if (stopped_) {
    Answer(TagOf(event), Status(Code::kUnavailable, kGoingAway), JobId(0));
  } else if (held_) {
    Hold(std::move(event));
  } else {
    waiting_.push_back({std::move(event), Now()});
  }
}

void Shell::ProcessWaiting() {
  if (busy_) return;
  busy_ = true;
  while (!waiting_.empty() && !held_) ProcessGroup();
  busy_ = false;
}

std::vector<Effect> Shell::Step(Event event, Instant at) {
  last_now_ = at;
  return controller_.On(std::move(event), at);
}

// The first event that waits, and those behind it that may share its commit.
void Shell::ProcessGroup() {
  if (options_.check_room && AsksToKeep(waiting_.front().event)) {
    if (const Status room = options_.check_room(); !room.ok()) {
      const Event event = std::move(waiting_.front().event);
      waiting_.pop_front();
      return Refuse(event, room.WithContext(kUnchanged));
    }
  }
  std::size_t count = 1;
  while (count < std::min(waiting_.size(), kMostInACommit) &&
         MayShare(waiting_.front().event, waiting_[count].event))
    ++count;
  const bool submits = IsSubmit(waiting_.front().event);
  const bool answered = std::all_of(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(count),
                                    [](const Waiting& one) { return MayBeAnswered(one.event); });
  const bool removes = count == 1 && Removes(waiting_.front().event);
  std::vector<Effect> effects;
  for (; count > 0; --count) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    const Instant now = Now();
    const Instant at = IsReport(next.event) ? std::min(now, std::max(next.came, last_now_)) : now;
    std::vector<Effect> more = Step(std::move(next.event), at);
    effects.insert(effects.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  const Status committed = Commit(effects);
  if (committed.ok()) {
    if (submits) (void)Fault("controller.submit.after_commit");
    return Execute(std::move(effects));
  }
  if (submits) return UndoSubmits(effects, committed);
  if (answered) TellAsker(effects);
  if (removes) FreeNow(effects);
  HoldBack(std::move(effects), committed);
}

void Shell::HoldBack(std::vector<Effect> effects, const Status& why) {
  spdlog::error("state cannot be written, trying again each {} ms: {}", options_.commit_retry.count(),
                why.ToString());
  trouble_ = why;
  AnswerUnwritten(effects);
  held_ = std::move(effects);
  retry_timer_ = loop_.After(options_.commit_retry, [this] { RetryCommit(); });
  for (Waiting& next : std::exchange(waiting_, {})) Hold(std::move(next.event));
}

void Shell::Hold(Event event) {
  if (std::holds_alternative<event::Cancel>(event) || Removes(event)) {
    // A job can be ended, and a region be removed, however full the disk is: what became of it is written
    // with what is held.
    HoldStep(std::move(event));
  } else if (UsesOnly(event) && held_->size() < kMostHeld) {
    HoldStep(std::move(event));
  } else if (IsExtentDone(event)) {
    // Of a removal, which may have made room.
    HoldStep(std::move(event));
    loop_.Cancel(retry_timer_);
    retry_timer_ = loop_.After(Millis(0), [this] { RetryCommit(); });
  } else if (TagOf(event) != 0 || RefusalOf(event, trouble_)) {
    // A request is not kept waiting for a disk: the caller learns what is wrong.
    Refuse(event, trouble_.WithContext(kUnchanged));
  } else if (auto* beat = std::get_if<event::NodeHeartbeat>(&event)) {
    held_heartbeats_[beat->node] = std::move(*beat);
  } else if (!std::holds_alternative<event::Tick>(event)) {
    waiting_.push_back({std::move(event), Now()});
  }
}

void Shell::HoldStep(Event event) {
  const bool uses = UsesOnly(event);
  const bool removes = Removes(event);
  const bool waits = IsExtentDone(event);
  std::vector<Effect> effects = Step(std::move(event), Now());
  if (uses)
    TellAsker(effects);
  else if (!waits)
    AnswerUnwritten(effects);
  if (removes) FreeNow(effects);
  held_->insert(held_->end(), std::make_move_iterator(effects.begin()),
                std::make_move_iterator(effects.end()));
}

void Shell::Refuse(const Event& event, const Status& why) {
  if (const ReplyTag tag = TagOf(event); tag != 0) return Answer(tag, why, JobId(0));
  if (const auto refusal = RefusalOf(event, why)) std::visit([this](const auto& one) { Do(one); }, *refusal);
}

void Shell::FreeNow(std::vector<Effect>& effects) {
  const auto frees = [](const Effect& effect) {
    const auto* send = std::get_if<effect::SendToNamd>(&effect);
    return send != nullptr &&
           (send->type == wire::NamExtentFree::kType || send->type == wire::NamRevoke::kType);
  };
  for (const Effect& effect : effects)
    if (frees(effect)) Do(std::get<effect::SendToNamd>(effect));
  std::erase_if(effects, frees);
}

void Shell::TellAsker(std::vector<Effect>& effects) {
  for (const Effect& effect : effects)
    if (IsForTheAsker(effect)) std::visit([this](const auto& one) { Do(one); }, effect);
  std::erase_if(effects, IsForTheAsker);
}

void Shell::AnswerUnwritten(std::vector<Effect>& effects) {
  // A node that gets the end of a job's tasks twice does it once: it stands in `effects` still, behind a
  // start that may be held too.
  for (const Effect& effect : effects) {
    const auto* send = std::get_if<effect::SendToJobd>(&effect);
    if (send != nullptr && send->type == wire::CancelJob::kType) Do(*send);
  }
  const Status told = trouble_.WithContext(kCarriedOut);
  for (const Effect& effect : effects) {
    const auto* reply = std::get_if<effect::Reply>(&effect);
    if (reply == nullptr) continue;
    Answer(reply->tag, reply->status.ok() ? told : reply->status, JobId(0));
  }
  std::erase_if(effects, [](const Effect& e) { return std::holds_alternative<effect::Reply>(e); });
  AnswerNamUnwritten(effects);
}

void Shell::AnswerNamUnwritten(std::vector<Effect>& effects) {
  const Status told = trouble_.WithContext(kCarriedOut);
  for (const Effect& effect : effects) {
    const auto* reply = std::get_if<effect::NamReply>(&effect);
    if (reply != nullptr) AnswerNam(reply->tag, reply->status.ok() ? told : reply->status, {});
  }
  std::erase_if(effects, [](const Effect& e) { return std::holds_alternative<effect::NamReply>(e); });
}

Status Shell::Commit(const std::vector<Effect>& effects) {
  const std::vector<StoreChange> changes = ChangesOf(effects);
  if (changes.empty()) return Status::Ok();
  MSA_RETURN_IF_ERROR(Fault("controller.commit.before"));
  MSA_RETURN_IF_ERROR(store_.Commit(changes));
  // The change is on disk: a failing point here could not be told from a lost reply.
  (void)Fault("controller.commit.after");
  return Status::Ok();
}

void Shell::UndoSubmits(const std::vector<Effect>& effects, const Status& why) {
  const Status told(Code::kResourceExhausted,
                    why.WithContext("the job is not queued, its record cannot be written").message());
  std::set<JobId> undone;
  for (const Effect& effect : effects) {
    const auto* put = std::get_if<effect::PutJob>(&effect);
    if (put == nullptr) continue;
    controller_.ForgetJob(put->record.id);
    undone.insert(put->record.id);
  }
  spdlog::error("{} submissions refused: {}", undone.size(), why.ToString());
  for (const Effect& effect : effects) {
    const auto* reply = std::get_if<effect::Reply>(&effect);
    if (reply == nullptr) continue;
    // Others were refused for their own reasons, or name a job that was on disk before.
    if (reply->status.ok() && undone.contains(reply->job))
      Answer(reply->tag, told, JobId(0));
    else
      Answer(reply->tag, reply->status, reply->job);
  }
}

void Shell::RetryCommit() {
  if (!held_) return;
  const Status status = Commit(*held_);
  if (!status.ok()) {
    trouble_ = status;
    AnswerNamUnwritten(*held_);
    retry_timer_ = loop_.After(options_.commit_retry, [this] { RetryCommit(); });
    return;
  }
  spdlog::info("state can be written again");
  trouble_ = Status::Ok();
  std::vector<Effect> effects = *std::exchange(held_, std::nullopt);
  // Heartbeats first: no node is taken for dead for the time that this daemon could not listen.
  for (auto& [node, beat] : std::exchange(held_heartbeats_, {}))
    waiting_.push_front({std::move(beat), Now()});
  busy_ = true;  // what the effects ask for comes after what waited
  Execute(std::move(effects));
  busy_ = false;
  ArmTick();
  Handle(event::Tick{});
}

void Shell::Execute(std::vector<Effect> effects) {
  for (const Effect& effect : effects) {
    std::visit([this](const auto& one) { Do(one); }, effect);
  }
}

// ------------------------------------------------------------------------------------------------- effects

void Shell::Do(const effect::SendStartJob& effect) {
  Link* const link = FindLink(effect.node);
  if (link == nullptr) return;
  wire::LaunchJob launch = *effect.launch;
  launch.self_index = effect.self_index;
  link->link->Send(
      node_control::StartJob{.job = effect.job,
                             .incarnation = effect.incarnation,
                             .user = effect.user,
                             .frame = {.type = wire::LaunchJob::kType, .payload = wire::Encode(launch)}});
}

void Shell::Do(const effect::SendToJobd& effect) {
  Link* const link = FindLink(effect.node);
  if (link == nullptr) return;
  link->link->Send(node_control::ToJobd{.job = effect.job,
                                        .incarnation = effect.incarnation,
                                        .frame = {.type = effect.type, .payload = effect.payload}});
}

void Shell::Do(const effect::SendQuitJob& effect) {
  Link* const link = FindLink(effect.node);
  if (link == nullptr) return;
  link->link->Send(
      node_control::QuitJob{.job = effect.job, .incarnation = effect.incarnation, .reason = effect.reason});
}

void Shell::Do(const effect::Registered& effect) {
  const auto it = links_.find(effect.node);
  if (it == links_.end() || it->second.session != effect.session) return;
  it->second.registered = true;
  node_control::Registered command{.heartbeat_interval = options_.heartbeat_interval,
                                   .system_name = options_.system_name,
                                   .slurm = options_.slurm};
  for (const JobdInfo& jobd : effect.keep) {
    command.keep.push_back({.job = jobd.job,
                            .incarnation = jobd.incarnation,
                            .member_index = jobd.member_index,
                            .is_head = jobd.is_head,
                            .ended = jobd.ended});
  }
  it->second.link->Send(command);
}

void Shell::Do(const effect::CloseSession& effect) {
  const auto it = links_.find(effect.node);
  if (it == links_.end() || it->second.session != effect.session) return;
  it->second.link->Close(Status(Code::kUnavailable, effect.reason));
}

void Shell::Do(const effect::JobChanged& effect) { Notify(effect.job); }

void Shell::Do(const effect::NeedSchedulePass&) {
  if (std::exchange(pass_wanted_, true)) return;
  const auto rest = std::chrono::ceil<Millis>(next_pass_ - SteadyNow());
  if (rest > Millis(0)) {
    pass_timer_ = loop_.After(rest, [this] { SchedulePass(); });
  } else {
    // After what other threads have posted already: one pass serves all of it.
    loop_.Post([this, alive = alive_] {
      if (*alive) SchedulePass();
    });
  }
}

void Shell::Do(const effect::Reply& effect) {
  (void)Fault("controller.reply.before");
  Answer(effect.tag, effect.status, effect.job);
}

void Shell::Do(const effect::WakeAt& effect) {
  wakes_.insert(effect.at);
  ArmTick();
}

void Shell::Do(const effect::SendToNamd& effect) {
  Link* const link = FindLink(effect.node);
  if (link == nullptr) return;
  link->link->Send(node_control::ToNamd{.frame = {.type = effect.type, .payload = effect.payload}});
}

void Shell::Do(const effect::SlurmVerdict& effect) {
  Link* const link = FindLink(effect.node);
  if (link == nullptr) return;  // it tells of the step again
  link->link->Send(node_control::ToSlurm{
      .frame = {.type = wire::SlurmStepVerdict::kType, .payload = wire::Encode(effect.verdict)}});
}

void Shell::Do(const effect::NamReply& effect) { AnswerNam(effect.tag, effect.status, effect.body); }

void Shell::Do(const nam_effect::DeleteLease& effect) {
  std::vector<std::function<void()>> ended;
  std::erase_if(lease_watches_, [&](auto& watch) {
    if (watch.second.lease != effect.lease) return false;
    ended.push_back(std::move(watch.second.ended));
    return true;
  });
  for (const auto& callback : ended) callback();
}

void Shell::Do(const effect::Log& effect) { spdlog::info("{}", effect.text); }

// --------------------------------------------------------------------------------------------------- timers

void Shell::SchedulePass() {
  pass_wanted_ = false;
  const SteadyTime before = SteadyNow();
  Handle(event::SchedulePass{});
  const SteadyTime after = SteadyNow();
  const auto took = after - before;
  next_pass_ =
      took > kShortPass ? after + std::min<SteadyTime::duration>(took * kPassRest, kLongestRest) : after;
}

void Shell::ArmTick() {
  if (wakes_.empty() || (armed_ && *armed_ <= *wakes_.begin())) return;
  loop_.Cancel(tick_timer_);
  armed_ = *wakes_.begin();
  tick_timer_ = loop_.After(std::max(*armed_ - Now(), Millis(0)), [this] {
    armed_.reset();
    wakes_.erase(wakes_.begin(), wakes_.upper_bound(Now()));
    Handle(event::Tick{});
    ArmTick();
  });
}

// ------------------------------------------------------------------------------------------ replies, watches

ReplyTag Shell::Expect(ReplyCallback reply) {
  const ReplyTag tag = next_tag_++;
  replies_.emplace(tag, std::move(reply));
  return tag;
}

void Shell::Answer(ReplyTag tag, const Status& status, JobId job) {
  const auto it = replies_.find(tag);
  if (it == replies_.end()) return AnswerNam(tag, status, {});
  const ReplyCallback reply = std::move(it->second);
  replies_.erase(it);
  reply(status, job);
}

void Shell::CallNam(event::NamCall call, NamReplyCallback reply) {
  call.reply = next_tag_++;
  nam_replies_.emplace(call.reply, std::move(reply));
  Handle(Event(std::move(call)));
}

void Shell::AnswerNam(ReplyTag tag, const Status& status, const NamReplyBody& body) {
  const auto it = nam_replies_.find(tag);
  if (it == nam_replies_.end()) return;
  const NamReplyCallback reply = std::move(it->second);
  nam_replies_.erase(it);
  reply(status, body);
}

Shell::WatchId Shell::WatchLease(LeaseId lease, std::function<void()> ended) {
  const WatchId id = next_watch_++;
  lease_watches_.emplace(id, LeaseWatch{lease, std::move(ended)});
  return id;
}

void Shell::UnwatchLease(WatchId watch) { lease_watches_.erase(watch); }

Result<Shell::WatchId> Shell::Watch(JobId job, WatchCallback callback) {
  MSA_ASSIGN_OR_RETURN(const JobView view, controller_.GetJob(job));
  const WatchId id = next_watch_++;
  callback(view);
  watchers_.emplace(id, Watcher{job, std::move(callback)});
  watched_jobs_[job].insert(id);
  return id;
}

void Shell::Unwatch(WatchId watch) {
  const auto it = watchers_.find(watch);
  if (it == watchers_.end()) return;
  const auto job = watched_jobs_.find(it->second.job);
  job->second.erase(watch);
  if (job->second.empty()) watched_jobs_.erase(job);
  watchers_.erase(it);
}

void Shell::Notify(JobId job) {
  const auto it = watched_jobs_.find(job);
  if (it == watched_jobs_.end()) return;
  const Result<JobView> view = controller_.GetJob(job);
  if (!view.ok()) return;
  const std::set<WatchId> ids = it->second;  // a callback may unwatch
  for (const WatchId id : ids) {
    if (const auto watcher = watchers_.find(id); watcher != watchers_.end()) watcher->second.callback(*view);
  }
}

// ----------------------------------------------------------------------------------------------------- links

void Shell::AddLink(const std::string& node, SessionId session, std::shared_ptr<NodeLink> link) {
  ProcessWaiting();  // what its former session has told, and is answered by
  Link& place = links_[node];
  if (place.link)
    place.link->Close(Error(Code::kAborted, "a newer session of node '{}' replaces this one", node));
  place = {.session = session, .link = std::move(link)};
}

void Shell::DropLink(const std::string& node, SessionId session) {
  const auto it = links_.find(node);
  if (it == links_.end() || it->second.session != session) return;
  links_.erase(it);
  Handle(event::NodeLost{.node = node, .session = session});
}

Shell::Link* Shell::FindLink(const std::string& node) {
  const auto it = links_.find(node);
  return it == links_.end() || !it->second.registered ? nullptr : &it->second;
}

void Shell::Stop() {
  stopped_ = true;
  for (auto& [node, link] : links_) link.link->Close(Status(Code::kUnavailable, kGoingAway));
  links_.clear();
  for (auto& [tag, reply] : std::exchange(replies_, {}))
    reply(Status(Code::kUnavailable, kGoingAway), JobId(0));
  for (auto& [tag, reply] : std::exchange(nam_replies_, {}))
    reply(Status(Code::kUnavailable, kGoingAway), {});
  lease_watches_.clear();
  watchers_.clear();
  watched_jobs_.clear();
}

}  // namespace msa
