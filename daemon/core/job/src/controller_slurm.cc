// Steps of jobs that Slurm schedules: heard of from each of their nodes, judged when all have been heard. See
// msa/base/slurm_messages.h; the jobs that they belong to are controller_slurm_jobs.cc's.
#include <algorithm>

#include "controller_impl.h"

namespace msa {
namespace {

// For a node daemon that is away when a step begins on its node.
constexpr Millis kNodeWait{5000};
// For the slurmstepd of a node that is up. The plugin waits 30 s for the verdict.
constexpr Millis kStepWait{25000};
// After slurmctld was away.
constexpr Millis kConfirmAgain{1000};

// SLURM_INTERACTIVE_STEP of slurm/slurm.h: the shell of salloc.
constexpr StepId kShellStep{0xfffffffa};

std::string NameOf(JobId job, StepId step) {
  if (step == wire::kBatchStep) return fmt::format("the script of job {}", job);
  if (step == kShellStep) return fmt::format("the shell of job {}", job);
  return fmt::format("step {}.{}", job, step);
}

bool IsComplete(const wire::SlurmStepBegin& begin) {
  return begin.job.value != 0 && begin.component_job.value != 0 && !begin.nodes.empty() &&
         std::none_of(begin.nodes.begin(), begin.nodes.end(),
                      [](const wire::SlurmNodeTasks& one) { return one.tasks == 0; });
}

wire::SlurmStepVerdict RefusedStep(const std::pair<JobId, StepId>& step, std::string why) {
  wire::SlurmStepVerdict verdict;
  verdict.job = step.first;
  verdict.step = step.second;
  verdict.message = std::move(why);
  return verdict;
}

wire::SlurmStepVerdict AcceptedStep(const std::pair<JobId, StepId>& step, Incarnation incarnation,
                                    JobId owner) {
  wire::SlurmStepVerdict verdict;
  verdict.job = step.first;
  verdict.step = step.second;
  verdict.accepted = true;
  verdict.incarnation = incarnation;
  if (owner != step.first) verdict.parent = owner;
  return verdict;
}

constexpr std::string_view kRemedy = "or give --msa=no to leave the step to Slurm";

}  // namespace

void Controller::Impl::Handle(event::SlurmStepBegin& e) {
  wire::SlurmStepBegin& begin = e.begin;
  const SlurmKey key{begin.job, begin.step};
  const auto refuse = [&](std::string why) {
    Emit(effect::SlurmVerdict{e.node, RefusedStep(key, std::move(why))});
  };
  if (!options.slurm)
    return refuse(fmt::format(
        "{}: this system of msa schedules by itself; start msa-controllerd with --scheduler=slurm, {}",
        NameOf(begin.job, begin.step), kRemedy));
  if (!begin.node.empty() && begin.node != e.node)
    return refuse(
        fmt::format("{}: Slurm calls the node '{}', its msa-noded calls it '{}'; give both one name, {}",
                    NameOf(begin.job, begin.step), begin.node, e.node, kRemedy));
  if (!IsComplete(begin))
    return refuse(
        fmt::format("{}: the plugin's report is not complete; install msa_spank.so and msa-controllerd of "
                    "one release, {}",
                    NameOf(begin.job, begin.step), kRemedy));
  begin.node = e.node;
  if (begin.incarnation.value != 0 && !begin.accepted_here) return TakeUpSlurmStep(key, e);
  // Its job has ended meanwhile: the job daemon there is told to quit, and the step ends with it.
  if (begin.accepted_here && FindActive(begin.job, begin.incarnation) == nullptr) return;
  if (!BelievesLeader(begin)) return DoubtSlurmStep(e);
  FileSlurmStep(e);
}

void Controller::Impl::FileSlurmStep(event::SlurmStepBegin& e) {
  wire::SlurmStepBegin& begin = e.begin;
  const SlurmKey key{begin.job, begin.step};
  SlurmStep& step = slurm_steps[key];
  // Of a run before a requeue, whose end was not heard of.
  if (std::any_of(step.parts.begin(), step.parts.end(),
                  [&](const auto& part) { return part.second.restart_count < begin.restart_count; }))
    step = SlurmStep();
  if (step.parts.empty()) {
    step.nodes = begin.nodes;
    step.secret = std::move(e.secret);
    step.since = now;
    WakeAt(now + kNodeWait);
    WakeAt(now + kStepWait);
  }
  const JobId component = begin.component_job;
  step.parts.insert_or_assign({e.node, component}, std::move(begin));
  // One that comes late, or comes again after its node daemon or this process was away, hears the same.
  if (step.verdict) return TellSlurm(step, e.node);
  SettleSlurmStep(key, step);
}

// A component's own number is slurmstepd's word, its leader's that of a variable, which users can set.
bool Controller::Impl::BelievesLeader(const wire::SlurmStepBegin& begin) const {
  if (begin.job == begin.component_job) return true;
  if (const auto of = slurm_components.find(begin.job);
      of != slurm_components.end() && of->second.contains(begin.component_job))
    return true;
  const Job* job = active.contains(begin.job) ? Find(begin.job) : nullptr;
  if (job == nullptr) return false;
  const auto& known = job->record.slurm_jobs;
  return std::find(known.begin(), known.end(), begin.component_job) != known.end();
}

void Controller::Impl::DoubtSlurmStep(event::SlurmStepBegin& e) {
  std::erase_if(doubted_steps, [&](const DoubtedStep& one) {
    return one.begin.node == e.node && one.begin.begin.component_job == e.begin.component_job &&
           one.begin.begin.step == e.begin.step;
  });
  doubted_steps.push_back({std::move(e), now, 0});
  WakeAt(now + kStepWait);
  SettleDoubts();
}

void Controller::Impl::SettleDoubts() {
  for (auto it = doubted_steps.begin(); it != doubted_steps.end();) {
    const wire::SlurmStepBegin& begin = it->begin.begin;
    if (BelievesLeader(begin)) {
      event::SlurmStepBegin believed = std::move(it->begin);
      it = doubted_steps.erase(it);
      FileSlurmStep(believed);
    } else if (it->since + kStepWait <= now) {
      const std::string why = fmt::format(
          "{}: Slurm was to confirm that job {} is a component of it, and msa-slurm-agent, which "
          "asks, is away or has no answer; see the log of msa-controllerd, {}",
          NameOf(begin.job, begin.step), begin.component_job, kRemedy);
      Emit(effect::SlurmVerdict{it->begin.node, RefusedStep({begin.job, begin.step}, why)});
      it = doubted_steps.erase(it);
    } else {
      if (agent_up && it->question == 0) it->question = AskAgent(wire::SlurmJobQuestion{begin.component_job});
      ++it;
    }
  }
}

bool Controller::Impl::OnDoubtAnswered(std::uint64_t id, const wire::SlurmJobAnswer& answer) {
  const auto it = std::find_if(doubted_steps.begin(), doubted_steps.end(),
                               [&](const DoubtedStep& one) { return id != 0 && one.question == id; });
  if (it == doubted_steps.end()) return false;
  const wire::SlurmStepBegin& begin = it->begin.begin;
  if (answer.code == Code::kUnavailable || answer.code == Code::kInternal) {
    it->question = 0;  // asked again at the next tick
    WakeAt(now + kConfirmAgain);
    return true;
  }
  if (answer.code == Code::kOk && !answer.job.over && answer.job.job == begin.component_job &&
      answer.job.leader == begin.job && answer.job.user.uid == begin.user.uid) {
    NoteComponent(answer.job);
    SettleDoubts();
    return true;
  }
  const std::string why = fmt::format(
      "{}: the step is of job {}, which is no component of it; SLURM_JOB_ID is Slurm's, leave it as it is",
      NameOf(begin.job, begin.step), begin.component_job);
  Emit(effect::Log{fmt::format("node {}: uid {}: {}", it->begin.node, begin.user.uid, why)});
  Emit(effect::SlurmVerdict{it->begin.node, RefusedStep({begin.job, begin.step}, why)});
  doubted_steps.erase(it);
  return true;
}

// It was accepted before this process, or the node's session, began. Of a job that has ended meanwhile
// nothing is kept: its job daemon there is told to quit, and the step ends with it.
void Controller::Impl::TakeUpSlurmStep(const SlurmKey& key, event::SlurmStepBegin& e) {
  const JobId owner = ParentOf(key.first);
  if (FindActive(owner, e.begin.incarnation) == nullptr) return;
  SlurmStep& step = slurm_steps[key];
  if (step.parts.empty()) {
    step.nodes = e.begin.nodes;
    step.since = now;
  }
  step.verdict = AcceptedStep(key, e.begin.incarnation, owner);
  const JobId component = e.begin.component_job;
  step.parts.insert_or_assign({e.node, component}, std::move(e.begin));
}

void Controller::Impl::Handle(event::SlurmStepEnd& e) {
  std::erase_if(doubted_steps, [&](const DoubtedStep& one) {
    return one.begin.node == e.node && one.begin.begin.component_job == e.end.component_job &&
           one.begin.begin.step == e.end.step;
  });
  const auto it = slurm_steps.find({e.end.job, e.end.step});
  if (it == slurm_steps.end()) return;
  it->second.parts.erase({e.node, e.end.component_job});
  if (it->second.parts.empty()) slurm_steps.erase(it);
  SettleSlurmEnd(e.end.job);
}

bool Controller::Impl::HasSlurmStep(JobId job, const std::string& node) const {
  // Children in companions do not keep their parent.
  for (const JobId id : node.empty() ? std::vector<JobId>{job} : SlurmIdsOf(job))
    for (auto it = slurm_steps.lower_bound({id, StepId()}); it != slurm_steps.end() && it->first.first == id;
         ++it)
      for (const auto& [where, part] : it->second.parts)
        if (node.empty() || where.first == node) return true;
  return false;
}

void Controller::Impl::ForgetSlurmSteps(const std::string& node) {
  std::erase_if(doubted_steps, [&](const DoubtedStep& one) { return one.begin.node == node; });
  std::set<JobId> touched;
  for (auto it = slurm_steps.begin(); it != slurm_steps.end();) {
    const std::size_t gone =
        std::erase_if(it->second.parts, [&](const auto& part) { return part.first.first == node; });
    if (gone > 0) touched.insert(ParentOf(it->first.first));
    it = it->second.parts.empty() ? slurm_steps.erase(it) : std::next(it);
  }
  for (const JobId job : touched) Arm(now + options.missing_jobd_wait, job);
}

void Controller::Impl::ForgetAcceptedSteps(JobId job) {
  for (auto it = slurm_steps.lower_bound({job, StepId()});
       it != slurm_steps.end() && it->first.first == job;) {
    if (!it->second.verdict)
      std::erase_if(it->second.parts, [](const auto& part) { return part.second.accepted_here; });
    it = it->second.parts.empty() ? slurm_steps.erase(it) : std::next(it);
  }
}

void Controller::Impl::RefuseSlurmSteps(const Job& job, const std::string& node, const std::string& reason) {
  const auto uses = [&](const wire::SlurmNodeTasks& one) { return node.empty() || one.node == node; };
  for (const JobId id : SlurmIdsOf(job.record.id))
    for (auto it = slurm_steps.lower_bound({id, StepId()}); it != slurm_steps.end() && it->first.first == id;
         ++it) {
      SlurmStep& step = it->second;
      if (!step.verdict || !step.verdict->accepted ||
          std::none_of(step.nodes.begin(), step.nodes.end(), uses))
        continue;
      step.verdict = RefusedStep(it->first, fmt::format("{}: {}", NameOf(id, it->first.second), reason));
      TellSlurm(step, "");
    }
}

std::optional<Status> Controller::Impl::JudgeSlurmStep(const SlurmStep& step) const {
  for (const wire::SlurmNodeTasks& wanted : step.nodes) {
    const Node* node = FindNode(wanted.node);
    if (node == nullptr)
      return Error(Code::kNotFound, "node {} is not in the topology of {}; add it there, {}", wanted.node,
                   topology.system_name, kRemedy);
    std::uint32_t tasks = 0;
    for (const auto& [where, part] : step.parts)
      if (where.first == wanted.node) tasks += part.ntasks_here;
    if (tasks == wanted.tasks) continue;
    if (tasks > wanted.tasks)
      return Error(Code::kInternal, "node {} has {} tasks of it, Slurm counts {}", wanted.node, tasks,
                   wanted.tasks);
    // After this process began a node is given longer to come back than one that went away.
    const bool away = node->session == 0 && node->state != NodeState::kUnknown;
    if (away && step.since + kNodeWait <= now)
      return Error(Code::kUnavailable,
                   "node {} has no node daemon of msa ({}); start msa-noded there, choose other nodes, {}",
                   wanted.node,
                   !node->down_reason.empty() ? node->down_reason
                   : node->registered         ? "msa-noded went away"
                                              : "it never registered",
                   kRemedy);
    if (step.since + kStepWait <= now) {
      // Tasks that are over there by now may never have been told of; who waits for others hears it of the
      // job's head.
      const auto accepted = [](const auto& part) { return part.second.accepted_here; };
      if (std::all_of(step.parts.begin(), step.parts.end(), accepted)) return Status::Ok();
      return Error(Code::kDeadlineExceeded,
                   "Slurm has not started it on node {} within {} s, or its plugin msa_spank.so is not "
                   "loaded there; see "
                   "slurmd's log and plugstack.conf of the node, {}",
                   wanted.node, kStepWait.count() / 1000, kRemedy);
    }
    return std::nullopt;
  }
  return Status::Ok();
}

void Controller::Impl::SettleSlurmStep(const SlurmKey& key, SlurmStep& step) {
  auto judged = JudgeSlurmStep(step);
  if (!judged) return;
  const GrantRecord* grant = FindCompanion(key.first);
  const bool given_back = grant != nullptr && grant->released;
  if (judged->ok() && !given_back && AwaitsLeavers(step, ParentOf(key.first))) return;
  if (judged->ok() && grant == nullptr && AwaitsSlurmRoom(key, step)) return;
  const Result<Job*> job = !judged->ok()      ? Result<Job*>(*judged)
                           : grant != nullptr ? TakeCompanionStep(*grant, step)
                                              : TakeSlurmStep(key, step);
  step.verdict =
      job.ok()
          ? AcceptedStep(key, (*job)->record.incarnation, (*job)->record.id)
          : RefusedStep(key, fmt::format("{}: {}", NameOf(key.first, key.second), job.status().message()));
  // What was refused cannot run on some of its nodes either.
  step.verdict->withdrawn = !step.verdict->accepted;
  TellSlurm(step, "");
}

// A node daemon that has accepted its parts itself need not hear that it was right.
void Controller::Impl::TellSlurm(const SlurmStep& step, const std::string& node) {
  std::set<std::string> told;
  for (const auto& [where, part] : step.parts) {
    if (!node.empty() && where.first != node) continue;
    if (step.verdict->accepted && part.accepted_here && part.incarnation == step.verdict->incarnation)
      continue;
    if (told.insert(where.first).second) Emit(effect::SlurmVerdict{where.first, *step.verdict});
  }
}

void Controller::Impl::JudgeSlurmSteps() {
  SettleDoubts();
  for (auto& [key, step] : slurm_steps)
    if (!step.verdict) SettleSlurmStep(key, step);
}

void Controller::Impl::Handle(event::SlurmJobEnd& e) {
  if (const GrantRecord* grant = FindCompanion(e.component_job)) {
    if (!grant->released) LoseCompanion(grant->job, grant->id, "its epilog runs", e.node);
    return;
  }
  for (const JobId id : std::vector<JobId>(active.begin(), active.end())) {
    Job& job = *Find(id);
    const auto& ours = job.record.slurm_jobs;
    const auto it = std::find(ours.begin(), ours.end(), e.component_job);
    if (it == ours.end()) continue;
    // Its steps there are over, whether their end was heard or not.
    for (auto& [key, step] : slurm_steps) step.parts.erase({e.node, e.component_job});
    std::erase_if(slurm_steps, [](const auto& entry) { return entry.second.parts.empty(); });
    return EndSlurmShare(job, static_cast<std::uint32_t>(it - ours.begin()), e.node);
  }
}

}  // namespace msa
