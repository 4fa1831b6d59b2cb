#pragma once

#include "msa/job/controller.h"
#include "msa/v1/topology.pb.h"

// Between proto/msa/v1/topology.proto and the core. Pure; any thread.
namespace msa {

void ToProto(const ModuleView& view, v1::Module& out);
void ToProto(const NodeView& view, v1::Node& out);
// The counts; what is of the process (version, pid, ...) is the caller's.
void ToProto(const SystemView& view, v1::StatusReply& out);

}  // namespace msa
