// Steps inside a batch job or an allocation: their queue, their sessions, their end.
#include <signal.h>

#include <algorithm>

#include "msa/job/job_variables.h"
#include "msa/job/resource_limits.h"

#include "head.h"

namespace msa::jobd {
namespace {

// Ends that are remembered for sessions that come back late.
constexpr std::size_t kMaxPast = 1024;
// Exit codes of msactl.
constexpr std::int32_t kFailed = 1;
constexpr std::int32_t kUsage = 2;
constexpr std::int32_t kNotFound = 3;
constexpr std::int32_t kNeverPlaced = 5;
constexpr std::int32_t kTimedOut = 6;
constexpr std::int32_t kConflict = 7;

std::int32_t RefusalOf(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return kUsage;
    case Code::kNotFound:
      return kNotFound;
    default:
      return kNeverPlaced;
  }
}

}  // namespace

Head::Step* Head::StepOfSession(std::uint64_t session) {
  const auto it = step_sessions_.find(session);
  return it == step_sessions_.end() ? nullptr : &steps_.at(it->second);
}

void Head::OnStepOpen(std::uint64_t session, wire::StepOpen open) {
  if (ResumeStep(session, open)) return;
  if (launch_.mode == wire::JobMode::kStep)
    return RefuseSession(
        session, kUsage,
        fmt::format("job {} is an ordinary run; steps run in batch jobs and allocations", launch_.job));
  if (launch_.slurms)
    return RefuseSession(session, kUsage,
                         fmt::format("job {} is Slurm's, which starts its steps; use srun --jobid={}",
                                     launch_.job, launch_.job));
  const bool script_over =
      launch_.mode == wire::JobMode::kBatch && !namespaces_.contains(launch_.step.nspace);
  if (cancelled_ || exit_ || script_over)
    return RefuseSession(session, kConflict,
                         fmt::format("job {} is ending and runs no more steps", launch_.job));
  if (steps_.size() > options_.max_steps)
    return RefuseSession(session, kFailed,
                         fmt::format("{} steps of job {} run or wait, the limit; wait for some of them",
                                     options_.max_steps, launch_.job));
  constexpr std::size_t kMaxToken = 64;
  if (open.token.empty() || open.token.size() > kMaxToken)
    return RefuseSession(
        session, kUsage,
        fmt::format("the token of the step has {} bytes; expected 1 to {}", open.token.size(), kMaxToken));
  if (const Status limits = CheckLimits(open.limits); !limits.ok())
    return RefuseSession(session, kUsage, limits.message());
  SlotMap trial = slots_;
  if (const StepDecision decision = PlaceStep(open, launch_.components, trial); !decision.refusal.ok())
    return RefuseSession(session, RefusalOf(decision.refusal.code()), decision.refusal.message());
  const StepId id(next_step_++);
  wire::StepSpec spec;
  spec.stdio = open.stdio;
  spec.cwd = open.cwd;
  auto hub = MakeHub(id, spec, true);
  if (!hub.ok()) return RefuseSession(session, kUsage, hub.status().message());
  Step& step = steps_[id];
  step.id = id;
  step.nspace = fmt::format("msa.{}.{}.{}", launch_.job, launch_.incarnation, id);
  step.hub = std::move(*hub);
  step.phase = Step::Phase::kWaiting;
  step.token = open.token;
  step.in.eof = !open.wants_stdin;
  if (open.immediate_s > 0)
    step.immediate_timer = outlet_.After(Millis(std::int64_t{1000} * open.immediate_s), [this, id] {
      const auto it = steps_.find(id);
      if (it == steps_.end() || it->second.phase != Step::Phase::kWaiting) return;
      RefuseStep(id, kTimedOut,
                 fmt::format("not started within {} s (--immediate): {}", it->second.ask.immediate_s,
                             it->second.reason));
    });
  step.hub->Open(session, {true, open.acked, open.wants_stdin});
  step_sessions_[session] = id;
  step.ask = std::move(open);
  waiting_.push_back(id);
  SendInputAck(session, step);
  StartWaiting();
}

// The session of a step that is known, or was.
bool Head::ResumeStep(std::uint64_t session, const wire::StepOpen& open) {
  if (open.token.empty()) {
    RefuseSession(session, kUsage, "the step has no token; a newer job daemon may need a newer msactl");
    return true;
  }
  const auto known = std::find_if(steps_.begin(), steps_.end(), [&](const auto& it) {
    return it.first != main_ && it.second.token == open.token;
  });
  if (known != steps_.end()) {
    Step& step = known->second;
    outlet_.Cancel(step.away_timer);
    step.away_timer = {};
    std::erase_if(step_sessions_, [&](const auto& it) { return it.second == step.id; });
    step_sessions_[session] = step.id;
    step.hub->Open(session, {true, open.acked, open.wants_stdin});
    TellStep(step);
    SendInputAck(session, step);
    return true;
  }
  const auto past =
      std::find_if(past_.begin(), past_.end(), [&](const auto& it) { return it.first == open.token; });
  if (past == past_.end()) return false;
  wire::SessionEnd end = past->second;
  end.seq = open.acked + 1;
  outlet_.ToSession(session, wire::SessionEnd::kType, wire::Encode(end));
  return true;
}

