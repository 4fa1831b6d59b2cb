#pragma once

#include "msa/adapters/grpc/convert_spec_internal.h"
#include "msa/job/controller.h"
#include "msa/v1/job.pb.h"

// Between proto/msa/v1/job.proto and the core. Pure; any thread.
namespace msa {

// Only the types are checked here; CompleteSpec checks the rest. kInvalidArgument: an enum beyond its values.
Result<JobSpec> JobSpecFromProto(v1::JobSpec&& in);

enum class JobDetail {
  kListed,      // as in ListJobs and JobEvent
  kNamespaces,  // with namespaces, as in ListJobs that asks for them
  kFull,        // with spec and namespaces, as in GetJob
};
void ToProto(const JobView& view, JobDetail detail, v1::Job& out);

v1::JobEvent EventOf(const JobView& view);

// Limits: at most kMaxFilterIds ids, and states that exist (kInvalidArgument); the limit is cut to
// kMaxListedJobs.
inline constexpr int kMaxFilterIds = 10000;
inline constexpr std::uint32_t kMaxListedJobs = 10000;
Result<JobFilter> FilterFromProto(const v1::ListJobsRequest& in);

void ToProto(const GrantView& view, v1::Grant& out);
// kInvalidArgument: more than kMaxFilterIds ids.
Result<GrantFilter> FilterFromProto(const v1::ListGrantsRequest& in);

}  // namespace msa
