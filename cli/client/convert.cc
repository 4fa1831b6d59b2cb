#include "client/convert.h"

namespace msa::cli {
namespace {

template <class Field>
std::vector<std::string> Strings(const Field& field) {
  return {field.begin(), field.end()};
}

template <class Field>
void PutStrings(const std::vector<std::string>& in, Field* out) {
  out->Reserve(static_cast<int>(in.size()));
  for (const std::string& text : in) *out->Add() = text;
}

AllocationInfo FromProto(const v1::Allocation& in) {
  return {.node = in.node(),
          .module = in.module(),
          .component = in.component(),
          .cores = {in.cores().begin(), in.cores().end()},
          .tasks = in.tasks(),
          .grant = in.grant()};
}

NamespaceInfo FromProto(const v1::Namespace& in) {
  return {.name = in.name(),
          .parent = in.parent(),
          .size = in.size(),
          .nodes = Strings(in.nodes()),
          .command = in.command(),
          .ended = in.ended(),
          .exit_code = in.exit_code(),
          .grant = in.grant()};
}

Component FromProto(const v1::Component& in) {
  Component out;
  out.resources = {.module = in.module(),
                   .min_nodes = in.min_nodes(),
                   .max_nodes = in.max_nodes(),
                   .ntasks = in.ntasks(),
                   .ntasks_per_node = in.ntasks_per_node(),
                   .cpus_per_task = in.cpus_per_task(),
                   .memory = Bytes(in.mem_bytes()),
                   .gpus_per_node = in.gpus_per_node(),
                   .nodelist = Strings(in.nodelist()),
                   .exclude = Strings(in.exclude()),
                   .exclusive = in.exclusive()};
  out.argv = Strings(in.argv());
  out.env = Strings(in.env());
  out.cwd = in.cwd();
  return out;
}

JobSpec FromProto(const v1::JobSpec& in) {
  JobSpec out;
  out.name = in.name();
  for (const auto& component : in.components()) out.components.push_back(FromProto(component));
  out.env = Strings(in.env());
  out.cwd = in.cwd();
  out.time_limit_s = in.time_limit_s();
  out.stdio.out = in.stdio().out();
  out.stdio.err = in.stdio().err();
  out.stdio.in = in.stdio().in();
  out.stdio.label = in.stdio().label();
  out.stdio.append = in.stdio().append();
  out.kill_policy = static_cast<wire::KillPolicy>(in.kill_policy());
  out.no_bind = in.no_bind();
  out.immediate_s = in.immediate_s();
  out.oversubscribe = in.oversubscribe();
  return out;
}

void ToProto(const Component& in, v1::Component& out) {
  const ComponentRequest& ask = in.resources;
  out.set_module(ask.module);
  out.set_min_nodes(ask.min_nodes);
  out.set_max_nodes(ask.max_nodes);
  out.set_ntasks(ask.ntasks);
  out.set_ntasks_per_node(ask.ntasks_per_node);
  out.set_cpus_per_task(ask.cpus_per_task);
  out.set_mem_bytes(ask.memory.value);
  out.set_gpus_per_node(ask.gpus_per_node);
  PutStrings(ask.nodelist, out.mutable_nodelist());
  PutStrings(ask.exclude, out.mutable_exclude());
  out.set_exclusive(ask.exclusive);
  PutStrings(in.argv, out.mutable_argv());
  PutStrings(in.env, out.mutable_env());
  out.set_cwd(in.cwd);
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
          .store_bytes = in.store_bytes()};
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
          .cpu_model = in.cpu_model()};
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
  if (in.has_spec()) out.spec = FromProto(in.spec());
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
  return out;
}

JobEvent FromProto(const v1::JobEvent& in) {
  return {.job = FromProto(in.job()),
          .head_node = in.head_node(),
          .attach_address = in.attach_address(),
          .final = in.final()};
}

void ToProto(const JobSpec& in, v1::JobSpec& out) {
  out.set_name(in.name);
  for (const Component& component : in.components) ToProto(component, *out.add_components());
  PutStrings(in.env, out.mutable_env());
  out.set_cwd(in.cwd);
  out.set_time_limit_s(in.time_limit_s);
  out.mutable_stdio()->set_out(in.stdio.out);
  out.mutable_stdio()->set_err(in.stdio.err);
  out.mutable_stdio()->set_in(in.stdio.in);
  out.mutable_stdio()->set_label(in.stdio.label);
  out.mutable_stdio()->set_append(in.stdio.append);
  out.set_kill_policy(static_cast<v1::KillPolicy>(in.kill_policy));
  out.set_no_bind(in.no_bind);
  out.set_immediate_s(in.immediate_s);
  out.set_oversubscribe(in.oversubscribe);
}

}  // namespace msa::cli