void Head::RefuseSession(std::uint64_t session, std::int32_t code, const std::string& text) {
  wire::SessionEnd end{1, wire::JobState::kFailed, code, text, code};
  outlet_.ToSession(session, wire::SessionEnd::kType, wire::Encode(end));
}

// In order of arrival: who comes later goes first only where nobody before him waits for the same component.
void Head::StartWaiting() {
  std::set<std::size_t> taken;  // components that somebody waits for
  std::map<std::size_t, StepId> first;
  for (const StepId id : std::vector<StepId>(waiting_)) {
    const auto it = steps_.find(id);
    if (it == steps_.end() || it->second.phase != Step::Phase::kWaiting) continue;
    Step& step = it->second;
    const auto behind = std::find_if(step.wants.begin(), step.wants.end(),
                                     [&](std::size_t component) { return taken.contains(component); });
    std::string reason;
    if (behind != step.wants.end() && !step.ask.overlap) {
      reason =
          fmt::format("behind step {}, which waits for the same component of the job", first.at(*behind));
    } else {
      SlotMap trial = slots_;
      StepDecision decision = PlaceStep(step.ask, launch_.components, trial);
      if (!decision.refusal.ok()) {
        RefuseStep(id, RefusalOf(decision.refusal.code()), decision.refusal.message());
        continue;
      }
      const bool free = std::none_of(decision.components.begin(), decision.components.end(),
                                     [&](std::size_t component) { return taken.contains(component); });
      step.wants = decision.components;
      if (decision.place && (free || step.ask.overlap)) {
        slots_ = std::move(trial);
        StartStep(step, std::move(*decision.place));
        continue;
      }
      reason = decision.reason.empty() ? "behind steps that came before it" : decision.reason;
    }
    for (const std::size_t component : step.wants)
      if (taken.insert(component).second) first[component] = id;
    if (std::exchange(step.reason, reason) != reason) TellStep(step);
  }
}

void Head::StartStep(Step& step, StepPlace place) {
  std::erase(waiting_, step.id);
  outlet_.Cancel(step.immediate_timer);
  step.phase = Step::Phase::kRunning;
  wire::StepOpen ask = std::exchange(step.ask, {});
  NamespaceRegister reg;
  reg.universe = static_cast<std::uint32_t>(slots_.total());
  wire::StepSpec& spec = reg.spec;
  spec.step = step.id;
  spec.nspace = step.nspace;
  spec.name = ask.name;
  spec.apps = std::move(place.apps);
  spec.rank_member = std::move(place.rank_member);
  spec.env = std::move(ask.env);
  std::erase_if(spec.env, IsJobVariable);
  for (std::string& line : JobVariablesOf(launch_)) spec.env.push_back(std::move(line));
  spec.cwd = ask.cwd;
  spec.stdio = ask.stdio;
  spec.kill_policy = ask.kill_policy;
  spec.bind = ask.bind;
  spec.time_limit_s = ask.time_limit_s;
  spec.on_child_failure = ask.on_child_failure;
  spec.mpi_library = ask.mpi_library;
  spec.limits = std::move(ask.limits);
  NumberNodes(reg);
  tasks_total_ += static_cast<std::uint32_t>(spec.rank_member.size());
  const StepId id = step.id;
  const std::uint32_t limit = spec.time_limit_s;
  AddNamespace(std::move(reg), std::move(place.rank_cores));
  TellStep(step);
  if (const Status opened = step.hub->OpenFiles(); !opened.ok()) Fail(id, opened.message(), 125);
  if (limit == 0) return;
  Find(step.nspace)->time_timer = outlet_.After(Millis(std::int64_t{1000} * limit), [this, id, limit] {
    if (const auto it = steps_.find(id); it != steps_.end() && it->second.phase == Step::Phase::kRunning)
      EndStep(it->second, wire::JobState::kTimeout,
              fmt::format("step {} is ended: its time limit of {} s is over", id, limit));
  });
}

void Head::TellStep(const Step& step) {
  if (!step.hub->has_owner()) return;
  const wire::StepStatus status{step.id, step.phase != Step::Phase::kWaiting, step.reason};
  outlet_.ToSession(step.hub->owner(), wire::StepStatus::kType, wire::Encode(status));
}

