// Worlds of tasks that Slurm starts: gathered from the members, then a namespace like any other.
#include <algorithm>

#include "msa/job/job_variables.h"

#include "head.h"
#include "slurm_tasks.h"

namespace msa::jobd {
namespace {

// Slurm numbers the steps of a job upwards: of these the lowest are forgotten first.
constexpr std::size_t kMaxPast = 4096;
// At once: a job script with a loop of "srun &" has some hundreds.
constexpr std::size_t kMaxGatherings = 4096;

}  // namespace

std::string Head::SlurmNamespace(StepId step) const {
  return SlurmTasks::NamespaceOf(launch_.job, launch_.incarnation, step);
}

Status Head::CheckSlurmStep(StepId step) const {
  if (!launch_.slurms)
    return Error(Code::kFailedPrecondition, "job {} is not Slurm's: it starts no tasks of it", launch_.job);
  if (cancelled_ || exit_) return Error(Code::kAborted, "job {} is ending", launch_.job);
  if (const auto past = slurm_past_.find(step); past != slurm_past_.end())
    return Error(Code::kAborted, "{}", past->second);
  if (steps_.contains(step)) return Error(Code::kAlreadyExists, "step {} has all of its tasks already", step);
  if (!gatherings_.contains(step) && gatherings_.size() >= kMaxGatherings)
    return Error(Code::kResourceExhausted, "{} steps of job {} are starting, the limit", kMaxGatherings,
                 launch_.job);
  return Status::Ok();
}

void Head::OnSlurmJoined(std::uint32_t from, const SlurmJoined& message) {
  if (message.tasks.empty()) return;
  if (const Status may = CheckSlurmStep(message.step); !may.ok()) {
    SlurmRefused refused{message.step, {}, may.message()};
    for (const SlurmTask& task : message.tasks) refused.ranks.push_back(task.rank);
    return Tell(from, refused);
  }
  const auto [it, is_new] =
      gatherings_.try_emplace(message.step, SlurmGathering{SlurmWorld(message.step, message.ntasks), {}});
  SlurmGathering& gathering = it->second;
  for (const SlurmTask& task : message.tasks) {
    if (task.component_job != launch_.job) slurm_jobs_[from] = task.component_job;
    het_ = het_ || task.het || task.component_job != launch_.job;
  }
  for (const SlurmTask& task : message.tasks)
    if (const Status taken = gathering.world.Add(from, message, task); !taken.ok())
      Tell(from, SlurmRefused{message.step, {task.rank}, taken.message()});
  if (gathering.world.complete()) return MakeSlurmWorld(message.step);
  if (gathering.world.empty()) {
    gatherings_.erase(it);
    return;
  }
  if (!is_new) return;
  gathering.timer = outlet_.After(options_.slurm_world_wait, [this, id = message.step] {
    const auto late = gatherings_.find(id);
    if (late == gatherings_.end()) return;
    DropSlurmWorld(id,
                   fmt::format("step {} does not start: within {} s {}; see slurmd's log of their nodes", id,
                               options_.slurm_world_wait.count() / 1000, late->second.world.Missing()));
  });
}

void Head::MakeSlurmWorld(StepId id) {
  auto gathered = gatherings_.extract(id);
  outlet_.Cancel(gathered.mapped().timer);
  NamespaceRegister reg;
  reg.universe = static_cast<std::uint32_t>(slots_.total());
  wire::StepSpec& spec = reg.spec;
  spec = launch_.step;
  spec.step = id;
  spec.nspace = SlurmNamespace(id);
  spec.stdio = {};
  spec.stdio.in = "none";
  spec.bind = false;
  spec.limits.clear();
  spec.time_limit_s = 0;
  spec.env = JobVariablesOf(launch_);
  gathered.mapped().world.Describe(spec);
  NumberNodes(reg);
  Step& step = steps_[id];
  step.id = id;
  step.nspace = spec.nspace;
  step.hub = std::move(*MakeHub(id, spec, false));
  step.in.eof = step.in.eof_sent = true;
  tasks_total_ += static_cast<std::uint32_t>(spec.rank_member.size());
  auto cores = StepCores(reg);
  AddNamespace(std::move(reg), std::move(cores));
}

void Head::OnSlurmLost(const SlurmLost& message) {
  if (steps_.contains(message.step) || slurm_past_.contains(message.step)) return;
  DropSlurmWorld(message.step, fmt::format("step {} does not start: {}", message.step, message.reason));
}

// The tasks that wait are told, and so are those that come.
void Head::DropSlurmWorld(StepId id, const std::string& text) {
  RememberSlurmStep(id, text);
  const auto gathered = gatherings_.extract(id);
  if (gathered.empty()) return;
  outlet_.Cancel(gathered.mapped().timer);
  TellAll(SlurmRefused{id, {}, text});
}

void Head::DropSlurmWorlds(const std::string& text) {
  while (!gatherings_.empty()) DropSlurmWorld(gatherings_.begin()->first, text);
}

void Head::LoseSlurmMember(std::uint32_t index, const std::string& reason) {
  std::vector<StepId> lost;
  for (const auto& [id, gathering] : gatherings_)
    if (gathering.world.Uses(index)) lost.push_back(id);
  for (const StepId id : lost) DropSlurmWorld(id, fmt::format("step {} does not start: {}", id, reason));
}

void Head::RememberSlurmStep(StepId id, const std::string& text) {
  slurm_past_.insert_or_assign(id, text);
  if (slurm_past_.size() > kMaxPast) slurm_past_.erase(slurm_past_.begin());
}

void Head::ForgetSlurmStep(StepId id) {
  RememberSlurmStep(id, fmt::format("step {} has ended", id));
  steps_.erase(id);
}

// To the standard error of the step's rank 0: its own namespace may have ended before what it spawned.
void Head::SayToSlurm(StepId id, const std::string& text) {
  outlet_.Log(text);
  const auto step = steps_.find(id);
  if (step == steps_.end() || id == main_) return;
  if (const Namespace* ns = Find(step->second.nspace); ns != nullptr)
    Tell(ns->reg.spec.rank_member[0], SlurmNotice{ns->reg.spec.nspace, text});
}

// ------------------------------------------------------------------------------------------ children

JobId Head::SlurmJobOf(std::uint32_t member) const {
  const auto it = slurm_jobs_.find(member);
  return it == slurm_jobs_.end() ? launch_.job : it->second;
}

JobId Head::SlurmJobOf(std::uint32_t member, const std::vector<std::uint16_t>& cores) const {
  const auto holds = [&](const std::vector<std::uint16_t>& held) {
    return std::find_first_of(held.begin(), held.end(), cores.begin(), cores.end()) != held.end();
  };
  for (const auto& [grant, job] : companions_) {
    const auto shares = grants_.find(grant);
    if (shares == grants_.end()) continue;
    for (const wire::GrantShare& share : shares->second)
      if (share.member == member && holds(share.cores)) return job;
  }
  for (const auto& [job, members] : own_cores_)
    if (const auto own = members.find(member); own != members.end() && holds(own->second)) return job;
  return SlurmJobOf(member);
}

// Tasks on nodes of one job of Slurm are a part: one srun starts them.
void Head::NumberParts(Namespace& ns) {
  std::vector<std::uint32_t> sizes;
  const auto& members = ns.reg.spec.rank_member;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    const JobId job = rank < ns.rank_cores.size() ? SlurmJobOf(members[rank], ns.rank_cores[rank])
                                                  : SlurmJobOf(members[rank]);
    const auto part =
        static_cast<std::uint32_t>(std::find(ns.parts.begin(), ns.parts.end(), job) - ns.parts.begin());
    if (part == ns.parts.size()) {
      ns.parts.push_back(job);
      sizes.push_back(0);
    }
    ns.rank_part.emplace_back(part, sizes[part]++);
  }
}

