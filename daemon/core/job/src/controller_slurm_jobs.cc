// Jobs that Slurm schedules: made of what their steps report, ended by Slurm's word. To everything else in
// here they are allocations that run.
#include <algorithm>

#include "msa/job/nam_options.h"
#include "msa/job/name_text.h"
#include "msa/topology/size_text.h"

#include "controller_impl.h"

namespace msa {
namespace {

// Below the 30 s that the plugin waits for the verdict.
constexpr Millis kRoomWait{10000};
constexpr Millis kLookAgain{200};

}  // namespace

Result<JobSpec> Controller::Impl::SlurmSpec(const wire::SlurmStepBegin& begin) const {
  JobSpec spec;
  // Slurm takes any bytes for a job's name, and users set the variables that a step is told of by.
  spec.name = begin.job_name.empty() ? "slurm" : CleanName(begin.job_name.substr(0, kMaxNameBytes));
  spec.cwd = std::string("/");  // not "/": gcc 12 warns of an overlap (bug 105651)
  spec.mode = wire::JobMode::kAlloc;
  if (begin.options.on_child_failure == "event") spec.on_child_failure = wire::OnChildFailure::kEvent;
  auto nam_size = ParseNamOfComponents(begin.options.nam);
  if (!nam_size.ok()) return nam_size.status().WithContext("--nam");
  spec.nam = *nam_size;
  auto regions = ParseNamRegions(begin.options.nam_region);
  if (!regions.ok()) return regions.status().WithContext("--nam-region");
  spec.nam_regions = std::move(*regions);
  auto gateways = ParseGatewaysOfComponents(begin.options.gateways);
  if (!gateways.ok()) return gateways.status().WithContext("--gateways");
  spec.gateways = *gateways;
  return spec;
}

// Whether there is for a new job what it asks of the system. Its own run before a requeue is not counted.
Status Controller::Impl::CheckSlurmRoom(const wire::SlurmStepBegin& begin, const JobSpec& spec) const {
  const ClusterView view = View();
  Bytes held;
  for (const RunningJob& running : view.running)
    if (running.id != begin.job) held.value += running.nam.value;
  const Bytes free(view.nam_capacity.value - std::min(held.value, view.nam_capacity.value));
  if (held > view.nam_capacity || spec.nam > free)
    return Error(Code::kResourceExhausted,
                 "--nam={}: {} of network attached memory are free for jobs; give less, or let Slurm count "
                 "it by licences (see slurm-submission.md)",
                 begin.options.nam, SizeText(free));
  const std::size_t gateways = FreeGateways(begin.job).size();
  if (spec.gateways > gateways)
    return Error(Code::kResourceExhausted,
                 "--gateways={}: {} of {} are free; ask for fewer, or let Slurm count them by licences (see "
                 "slurm-submission.md)",
                 begin.options.gateways, gateways, view.gateway_capacity);
  return Status::Ok();
}

// Slurm gives a job's licences to the next one a little before the nodes of the first have told of its end.
bool Controller::Impl::AwaitsSlurmRoom(const SlurmKey& key, const SlurmStep& step) {
  if (step.since + kRoomWait <= now) return false;
  const wire::SlurmStepBegin& begin = step.parts.begin()->second;
  const Job* job = Find(key.first);
  const bool known =
      job != nullptr && !IsFinal(job->record.state) && begin.restart_count <= job->record.slurm_restarts;
  const Result<JobSpec> spec = SlurmSpec(begin);
  if (known || !spec.ok()) return false;
  const ClusterView view = View();
  const bool ever = spec->nam <= view.nam_capacity && spec->gateways <= view.gateway_capacity;
  if (!ever || CheckSlurmRoom(begin, *spec).ok()) return false;
  WakeAt(now + kLookAgain);
  return true;
}

// A node has one job daemon of a job at a time, and one that is lost may yet be leaving.
bool Controller::Impl::AwaitsLeavers(const SlurmStep& step, JobId owner) {
  const Job* job = Find(owner);
  if (job == nullptr) return false;
  std::erase_if(leaving, [this](const auto& entry) { return entry.second <= now; });
  bool awaits = false;
  for (const wire::SlurmNodeTasks& one : step.nodes) {
    const auto left = leaving.find({one.node, owner, job->record.incarnation});
    if (left == leaving.end()) continue;
    WakeAt(left->second);
    awaits = true;
  }
  return awaits;
}

// Why the job may not have the step; Ok also where there is no such job yet.
Status Controller::Impl::CheckSlurmJob(const SlurmKey& key, const SlurmStep& step) const {
  const wire::SlurmStepBegin& begin = step.parts.begin()->second;
  MSA_RETURN_IF_ERROR(CheckServed(begin.user, begin.user_name));
  const Job* job = Find(key.first);
  if (job == nullptr) return Status::Ok();
  const JobRecord& record = job->record;
  if (!record.IsSlurms())
    return Error(
        Code::kAlreadyExists,
        "this system had a job {} of its own before Slurm scheduled; raise FirstJobId in slurm.conf above {}",
        key.first, last_job);
  if (IsFinal(record.state)) return Status::Ok();
  if (record.user.uid != begin.user.uid)
    return Error(Code::kInternal, "job {} is of user {}, its step of uid {}", key.first, record.user_name,
                 begin.user.uid);
  if (record.state == JobState::kEnding)
    return Error(Code::kAborted, "job {} is ending: {}", key.first, record.reason);
  MSA_ASSIGN_OR_RETURN(const Bytes asked, ParseNamOfComponents(begin.options.nam));
  if (asked > record.spec.nam)
    return Error(Code::kFailedPrecondition,
                 "--nam={}: job {} has {} of network attached memory; give --nam to sbatch or salloc, which "
                 "start the job",
                 begin.options.nam, key.first,
                 record.spec.nam.value == 0 ? "none" : SizeText(record.spec.nam));
  MSA_ASSIGN_OR_RETURN(const std::uint32_t gateways, ParseGatewaysOfComponents(begin.options.gateways));
  if (gateways > record.spec.gateways)
    return Error(Code::kFailedPrecondition,
                 "--gateways={}: job {} has {}; give --gateways to sbatch or salloc, which start the job",
                 begin.options.gateways, key.first, record.spec.gateways);
  return Status::Ok();
}

Result<Controller::Impl::Job*> Controller::Impl::TakeSlurmStep(const SlurmKey& key, const SlurmStep& step) {
  MSA_RETURN_IF_ERROR(CheckSlurmJob(key, step));
  const wire::SlurmStepBegin& begin = step.parts.begin()->second;
  Job* job = Find(key.first);
  // Requeued: Slurm may start it again before every node has told of its end.
  if (job != nullptr && !IsFinal(job->record.state) && begin.restart_count > job->record.slurm_restarts)
    Finish(*job, {.state = JobState::kCancelled, .reason = "Slurm has requeued it"});
  const bool fresh_job = job == nullptr || IsFinal(job->record.state);
  if (fresh_job) {
    MSA_ASSIGN_OR_RETURN(JobSpec spec, SlurmSpec(begin));
    NamCaller caller;
    caller.user = begin.user;
    caller.user_name = begin.user_name;
    caller.groups = NamGroups(begin.user, spec);
    for (const wire::NamRegionBinding& binding : spec.nam_regions)
      MSA_RETURN_IF_ERROR(nam.CheckBinding(caller, binding).WithContext("--nam-region"));
    MSA_RETURN_IF_ERROR(CheckSlurmRoom(begin, spec));
    job = &NewSlurmJob(key, step, std::move(spec));
  }
  std::vector<std::uint32_t> fresh;
  bool changed = false;
  for (const auto& [where, part] : step.parts) changed = AddSlurmShare(*job, part, fresh) || changed;
  JobRecord& record = job->record;
  if (fresh_job) {
    // Where the script runs, or the first task most likely does.
    record.head = record.MemberOn(step.nodes.front().node)->index;
    StartNam(*job);
    TakeGateways(*job);
    Put(*job);
    SendStart(*job, fresh, true);
    SendComponents(*job);
    Change(*job);
  } else if (changed) {
    record.epoch = Epoch(record.epoch.value + 1);
    Put(*job);
    SendStart(*job, fresh, false);
    SendMembership(*job, "", fresh);
    SendComponents(*job);
    Change(*job);
  }
  return job;
}

void Controller::Impl::SendComponents(const Job& job) {
  const JobRecord& record = job.record;
  if (record.slurm_jobs.size() < 2) return;
  std::vector<wire::GrantAnswer> own(record.slurm_jobs.size());
  for (const Allocation& share : record.allocations)
    if (share.grant.value == 0 && !share.given_back)
      own[share.component].shares.push_back({share.member, share.cores});
  for (std::size_t i = 0; i < own.size(); ++i) {
    own[i].slurm_job = record.slurm_jobs[i];
    SendToMember(job, record.head, own[i]);
  }
}

Controller::Impl::Job& Controller::Impl::NewSlurmJob(const SlurmKey& key, const SlurmStep& step,
                                                     JobSpec spec) {
  const wire::SlurmStepBegin& begin = step.parts.begin()->second;
  Job& job = jobs[key.first];
  const Incarnation before = job.record.incarnation;
  const bool again = job.record.id.value != 0;
  if (again) std::erase(ended, key.first);
  job = Job();
  JobRecord& record = job.record;
  record.id = key.first;
  record.incarnation = again ? Incarnation(before.value + 1) : Incarnation(1);
  record.user = begin.user;
  record.user_name = begin.user_name.empty() ? fmt::format("uid {}", begin.user.uid)
                                             : CleanName(begin.user_name.substr(0, kMaxNameBytes));
  record.spec = std::move(spec);
  record.secret = step.secret;
  record.submitted_at = now;
  record.placed_at = now;
  record.state = JobState::kStarting;
  record.epoch = Epoch(1);
  record.slurm_restarts = begin.restart_count;
  record.tasks = begin.ntasks;
  last_job = std::max(last_job, key.first);
  active.insert(key.first);
  Enlist(job);
  return job;
}

bool Controller::Impl::AddSlurmShare(Job& job, const wire::SlurmStepBegin& part,
                                     std::vector<std::uint32_t>& fresh) {
  JobRecord& record = job.record;
  const Node& node = *FindNode(part.node);
  const Module& module = *topology.FindModule(node.spec->module);
  auto component = std::find(record.slurm_jobs.begin(), record.slurm_jobs.end(), part.component_job);
  if (component == record.slurm_jobs.end()) {
    component = record.slurm_jobs.insert(component, part.component_job);
    Component added;
    added.resources.module = module.name;
    record.spec.components.push_back(std::move(added));
  }
  const auto index = static_cast<std::uint32_t>(component - record.slurm_jobs.begin());
  const bool known =
      std::any_of(record.allocations.begin(), record.allocations.end(), [&](const Allocation& share) {
        return share.component == index && share.node == part.node && share.grant.value == 0 &&
               !share.given_back;
      });
  if (known) return false;
  const wire::Member* held = record.MemberOn(part.node);
  const std::uint32_t member = held != nullptr ? held->index : record.next_member;
  if (held == nullptr) {
    record.members.push_back(NewMember(job, node, module, GrantId()));
    fresh.push_back(member);
  }
  record.allocations.push_back(
      {part.node, module.name, index, part.cores, part.ntasks_here, Bytes(), 0, GrantId(), member, false});
  SetCores(record, member);
  return true;
}

void Controller::Impl::EndSlurmShare(Job& job, std::uint32_t component, const std::string& node) {
  JobRecord& record = job.record;
  const auto share =
      std::find_if(record.allocations.begin(), record.allocations.end(), [&](const Allocation& a) {
        return a.component == component && a.node == node && a.grant.value == 0 && !a.given_back;
      });
  if (share == record.allocations.end()) return;
  const std::uint32_t member = share->member;
  share->given_back = true;
  const bool others = std::any_of(record.allocations.begin(), record.allocations.end(),
                                  [&](const Allocation& a) { return a.member == member && !a.given_back; });
  if (others || member == record.head) {
    const JobId id = record.id;
    Put(job);
    SettleSlurmEnd(id);
    if (!active.contains(id) || !SetCores(record, member)) return;
    record.epoch = Epoch(record.epoch.value + 1);
    Put(job);
    SendMembership(job, "", {});
    return Change(job);
  }
  const std::string reason = fmt::format("job {} has ended on {}", record.slurm_jobs[component], node);
  Emit(effect::SendQuitJob{node, record.id, record.incarnation, reason});
  LoseNamClients(job, node);
  std::erase_if(record.members, [&](const wire::Member& m) { return m.index == member; });
  record.epoch = Epoch(record.epoch.value + 1);
  Put(job);
  SendMembership(job, reason, {});
  Change(job);
}

bool Controller::Impl::HeadIsOver(const JobRecord& record) {
  return record.IsSlurms() &&
         std::none_of(record.allocations.begin(), record.allocations.end(), [&](const Allocation& share) {
           return share.member == record.head && !share.given_back && share.grant.value == 0;
         });
}

// Slurm ends a job on each of its nodes by itself: where a step is still given its time to end, the job's
// daemons stay.
void Controller::Impl::SettleSlurmEnd(JobId id) {
  Job* job = Find(id);
  if (job == nullptr || !active.contains(id) || !HeadIsOver(job->record) || HasSlurmStep(id, "")) return;
  Finish(*job, {.state = JobState::kCompleted});
}

}  // namespace msa
