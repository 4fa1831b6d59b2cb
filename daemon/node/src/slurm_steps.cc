#include "slurm_steps.h"

#include <signal.h>

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace msa::node {
namespace {

// Of jobs that end while a controller is away: at ten a second the last two minutes' worth.
constexpr std::size_t kMaxJobEnds = 1024;
// Components of a heterogeneous job follow its leader's number (MAX_HET_JOB_COMPS of Slurm 22.05).
constexpr std::uint64_t kMaxComponents = 128;
// Most steps that are over sooner are those of scripts that start many.
constexpr Millis kTellLater{100};
// The controller waits less for all parts of a step; later it has judged, or had no cause to.
constexpr std::chrono::seconds kJudged{30};

template <class M>
wire::Frame FrameOf(const M& message) {
  return {M::kType, 0, 0, wire::Encode(message)};
}

}  // namespace

SlurmSteps::SlurmSteps(EventLoop& loop, PluginSocket::Options options, Outlets outlets, Millis ends_later)
    : loop_(loop),
      node_(options.node),
      outlets_(std::move(outlets)),
      ends_later_(ends_later),
      socket_(loop, std::move(options), SocketHandlers()) {}

SlurmSteps::~SlurmSteps() {
  for (auto& [key, step] : steps_) loop_.Cancel(step.tell);
  for (auto& [job, ends] : ends_) loop_.Cancel(ends.timer);
}

PluginSocket::Handlers SlurmSteps::SocketHandlers() {
  PluginSocket::Handlers handlers;
  handlers.on_begin = [this](const wire::SlurmStepBegin& begin) { OnBegin(begin); };
  handlers.on_task_begin = [this](const wire::SlurmTaskBegin& begin) { OnTaskBegin(begin); };
  handlers.on_task_end = [this](const wire::SlurmTaskEnd& end) { OnTaskEnd(end); };
  handlers.on_step_end = [this](const wire::SlurmStepEnd& end) { OnStepEnd(end); };
  handlers.on_job_end = [this](const wire::SlurmJobEnd& end) { OnJobEnd(end); };
  return handlers;
}

// ------------------------------------------------------------------------------------------ the plugin

void SlurmSteps::OnBegin(wire::SlurmStepBegin begin) {
  while (!ends_.empty()) TellEnds(ends_.begin()->first);
  Step& step = steps_[{begin.job, begin.step}];
  ++step.parts;
  std::erase_if(job_ends_, [&](const auto& end) { return end.component_job == begin.component_job; });
  if (AcceptHere(step, begin)) return;
  step.asked = true;
  // Without a controller: it is told with the registration, and the plugin waits.
  begin.incarnation = Incarnation();
  (void)outlets_.to_controller(FrameOf(begin));
  outlets_.expect(begin.job, begin.user);
}

bool SlurmSteps::AcceptHere(Step& step, const wire::SlurmStepBegin& begin) {
  if (step.asked) return false;
  const auto known = known_.find({begin.job, begin.component_job});
  if (known == known_.end()) return false;
  const Known& like = known->second;
  if (like.user != begin.user || like.options != begin.options || like.cores != begin.cores ||
      like.restart_count != begin.restart_count || like.start_time != begin.start_time || begin.nodes.empty())
    return false;
  for (const wire::SlurmNodeTasks& one : begin.nodes)
    if (!like.nodes.contains(one.node)) return false;
  const auto path = outlets_.job_socket(like.job);
  if (!path) return false;
  wire::SlurmStepVerdict verdict;
  verdict.job = begin.job;
  verdict.step = begin.step;
  verdict.accepted = true;
  verdict.incarnation = like.job.incarnation;
  verdict.job_socket = *path;
  socket_.Answer(verdict);
  if (!std::exchange(step.accepted, true)) {
    step.job = like.job;
    step.accepted_here = std::chrono::steady_clock::now();
    step.told = false;
    step.tell = loop_.After(kTellLater, [this, key = StepKey(begin.job, begin.step)] {
      if (const auto it = steps_.find(key); it != steps_.end()) Tell(key, it->second);
    });
  } else if (step.told) {
    TellPart(step, {begin, true});
  }
  return true;
}

void SlurmSteps::Tell(const StepKey& key, Step& step) {
  step.told = true;
  for (PluginSocket::Part& part : socket_.Steps())
    if (part.begin.job == key.first && part.begin.step == key.second && part.accepted)
      TellPart(step, std::move(part));
}

void SlurmSteps::TellPart(const Step& step, PluginSocket::Part part) {
  part.begin.incarnation = part.accepted ? step.job.incarnation : Incarnation();
  part.begin.accepted_here = part.accepted && known_.contains({part.begin.job, part.begin.component_job}) &&
                             std::chrono::steady_clock::now() < step.accepted_here + kJudged;
  (void)outlets_.to_controller(FrameOf(part.begin));
}

void SlurmSteps::OnTaskBegin(const wire::SlurmTaskBegin& begin) {
  const auto it = steps_.find({begin.job, begin.step});
  if (it == steps_.end()) return;
  auto process = OpenProcess(begin.pid);
  if (process.ok()) it->second.tasks.insert_or_assign(begin.pid, std::move(*process));
}

void SlurmSteps::OnTaskEnd(const wire::SlurmTaskEnd& end) {
  const auto it = steps_.find({end.job, end.step});
  if (it == steps_.end()) return;
  it->second.tasks.erase(end.pid);
  if (it->second.accepted) TellEnd(it->second.job, FrameOf(end), end.status == 0 && !end.first);
}

void SlurmSteps::OnStepEnd(const wire::SlurmStepEnd& end) {
  const auto it = steps_.find({end.job, end.step});
  if (it == steps_.end()) return;
  Step& step = it->second;
  if (step.accepted) TellEnd(step.job, FrameOf(end), step.tasks.empty());
  if (step.told || step.asked) (void)outlets_.to_controller(FrameOf(end));
  if (--step.parts > 0) return;
  loop_.Cancel(step.tell);
  steps_.erase(it);
}

void SlurmSteps::TellEnd(const JobKey& job, wire::Frame frame, bool later) {
  Ends& ends = ends_[job];
  ends.frames.push_back(std::move(frame));
  if (!later) return TellEnds(job);
  if (ends.frames.size() == 1) ends.timer = loop_.After(ends_later_, [this, job] { TellEnds(job); });
}

void SlurmSteps::TellEnds(const JobKey& job) {
  auto ends = ends_.extract(job);
  if (ends.empty()) return;
  loop_.Cancel(ends.mapped().timer);
  for (wire::Frame& frame : ends.mapped().frames) outlets_.to_jobd(ends.key(), std::move(frame));
}

void SlurmSteps::OnJobEnd(const wire::SlurmJobEnd& end) {
  while (!ends_.empty()) TellEnds(ends_.begin()->first);
  if (job_ends_.size() >= kMaxJobEnds) job_ends_.pop_front();
  job_ends_.push_back(end);
  std::erase_if(known_, [&](const auto& one) { return one.first.second == end.component_job; });
  (void)outlets_.to_controller(FrameOf(end));
}

// ------------------------------------------------------------------------------------------ the controller

void SlurmSteps::OnRegistered() {
  for (const wire::SlurmJobEnd& end : job_ends_) (void)outlets_.to_controller(FrameOf(end));
  for (PluginSocket::Part& part : socket_.Steps()) {
    Step& step = steps_[{part.begin.job, part.begin.step}];
    loop_.Cancel(std::exchange(step.tell, {}));
    step.told = true;
    TellPart(step, std::move(part));
  }
}

Status SlurmSteps::OnController(const wire::Frame& frame) {
  if (frame.type != wire::SlurmStepVerdict::kType)
    return Error(Code::kInvalidArgument, "a message of type {:#06x} for Slurm's plugin", frame.type);
  MSA_ASSIGN_OR_RETURN(const wire::SlurmStepVerdict verdict,
                       wire::Decode<wire::SlurmStepVerdict>(frame.payload));
  OnVerdict(verdict);
  return Status::Ok();
}

// Which of the numbers are components of this job is not known here. An end of another job among them was
// told in this session, and the controller's agent tells of it too.
void SlurmSteps::OnLaunch(JobId job) {
  std::erase_if(job_ends_, [&](const auto& end) {
    return end.component_job >= job && end.component_job.value - job.value < kMaxComponents;
  });
  std::erase_if(known_, [&](const auto& one) { return one.first.first == job; });
}

void SlurmSteps::OnVerdict(const wire::SlurmStepVerdict& verdict) {
  const auto it = steps_.find({verdict.job, verdict.step});
  if (it == steps_.end()) return;  // it has ended meanwhile
  Step& step = it->second;
  if (!verdict.accepted) {
    step.held.reset();
    spdlog::warn("{}", verdict.message);
    socket_.Answer(verdict);  // to those that have no answer yet
    if (!verdict.withdrawn || !step.accepted) return;
    // Its job daemon knows whether all of the step's tasks have come meanwhile.
    Forget(step.job);
    TellEnds(step.job);
    return outlets_.to_jobd(step.job, FrameOf(verdict));
  }
  // Children run in companions of their parent.
  step.job = {verdict.parent.value != 0 ? verdict.parent : verdict.job, verdict.incarnation};
  step.held = verdict;
  if (verdict.parent.value == 0) Learn(verdict);
  Release(step);
}

// Of a companion nothing is kept: it may be given back while its parent goes on.
void SlurmSteps::Learn(const wire::SlurmStepVerdict& verdict) {
  for (const auto& [begin, accepted] : socket_.Steps()) {
    if (begin.job != verdict.job || begin.step != verdict.step) continue;
    Known& known = known_[{begin.job, begin.component_job}];
    Known fresh{{verdict.job, verdict.incarnation},
                begin.user,
                begin.options,
                begin.cores,
                begin.restart_count,
                begin.start_time,
                {}};
    if (known.job == fresh.job && known.start_time == fresh.start_time) fresh.nodes = std::move(known.nodes);
    for (const wire::SlurmNodeTasks& one : begin.nodes) fresh.nodes.insert(one.node);
    known = std::move(fresh);
  }
}

void SlurmSteps::Forget(const JobKey& job) {
  std::erase_if(known_, [&](const auto& one) { return one.second.job == job; });
}

void SlurmSteps::Release(Step& step) {
  const auto path = outlets_.job_socket(step.job);
  if (!path) return;
  step.held->job_socket = *path;
  socket_.Answer(*step.held);
  step.held.reset();
  step.accepted = true;
}

// ------------------------------------------------------------------------------------------ job daemons

void SlurmSteps::OnHere(const JobKey& key) {
  for (auto& [id, step] : steps_)
    if (step.held && step.job == key) Release(step);
}

void SlurmSteps::OnOver(const JobKey& key) { Forget(key); }

void SlurmSteps::OnQuit(const JobKey& key, const std::string& reason) {
  TellEnds(key);
  Forget(key);
  for (auto& [id, step] : steps_)
    if (step.job == key) step.quit_reason = reason;
}

void SlurmSteps::OnGone(const JobKey& key, const std::string& reason) {
  if (auto ends = ends_.extract(key); !ends.empty()) loop_.Cancel(ends.mapped().timer);
  Forget(key);
  for (auto& [id, step] : steps_) {
    if (step.job != key) continue;
    const std::string& why = step.quit_reason.empty() ? reason : step.quit_reason;
    if (step.held) {
      wire::SlurmStepVerdict refusal;
      refusal.job = id.first;
      refusal.step = id.second;
      refusal.message = fmt::format("job {} cannot run on {}: {}", id.first, node_, why);
      step.held.reset();
      socket_.Answer(refusal);
    }
    if (std::exchange(step.accepted, false)) Abort(id, step, why);
  }
}

void SlurmSteps::Abort(const StepKey& key, Step& step, const std::string& reason) {
  wire::SlurmStepAbort abort;
  abort.job = key.first;
  abort.step = key.second;
  abort.message = fmt::format("the tasks on {} are killed: {}", node_, reason);
  spdlog::warn("step {}.{}: {}", key.first, key.second, abort.message);
  // First the word, then the deed: slurmstepd reads it when a task has ended.
  socket_.Abort(abort);
  for (const auto& [pid, process] : std::exchange(step.tasks, {})) SignalProcess(process, SIGKILL);
}

}  // namespace msa::node
