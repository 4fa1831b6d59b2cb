#include <algorithm>

#include "controller_impl.h"

namespace msa {

ClusterView Controller::Impl::View() const {
  ClusterView view;
  view.topology = &topology;
  view.usable.resize(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) view.usable[i] = IsUsable(nodes[i]);
  for (const JobId id : active) {
    const Job& job = *Find(id);
    RunningJob running;
    running.id = id;
    if (job.record.spec.time_limit_s > 0)
      running.expected_end = job.record.placed_at + Millis(std::int64_t{1000} * job.record.spec.time_limit_s);
    // Past its limit but not gone yet: it ends any moment.
    if (running.expected_end <= now) running.expected_end = now + Millis(1000);
    running.held = HeldBy(job);
    running.nam = nam.HeldBy(id);
    view.running.push_back(std::move(running));
  }
  const Bytes there = nam.capacity();
  const Bytes taken = nam.persistent();
  view.nam_capacity = there > taken ? Bytes(there.value - taken.value) : Bytes();
  CountGateways(view);
  return view;
}

Placement Controller::Impl::HeldBy(const Job& job) const {
  Placement held;
  for (const Allocation& share : job.record.allocations) {
    if (share.given_back || job.record.FindMember(share.member) == nullptr) continue;  // or lost
    const Node* node = FindNode(share.node);
    if (node == nullptr) continue;
    held.push_back({share.component, static_cast<std::uint32_t>(node->index), share.cores, share.tasks,
                    share.memory, share.gpus});
  }
  return held;
}

const std::vector<PendingJob>& Controller::Impl::PendingJobs() const {
  std::vector<PendingJob> known = std::exchange(planned_pending, {});
  planned_pending.reserve(std::min(pending.size(), options.scheduler.depth));
  auto at = known.begin();
  for (const JobId id : pending) {
    if (planned_pending.size() >= options.scheduler.depth) break;
    if (held.contains(id)) continue;
    while (at != known.end() && at->id < id) ++at;
    if (at != known.end() && at->id == id)
      planned_pending.push_back(std::move(*at));
    else
      planned_pending.push_back({id, RequestOf(Find(id)->record.spec)});
  }
  return planned_pending;
}

std::uint32_t Controller::Impl::NodesExpected(const Job& job) const {
  if (job.planned_nodes != 0) return job.planned_nodes;
  // A search over all nodes each; who lists more shapes than these sees the least that they need.
  constexpr std::size_t kMaxKnown = 64;
  const JobRequest request = RequestOf(job.record.spec);
  std::string key = request.oversubscribe ? "shared" : "";  // no NAM: it is of no node
  for (const ComponentRequest& component : request.components) key += wire::Encode(component);
  if (nodes_alone.size() >= kMaxKnown && !nodes_alone.contains(key)) {
    std::uint32_t least = 0;
    for (const ComponentRequest& component : request.components) least += component.min_nodes;
    return least;
  }
  const auto [it, fresh] = nodes_alone.try_emplace(std::move(key));
  if (fresh) it->second = NodesAlone(request, topology);
  return it->second;
}

Result<JobView> Controller::GetJob(JobId id) const {
  const Impl::Job* job = impl_->Find(id);
  if (job == nullptr) return Error(Code::kNotFound, "job {}: no such job; see 'msactl job list --all'", id);
  JobView view;
  view.record = &job->record;
  const bool waits = job->record.state == JobState::kPending;
  view.reason = waits ? job->wait_reason : job->record.reason;
  if (waits) {
    view.expected_start = job->expected_start;
    view.expected_nodes = impl_->NodesExpected(*job);
  }
  const auto head = std::find_if(job->record.allocations.begin(), job->record.allocations.end(),
                                 [&](const Allocation& share) { return share.member == job->record.head; });
  if (head != job->record.allocations.end()) {
    view.head_node = head->node;
    if (const Impl::Node* node = impl_->FindNode(head->node)) view.attach_address = node->attach_address;
  }
  return view;
}

namespace {

bool Passes(const JobRecord& record, const JobFilter& filter) {
  if (!filter.name.empty() && filter.name != record.spec.name) return false;
  if (!filter.states.empty() &&
      std::find(filter.states.begin(), filter.states.end(), record.state) == filter.states.end())
    return false;
  if (IsFinal(record.state) && (record.ended_at < filter.since || record.submitted_at >= filter.until))
    return false;
  return filter.user.empty() || filter.user == record.user_name ||
         filter.user == fmt::format("{}", record.user.uid);
}

}  // namespace

std::vector<JobView> Controller::ListJobs(const JobFilter& filter) const {
  std::vector<JobId> ids;
  const auto add = [&](JobId id) {
    const Impl::Job* job = impl_->Find(id);
    const bool passes = job != nullptr && Passes(job->record, filter);
    if (passes) ids.push_back(id);
    return passes;
  };
  if (!filter.ids.empty()) {
    for (const JobId id : filter.ids) add(id);
  } else {
    for (const JobId id : impl_->pending) add(id);
    for (const JobId id : impl_->active) add(id);
    std::size_t left = filter.ended ? filter.limit : 0;
    for (auto it = impl_->ended.rbegin(); it != impl_->ended.rend() && left > 0; ++it)
      if (add(*it)) --left;
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  std::vector<JobView> out;
  for (const JobId id : ids)
    if (auto view = GetJob(id); view.ok()) out.push_back(std::move(*view));
  return out;
}

namespace {

// Cores in use, by node index.
template <class Impl>
std::vector<std::uint32_t> CoresUsed(const Impl& impl, std::vector<std::vector<JobId>>* jobs_of) {
  std::vector<std::uint32_t> used(impl.nodes.size());
  if (jobs_of != nullptr) jobs_of->resize(impl.nodes.size());
  for (const JobId id : impl.active) {
    const auto& job = *impl.Find(id);
    for (const NodeShare& share : impl.HeldBy(job)) {
      used[share.node] += static_cast<std::uint32_t>(share.cores.size());
      if (jobs_of == nullptr) continue;
      auto& list = (*jobs_of)[share.node];
      if (list.empty() || list.back() != id) list.push_back(id);
    }
  }
  return used;
}

}  // namespace

Result<std::vector<NodeView>> Controller::ListNodes(const std::string& module,
                                                    const std::vector<std::string>& names) const {
  std::vector<const Module*> modules;
  if (!module.empty()) {
    MSA_ASSIGN_OR_RETURN(modules, impl_->topology.SelectModules(module));
  }
  std::set<std::size_t> chosen;
  for (const std::string& name : names) {
    MSA_ASSIGN_OR_RETURN(const std::size_t index, impl_->topology.SelectNode(name));
    chosen.insert(index);
  }
  std::vector<std::vector<JobId>> jobs_of;
  const auto used = CoresUsed(*impl_, &jobs_of);
  std::vector<NodeView> out;
  for (const Impl::Node& node : impl_->nodes) {
    const Module* its = impl_->topology.FindModule(node.spec->module);
    if (!names.empty() && !chosen.contains(node.index)) continue;
    if (!module.empty() && std::find(modules.begin(), modules.end(), its) == modules.end()) continue;
    NodeView view;
    view.name = node.spec->name;
    view.module = its;
    view.state = node.state;
    view.drained = node.drained;
    view.reason = impl_->ReasonOf(node);
    view.clock_offset = node.clock_offset;
    view.clock_off = node.clock_off && node.state == NodeState::kUp;
    view.cores = node.spec->cores != 0 ? node.spec->cores : node.facts.cores;
    view.cores_used = used[node.index];
    view.facts = node.facts;
    if (!node.registered) {
      view.facts.cores = node.spec->cores;
      view.facts.memory = node.spec->memory;
      view.facts.packages = node.spec->packages;
      view.facts.numa_nodes = node.spec->numa_nodes;
      view.facts.gpus = node.spec->gpus;
      view.facts.cpu_model = node.spec->cpu_model;
      view.facts.nam = node.spec->nam;
      view.facts.synthetic = node.spec->synthetic;
    }
    view.jobs = jobs_of[node.index];
    view.last_heartbeat = node.last_heartbeat;
    view.up_since = node.up_since;
    view.load = node.load;
    view.jobd_warm = node.jobd_warm;
    view.daemon_version = node.daemon_version;
    out.push_back(std::move(view));
  }
  return out;
}

std::vector<ModuleView> Controller::ListModules() const {
  const auto used = CoresUsed(*impl_, nullptr);
  std::vector<ModuleView> out;
  for (const Module& module : impl_->topology.modules) {
    ModuleView view;
    view.module = &module;
    for (const Impl::Node& node : impl_->nodes) {
      if (node.spec->module != module.id) continue;
      const std::uint32_t cores = node.spec->cores != 0 ? node.spec->cores : node.facts.cores;
      ++view.nodes;
      view.cores += cores;
      view.nam = Bytes(view.nam.value + node.spec->nam.value);
      if (node.state != NodeState::kUp || node.drained) continue;
      ++view.nodes_up;
      view.cores_free += cores - std::min(cores, used[node.index]);
    }
    out.push_back(view);
  }
  return out;
}

SystemView Controller::System() const {
  SystemView view;
  for (const ModuleView& module : ListModules()) {
    ++view.modules;
    view.nodes += module.nodes;
    view.nodes_up += module.nodes_up;
    view.cores += module.cores;
  }
  for (const std::uint32_t used : CoresUsed(*impl_, nullptr)) view.cores_used += used;
  view.jobs_pending = static_cast<std::uint32_t>(impl_->pending.size());
  view.jobs_running = static_cast<std::uint32_t>(impl_->active.size());
  view.jobs_ended = impl_->ended.size();
  return view;
}

Status Controller::Impl::CheckInvariants() const {
  std::map<std::pair<std::uint32_t, std::uint16_t>, JobId> holder;
  if (pending.size() + active.size() + ended.size() != jobs.size())
    return Error(Code::kInternal, "{} jobs, but {} waiting + {} active + {} ended", jobs.size(),
                 pending.size(), active.size(), ended.size());
  for (const auto& [id, job] : jobs) {
    const JobRecord& record = job.record;
    if (record.id != id) return Error(Code::kInternal, "job {} is filed under {}", record.id, id);
    const bool is_active = !IsFinal(record.state) && record.state != JobState::kPending;
    if (is_active != active.contains(id) || (record.state == JobState::kPending) != pending.contains(id))
      return Error(Code::kInternal, "job {} is {} but stands in another list", id, StateName(record.state));
    if (!is_active) {
      if (!record.members.empty())
        return Error(Code::kInternal, "job {} is {} and still has members", id, StateName(record.state));
      continue;
    }
    std::set<std::string> on;
    for (const wire::Member& member : record.members) {
      if (!on.insert(member.node).second)
        return Error(Code::kInternal, "job {} has two members on node {}", id, member.node);
      if (member.index >= record.next_member)
        return Error(Code::kInternal, "job {} has member {} beyond {}", id, member.index, record.next_member);
      if (member.grant.value != 0 && !grants.contains(member.grant))
        return Error(Code::kInternal, "job {} holds node {} by the unknown grant {}", id, member.node,
                     member.grant);
    }
    if (record.FindMember(record.head) == nullptr) return Error(Code::kInternal, "job {} has no head", id);
    if (record.IsSlurms()) continue;  // who shares a core is Slurm's to say
    for (const NodeShare& share : HeldBy(job)) {
      for (const std::uint16_t core : share.cores) {
        const auto [it, free] = holder.emplace(std::pair(share.node, core), id);
        if (!free)
          return Error(Code::kInternal, "core {} of node {} is held by job {} and job {}", core,
                       nodes[share.node].spec->name, it->second, id);
      }
    }
  }
  for (const auto& [id, grant] : grants)
    if (!active.contains(grant.job))
      return Error(Code::kInternal, "grant {} belongs to job {}, which is not active", id, grant.job);
  MSA_RETURN_IF_ERROR(CheckHeld());
  MSA_RETURN_IF_ERROR(nam.CheckInvariants());
  for (const WaitingAsk& waiting : asks)
    if (!active.contains(waiting.job))
      return Error(Code::kInternal, "a request of job {} waits, but the job is not active", waiting.job);
  for (const auto& [low, high] : links)
    if (!active.contains(low) || !active.contains(high) || low == high)
      return Error(Code::kInternal, "jobs {} and {} are linked, but not both active", low, high);
  MSA_RETURN_IF_ERROR(names.CheckInvariants());
  return Status::Ok();
}

}  // namespace msa
