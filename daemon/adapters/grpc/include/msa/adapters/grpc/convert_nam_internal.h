#pragma once

#include "msa/base/nam_messages.h"
#include "msa/base/status.h"
#include "msa/v1/nam.pb.h"

// Between proto/msa/v1/nam.proto and the messages of the network attached memory. Pure; any thread.
namespace msa {

// kInvalidArgument: an enum or a set of rights that this version does not know. Everything else is judged by
// the controller's book.
Result<wire::NamCreate> FromProto(const v1::CreateRegionRequest& in);  // of NamLifetime::kPersistent
Result<wire::NamOpen> FromProto(const v1::OpenRegionRequest& in);
wire::NamList FromProto(const v1::ListRegionsRequest& in);
wire::NamRemove FromProto(const v1::RemoveRegionRequest& in);
wire::NamResize FromProto(const v1::ResizeRegionRequest& in);
Result<wire::NamSetAccess> FromProto(const v1::SetRegionAccessRequest& in);
Result<wire::NamSetLifetime> FromProto(const v1::SetRegionLifetimeRequest& in);
wire::NamCheckAsk FromProto(const v1::CheckRegionsRequest& in);

void ToProto(const wire::NamRegionInfo& in, v1::NamRegion& out);
void ToProto(const wire::NamListing& in, v1::ListRegionsReply& out);
void ToProto(const wire::NamUsage& in, v1::RegionUsageReply& out);
void ToProto(const wire::NamCheckResult& in, v1::CheckRegionsReply& out);

}  // namespace msa