void Head::StartSruns(const Namespace& ns) {
  const Step& step = StepOf(ns);
  const Namespace* own = Find(step.nspace);
  // Who shows their output: the step's rank 0, while it lives.
  const std::uint32_t member = own == nullptr ? launch_.self_index : own->reg.spec.rank_member[0];
  std::vector<SrunStart> orders(ns.parts.size());
  for (std::uint32_t part = 0; part < ns.parts.size(); ++part) {
    orders[part].nspace = ns.reg.spec.nspace;
    orders[part].part = part;
    const bool lent = std::any_of(companions_.begin(), companions_.end(),
                                  [&](const auto& one) { return one.second == ns.parts[part]; });
    orders[part].job = lent ? ns.parts[part] : launch_.job;
    // slurmctld numbers the components of a job at once: one after the other.
    if (het_ && !lent)
      orders[part].het_group = static_cast<std::int32_t>(ns.parts[part].value - launch_.job.value);
    orders[part].streams = step.nspace;
  }
  for (std::size_t rank = 0; rank < ns.rank_part.size(); ++rank)
    orders[ns.rank_part[rank].first].hosts.push_back(ns.reg.nodes[ns.reg.rank_node[rank]]);
  for (const SrunStart& order : orders) Tell(member, order);
}

void Head::StopSruns(const Namespace& ns) {
  for (std::uint32_t part = 0; part < ns.parts.size(); ++part)
    TellAll(SlurmNoMore{ns.reg.spec.nspace, part, "the spawn is ended"});
}

// Children that it was to start and did not will not come; those that run have ends of their own.
void Head::OnSrunEnded(const SrunEnded& message) {
  const Namespace* ns = Find(message.nspace);
  if (ns == nullptr || ns->phase != Phase::kStarting || message.part >= ns->parts.size()) return;
  TellAll(SlurmNoMore{message.nspace, message.part,
                      fmt::format("srun --jobid={} ended with code {}{}{}", ns->parts[message.part],
                                  message.exit_code, message.text.empty() ? "" : ": ", message.text)});
}

}  // namespace msa::jobd
