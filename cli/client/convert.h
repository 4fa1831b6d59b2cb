#pragma once

#include "msa/v1/job.pb.h"
#include "msa/v1/topology.pb.h"

#include "client/types.h"

// From proto/msa/v1 to plain values. Pure; any thread.
namespace msa::cli {

SystemInfo FromProto(const v1::StatusReply& in);
ModuleInfo FromProto(const v1::Module& in);
NodeInfo FromProto(const v1::Node& in);
JobInfo FromProto(const v1::Job& in);
GrantInfo FromProto(const v1::Grant& in);
JobEvent FromProto(const v1::JobEvent& in);

}  // namespace msa::cli
