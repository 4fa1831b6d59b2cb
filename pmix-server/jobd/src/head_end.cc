// How namespaces and the job end.
#include <signal.h>

#include <algorithm>

#include "head.h"

namespace msa::jobd {
namespace {

// Of a job that lost a node or a job daemon, as the controller gives it when the head itself is lost.
constexpr std::int32_t kNodeFailCode = 125;

}  // namespace

// Asks the tasks to leave, kills them after the grace. The namespace itself goes when its last task has been
// reported.
void Head::EndNamespace(const std::string& nspace, const std::string& text, EndKind kind, Millis delay) {
  Namespace* ns = Find(nspace);
  if (ns == nullptr || ns->ending) return;
  if (!text.empty()) {
    FlushLines(*ns);
    if (ns->failure.empty() || kind == EndKind::kAbort) ns->failure = text;
    HubOf(*ns).Notice(text);
  }
  ns->ending = true;
  if (kind != EndKind::kQuiet) ns->abnormal = true;
  if (delay == Millis(0))
    TermNamespace(nspace);
  else
    ns->kill_timer = outlet_.After(delay, [this, nspace] { TermNamespace(nspace); });
  // Later: callers still look at the namespace.
  outlet_.After(Millis(0), [this, nspace] { CheckEnded(nspace); });
  if (kind != EndKind::kQuiet) EndConnected(nspace);
}

void Head::TermNamespace(const std::string& nspace) {
  Namespace* ns = Find(nspace);
  if (ns == nullptr) return;
  if (ns->alive > 0) AskToLeave(*ns);
  ns->kill_timer = outlet_.After(options_.kill_grace, [this, nspace] { KillNamespace(nspace); });
}

void Head::AskToLeave(const Namespace& ns) {
  TellAll(NamespaceSignal{ns.reg.spec.nspace, SIGTERM, true, ns.leave_code});
  TellAll(NamespaceSignal{ns.reg.spec.nspace, SIGCONT});
}

// Whoever is still connected to a namespace that fails hears of it by an event, and is then ended too, unless
// the job leaves the failure of a child to its parent (--on-child-failure=event).
void Head::EndConnected(const std::string& nspace) {
  const std::set<std::string> linked = Find(nspace)->linked;
  if (linked.empty()) return;
  TellAll(NamespaceEvent{
      pmix::kPmixErrJobAborted, {nspace, pmix::kRankWildcard}, {linked.begin(), linked.end()}});
  for (const std::string& other : linked) {
    Namespace* failed = Find(nspace);
    const Namespace* peer = Find(other);
    if (failed == nullptr || peer == nullptr || peer->ending) continue;
    const bool is_child = failed->reg.parent == other;
    if (is_child && peer->reg.spec.on_child_failure == wire::OnChildFailure::kEvent) {
      failed->tolerated = true;
      continue;
    }
    Find(other)->collateral = true;
    Find(other)->leave_code = failed->leave_code;
    EndNamespace(other,
                 fmt::format("{} is ended: {}, which it is connected to, failed", Name(*peer), Name(*failed)),
                 EndKind::kFailure, options_.end_apart);
  }
}

void Head::KillNamespace(const std::string& nspace) {
  Namespace* ns = Find(nspace);
  if (ns == nullptr) return;
  outlet_.Cancel(ns->kill_timer);
  HubOf(*ns).LiftWindow();
  if (ns->phase == Phase::kStarting) StopSruns(*ns);
  TellAll(NamespaceKill{nspace});
  ns->kill_timer = outlet_.After(options_.kill_report, [this, nspace] { GiveUpOn(nspace); });
}

// Killed tasks that were never reported: processes in uninterruptible sleep, or a member that hangs.
void Head::GiveUpOn(const std::string& nspace) {
  Namespace* ns = Find(nspace);
  if (ns == nullptr) return;
  ns->kill_timer = {};
  ns->awaiting_started.clear();
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < ns->tasks.size(); ++rank) {
    if (ns->tasks[rank] != TaskPhase::kAsked) continue;
    ranks.push_back(rank);
    EndedTask(*ns, rank);
    ns->result.Add({Rank(rank), 0, ns->reg.nodes[ns->reg.rank_node[rank]], 0, SIGKILL, false}, Counted::kNo);
  }
  HubOf(*ns).Notice(fmt::format(
      "tasks {} of {} did not end within {} s of SIGKILL; look for processes in state D on their nodes",
      RankList(ranks), Name(*ns), options_.kill_report.count() / 1000));
  CheckEnded(nspace);
}

