#include "msa/adapters/grpc/convert_nam_internal.h"

namespace msa {
namespace {

// Of a region that a request gives no mode.
constexpr std::uint32_t kDefaultMode = 0600;

Result<NamRights> RightsFromProto(std::uint32_t rights) {
  if (rights <= static_cast<std::uint32_t>(NamRights::kAll)) return static_cast<NamRights>(rights);
  return Error(Code::kInvalidArgument, "rights {}; expected a sum of 1 (read), 2 (write) and 4 (map)",
               rights);
}

// The wire's and the proto's numbers are the same.
template <class Wire, class Proto>
Result<Wire> EnumFromProto(const char* what, Proto value, bool is_valid, Proto most) {
  if (is_valid) return static_cast<Wire>(value);
  return Error(Code::kInvalidArgument, "{} {}; expected 0 to {}", what, static_cast<int>(value),
               static_cast<int>(most));
}

void ToProto(const wire::NamHolderInfo& in, v1::NamHolder& out) {
  out.set_lease(in.lease.value);
  out.set_job(in.job.value);
  out.set_who(in.who);
  out.set_uid(in.uid);
  out.set_user(in.user_name);
  out.set_rights(static_cast<std::uint32_t>(in.rights));
  out.set_since_ms(in.since_ms);
}

}  // namespace

Result<wire::NamCreate> FromProto(const v1::CreateRegionRequest& in) {
  wire::NamCreate out;
  MSA_ASSIGN_OR_RETURN(out.placement, EnumFromProto<wire::NamPlacement>(
                                          "placement", in.placement(),
                                          v1::NamPlacement_IsValid(in.placement()), v1::NamPlacement_MAX));
  out.token = in.token();
  out.name = in.name();
  out.lifetime = wire::NamLifetime::kPersistent;
  out.mode = in.mode() == 0 ? kDefaultMode : in.mode();
  for (const v1::NamSegment& segment : in.segments())
    out.segments.push_back({Bytes(segment.bytes()), segment.disp_unit() == 0 ? 1 : segment.disp_unit()});
  out.nodes.assign(in.nodes().begin(), in.nodes().end());
  return out;
}

Result<wire::NamOpen> FromProto(const v1::OpenRegionRequest& in) {
  wire::NamOpen out;
  MSA_ASSIGN_OR_RETURN(out.rights, RightsFromProto(in.rights()));
  out.region = in.region();
  return out;
}

wire::NamList FromProto(const v1::ListRegionsRequest& in) {
  return {.region = in.region(), .user = in.user()};
}

wire::NamRemove FromProto(const v1::RemoveRegionRequest& in) {
  return {.region = in.region(), .force = in.force()};
}

wire::NamResize FromProto(const v1::ResizeRegionRequest& in) {
  wire::NamResize out;
  out.region = in.region();
  for (const std::uint64_t bytes : in.segments()) out.segments.emplace_back(bytes);
  return out;
}

Result<wire::NamSetAccess> FromProto(const v1::SetRegionAccessRequest& in) {
  wire::NamSetAccess out;
  out.region = in.region();
  if (in.has_mode()) out.mode = in.mode();
  if (in.has_gid()) out.gid = in.gid();
  for (const v1::NamAclEntry& entry : in.set()) {
    MSA_ASSIGN_OR_RETURN(const NamRights rights, RightsFromProto(entry.rights()));
    out.set.push_back(
        {entry.group() ? wire::NamAclKind::kGroup : wire::NamAclKind::kUser, entry.id(), rights});
  }
  out.clear = in.clear();
  return out;
}

Result<wire::NamSetLifetime> FromProto(const v1::SetRegionLifetimeRequest& in) {
  wire::NamSetLifetime out;
  MSA_ASSIGN_OR_RETURN(out.lifetime, EnumFromProto<wire::NamLifetime>("lifetime", in.lifetime(),
                                                                      v1::NamLifetime_IsValid(in.lifetime()),
                                                                      v1::NamLifetime_MAX));
  out.region = in.region();
  return out;
}

wire::NamCheckAsk FromProto(const v1::CheckRegionsRequest& in) { return {.repair = in.repair()}; }

void ToProto(const wire::NamRegionInfo& in, v1::NamRegion& out) {
  out.set_uuid(ToText(in.uuid));
  out.set_generation(in.generation.value);
  out.set_name(in.name);
  out.set_port(NamPortName(in.uuid));
  out.set_uid(in.uid);
  out.set_gid(in.gid);
  out.set_user(in.user_name);
  out.set_mode(in.mode);
  for (const wire::NamAclEntry& entry : in.acl) {
    v1::NamAclEntry& to = *out.add_acl();
    to.set_group(entry.kind == wire::NamAclKind::kGroup);
    to.set_id(entry.id);
    to.set_rights(static_cast<std::uint32_t>(entry.rights));
  }
  out.set_lifetime(static_cast<v1::NamLifetime>(in.lifetime));
  out.set_placement(static_cast<v1::NamPlacement>(in.placement));
  out.set_state(static_cast<v1::NamRegionState>(in.state));
  out.set_job(in.job.value);
  out.set_created_ms(in.created_ms);
  out.set_bytes(in.bytes.value);
  for (const wire::NamSegmentInfo& segment : in.segments) {
    v1::NamSegment& to = *out.add_segments();
    to.set_bytes(segment.bytes.value);
    to.set_disp_unit(segment.disp_unit);
    to.set_node(segment.node);
  }
  for (const wire::NamHolderInfo& holder : in.holders) ToProto(holder, *out.add_holders());
}

void ToProto(const wire::NamListing& in, v1::ListRegionsReply& out) {
  for (const wire::NamRegionInfo& region : in.regions) ToProto(region, *out.add_regions());
}

void ToProto(const wire::NamUsage& in, v1::RegionUsageReply& out) {
  for (const wire::NamNodeUsage& node : in.nodes) {
    v1::RegionUsageReply::Node& to = *out.add_nodes();
    to.set_name(node.node);
    to.set_up(node.up);
    to.set_capacity(node.capacity.value);
    to.set_used(node.used.value);
    to.set_regions(node.regions);
  }
  for (const wire::NamUserUsage& user : in.users) {
    v1::RegionUsageReply::User& to = *out.add_users();
    to.set_uid(user.uid);
    to.set_name(user.user_name);
    to.set_used(user.used.value);
    to.set_quota(user.quota.value);
    to.set_regions(user.regions);
  }
  for (const wire::NamJobUsage& job : in.jobs) {
    v1::RegionUsageReply::Job& to = *out.add_jobs();
    to.set_id(job.job.value);
    to.set_used(job.used.value);
    to.set_allotment(job.allotment.value);
  }
  out.set_reserved(in.reserved.value);
}

void ToProto(const wire::NamCheckResult& in, v1::CheckRegionsReply& out) {
  for (const wire::NamFinding& finding : in.findings) {
    v1::CheckRegionsReply::Finding& to = *out.add_findings();
    to.set_node(finding.node);
    to.set_region(finding.region);
    to.set_what(finding.what);
    to.set_repaired(finding.repaired);
  }
  out.mutable_away()->Assign(in.away.begin(), in.away.end());
}

}  // namespace msa
