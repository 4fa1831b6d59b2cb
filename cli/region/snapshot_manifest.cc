#include "region/snapshot_manifest.h"

#include <algorithm>

#include "region/region_values.h"
#include "region/text_lines.h"

namespace msa::cli {
namespace {

constexpr std::string_view kHead = "msa-snapshot 1";

Status TakeNames(SealedLines& lines, SnapshotManifest* out) {
  MSA_ASSIGN_OR_RETURN(const auto tag, lines.Next("tag", 1));
  if (!IsTag(tag[0])) return Error(Code::kDataLoss, "'{}' is no tag", tag[0].substr(0, kMaxTag));
  out->tag = tag[0];
  MSA_ASSIGN_OR_RETURN(const auto region, lines.Next("region", 4));
  if (!ParseNewRegionName(region[0]).ok()) return Status(Code::kDataLoss, "the region's name is none");
  out->region = region[0];
  const auto uuid = ParseRegionUuid(region[1]);
  if (!uuid) return Error(Code::kDataLoss, "'{}' is no uuid", region[1].substr(0, 64));
  out->uuid = *uuid;
  MSA_RETURN_IF_ERROR(TakeNumber(region[2], "generation", &out->generation.value));
  MSA_RETURN_IF_ERROR(TakeNumber(region[3], "time", &out->created_ms));
  return Status::Ok();
}

Status TakeAccess(SealedLines& lines, SnapshotManifest* out) {
  MSA_ASSIGN_OR_RETURN(const auto access, lines.Next("access", 2));
  const auto mode = ParseRegionMode(access[0]);
  if (!mode.ok()) return Status(Code::kDataLoss, mode.status().message());
  out->mode = *mode;
  const auto placement = ParsePlacement(access[1]);
  if (!placement.ok()) return Status(Code::kDataLoss, placement.status().message());
  out->placement = *placement;
  while (lines.NextIs("acl")) {
    MSA_ASSIGN_OR_RETURN(const auto words, lines.Next("acl", 3));
    wire::NamAclEntry& entry = out->acl.emplace_back();
    if (words[0] != "user" && words[0] != "group")
      return Error(Code::kDataLoss, "'{}' is neither user nor group", words[0].substr(0, 64));
    entry.kind = words[0] == "user" ? wire::NamAclKind::kUser : wire::NamAclKind::kGroup;
    MSA_RETURN_IF_ERROR(TakeNumber(words[1], "id", &entry.id));
    const auto rights = ParseRights(words[2]);
    if (!rights.ok()) return Status(Code::kDataLoss, rights.status().message());
    entry.rights = *rights;
    if (out->acl.size() > wire::kMaxNamAcl)
      return Error(Code::kDataLoss, "more than {} entries of access", wire::kMaxNamAcl);
  }
  return Status::Ok();
}

Status TakeSegment(SealedLines& lines, SnapshotManifest* out) {
  MSA_ASSIGN_OR_RETURN(const auto words, lines.Next("segment", 2));
  SnapshotManifest::Segment& segment = out->segments.emplace_back();
  MSA_RETURN_IF_ERROR(TakeNumber(words[0], "size of the segment", &segment.bytes));
  MSA_RETURN_IF_ERROR(TakeNumber(words[1], "displacement unit", &segment.disp_unit));
  if (segment.disp_unit == 0 || segment.bytes > kMaxSnapshotBytes || out->bytes() > kMaxSnapshotBytes)
    return Error(Code::kDataLoss, "a segment of {} bytes, displacement unit {}", segment.bytes,
                 segment.disp_unit);
  // Blocks are appended as they are found: a number alone takes no memory.
  for (std::uint64_t i = 0; i < BlocksOf(segment.bytes); ++i) {
    MSA_ASSIGN_OR_RETURN(const auto block, lines.Next("block", 1));
    const auto checksum = ParseChecksum(block[0]);
    if (!checksum) return Error(Code::kDataLoss, "'{}' is no checksum of a block", block[0].substr(0, 64));
    segment.blocks.push_back(*checksum);
  }
  return Status::Ok();
}

}  // namespace

std::uint64_t SnapshotManifest::bytes() const {
  std::uint64_t out = 0;
  for (const Segment& segment : segments) out += segment.bytes;
  return out;
}

std::uint64_t SnapshotManifest::blocks() const {
  std::uint64_t out = 0;
  for (const Segment& segment : segments) out += segment.blocks.size();
  return out;
}

bool IsTag(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= kMaxTag && std::all_of(text.begin(), text.end(), fits) &&
         text[0] != '.' && text[0] != '_' && text[0] != '-';
}

std::string ToText(const SnapshotManifest& manifest) {
  std::string out =
      fmt::format("{}\ntag {}\nregion {} {} {} {}\naccess {:04o} {}\n", kHead, manifest.tag, manifest.region,
                  ToText(manifest.uuid), manifest.generation.value, manifest.created_ms, manifest.mode,
                  manifest.placement == wire::NamPlacement::kSpread ? "spread" : "pack");
  for (const wire::NamAclEntry& entry : manifest.acl)
    out += fmt::format("acl {} {} {}\n", entry.kind == wire::NamAclKind::kUser ? "user" : "group", entry.id,
                       ShowRights(entry.rights));
  out += fmt::format("segments {}\n", manifest.segments.size());
  for (const auto& segment : manifest.segments) {
    out += fmt::format("segment {} {}\n", segment.bytes, segment.disp_unit);
    for (const Checksum& block : segment.blocks) out += "block " + ToText(block) + "\n";
  }
  return Seal(std::move(out));
}

Result<SnapshotManifest> ParseManifest(std::string_view text) {
  MSA_ASSIGN_OR_RETURN(SealedLines lines, SealedLines::Open(text, kHead));
  SnapshotManifest out;
  MSA_RETURN_IF_ERROR(TakeNames(lines, &out));
  MSA_RETURN_IF_ERROR(TakeAccess(lines, &out));
  MSA_ASSIGN_OR_RETURN(const auto words, lines.Next("segments", 1));
  std::uint32_t count = 0;
  MSA_RETURN_IF_ERROR(TakeNumber(words[0], "number of segments", &count));
  if (count == 0 || count > wire::kMaxNamSegments)
    return Error(Code::kDataLoss, "{} segments, expected 1 to {}", count, wire::kMaxNamSegments);
  for (std::uint32_t i = 0; i < count; ++i) MSA_RETURN_IF_ERROR(TakeSegment(lines, &out));
  MSA_RETURN_IF_ERROR(lines.End());
  return out;
}

}  // namespace msa::cli
