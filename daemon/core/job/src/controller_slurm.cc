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
  if (begin.incarnation.value != 0) return TakeUpSlurmStep(key, e);
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
  if (step.verdict) return Emit(effect::SlurmVerdict{e.node, *step.verdict});
  SettleSlurmStep(key, step);
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
  std::set<JobId> touched;
  for (auto it = slurm_steps.begin(); it != slurm_steps.end();) {
    const std::size_t gone =
        std::erase_if(it->second.parts, [&](const auto& part) { return part.first.first == node; });
    if (gone > 0) touched.insert(ParentOf(it->first.first));
    it = it->second.parts.empty() ? slurm_steps.erase(it) : std::next(it);
  }
  for (const JobId job : touched) Arm(now + options.missing_jobd_wait, job);
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
      TellSlurm(step);
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
    if (node->session == 0 && step.since + kNodeWait <= now)
      return Error(Code::kUnavailable,
                   "node {} has no node daemon of msa ({}); start msa-noded there, choose other nodes, {}",
                   wanted.node,
                   !node->down_reason.empty() ? node->down_reason
                   : node->registered         ? "msa-noded went away"
                                              : "it never registered",
                   kRemedy);
    if (step.since + kStepWait <= now)
      return Error(Code::kDeadlineExceeded,
                   "Slurm has not started it on node {} within {} s, or its plugin msa_spank.so is not "
                   "loaded there; see "
                   "slurmd's log and plugstack.conf of the node, {}",
                   wanted.node, kStepWait.count() / 1000, kRemedy);
    return std::nullopt;
  }
  return Status::Ok();
}

void Controller::Impl::SettleSlurmStep(const SlurmKey& key, SlurmStep& step) {
  auto judged = JudgeSlurmStep(step);
  if (!judged) return;
  const GrantRecord* grant = FindCompanion(key.first);
  if (judged->ok() && AwaitsLeavers(step, ParentOf(key.first))) return;
  if (judged->ok() && grant == nullptr && AwaitsSlurmRoom(key, step)) return;
  const Result<Job*> job = !judged->ok()      ? Result<Job*>(*judged)
                           : grant != nullptr ? TakeCompanionStep(*grant, step)
                                              : TakeSlurmStep(key, step);
  step.verdict =
      job.ok()
          ? AcceptedStep(key, (*job)->record.incarnation, (*job)->record.id)
          : RefusedStep(key, fmt::format("{}: {}", NameOf(key.first, key.second), job.status().message()));
  TellSlurm(step);
}

void Controller::Impl::TellSlurm(const SlurmStep& step) {
  std::string last;
  for (const auto& [where, part] : step.parts)
    if (where.first != last) {
      last = where.first;
      Emit(effect::SlurmVerdict{last, *step.verdict});
    }
}

void Controller::Impl::JudgeSlurmSteps() {
  for (auto& [key, step] : slurm_steps)
    if (!step.verdict) SettleSlurmStep(key, step);
}

void Controller::Impl::Handle(event::SlurmJobEnd& e) {
  if (const GrantRecord* grant = FindCompanion(e.component_job)) {
    if (!grant->released) LoseCompanion(grant->job, grant->id, "its epilog runs");
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
