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
void Head::EndNamespace(const std::string& nspace, const std::string& text, EndKind kind) {
  Namespace* ns = Find(nspace);
  if (ns == nullptr || ns->ending) return;
  if (!text.empty()) {
    FlushLines(*ns);
    if (ns->failure.empty() || kind == EndKind::kAbort) ns->failure = text;
    hub_->Notice(text);
  }
  ns->ending = true;
  if (kind != EndKind::kQuiet) ns->abnormal = true;
  if (ns->alive > 0) {
    TellAll(NamespaceSignal{nspace, SIGTERM, true});
    TellAll(NamespaceSignal{nspace, SIGCONT});
  }
  ns->kill_timer = outlet_.After(options_.kill_grace, [this, nspace] { KillNamespace(nspace); });
  // Later: callers still look at the namespace.
  outlet_.After(Millis(0), [this, nspace] { CheckEnded(nspace); });
  if (kind != EndKind::kQuiet) EndConnected(nspace);
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
    EndNamespace(other,
                 fmt::format("{} is ended: {}, which it is connected to, failed", Name(*peer), Name(*failed)),
                 EndKind::kFailure);
  }
}

void Head::KillNamespace(const std::string& nspace) {
  Namespace* ns = Find(nspace);
  if (ns == nullptr) return;
  outlet_.Cancel(ns->kill_timer);
  hub_->LiftWindow();
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
  hub_->Notice(fmt::format(
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
  outlet_.Cancel(ns.mixture_timer);
  outlet_.Cancel(ns.time_timer);
  JudgeSingletons(ns);
  FlushLines(ns);
  for (std::uint32_t rank = 0; rank < ns.rank_cores.size(); ++rank)
    slots_.Give(ns.reg.spec.rank_member[rank], ns.rank_cores[rank]);
  AnswerSpawn(ns, pmix::kPmixErrJobFailedToStart);
  MergeResult(ns);
  const std::string reason = ns.failure.empty() ? Name(ns) + " has ended" : ns.failure;
  if (started_at_ms_ != 0 || ns.phase == Phase::kRunning) Report(ns, true);
  for (const std::string& other : ns.linked)
    if (Namespace* peer = Find(other)) peer->linked.erase(nspace);
  TellAll(NamespaceDeregister{nspace});
  namespaces_.erase(nspace);
  DropSpawnsOf(nspace);
  Apply(store_.NamespaceEnded(nspace, reason), std::nullopt);
  const bool others_end =
      std::any_of(namespaces_.begin(), namespaces_.end(), [](const auto& it) { return it.second.ending; });
  if (!others_end && !namespaces_.empty()) hub_->RestoreWindow();
  RetryWaiting();
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
  hub_->Notice(text);
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
  collateral_ = collateral_ || ns.collateral;
  tasks_failed_ += ns.result.failed_count();
  if (ns.reg.spawn == 0) {
    step_code_ = code;
    failed_ = ns.result.failed();
  } else if (ns.abnormal && !ns.failed_to_start && !ns.tolerated) {
    child_code_ = std::max(child_code_, code);
  } else {
    return;
  }
  if (code != 0 && message_.empty()) message_ = ns.failure;
}

void Head::MaybeFinish() {
  if (exit_ || !namespaces_.empty() || !spawns_.empty()) return;
  Finish();
}

void Head::Finish() {
  outlet_.Cancel(cancel_timer_);
  wire::JobExit exit;
  exit.job = launch_.job;
  exit.incarnation = launch_.incarnation;
  exit.exit_code = step_code_ != 0 ? step_code_ : child_code_;
  if (exit.exit_code == 0 && collateral_ && !cancelled_) exit.exit_code = 1;
  // Cancelled before a task could be asked to leave: the code that it would have left with.
  if (cancelled_ && started_at_ms_ == 0 && exit.exit_code == 0) exit.exit_code = 128 + SIGTERM;
  if (cancelled_) {
    exit.state = final_state_;
    if (final_state_ == wire::JobState::kNodeFail) exit.exit_code = kNodeFailCode;
  } else if (node_lost_) {
    exit.state = wire::JobState::kNodeFail;
    exit.exit_code = kNodeFailCode;
  } else {
    exit.state = exit.exit_code == 0 ? wire::JobState::kCompleted : wire::JobState::kFailed;
  }
  exit.message = message_;
  exit.started_at_ms = started_at_ms_;
  exit.ended_at_ms = ToUnixMillis(outlet_.WallTime());
  exit.tasks_total = tasks_total_;
  exit.tasks_failed = tasks_failed_;
  exit.failed = failed_;
  exit_ = exit;
  outlet_.SaveExitRecord(wire::Encode(*exit_));
  hub_->LiftWindow();
  hub_->End(exit.state, exit.exit_code, exit.message);
  TellController(*exit_);
  WaitForOwner();
}

void Head::WaitForOwner() {
  outlet_.Cancel(owner_timer_);
  owner_timer_ = outlet_.After(options_.owner_wait, [this] {
    owner_timer_ = {};
    if (hub_->has_owner() && !hub_->drained()) return WaitForOwner();
    owner_waited_ = true;
    LeaveWhenDone();
  });
}

void Head::LeaveWhenDone() {
  if (left_ || !exit_ || !acknowledged_ || !(hub_->drained() || owner_waited_ || owner_gone_)) return;
  left_ = true;
  outlet_.Cancel(owner_timer_);
  outlet_.Cancel(resend_timer_);
  outlet_.Cancel(store_timer_);
  outlet_.JobOver();
}

// ------------------------------------------------------------------------------------------ by order

void Head::Cancel(wire::JobState final_state, Millis grace, const std::string& reason) {
  if (exit_) return;
  const SteadyTime deadline = outlet_.SteadyTimeNow() + grace;
  if (cancelled_ && deadline >= cancel_deadline_) return;
  if (!cancelled_) {
    cancelled_ = true;
    final_state_ = final_state;
    if (!reason.empty()) message_ = reason;
    std::vector<std::uint32_t> waiting;
    for (const auto& [number, job] : spawns_) waiting.push_back(number);
    for (const std::uint32_t number : waiting) RefuseSpawn(number, pmix::kPmixErr, "the job is ending");
    for (auto& [nspace, ns] : namespaces_) {
      ns.ending = true;
      outlet_.After(Millis(0), [this, name = nspace] { CheckEnded(name); });
    }
    TellAll(NamespaceSignal{{}, SIGTERM, true});
    TellAll(NamespaceSignal{{}, SIGCONT});
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

void Head::Fail(const std::string& text, std::int32_t code) {
  std::vector<std::string> all;
  for (auto& [nspace, ns] : namespaces_) {
    if (ns.reg.spawn == 0) ns.result.Force(code);
    all.push_back(nspace);
  }
  if (message_.empty()) message_ = text;
  if (step_code_ == 0) step_code_ = code;
  hub_->Notice(text);
  for (const std::string& nspace : all) EndNamespace(nspace, {}, EndKind::kFailure);
}

}  // namespace msa::jobd
