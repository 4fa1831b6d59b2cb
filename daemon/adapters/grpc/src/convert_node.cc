#include "msa/adapters/grpc/convert_node_internal.h"

namespace msa::node_control {
namespace {

template <class P>
void SetJobd(const JobdState& state, P& out) {
  out.set_job_id(state.job.value);
  out.set_incarnation(state.incarnation.value);
  out.set_member_index(state.member_index);
  out.set_is_head(state.is_head);
  out.set_ended(state.ended);
}

JobdState JobdFromProto(const v1::JobdState& in) {
  return {.job = JobId(in.job_id()),
          .incarnation = Incarnation(in.incarnation()),
          .member_index = in.member_index(),
          .is_head = in.is_head(),
          .ended = in.ended()};
}

NodeDescription DescriptionFromProto(const v1::NodeDescription& in) {
  return {.name = in.name(),
          .cores = in.cores(),
          .machine_cores = in.machine_cores(),
          .memory = Bytes(in.memory_bytes()),
          .synthetic = in.synthetic(),
          .packages = in.packages(),
          .numa_nodes = in.numa_nodes(),
          .gpus = in.gpus(),
          .cpu_model = in.cpu_model(),
          .nam = Bytes(in.nam_bytes())};
}

void SetDescription(const NodeDescription& in, v1::NodeDescription& out) {
  out.set_name(in.name);
  out.set_cores(in.cores);
  out.set_machine_cores(in.machine_cores);
  out.set_memory_bytes(in.memory.value);
  out.set_synthetic(in.synthetic);
  out.set_packages(in.packages);
  out.set_numa_nodes(in.numa_nodes);
  out.set_gpus(in.gpus);
  out.set_cpu_model(in.cpu_model);
  out.set_nam_bytes(in.nam.value);
}

}  // namespace

void ToProto(wire::Frame frame, v1::WireFrame& out) {
  out.set_type(frame.type);
  out.set_id(frame.id);
  out.set_payload(std::move(frame.payload));
}

Result<wire::Frame> FromProto(v1::WireFrame&& frame) {
  if (frame.type() > 0xffff)
    return Error(Code::kInvalidArgument, "frame type {:#x}; expected at most 0xffff", frame.type());
  return wire::Frame{.type = static_cast<std::uint16_t>(frame.type()),
                     .id = frame.id(),
                     .payload = std::move(*frame.mutable_payload())};
}

v1::NodeReport ToProto(const RegisterNode& report) {
  v1::NodeReport out;
  auto& reg = *out.mutable_register_();
  reg.set_daemon_version(report.daemon_version);
  reg.set_protocol_version(report.protocol_version);
  SetDescription(report.description, *reg.mutable_description());
  reg.set_attach_address(report.attach_address);
  reg.set_jobd_address(report.jobd_address);
  for (const JobdState& jobd : report.jobds) SetJobd(jobd, *reg.add_jobds());
  reg.set_pid(report.pid);
  return out;
}

v1::NodeReport ToProto(const Heartbeat& report) {
  v1::NodeReport out;
  auto& beat = *out.mutable_heartbeat();
  beat.set_load(report.load);
  beat.set_jobd_warm(report.jobd_warm);
  beat.set_memory_free_bytes(report.memory_free.value);
  beat.set_clock_ms(report.clock_ms);
  return out;
}

v1::NodeReport ToProto(FromJobd report) {
  v1::NodeReport out;
  auto& from = *out.mutable_from_jobd();
  from.set_job_id(report.job.value);
  from.set_incarnation(report.incarnation.value);
  ToProto(std::move(report.frame), *from.mutable_frame());
  return out;
}

v1::NodeReport ToProto(const JobdGone& report) {
  v1::NodeReport out;
  auto& gone = *out.mutable_jobd_gone();
  gone.set_job_id(report.job.value);
  gone.set_incarnation(report.incarnation.value);
  gone.set_reason(report.reason);
  gone.set_clean(report.clean);
  return out;
}

v1::NodeReport ToProto(FromNamd report) {
  v1::NodeReport out;
  ToProto(std::move(report.frame), *out.mutable_from_namd()->mutable_frame());
  return out;
}

v1::NodeReport ToProto(const NamdGone& report) {
  v1::NodeReport out;
  out.mutable_namd_gone()->set_reason(report.reason);
  return out;
}

v1::NodeReport ToProto(FromSlurm report) {
  v1::NodeReport out;
  ToProto(std::move(report.frame), *out.mutable_from_slurm()->mutable_frame());
  return out;
}

v1::NodeCommand ToProto(const Registered& command) {
  v1::NodeCommand out;
  auto& registered = *out.mutable_registered();
  registered.set_heartbeat_interval_ms(static_cast<std::uint32_t>(command.heartbeat_interval.count()));
  registered.set_system_name(command.system_name);
  for (const JobdState& jobd : command.keep) SetJobd(jobd, *registered.add_keep());
  registered.set_slurm(command.slurm);
  return out;
}

v1::NodeCommand ToProto(StartJob command) {
  v1::NodeCommand out;
  auto& start = *out.mutable_start_job();
  start.set_job_id(command.job.value);
  start.set_incarnation(command.incarnation.value);
  start.set_uid(command.user.uid);
  start.set_gid(command.user.gid);
  ToProto(std::move(command.frame), *start.mutable_frame());
  return out;
}

v1::NodeCommand ToProto(ToJobd command) {
  v1::NodeCommand out;
  auto& to = *out.mutable_to_jobd();
  to.set_job_id(command.job.value);
  to.set_incarnation(command.incarnation.value);
  ToProto(std::move(command.frame), *to.mutable_frame());
  return out;
}

v1::NodeCommand ToProto(const QuitJob& command) {
  v1::NodeCommand out;
  auto& quit = *out.mutable_quit_job();
  quit.set_job_id(command.job.value);
  quit.set_incarnation(command.incarnation.value);
  quit.set_reason(command.reason);
  return out;
}

v1::NodeCommand ToProto(ToNamd command) {
  v1::NodeCommand out;
  ToProto(std::move(command.frame), *out.mutable_to_namd()->mutable_frame());
  return out;
}

v1::NodeCommand ToProto(ToSlurm command) {
  v1::NodeCommand out;
  ToProto(std::move(command.frame), *out.mutable_to_slurm()->mutable_frame());
  return out;
}

RegisterNode FromProto(const v1::RegisterNode& report) {
  RegisterNode out{.daemon_version = report.daemon_version(),
                   .protocol_version = report.protocol_version(),
                   .description = DescriptionFromProto(report.description()),
                   .attach_address = report.attach_address(),
                   .jobd_address = report.jobd_address(),
                   .pid = report.pid()};
  for (const auto& jobd : report.jobds()) out.jobds.push_back(JobdFromProto(jobd));
  return out;
}

Heartbeat FromProto(const v1::Heartbeat& report) {
  return {.load = report.load(),
          .jobd_warm = report.jobd_warm(),
          .memory_free = Bytes(report.memory_free_bytes()),
          .clock_ms = report.clock_ms()};
}

Result<FromJobd> FromProto(v1::FromJobd&& report) {
  MSA_ASSIGN_OR_RETURN(wire::Frame frame, FromProto(std::move(*report.mutable_frame())));
  return FromJobd{JobId(report.job_id()), Incarnation(report.incarnation()), std::move(frame)};
}

JobdGone FromProto(const v1::JobdGone& report) {
  return {JobId(report.job_id()), Incarnation(report.incarnation()), report.reason(), report.clean()};
}

Result<FromNamd> FromProto(v1::FromNamd&& report) {
  MSA_ASSIGN_OR_RETURN(wire::Frame frame, FromProto(std::move(*report.mutable_frame())));
  return FromNamd{std::move(frame)};
}

NamdGone FromProto(const v1::NamdGone& report) { return {report.reason()}; }

Result<FromSlurm> FromProto(v1::FromSlurm&& report) {
  MSA_ASSIGN_OR_RETURN(wire::Frame frame, FromProto(std::move(*report.mutable_frame())));
  return FromSlurm{std::move(frame)};
}

Registered FromProto(const v1::Registered& command) {
  Registered out{.heartbeat_interval = Millis(command.heartbeat_interval_ms()),
                 .system_name = command.system_name()};
  for (const auto& jobd : command.keep()) out.keep.push_back(JobdFromProto(jobd));
  out.slurm = command.slurm();
  return out;
}

Result<StartJob> FromProto(v1::StartJob&& command) {
  MSA_ASSIGN_OR_RETURN(wire::Frame frame, FromProto(std::move(*command.mutable_frame())));
  return StartJob{JobId(command.job_id()),
                  Incarnation(command.incarnation()),
                  {command.uid(), command.gid()},
                  std::move(frame)};
}

Result<ToJobd> FromProto(v1::ToJobd&& command) {
  MSA_ASSIGN_OR_RETURN(wire::Frame frame, FromProto(std::move(*command.mutable_frame())));
  return ToJobd{JobId(command.job_id()), Incarnation(command.incarnation()), std::move(frame)};
}

QuitJob FromProto(const v1::QuitJob& command) {
  return {JobId(command.job_id()), Incarnation(command.incarnation()), command.reason()};
}

Result<ToNamd> FromProto(v1::ToNamd&& command) {
  MSA_ASSIGN_OR_RETURN(wire::Frame frame, FromProto(std::move(*command.mutable_frame())));
  return ToNamd{std::move(frame)};
}

Result<ToSlurm> FromProto(v1::ToSlurm&& command) {
  MSA_ASSIGN_OR_RETURN(wire::Frame frame, FromProto(std::move(*command.mutable_frame())));
  return ToSlurm{std::move(frame)};
}

}  // namespace msa::node_control
