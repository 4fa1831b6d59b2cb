#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "msa/adapters/grpc/convert_spec_internal.h"

namespace msa {
namespace {

template <class Field>
std::vector<std::string> TakeStrings(Field* field) {
  return {std::make_move_iterator(field->begin()), std::make_move_iterator(field->end())};
}

template <class Field>
void PutStrings(const std::vector<std::string>& in, Field* out) {
  out->Assign(in.begin(), in.end());
}

Component ComponentFromProto(v1::Component&& in) {
  Component out;
  out.resources = {.module = std::move(*in.mutable_module()),
                   .min_nodes = in.min_nodes(),
                   .max_nodes = in.max_nodes(),
                   .ntasks = in.ntasks(),
                   .ntasks_per_node = in.ntasks_per_node(),
                   .cpus_per_task = in.cpus_per_task(),
                   .memory = Bytes(in.mem_bytes()),
                   .gpus_per_node = in.gpus_per_node(),
                   .nodelist = TakeStrings(in.mutable_nodelist()),
                   .exclude = TakeStrings(in.mutable_exclude()),
                   .exclusive = in.exclusive()};
  out.argv = TakeStrings(in.mutable_argv());
  out.env = TakeStrings(in.mutable_env());
  out.cwd = std::move(*in.mutable_cwd());
  return out;
}

void ToProto(const Component& in, v1::Component& out) {
  out.set_module(in.resources.module);
  out.set_min_nodes(in.resources.min_nodes);
  out.set_max_nodes(in.resources.max_nodes);
  out.set_ntasks(in.resources.ntasks);
  out.set_ntasks_per_node(in.resources.ntasks_per_node);
  out.set_cpus_per_task(in.resources.cpus_per_task);
  out.set_mem_bytes(in.resources.memory.value);
  out.set_gpus_per_node(in.resources.gpus_per_node);
  PutStrings(in.resources.nodelist, out.mutable_nodelist());
  PutStrings(in.resources.exclude, out.mutable_exclude());
  out.set_exclusive(in.resources.exclusive);
  PutStrings(in.argv, out.mutable_argv());
  PutStrings(in.env, out.mutable_env());
  out.set_cwd(in.cwd);
}

}  // namespace

JobSpec SpecFromProto(v1::JobSpec&& in) {
  JobSpec out;
  out.name = std::move(*in.mutable_name());
  for (v1::Component& component : *in.mutable_components()) {
    out.components.push_back(ComponentFromProto(std::move(component)));
  }
  out.env = TakeStrings(in.mutable_env());
  out.cwd = std::move(*in.mutable_cwd());
  out.time_limit_s = in.time_limit_s();
  out.stdio = {.out = in.stdio().out(),
               .err = in.stdio().err(),
               .in = in.stdio().in(),
               .label = in.stdio().label(),
               .append = in.stdio().append()};
  out.kill_policy = static_cast<wire::KillPolicy>(in.kill_policy());
  out.no_bind = in.no_bind();
  out.immediate_s = in.immediate_s();
  out.oversubscribe = in.oversubscribe();
  out.on_child_failure = static_cast<wire::OnChildFailure>(in.on_child_failure());
  out.no_mpi_library = in.no_mpi_library();
  for (const v1::ResourceLimit& limit : in.limits())
    out.limits.push_back({limit.resource(), limit.soft(), limit.hard()});
  out.mode = static_cast<wire::JobMode>(in.mode());
  out.script = std::move(*in.mutable_script());
  out.script_args = TakeStrings(in.mutable_script_args());
  for (const v1::Dependency& dependency : in.dependencies())
    out.dependencies.push_back({static_cast<DependencyKind>(dependency.kind()), JobId(dependency.job_id()),
                                dependency.delay_s(), static_cast<DependencyState>(dependency.state())});
  out.dependency_any = in.dependency_any();
  out.kill_on_invalid_dep = in.kill_on_invalid_dep();
  out.begin_at_ms = in.begin_at_ms();
  out.nam = Bytes(in.nam_bytes());
  out.gateways = in.gateways();
  for (const v1::NamRegionBinding& binding : in.nam_regions())
    out.nam_regions.push_back({binding.region(), static_cast<NamRights>(binding.rights())});
  return out;
}

void ToProto(const JobSpec& spec, v1::JobSpec& out) {
  out.set_name(spec.name);
  for (const Component& component : spec.components) ToProto(component, *out.add_components());
  PutStrings(spec.env, out.mutable_env());
  out.set_cwd(spec.cwd);
  out.set_time_limit_s(spec.time_limit_s);
  out.mutable_stdio()->set_out(spec.stdio.out);
  out.mutable_stdio()->set_err(spec.stdio.err);
  out.mutable_stdio()->set_in(spec.stdio.in);
  out.mutable_stdio()->set_label(spec.stdio.label);
  out.mutable_stdio()->set_append(spec.stdio.append);
  out.set_kill_policy(static_cast<v1::KillPolicy>(spec.kill_policy));
  out.set_no_bind(spec.no_bind);
  out.set_immediate_s(spec.immediate_s);
  out.set_oversubscribe(spec.oversubscribe);
  out.set_on_child_failure(static_cast<v1::OnChildFailure>(spec.on_child_failure));
  out.set_no_mpi_library(spec.no_mpi_library);
  for (const wire::ResourceLimit& limit : spec.limits) {
    v1::ResourceLimit& to = *out.add_limits();
    to.set_resource(limit.resource);
    to.set_soft(limit.soft);
    to.set_hard(limit.hard);
  }
  out.set_mode(static_cast<v1::JobMode>(spec.mode));
  out.set_script(spec.script);
  PutStrings(spec.script_args, out.mutable_script_args());
  for (const Dependency& dependency : spec.dependencies) {
    v1::Dependency& to = *out.add_dependencies();
    to.set_kind(static_cast<v1::DependencyKind>(dependency.kind));
    to.set_job_id(dependency.job.value);
    to.set_delay_s(dependency.delay_s);
    to.set_state(static_cast<v1::DependencyState>(dependency.state));
  }
  out.set_dependency_any(spec.dependency_any);
  out.set_kill_on_invalid_dep(spec.kill_on_invalid_dep);
  out.set_begin_at_ms(spec.begin_at_ms);
  out.set_nam_bytes(spec.nam.value);
  out.set_gateways(spec.gateways);
  for (const wire::NamRegionBinding& binding : spec.nam_regions) {
    v1::NamRegionBinding& to = *out.add_nam_regions();
    to.set_region(binding.region);
    to.set_rights(static_cast<std::uint32_t>(binding.rights));
  }
}

}  // namespace msa