void Head::OnAbort(const AbortRequest& message) {
  std::set<std::string> targets;
  for (const pmix::Proc& target : message.targets) targets.insert(target.nspace);
  if (targets.empty()) targets.insert(message.proc.nspace);
  for (const std::string& nspace : targets) {
    Namespace* ns = Find(nspace);
    if (ns == nullptr || ns->ending) continue;
    // An abort with code 0 is a failure all the same.
    const std::int32_t code = (message.exit_code & 0xff) == 0 ? 1 : message.exit_code & 0xff;
    ns->result.Force(code);
    ns->leave_code = code;
    const Namespace* caller = Find(message.proc.nspace);
    std::string text = fmt::format("{} is aborted by task {}{} with code {}", Name(*ns), message.proc.rank,
                                   caller == nullptr || caller == ns ? std::string() : " of " + Name(*caller),
                                   message.exit_code);
    // Open MPI says "N/A" where it has nothing to say.
    if (!message.message.empty() && message.message != "N/A") text += ": " + message.message;
    EndNamespace(nspace, text, EndKind::kAbort);
  }
}

void Head::OnLinked(const NamespacesLinked& message) {
  for (const std::string& a : message.nspaces) {
    Namespace* ns = Find(a);
    if (ns == nullptr) continue;
    for (const std::string& b : message.nspaces) {
      if (a == b || Find(b) == nullptr) continue;
      if (message.linked)
        ns->linked.insert(b);
      else
        ns->linked.erase(b);
    }
  }
}

// ------------------------------------------------------------------------------------------ after the last
// task

void Head::Settle(std::string nspace) {
  Namespace& ns = *Find(nspace);
  outlet_.Cancel(ns.kill_timer);
  outlet_.Cancel(ns.report_timer);
  outlet_.Cancel(ns.mixture_timer);
  outlet_.Cancel(ns.time_timer);
  JudgeSingletons(ns);
  FlushLines(ns);
  for (std::uint32_t rank = 0; rank < ns.rank_cores.size(); ++rank)
    GiveSlots(ns.reg.spec.rank_member[rank], ns.rank_cores[rank]);
  AnswerSpawn(ns, pmix::kPmixErrJobFailedToStart);
  MergeResult(ns);
  const std::string reason = ns.failure.empty() ? Name(ns) + " has ended" : ns.failure;
  if (started_at_ms_ != 0 || ns.phase == Phase::kRunning) Report(ns, true);
  for (const std::string& other : ns.linked)
    if (Namespace* peer = Find(other)) peer->linked.erase(nspace);
  TellForeignEnd(ns, reason);
  TellAll(NamespaceDeregister{nspace});
  const StepId id = ns.reg.spec.step;
  const bool is_script = id == wire::kBatchStep && launch_.mode == wire::JobMode::kBatch;
  namespaces_.erase(nspace);
  DropSpawnsOf(nspace);
  Apply(store_.NamespaceEnded(nspace, reason), std::nullopt);
  const bool others_end = std::any_of(namespaces_.begin(), namespaces_.end(), [&](const auto& it) {
    return it.second.ending && it.second.reg.spec.step == id;
  });
  if (!others_end && !namespaces_.empty()) steps_.at(id).hub->RestoreWindow();
  CheckStepOver(id);
  if (is_script && !cancelled_) EndOtherSteps("the batch script has ended");
  RetryWaiting();
  StartWaiting();
  ReleaseIdleGrants();
  MaybeFinish();
}

void Head::JudgeSingletons(Namespace& ns) {
  if (ns.singletons.empty()) return;
  const std::size_t count = ns.singletons.size();
  const std::string program = ProgramOfRank(ns, ns.singletons.front());
  const std::string library = ns.mpi_library.empty() ? "an MPI library" : ns.mpi_library;
  const std::string text = fmt::format(
      "{} {} of {} ran '{}' ({}) alone, each as a world of its own: it never reached msa's PMIx or PMI "
      "server; use a program built for Open MPI or MPICH, and do not start it through a wrapper that clears "
      "the environment (env -i, sudo) or closes descriptors",
      count, count == 1 ? "task" : "tasks", Name(ns), program, library);
  HubOf(ns).Notice(text);
  if (ns.result.code() != 0) return;
  ns.result.Force(125);
  ns.abnormal = true;
  if (ns.failure.empty()) ns.failure = text;
}

