#pragma once

#include "msa/adapters/grpc/node_messages.h"
#include "msa/base/status.h"
#include "msa/v1/node.pb.h"

// Between proto/msa/v1/node.proto and node_messages.h. Pure; any thread.
namespace msa::node_control {

void ToProto(wire::Frame frame, v1::WireFrame& out);
// kInvalidArgument: a type beyond 16 bit.
Result<wire::Frame> FromProto(v1::WireFrame&& frame);

v1::NodeReport ToProto(const RegisterNode& report);
v1::NodeReport ToProto(const Heartbeat& report);
v1::NodeReport ToProto(FromJobd report);
v1::NodeReport ToProto(const JobdGone& report);
v1::NodeReport ToProto(FromNamd report);
v1::NodeReport ToProto(const NamdGone& report);
v1::NodeReport ToProto(FromSlurm report);

v1::NodeCommand ToProto(const Registered& command);
v1::NodeCommand ToProto(StartJob command);
v1::NodeCommand ToProto(ToJobd command);
v1::NodeCommand ToProto(const QuitJob& command);
v1::NodeCommand ToProto(ToNamd command);
v1::NodeCommand ToProto(ToSlurm command);

RegisterNode FromProto(const v1::RegisterNode& report);
Heartbeat FromProto(const v1::Heartbeat& report);
// Errors of the frame.
Result<FromJobd> FromProto(v1::FromJobd&& report);
JobdGone FromProto(const v1::JobdGone& report);
Result<FromNamd> FromProto(v1::FromNamd&& report);
NamdGone FromProto(const v1::NamdGone& report);
Result<FromSlurm> FromProto(v1::FromSlurm&& report);

Registered FromProto(const v1::Registered& command);
Result<StartJob> FromProto(v1::StartJob&& command);
Result<ToJobd> FromProto(v1::ToJobd&& command);
QuitJob FromProto(const v1::QuitJob& command);
Result<ToNamd> FromProto(v1::ToNamd&& command);
Result<ToSlurm> FromProto(v1::ToSlurm&& command);

}  // namespace msa::node_control
