#include "output/region_texts.h"

#include <algorithm>

#include <fmt/format.h>

#include "msa/topology/host_list.h"

#include "output/text.h"
#include "region/region_values.h"

namespace msa::cli {
namespace {

Document TimeField(std::int64_t unix_ms) { return unix_ms == 0 ? Document() : Document(UtcTime(unix_ms)); }
Cell TimeCell(std::int64_t unix_ms) { return {unix_ms == 0 ? "" : ShowTime(unix_ms), UtcTime(unix_ms)}; }
Cell BytesCell(Bytes bytes) { return {ShowBytes(bytes.value), fmt::format("{}", bytes)}; }
Cell NumberCell(std::uint64_t number) { return fmt::format("{}", number); }

std::string_view LifetimeName(wire::NamLifetime lifetime) {
  return lifetime == wire::NamLifetime::kPersistent ? "persistent" : "lease";
}
std::string_view PlacementName(wire::NamPlacement placement) {
  return placement == wire::NamPlacement::kSpread ? "spread" : "pack";
}
std::string ModeText(std::uint32_t mode) { return fmt::format("{:04o}", mode); }

std::vector<std::string> NodesOf(const wire::NamRegionInfo& region) {
  std::vector<std::string> out;
  for (const auto& segment : region.segments)
    if (std::find(out.begin(), out.end(), segment.node) == out.end()) out.push_back(segment.node);
  return out;
}

std::string AclText(const wire::NamAclEntry& entry) {
  return fmt::format("{}:{}", ShowAclSubject(entry), ShowRights(entry.rights));
}

Document AclDocument(const std::vector<wire::NamAclEntry>& acl) {
  Document::Array out;
  for (const wire::NamAclEntry& entry : acl)
    out.emplace_back(Document::Object{
        {"kind", entry.kind == wire::NamAclKind::kUser ? "user" : "group"},
        {"id", entry.id},
        {"rights", ShowRights(entry.rights)},
    });
  return Document(std::move(out));
}

Document::Object AccessFields(const wire::NamRegionInfo& region) {
  return {{"name", region.name}, {"user", region.user_name},      {"uid", region.uid},
          {"gid", region.gid},   {"mode", ModeText(region.mode)}, {"acl", AclDocument(region.acl)}};
}

Document SegmentsDocument(const wire::NamRegionInfo& region) {
  Document::Array out;
  for (std::size_t i = 0; i < region.segments.size(); ++i)
    out.emplace_back(Document::Object{{"index", std::uint64_t{i}},
                                      {"bytes", region.segments[i].bytes.value},
                                      {"displacement_unit", region.segments[i].disp_unit},
                                      {"node", region.segments[i].node}});
  return Document(std::move(out));
}

Document HoldersDocument(const wire::NamRegionInfo& region) {
  Document::Array out;
  for (const wire::NamHolderInfo& holder : region.holders)
    out.emplace_back(
        Document::Object{{"lease", holder.lease.value},
                         {"job", holder.job.value == 0 ? Document() : Document(holder.job.value)},
                         {"who", holder.who},
                         {"user", holder.user_name},
                         {"uid", holder.uid},
                         {"rights", ShowRights(holder.rights)},
                         {"since", TimeField(holder.since_ms)}});
  return Document(std::move(out));
}

Document::Object RegionFields(const wire::NamRegionInfo& region) {
  Document::Object out = AccessFields(region);
  out.insert(out.end(), {{"uuid", ToText(region.uuid)},
                         {"port", NamPortName(region.uuid)},
                         {"generation", region.generation.value},
                         {"state", RegionStateName(region.state)},
                         {"bytes", region.bytes.value},
                         {"lifetime", LifetimeName(region.lifetime)},
                         {"placement", PlacementName(region.placement)},
                         {"job", region.job.value == 0 ? Document() : Document(region.job.value)},
                         {"created_at", TimeField(region.created_ms)},
                         {"segments", SegmentsDocument(region)}});
  return out;
}

// "3 GiB of 4 GiB" in per cent; empty without a limit.
std::string Percent(Bytes used, Bytes of) {
  if (of.value == 0) return "";
  return fmt::format("{:.0f}%", 100.0 * static_cast<double>(used.value) / static_cast<double>(of.value));
}

}  // namespace

std::string_view RegionStateName(wire::NamRegionState state) {
  switch (state) {
    case wire::NamRegionState::kDamaged:
      return "DAMAGED";
    case wire::NamRegionState::kAway:
      return "AWAY";
    case wire::NamRegionState::kRemoving:
      return "REMOVING";
    case wire::NamRegionState::kReady:
      break;
  }
  return "READY";
}

Listing RegionListing(const std::vector<wire::NamRegionInfo>& regions) {
  Listing out;
  out.kind = "RegionList";
  out.empty_text = "no regions";
  out.columns = {{"NAME"},      {"USER"},  {"MODE"},     {"SIZE", false, true}, {"SEGMENTS", false, true},
                 {"NODELIST"},  {"STATE"}, {"LIFETIME"}, {"JOB", true, true},   {"CREATED", true},
                 {"PORT", true}};
  for (const wire::NamRegionInfo& region : regions)
    out.rows.push_back(
        {region.name,
         {region.name, region.user_name, ModeText(region.mode) + (region.acl.empty() ? "" : "+"),
          BytesCell(region.bytes), NumberCell(region.segments.size()), CompressHostList(NodesOf(region)),
          std::string(RegionStateName(region.state)), std::string(LifetimeName(region.lifetime)),
          region.job.value == 0 ? "" : fmt::format("{}", region.job), TimeCell(region.created_ms),
          NamPortName(region.uuid)},
         Document(RegionFields(region))});
  return out;
}

Details RegionDetails(const wire::NamRegionInfo& region) {
  Details out{.kind = "Region", .name = region.name, .lines = {}, .fields = RegionFields(region)};
  out.fields.emplace_back("holders", HoldersDocument(region));
  out.lines = {{"region", region.name},
               {"port", NamPortName(region.uuid)},
               {"state", std::string(RegionStateName(region.state))},
               {"owner", fmt::format("{} ({})", region.user_name, region.uid)},
               {"mode", fmt::format("{}, group {}", ModeText(region.mode), region.gid)}};
  for (std::size_t i = 0; i < region.acl.size(); ++i)
    out.lines.emplace_back(i == 0 ? "acl" : "", AclText(region.acl[i]));
  out.lines.emplace_back("size", fmt::format("{} ({} bytes)", ShowBytes(region.bytes.value), region.bytes));
  out.lines.emplace_back("lifetime", region.lifetime == wire::NamLifetime::kPersistent ? "until it is removed"
                                     : region.job.value != 0
                                         ? fmt::format("as long as job {}", region.job)
                                         : "as long as the process that made it has it open");
  out.lines.emplace_back("generation", fmt::format("{}", region.generation));
  out.lines.emplace_back("created", ShowTime(region.created_ms) +
                                        (region.job.value == 0 ? "" : fmt::format(" by job {}", region.job)));
  out.lines.emplace_back("placement", std::string(PlacementName(region.placement)));
  for (std::size_t i = 0; i < region.segments.size(); ++i) {
    const wire::NamSegmentInfo& segment = region.segments[i];
    out.lines.emplace_back(i == 0 ? "segments" : "",
                           fmt::format("{}  {} bytes, displacement unit {}, on {}", i, segment.bytes,
                                       segment.disp_unit, segment.node));
  }
  if (region.holders.empty()) out.lines.emplace_back("attached", "nobody");
  for (std::size_t i = 0; i < region.holders.size(); ++i) {
    const wire::NamHolderInfo& holder = region.holders[i];
    const std::string job = holder.job.value == 0 ? "" : fmt::format("job {}", holder.job);
    out.lines.emplace_back(i == 0 ? "attached" : "",
                           fmt::format("{}, {}{}, {} since {} (lease {})", holder.who, holder.user_name,
                                       job.empty() || holder.who == job ? "" : ", " + job,
                                       ShowRights(holder.rights), ShowTime(holder.since_ms), holder.lease));
  }
  return out;
}

Details AccessDetails(const wire::NamRegionInfo& region) {
  Details out{.kind = "RegionAccess", .name = region.name, .lines = {}, .fields = AccessFields(region)};
  out.lines = {{"region", region.name},
               {"owner", fmt::format("{} ({})", region.user_name, region.uid)},
               {"group", fmt::format("{}", region.gid)},
               {"mode", ModeText(region.mode)}};
  for (std::size_t i = 0; i < region.acl.size(); ++i)
    out.lines.emplace_back(i == 0 ? "acl" : "", AclText(region.acl[i]));
  return out;
}

Listing NodeUsageListing(const wire::NamUsage& usage) {
  Listing out;
  out.kind = "RegionNodeUsage";
  out.empty_text = "no NAM nodes";
  out.columns = {{"NODE"},
                 {"STATE"},
                 {"SIZE", false, true},
                 {"USED", false, true},
                 {"FREE", false, true},
                 {"USE%", false, true},
                 {"REGIONS", false, true}};
  for (const wire::NamNodeUsage& node : usage.nodes) {
    const Bytes free(node.capacity.value - std::min(node.capacity.value, node.used.value));
    const std::string state = node.up ? "UP" : "DOWN";
    out.rows.push_back({node.node,
                        {node.node, state, BytesCell(node.capacity), BytesCell(node.used), BytesCell(free),
                         Percent(node.used, node.capacity), NumberCell(node.regions)},
                        Document::Object{{"node", node.node},
                                         {"state", state},
                                         {"capacity", node.capacity.value},
                                         {"used", node.used.value},
                                         {"regions", node.regions}}});
  }
  return out;
}

Listing UserUsageListing(const wire::NamUsage& usage) {
  Listing out;
  out.kind = "RegionUserUsage";
  out.empty_text = "no user has a persistent region";
  out.columns = {{"USER"},
                 {"USED", false, true},
                 {"QUOTA", false, true},
                 {"USE%", false, true},
                 {"REGIONS", false, true}};
  for (const wire::NamUserUsage& user : usage.users) {
    const bool limited = user.quota.value != 0;
    out.rows.push_back({user.user_name,
                        {user.user_name, BytesCell(user.used), limited ? BytesCell(user.quota) : Cell("none"),
                         Percent(user.used, user.quota), NumberCell(user.regions)},
                        Document::Object{{"user", user.user_name},
                                         {"uid", user.uid},
                                         {"used", user.used.value},
                                         {"quota", limited ? Document(user.quota.value) : Document()},
                                         {"regions", user.regions}}});
  }
  return out;
}

Listing JobUsageListing(const wire::NamUsage& usage) {
  Listing out;
  out.kind = "RegionJobUsage";
  out.empty_text = "no job uses NAM";
  out.columns = {
      {"JOB", false, true}, {"USED", false, true}, {"ALLOTMENT", false, true}, {"USE%", false, true}};
  for (const wire::NamJobUsage& job : usage.jobs) {
    const std::string id = fmt::format("{}", job.job);
    out.rows.push_back(
        {id,
         {id, BytesCell(job.used), job.allotment.value == 0 ? Cell("none") : BytesCell(job.allotment),
          Percent(job.used, job.allotment)},
         Document::Object{
             {"job", job.job.value}, {"used", job.used.value}, {"allotment", job.allotment.value}}});
  }
  return out;
}

Document UsageDocument(const wire::NamUsage& usage) {
  const auto items = [](const Listing& listing) {
    Document::Array out;
    for (const auto& row : listing.rows) out.push_back(row.item);
    return Document(std::move(out));
  };
  return Envelope("RegionUsage", {{"nodes", items(NodeUsageListing(usage))},
                                  {"users", items(UserUsageListing(usage))},
                                  {"jobs", items(JobUsageListing(usage))},
                                  {"reserved", usage.reserved.value}});
}

Listing CheckListing(const wire::NamCheckResult& result) {
  Listing out;
  out.kind = "RegionCheck";
  out.empty_text = "regions and NAM nodes agree";
  out.columns = {{"NODE"}, {"REGION"}, {"REPAIRED"}, {"FINDING"}};
  for (const wire::NamFinding& finding : result.findings)
    out.rows.push_back({finding.region,
                        {finding.node, finding.region, finding.repaired ? "yes" : "no", finding.what},
                        Document::Object{{"node", finding.node},
                                         {"region", finding.region},
                                         {"finding", finding.what},
                                         {"repaired", finding.repaired}}});
  for (const std::string& node : result.away)
    out.rows.push_back({"",
                        {node, "", "no", "the node is away and was not asked"},
                        Document::Object{{"node", node},
                                         {"region", Document()},
                                         {"finding", "the node is away and was not asked"},
                                         {"repaired", false}}});
  return out;
}

Listing SnapshotListing(const std::vector<SnapshotStore::Entry>& entries) {
  Listing out;
  out.kind = "SnapshotList";
  out.empty_text = "no snapshots";
  out.columns = {{"TAG"},
                 {"REGION"},
                 {"SIZE", false, true},
                 {"SEGMENTS", false, true},
                 {"TAKEN"},
                 {"GENERATION", true, true},
                 {"UUID", true},
                 {"STATE"}};
  for (const SnapshotStore::Entry& entry : entries) {
    const SnapshotManifest& m = entry.manifest;
    if (!entry.status.ok()) {
      out.rows.push_back({entry.tag,
                          {entry.tag, "", "", "", "", "", "", entry.status.message()},
                          Document::Object{{"tag", entry.tag}, {"state", entry.status.message()}}});
      continue;
    }
    out.rows.push_back({entry.tag,
                        {entry.tag, m.region, BytesCell(Bytes(m.bytes())), NumberCell(m.segments.size()),
                         TimeCell(m.created_ms), fmt::format("{}", m.generation), ToText(m.uuid), "whole"},
                        Document::Object{{"tag", entry.tag},
                                         {"region", m.region},
                                         {"uuid", ToText(m.uuid)},
                                         {"generation", m.generation.value},
                                         {"bytes", m.bytes()},
                                         {"blocks", m.blocks()},
                                         {"segments", std::uint64_t{m.segments.size()}},
                                         {"taken_at", TimeField(m.created_ms)},
                                         {"state", "whole"}}});
  }
  return out;
}

}  // namespace msa::cli