void Head::WatchMixture(Namespace& ns) {
  bool pmix = false;
  bool pmi1 = false;
  for (const auto& [member, in] : ns.in_mpi) {
    pmix = pmix || in.pmix;
    pmi1 = pmi1 || in.pmi1;
  }
  const bool mixed = pmix && pmi1;
  if (mixed == (ns.mixture_timer != TimerId{})) return;
  outlet_.Cancel(ns.mixture_timer);
  ns.mixture_timer = {};
  if (!mixed) return;
  ns.mixture_timer = outlet_.After(options_.mixture_wait, [this, nspace = ns.reg.spec.nspace] {
    if (Namespace* later = Find(nspace)) JudgeMixture(*later);
  });
}

// Each part would wait for the other for ever.
void Head::JudgeMixture(Namespace& ns) {
  ns.mixture_timer = {};
  std::string pmix;
  std::string pmi1;
  for (const auto& [member, in] : ns.in_mpi) {
    const auto known = members_.find(member);
    if (known == members_.end()) continue;
    if (in.pmix) pmix += (pmix.empty() ? "" : ",") + known->second.node;
    if (in.pmi1) pmi1 += (pmi1.empty() ? "" : ",") + known->second.node;
  }
  EndNamespace(
      ns.reg.spec.nspace,
      fmt::format("{} is ended: it mixes two MPIs in one MPI_COMM_WORLD: tasks on {} use PMIx (Open MPI), "
                  "tasks on {} PMI-1 (MPICH), and neither can reach the other; build all components "
                  "with the same MPI",
                  Name(ns), pmix, pmi1),
      EndKind::kFailure);
}

void Head::MergeResult(Namespace& ns) {
  // The code is that of the one that failed.
  if (ns.ending && ns.abnormal && !ns.collateral && ns.result.code() == 0 && !cancelled_) ns.result.Force(1);
  const std::int32_t code = ns.result.code();
  Step& step = StepOf(ns);
  step.collateral = step.collateral || ns.collateral;
  tasks_failed_ += ns.result.failed_count();
  if (ns.reg.spawn == 0) {
    step.code = code;
    step.failed = ns.result.failed();
  } else if (ns.abnormal && !ns.failed_to_start && !ns.tolerated) {
    step.child_code = std::max(step.child_code, code);
  } else {
    return;
  }
  if (code != 0 && step.message.empty()) step.message = ns.failure;
}

Head::Outcome Head::OutcomeOf(const Step& step) const {
  Outcome out;
  out.code = step.code != 0 ? step.code : step.child_code;
  if (out.code == 0 && step.collateral && !cancelled_) out.code = 1;
  // Cancelled before a task could be asked to leave: the code that it would have left with.
  if (cancelled_ && started_at_ms_ == 0 && out.code == 0) out.code = 128 + SIGTERM;
  if (cancelled_) {
    out.state = final_state_;
    if (final_state_ == wire::JobState::kNodeFail) out.code = kNodeFailCode;
  } else if (step.final_state) {
    out.state = *step.final_state;
  } else if (step.node_lost) {
    out.state = wire::JobState::kNodeFail;
    out.code = kNodeFailCode;
  } else {
    out.state = out.code == 0 ? wire::JobState::kCompleted : wire::JobState::kFailed;
  }
  out.message = step.message;
  return out;
}

// Ends a step inside a job once nothing of it runs.
void Head::CheckStepOver(StepId id) {
  const bool lives = std::any_of(namespaces_.begin(), namespaces_.end(),
                                 [&](const auto& it) { return it.second.reg.spec.step == id; });
  if (lives || id == main_) return;
  if (launch_.slurms) return ForgetSlurmStep(id);
  Step& step = steps_.at(id);
  Outcome outcome = OutcomeOf(step);
  // The end of the allocation is its owner's success, not that of what still ran.
  if (cancelled_ && !step.final_state && outcome.state <= wire::JobState::kFailed)
    outcome.state = wire::JobState::kCancelled;
  step.phase = Step::Phase::kOver;
  step.hub->LiftWindow();
  step.hub->End(outcome.state, outcome.code, outcome.message);
  if (!step.hub->has_owner()) ArmAway(step);
}

void Head::MaybeFinish() {
  if (exit_ || !namespaces_.empty() || !spawns_.empty() || !waiting_.empty()) return;
  if (launch_.mode == wire::JobMode::kAlloc && !cancelled_) return;
  Finish();
}