// One that waits.
void Head::RefuseStep(StepId id, std::int32_t code, const std::string& text) {
  Step& step = steps_.at(id);
  std::erase(waiting_, id);
  outlet_.Cancel(step.immediate_timer);
  step.phase = Step::Phase::kOver;
  step.hub->End(wire::JobState::kCancelled, code, text, code);
  if (!step.hub->has_owner()) ArmAway(step);
}

// One that runs: SIGTERM, and SIGKILL after the grace, for all that is of it.
void Head::EndStep(Step& step, wire::JobState state, const std::string& text) {
  if (!step.final_state) step.final_state = state;
  if (step.message.empty()) step.message = text;
  std::vector<std::string> all;
  for (auto& [nspace, ns] : namespaces_) {
    if (ns.reg.spec.step != step.id) continue;
    if (ns.reg.spawn == 0) ns.result.Force(128 + SIGTERM);
    all.push_back(nspace);
  }
  for (const std::string& nspace : all) {
    const Namespace* ns = Find(nspace);
    EndNamespace(nspace, ns != nullptr && ns->reg.spawn == 0 ? text : std::string(), EndKind::kQuiet);
  }
}

void Head::EndOtherSteps(const std::string& text) {
  for (const StepId id : std::vector<StepId>(waiting_)) RefuseStep(id, kConflict, text);
  for (auto& [id, step] : steps_)
    if (id != main_ && step.phase == Step::Phase::kRunning)
      EndStep(step, wire::JobState::kCancelled, fmt::format("step {} is ended: {}", id, text));
}

// SIGTERM and SIGKILL of its msactl end the step; other signals go to its tasks.
void Head::OnStepSignal(Step& step, std::int32_t signal) {
  if (signal <= 0 || signal >= NSIG)
    return outlet_.Log(fmt::format("signal {} does not exist; ignored", signal));
  // Of a start that is under way the signal would reach those tasks alone that run already.
  const Namespace* const own = Find(step.nspace);
  const bool starting = own != nullptr && own->phase != Phase::kRunning;
  const bool ends = signal == SIGTERM || signal == SIGKILL || (signal == SIGINT && starting);
  if (step.phase == Step::Phase::kWaiting && ends) {
    RefuseStep(step.id, 128 + SIGTERM, fmt::format("step {} is cancelled", step.id));
    StartWaiting();
    return MaybeFinish();
  }
  if (step.phase != Step::Phase::kRunning) return;
  if (ends) EndStep(step, wire::JobState::kCancelled, fmt::format("step {} is cancelled", step.id));
  std::vector<std::string> all;
  for (const auto& [nspace, ns] : namespaces_)
    if (ns.reg.spec.step == step.id) all.push_back(nspace);
  for (const std::string& nspace : all) {
    if (signal == SIGKILL)
      KillNamespace(nspace);
    else if (!ends)
      TellAll(NamespaceSignal{nspace, signal});
  }
}

void Head::OnStepSessionOver(std::uint64_t session) {
  Step* step = StepOfSession(session);
  step_sessions_.erase(session);
  step->hub->Close(session);
  if (!step->hub->has_owner()) ArmAway(*step);
  LeaveWhenDone();
}

// Its msactl has gone, or lost its node daemon: it is given a while to come back.
void Head::ArmAway(Step& step) {
  outlet_.Cancel(step.away_timer);
  step.away_timer = {};
  if (launch_.slurms) return;       // srun has its tasks; nobody attaches
  if (!sessions_possible_) return;  // OnControllerLink arms it
  step.away_timer = outlet_.After(options_.step_owner_wait, [this, id = step.id] {
    const auto it = steps_.find(id);
    if (it == steps_.end()) return;
    Step& late = it->second;
    late.away_timer = {};
    const std::string text = fmt::format("step {} is ended: its msactl went away", id);
    if (late.phase == Step::Phase::kOver) return ForgetStep(id);
    if (late.phase == Step::Phase::kRunning) return EndStep(late, wire::JobState::kCancelled, text);
    RefuseStep(id, kFailed, text);
    ForgetStep(id);
    StartWaiting();
    MaybeFinish();
  });
}

void Head::ForgetStep(StepId id) {
  const auto it = steps_.find(id);
  if (it == steps_.end() || it->second.phase != Step::Phase::kOver) return;
  Step& step = it->second;
  outlet_.Cancel(step.away_timer);
  outlet_.Cancel(step.immediate_timer);
  if (step.hub->end()) past_.emplace_back(step.token, *step.hub->end());
  if (past_.size() > kMaxPast) past_.pop_front();
  std::erase_if(step_sessions_, [&](const auto& session) { return session.second == id; });
  steps_.erase(it);
}

}  // namespace msa::jobd
