#pragma once

#include "msa/job/job_spec.h"
#include "msa/v1/job.pb.h"

// What a user asks for, between proto/msa/v1/job.proto and the core: for the controller and for msactl. Pure;
// any thread.
namespace msa {

// Takes the strings out of `in`. Nothing is checked.
JobSpec SpecFromProto(v1::JobSpec&& in);
void ToProto(const JobSpec& spec, v1::JobSpec& out);

}  // namespace msa
