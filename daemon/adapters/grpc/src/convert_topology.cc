#include "msa/adapters/grpc/convert_topology_internal.h"
#include "msa/base/clock.h"

namespace msa {
namespace {

v1::NodeState StateToProto(NodeState state) {
  switch (state) {
    case NodeState::kUnknown:
      return v1::NODE_STATE_UNKNOWN;
    case NodeState::kUp:
      return v1::NODE_STATE_UP;
    case NodeState::kDown:
      return v1::NODE_STATE_DOWN;
  }
  return v1::NODE_STATE_UNKNOWN;
}

}  // namespace

void ToProto(const ModuleView& view, v1::Module& out) {
  out.set_id(view.module->id.value);
  out.set_name(view.module->name);
  out.set_kind(view.module->kind);
  out.set_nodes(view.nodes);
  out.set_nodes_up(view.nodes_up);
  out.set_cores(view.cores);
  out.set_cores_free(view.cores_free);
  out.set_nam_bytes(view.nam.value);
}

void ToProto(const NodeView& view, v1::Node& out) {
  out.set_name(view.name);
  out.set_module(view.module->name);
  out.set_module_id(view.module->id.value);
  out.set_state(StateToProto(view.state));
  out.set_drained(view.drained);
  out.set_reason(view.reason);
  out.set_cores(view.cores);
  out.set_cores_used(view.cores_used);
  out.set_memory_bytes(view.facts.memory.value);
  for (const JobId job : view.jobs) out.add_jobs(job.value);
  out.set_last_heartbeat_ms(ToUnixMillis(view.last_heartbeat));
  out.set_up_since_ms(ToUnixMillis(view.up_since));
  out.set_synthetic(view.facts.synthetic);
  out.set_load(view.load);
  out.set_jobd_warm(view.jobd_warm);
  out.set_daemon_version(view.daemon_version);
  out.set_nam_bytes(view.facts.nam.value);
  out.set_packages(view.facts.packages);
  out.set_numa_nodes(view.facts.numa_nodes);
  out.set_gpus(view.facts.gpus);
  out.set_cpu_model(view.facts.cpu_model);
  out.set_clock_offset_ms(view.clock_offset.count());
  out.set_clock_off(view.clock_off);
}

void ToProto(const SystemView& view, v1::StatusReply& out) {
  out.set_modules(view.modules);
  out.set_nodes(view.nodes);
  out.set_nodes_up(view.nodes_up);
  out.set_cores(view.cores);
  out.set_cores_used(view.cores_used);
  out.set_jobs_pending(view.jobs_pending);
  out.set_jobs_running(view.jobs_running);
  out.set_jobs_ended(view.jobs_ended);
}

}  // namespace msa