void Head::Finish() {
  outlet_.Cancel(cancel_timer_);
  const Outcome outcome = OutcomeOf(Main());
  wire::JobExit exit;
  exit.job = launch_.job;
  exit.incarnation = launch_.incarnation;
  exit.state = outcome.state;
  exit.exit_code = outcome.code;
  const bool by_owner = final_state_ == wire::JobState::kCompleted || final_state_ == wire::JobState::kFailed;
  if (cancelled_ && by_owner) exit.exit_code = ordered_code_;
  exit.message = outcome.message;
  exit.started_at_ms = started_at_ms_;
  exit.ended_at_ms = ToUnixMillis(outlet_.WallTime());
  exit.tasks_total = tasks_total_;
  exit.tasks_failed = tasks_failed_;
  exit.failed = Main().failed;
  exit_ = exit;
  outlet_.SaveExitRecord(wire::Encode(*exit_));
  Main().hub->LiftWindow();
  Main().hub->End(exit.state, exit.exit_code, exit.message);
  TellController(*exit_);
  WaitForOwner();
}

void Head::WaitForOwner() {
  outlet_.Cancel(owner_timer_);
  owner_timer_ = outlet_.After(options_.owner_wait, [this] {
    owner_timer_ = {};
    if (Main().hub->has_owner() && !Main().hub->drained()) return WaitForOwner();
    owner_waited_ = true;
    LeaveWhenDone();
  });
}

bool Head::StepsAreRead() const {
  return std::all_of(steps_.begin(), steps_.end(), [&](const auto& it) {
    return it.first == main_ || it.second.hub->drained() || !it.second.hub->has_owner();
  });
}

void Head::LeaveWhenDone() {
  if (left_ || !exit_ || !acknowledged_) return;
  if (!owner_waited_ && !(StepsAreRead() && (Main().hub->drained() || owner_gone_))) return;
  left_ = true;
  outlet_.Cancel(owner_timer_);
  outlet_.Cancel(resend_timer_);
  outlet_.Cancel(store_timer_);
  outlet_.JobOver();
}

// ------------------------------------------------------------------------------------------ by order

void Head::Cancel(wire::CancelJob order) {
  if (exit_) return;
  const Millis grace(order.grace_ms);
  const SteadyTime deadline = outlet_.SteadyTimeNow() + grace;
  if (cancelled_ && deadline >= cancel_deadline_) return;
  if (!cancelled_) {
    cancelled_ = true;
    final_state_ = order.final_state;
    ordered_code_ = order.exit_code;
    if (!order.reason.empty()) Main().message = order.reason;
    const std::string text =
        order.reason.empty() ? "the job is ending" : "the job is ending: " + order.reason;
    std::vector<std::uint32_t> spawns;
    for (const auto& [number, job] : spawns_) spawns.push_back(number);
    for (const std::uint32_t number : spawns) RefuseSpawn(number, pmix::kPmixErr, "the job is ending");
    for (const StepId id : std::vector<StepId>(waiting_)) RefuseStep(id, 1, text);
    DropSlurmWorlds(text);
    for (auto& [id, step] : steps_)
      if (id != main_ && step.message.empty()) step.message = text;
    for (auto& [nspace, ns] : namespaces_) {
      ns.ending = true;
      outlet_.After(Millis(0), [this, name = nspace] { CheckEnded(name); });
    }
    TellAll(NamespaceSignal{{}, SIGTERM, true});
    TellAll(NamespaceSignal{{}, SIGCONT});
    if (namespaces_.empty()) outlet_.After(Millis(0), [this] { MaybeFinish(); });
  }
  cancel_deadline_ = deadline;
  outlet_.Cancel(cancel_timer_);
  if (grace == Millis(0)) return KillAllNow();
  cancel_timer_ = outlet_.After(grace, [this] { KillAllNow(); });
}

void Head::KillAllNow() {
  cancel_timer_ = {};
  std::vector<std::string> all;
  for (const auto& [nspace, ns] : namespaces_) all.push_back(nspace);
  for (const std::string& nspace : all) KillNamespace(nspace);
}

void Head::Signal(std::int32_t signal) {
  if (signal <= 0 || signal >= NSIG)
    return outlet_.Log(fmt::format("signal {} does not exist; ignored", signal));
  TellAll(NamespaceSignal{{}, signal});
}

// Of the job's own step: the job fails.
void Head::Fail(StepId id, const std::string& text, std::int32_t code) {
  std::vector<std::string> all;
  for (auto& [nspace, ns] : namespaces_) {
    if (id != main_ && ns.reg.spec.step != id) continue;
    if (ns.reg.spec.step == id && ns.reg.spawn == 0) ns.result.Force(code);
    all.push_back(nspace);
  }
  Step& step = steps_.at(id);
  if (step.message.empty()) step.message = text;
  if (step.code == 0) step.code = code;
  step.hub->Notice(text);
  for (const std::string& nspace : all) EndNamespace(nspace, {}, EndKind::kFailure);
}

}  // namespace msa::jobd
