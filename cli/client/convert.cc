#include "client/convert.h"

#include "msa/adapters/grpc/convert_spec_internal.h"

namespace msa::cli {
namespace {

template <class Field>
std::vector<std::string> Strings(const Field& field) {
  return {field.begin(), field.end()};
}

AllocationInfo FromProto(const v1::Allocation& in) {
  return {.node = in.node(),
          .module = in.module(),
          .component = in.component(),
          .cores = {in.cores().begin(), in.cores().end()},
          .tasks = in.tasks(),
          .grant = in.grant(),
          .held = in.held()};
}

NamespaceInfo FromProto(const v1::Namespace& in) {
  return {.name = in.name(),
          .parent = in.parent(),
          .size = in.size(),
          .nodes = Strings(in.nodes()),
          .command = in.command(),
          .ended = in.ended(),
          .exit_code = in.exit_code(),
          .grants = {in.grants().begin(), in.grants().end()}};
}

}  // namespace

SystemInfo FromProto(const v1::StatusReply& in) {
  return {.version = in.version(),
          .pid = in.pid(),
          .started_at_ms = in.started_at_ms(),
          .modules = in.modules(),
          .nodes = in.nodes(),
          .nodes_up = in.nodes_up(),
          .cores = in.cores(),
          .cores_used = in.cores_used(),
          .jobs_pending = in.jobs_pending(),
          .jobs_running = in.jobs_running(),
          .jobs_ended = in.jobs_ended(),
          .system_name = in.system_name(),
          .directory = in.directory(),
          .store_bytes = in.store_bytes(),
          .nam_user_quota = in.nam_user_quota(),
          .nam_job_quota = in.nam_job_quota(),
          .nam_job_default = in.nam_job_default()};
}

ModuleInfo FromProto(const v1::Module& in) {
  return {.id = in.id(),
          .name = in.name(),
          .kind = in.kind(),
          .nodes = in.nodes(),
          .nodes_up = in.nodes_up(),
          .cores = in.cores(),
          .cores_free = in.cores_free(),
          .nam_bytes = in.nam_bytes()};
}

NodeInfo FromProto(const v1::Node& in) {
  return {.name = in.name(),
          .module = in.module(),
          .module_id = in.module_id(),
          .state = static_cast<NodeState>(in.state()),
          .drained = in.drained(),
          .reason = in.reason(),
          .cores = in.cores(),
          .cores_used = in.cores_used(),
          .memory_bytes = in.memory_bytes(),
          .jobs = {in.jobs().begin(), in.jobs().end()},
          .last_heartbeat_ms = in.last_heartbeat_ms(),
          .up_since_ms = in.up_since_ms(),
          .synthetic = in.synthetic(),
          .load = in.load(),
          .jobd_warm = in.jobd_warm(),
          .daemon_version = in.daemon_version(),
          .nam_bytes = in.nam_bytes(),
          .packages = in.packages(),
          .numa_nodes = in.numa_nodes(),
          .gpus = in.gpus(),
          .cpu_model = in.cpu_model(),
          .clock_offset_ms = in.clock_offset_ms(),
          .clock_off = in.clock_off()};
}

JobInfo FromProto(const v1::Job& in) {
  JobInfo out;
  out.id = JobId(in.id());
  out.name = in.name();
  out.uid = in.uid();
  out.user = in.user();
  out.state = static_cast<JobState>(in.state());
  out.reason = in.reason();
  out.submitted_at_ms = in.submitted_at_ms();
  out.started_at_ms = in.started_at_ms();
  out.ended_at_ms = in.ended_at_ms();
  out.expected_start_ms = in.expected_start_ms();
  out.time_limit_s = in.time_limit_s();
  out.exit_code = in.exit().code();
  out.exit_message = in.exit().message();
  if (in.has_spec()) out.spec = SpecFromProto(v1::JobSpec(in.spec()));
  for (const auto& allocation : in.allocations()) out.allocations.push_back(FromProto(allocation));
  for (const auto& space : in.namespaces()) out.namespaces.push_back(FromProto(space));
  out.incarnation = Incarnation(in.incarnation());
  out.interactive = in.interactive();
  out.modules = Strings(in.modules());
  out.tasks = in.tasks();
  out.nodes = in.nodes();
  out.stdout_path = in.stdout_path();
  out.stderr_path = in.stderr_path();
  out.tasks_failed = in.tasks_failed();
  out.head_node = in.head_node();
  out.mode = static_cast<wire::JobMode>(in.mode());
  out.gateways = Strings(in.gateways());
  return out;
}

GrantInfo FromProto(const v1::Grant& in) {
  GrantInfo out;
  out.id = in.id();
  out.job = JobId(in.job_id());
  out.request = in.request();
  out.user = in.user();
  out.state = static_cast<GrantState>(in.state());
  for (const auto& allocation : in.allocations()) out.allocations.push_back(FromProto(allocation));
  out.slots = in.slots();
  out.module = in.module();
  out.asked_at_ms = in.asked_at_ms();
  out.since_ms = in.since_ms();
  out.until_ms = in.until_ms();
  out.namespaces = Strings(in.namespaces());
  out.reason = in.reason();
  out.slurm_job = JobId(in.slurm_job());
  return out;
}

JobEvent FromProto(const v1::JobEvent& in) {
  return {.job = FromProto(in.job()),
          .head_node = in.head_node(),
          .attach_address = in.attach_address(),
          .final = in.final()};
}

}  // namespace msa::cli
