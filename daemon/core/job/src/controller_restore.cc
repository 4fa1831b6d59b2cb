#include <algorithm>

#include "controller_impl.h"

namespace msa {

void Controller::Impl::LoadJob(JobRecord& record) {
  const JobId id = record.id;
  last_job = std::max(last_job, id);
  tokens[{record.user.uid, record.token}] = id;
  environments.Intern(record.spec.env);
  // What every submission is completed with and the scheduler builds on; a record that was written by hand,
  // or by a build that did without, may lack it.
  for (Component& component : record.spec.components) {
    ComponentRequest& ask = component.resources;
    ask.cpus_per_task = std::max(1u, ask.cpus_per_task);
    ask.min_nodes = std::max(1u, ask.min_nodes);
    ask.max_nodes = std::max(ask.min_nodes, ask.max_nodes);
  }
  Job& job = jobs[id];
  job.record = std::move(record);
  if (IsFinal(job.record.state))
    ended.push_back(id);
  else if (job.record.state == JobState::kPending)
    pending.insert(id);
  else
    active.insert(id);
  job.names_unknown = active.contains(id);
  if (!IsFinal(job.record.state)) Enlist(job);
}

// Takes the records as they are; nothing is judged yet.
void Controller::Impl::Load(StoredState& state) {
  last_job = state.last_job;
  last_grant = state.last_grant;
  for (NodeRecord& record : state.nodes) {
    Node* node = FindNode(record.name);
    if (node == nullptr) continue;  // taken out of the topology since
    node->drained = record.drained;
    node->drain_reason = record.reason;
  }
  for (Node& node : nodes) {
    node.last_sign = now;
    ArmNode(node);
  }
  for (JobRecord& record : state.jobs) LoadJob(record);
  names_settled = now + options.node_timeout;
  std::sort(ended.begin(), ended.end(), [this](JobId a, JobId b) {
    return std::pair(jobs.at(a).record.ended_at, a) < std::pair(jobs.at(b).record.ended_at, b);
  });
  for (GrantRecord& grant : state.grants) {
    last_grant = std::max(last_grant, grant.id);
    if (active.contains(grant.job) && grant.released && grant.slurm_job.value != 0)
      leaving_companions[grant.slurm_job] = {grant.job, now + options.exit_wait};
    if (active.contains(grant.job))
      grants.emplace(grant.id, std::move(grant));
    else
      Emit(effect::DeleteGrant{grant.id});
  }
}

void Controller::Impl::ResumePending(Job& job) {
  const JobRecord& record = job.record;
  job.wait_reason = "the controller has just started; nodes are reporting";
  if (record.interactive) {
    job.owner_deadline = now + options.owner_grace;
    Arm(*job.owner_deadline, record.id);
  }
  if (record.spec.immediate_s > 0)
    Arm(record.submitted_at + Millis(std::int64_t{1000} * record.spec.immediate_s), record.id);
  if (Status status = CheckCanEver(RequestOf(record.spec), topology); !status.ok())
    Finish(job, {.state = JobState::kFailed,
                 .exit_code = 1,
                 .reason = "the topology was changed: " + status.message(),
                 .code = status.code()});
}

void Controller::Impl::ResumeActive(Job& job) {
  const JobRecord& record = job.record;
  const auto unknown = std::find_if(record.members.begin(), record.members.end(),
                                    [this](const auto& m) { return FindNode(m.node) == nullptr; });
  if (unknown != record.members.end())
    return Finish(job, {.state = JobState::kNodeFail,
                        .exit_code = 125,
                        .reason = fmt::format("node {} is no longer in the topology", unknown->node)});
  if (record.interactive) {
    job.owner_deadline = now + options.owner_grace;
    Arm(*job.owner_deadline, record.id);
  }
  if (record.state == JobState::kEnding) {
    job.kill_deadline = now + options.kill_grace + options.exit_wait + options.node_timeout;
    Arm(*job.kill_deadline, record.id);
  }
  // Nodes that still have a step of it say so before.
  if (HeadIsOver(record)) Arm(now + options.node_timeout, record.id);
  if (record.spec.time_limit_s > 0)
    Arm(record.placed_at + Millis(std::int64_t{1000} * record.spec.time_limit_s), record.id);
}

Result<std::vector<Effect>> Controller::Impl::Restore(StoredState state) {
  Load(state);
  std::vector<nam_event::JobStarted> running;
  for (const JobId id : active) running.push_back(NamStart(*Find(id)));
  auto from_book = nam.Restore(std::move(state.nam), running, now);
  if (!from_book.ok())
    return from_book.status().WithContext("the job store's regions contradict each other; bring back a copy");
  TakeNam(*std::move(from_book));
  // Before anything is judged: two jobs on one core would mean that the file was edited.
  if (Status status = CheckInvariants(); !status.ok())
    return Error(Code::kInvalidArgument,
                 "the job store contradicts itself: {}; bring back a copy or move it away", status.message());
  for (const JobId id : std::vector<JobId>(pending.begin(), pending.end())) ResumePending(*Find(id));
  for (const JobId id : std::vector<JobId>(active.begin(), active.end())) ResumeActive(*Find(id));
  // Companions that were to be cancelled with them may be there still: grants go with their job.
  for (const JobId id : ended)
    if (const JobRecord& record = Find(id)->record; record.IsSlurms())
      orphan_parents[id] = record.incarnation;
  SettleAll();
  Prune();
  NeedPass();
  return std::exchange(effects, {});
}

}  // namespace msa
