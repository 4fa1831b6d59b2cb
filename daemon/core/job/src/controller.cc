#include "msa/job/controller.h"

#include <algorithm>

#include "controller_impl.h"

namespace msa {
namespace {

// Looks at all nodes in one node_timeout, at most: a node is found down at most 5 % late.
constexpr int kNodeLooks = 20;

std::vector<NamNodeSpec> NamNodesOf(const SystemTopology& topology) {
  std::vector<NamNodeSpec> nodes;
  for (const NodeSpec& node : topology.nodes) nodes.push_back({node.name, node.nam});
  return nodes;
}

}  // namespace

Controller::Impl::Impl(SystemTopology t, ControllerOptions o)
    : topology(std::move(t)),
      options(std::move(o)),
      nam(NamNodesOf(topology), {topology.nam_user_quota, topology.nam_job_quota, topology.nam_job_default},
          options.nam_system) {
  nodes.resize(topology.nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].spec = &topology.nodes[i];
    nodes[i].index = i;
    node_index.emplace(topology.nodes[i].name, i);
  }
}

Controller::Controller(SystemTopology topology, ControllerOptions options)
    : impl_(std::make_unique<Impl>(std::move(topology), std::move(options))) {}

Controller::~Controller() = default;

Result<std::vector<Effect>> Controller::Restore(StoredState state, Instant now) {
  impl_->now = now;
  impl_->effects.clear();
  return impl_->Restore(std::move(state));
}

std::vector<Effect> Controller::On(Event event, Instant now) {
  impl_->now = now;
  impl_->effects.clear();
  std::visit([this](auto& e) { impl_->Handle(e); }, event);
  // A submission is settled by the pass that it asks for: until it is on disk it may be taken back.
  if (!std::holds_alternative<event::Submit>(event)) impl_->SettleAll();
  return std::exchange(impl_->effects, {});
}

void Controller::ForgetJob(JobId id) {
  const auto it = impl_->jobs.find(id);
  if (it == impl_->jobs.end() || it->second.record.state != JobState::kPending) return;
  impl_->tokens.erase({it->second.record.user.uid, it->second.record.token});
  impl_->pending.erase(id);
  impl_->Delist(it->second);
  impl_->jobs.erase(it);
}

const SystemTopology& Controller::topology() const { return impl_->topology; }

Status Controller::CheckAccess(JobId job, const UserIdentity& caller) const {
  return impl_->CheckAccess(job, caller);
}

Status Controller::CheckInvariants() const { return impl_->CheckInvariants(); }

Controller::Impl::Job* Controller::Impl::Find(JobId id) {
  const auto it = jobs.find(id);
  return it == jobs.end() ? nullptr : &it->second;
}

const Controller::Impl::Job* Controller::Impl::Find(JobId id) const {
  const auto it = jobs.find(id);
  return it == jobs.end() ? nullptr : &it->second;
}

Controller::Impl::Job* Controller::Impl::FindActive(JobId id, Incarnation incarnation) {
  Job* job = Find(id);
  return job != nullptr && active.contains(id) && job->record.incarnation == incarnation ? job : nullptr;
}

Status Controller::Impl::CheckAccess(JobId id, const UserIdentity& caller) const {
  const Job* job = Find(id);
  if (job == nullptr) return Error(Code::kNotFound, "job {}: no such job; see 'msactl job list --all'", id);
  if (caller.uid == 0 || caller.uid == options.operator_uid || caller.uid == job->record.user.uid)
    return Status::Ok();
  return Error(Code::kPermissionDenied, "job {}: it belongs to user {} (uid {}), you are uid {}", id,
               job->record.user_name, job->record.user.uid, caller.uid);
}

void Controller::Impl::Put(const Job& job) { Emit(effect::PutJob{job.record}); }

void Controller::Impl::Arm(Instant at, JobId job) {
  alarms.emplace(at, job);
  WakeAt(at);
}

void Controller::Impl::Handle(event::Tick&) {
  while (!alarms.empty() && alarms.begin()->first <= now) {
    const JobId id = alarms.begin()->second;
    alarms.erase(alarms.begin());
    if (Job* job = Find(id); job != nullptr && !IsFinal(job->record.state)) CheckDeadlines(*job);
  }
  Instant next = kNever;
  for (Node& node : nodes) {
    CheckNode(node);
    if (node.state != NodeState::kDown) next = std::min(next, node.last_sign + options.node_timeout);
  }
  // One look at all nodes serves those whose time is over a little later, too.
  if (next != kNever) WakeAt(std::max(next, now + options.node_timeout / kNodeLooks));
  Nam(nam_event::Tick{});
  JudgeSlurmSteps();
  EndSilentJobs();
  CancelLeaving();
  RetryAsks();
  if (!alarms.empty()) WakeAt(alarms.begin()->first);
}

}  // namespace msa
