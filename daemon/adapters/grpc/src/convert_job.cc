#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "msa/adapters/grpc/convert_job_internal.h"

namespace msa {
namespace {

// A job that has ended has no members any more; a share may be given back before its node is.
bool Holds(const JobRecord& job, const Allocation& allocation) {
  return !allocation.given_back && job.FindMember(allocation.member) != nullptr;
}

void ToProto(const Allocation& in, v1::Allocation& out) {
  out.set_node(in.node);
  out.set_module(in.module);
  out.set_component(in.component);
  for (const std::uint16_t core : in.cores) out.add_cores(core);
  out.set_tasks(in.tasks);
  out.set_grant(in.grant.value);
}

void ToProto(const wire::NamespaceReport& in, v1::Namespace& out) {
  out.set_name(in.nspace);
  out.set_parent(in.parent);
  out.set_size(in.size);
  out.mutable_nodes()->Assign(in.nodes.begin(), in.nodes.end());
  out.set_command(in.command);
  out.set_ended(in.ended);
  out.set_exit_code(in.exit_code);
  out.set_grant(in.grant.value);
  for (const GrantId grant : in.grants) out.add_grants(grant.value);
}

// As squeue and sacct count: those that it holds now, lent ones included; of a job that has ended all that it
// had; of one that waits those that it is expected to get, else the least it needs.
std::uint32_t CountNodes(const JobView& view) {
  const JobRecord& job = *view.record;
  if (job.allocations.empty()) {
    if (view.expected_nodes != 0) return view.expected_nodes;
    std::uint32_t nodes = 0;
    for (const Component& component : job.spec.components) nodes += component.resources.min_nodes;
    return nodes;
  }
  std::set<std::string_view> names;
  for (const Allocation& allocation : job.allocations) {
    if (wire::IsFinal(job.state) || Holds(job, allocation)) names.insert(allocation.node);
  }
  return static_cast<std::uint32_t>(names.size());
}

void SetModules(const JobRecord& job, v1::Job& out) {
  for (const Component& component : job.spec.components) {
    const std::string& module = component.resources.module;
    if (std::find(out.modules().begin(), out.modules().end(), module) == out.modules().end())
      out.add_modules(module);
  }
}

}  // namespace

Result<JobSpec> JobSpecFromProto(v1::JobSpec&& in) {
  if (!v1::KillPolicy_IsValid(in.kill_policy())) {
    return Error(Code::kInvalidArgument, "kill policy {}; expected 0 to {}",
                 static_cast<int>(in.kill_policy()), static_cast<int>(v1::KillPolicy_MAX));
  }
  if (!v1::OnChildFailure_IsValid(in.on_child_failure())) {
    return Error(Code::kInvalidArgument, "on_child_failure {}; expected 0 to {}",
                 static_cast<int>(in.on_child_failure()), static_cast<int>(v1::OnChildFailure_MAX));
  }
  if (!v1::JobMode_IsValid(in.mode())) {
    return Error(Code::kInvalidArgument, "job mode {}; expected 0 to {}", static_cast<int>(in.mode()),
                 static_cast<int>(v1::JobMode_MAX));
  }
  for (const v1::Dependency& dependency : in.dependencies()) {
    if (v1::DependencyKind_IsValid(dependency.kind())) continue;
    return Error(Code::kInvalidArgument, "dependency kind {}; expected 0 to {}",
                 static_cast<int>(dependency.kind()), static_cast<int>(v1::DependencyKind_MAX));
  }
  for (const v1::NamRegionBinding& binding : in.nam_regions()) {
    if (binding.rights() == 1 || binding.rights() == 3) continue;
    return Error(Code::kInvalidArgument,
                 "rights {} to NAM region '{}'; expected 1 (read) or 3 (read and write)", binding.rights(),
                 binding.region());
  }
  if (in.components_size() > static_cast<int>(kMaxComponents)) {
    return Error(Code::kInvalidArgument, "{} components; at most {} are possible", in.components_size(),
                 kMaxComponents);
  }
  return SpecFromProto(std::move(in));
}

void ToProto(const JobView& view, JobDetail detail, v1::Job& out) {
  const JobRecord& job = *view.record;
  out.set_id(job.id.value);
  out.set_name(job.spec.name);
  out.set_uid(job.user.uid);
  out.set_user(job.user_name);
  out.set_state(static_cast<v1::JobState>(job.state));
  out.set_reason(view.reason);
  out.set_submitted_at_ms(ToUnixMillis(job.submitted_at));
  out.set_started_at_ms(ToUnixMillis(job.started_at));
  out.set_ended_at_ms(ToUnixMillis(job.ended_at));
  if (view.expected_start != kNever) out.set_expected_start_ms(ToUnixMillis(view.expected_start));
  out.set_time_limit_s(job.spec.time_limit_s);
  if (wire::IsFinal(job.state)) {
    out.mutable_exit()->set_code(job.exit_code);
    if (job.state != JobState::kCompleted) out.mutable_exit()->set_message(job.reason);
  }
  for (const Allocation& allocation : job.allocations) {
    v1::Allocation* const share = out.add_allocations();
    ToProto(allocation, *share);
    share->set_held(Holds(job, allocation));
  }
  out.set_incarnation(job.incarnation.value);
  out.set_interactive(job.interactive);
  SetModules(job, out);
  out.set_tasks(job.tasks);
  out.set_nodes(CountNodes(view));
  for (const std::string& name : job.gateways) out.add_gateways(name);
  out.set_stdout_path(job.stdout_path);
  out.set_stderr_path(job.stderr_path);
  out.set_tasks_failed(job.tasks_failed);
  out.set_head_node(view.head_node);
  out.set_mode(static_cast<v1::JobMode>(job.spec.mode));
  if (detail == JobDetail::kListed) return;
  for (const wire::NamespaceReport& report : job.namespaces) ToProto(report, *out.add_namespaces());
  if (detail == JobDetail::kFull) ToProto(job.spec, *out.mutable_spec());
}

void ToProto(const GrantView& view, v1::Grant& out) {
  out.set_id(view.id.value);
  out.set_job_id(view.job->id.value);
  out.set_request(view.request);
  out.set_user(view.job->user_name);
  out.set_state(static_cast<v1::GrantState>(view.state));
  for (const Allocation& allocation : view.shares) {
    v1::Allocation* const share = out.add_allocations();
    ToProto(allocation, *share);
    share->set_held(Holds(*view.job, allocation));
  }
  out.set_slots(view.slots);
  out.set_module(view.module);
  out.set_asked_at_ms(ToUnixMillis(view.asked_at));
  out.set_since_ms(ToUnixMillis(view.since));
  out.set_until_ms(ToUnixMillis(view.until));
  out.mutable_namespaces()->Assign(view.namespaces.begin(), view.namespaces.end());
  out.set_reason(view.reason);
  out.set_slurm_job(view.slurm_job.value);
}

Result<GrantFilter> FilterFromProto(const v1::ListGrantsRequest& in) {
  if (in.ids_size() > kMaxFilterIds) {
    return Error(Code::kInvalidArgument, "{} grant ids; at most {} are possible in one request",
                 in.ids_size(), kMaxFilterIds);
  }
  GrantFilter out{.job = JobId(in.job_id()), .user = in.user(), .released = in.released()};
  for (const std::uint64_t id : in.ids()) out.ids.emplace_back(id);
  return out;
}

v1::JobEvent EventOf(const JobView& view) {
  v1::JobEvent out;
  ToProto(view, JobDetail::kListed, *out.mutable_job());
  out.set_head_node(view.head_node);
  out.set_attach_address(view.attach_address);
  out.set_final(wire::IsFinal(view.record->state));
  return out;
}

Result<JobFilter> FilterFromProto(const v1::ListJobsRequest& in) {
  if (in.ids_size() > kMaxFilterIds) {
    return Error(Code::kInvalidArgument, "{} job ids; at most {} are possible in one request", in.ids_size(),
                 kMaxFilterIds);
  }
  JobFilter out;
  out.ended = in.ended();
  if (in.limit() > 0) out.limit = std::min(in.limit(), kMaxListedJobs);
  for (const std::uint64_t id : in.ids()) out.ids.emplace_back(id);
  out.user = in.user();
  out.since = FromUnixMillis(std::max<std::int64_t>(0, in.since_ms()));
  if (in.until_ms() > 0) out.until = FromUnixMillis(in.until_ms());
  for (const int state : in.states()) {
    if (!v1::JobState_IsValid(state))
      return Error(Code::kInvalidArgument, "job state {}; expected 0 to {}", state,
                   static_cast<int>(v1::JobState_MAX));
    out.states.push_back(static_cast<JobState>(state));
  }
  out.name = in.name();
  return out;
}

}  // namespace msa
