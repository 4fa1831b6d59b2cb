#pragma once
// What a snapshot of a region consists of.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "msa/base/nam_region.h"
#include "msa/base/status.h"

#include "region/checksum.h"

namespace msa::cli {

inline constexpr std::uint64_t kBlockBytes = std::uint64_t{1} << 20;
// A thousand terabytes; what is more is damage.
inline constexpr std::uint64_t kMaxSnapshotBytes = std::uint64_t{1} << 50;
inline constexpr std::size_t kMaxTag = 200;

struct SnapshotManifest {
  std::string tag;
  std::string region;  // name
  RegionUuid uuid;
  Generation generation;
  std::int64_t created_ms = 0;
  std::uint32_t mode = 0600;
  wire::NamPlacement placement = wire::NamPlacement::kPack;
  std::vector<wire::NamAclEntry> acl;
  struct Segment {
    std::uint64_t bytes = 0;
    std::uint32_t disp_unit = 1;
    std::vector<Checksum> blocks;  // of kBlockBytes each, the last one of what is left
  };
  std::vector<Segment> segments;

  std::uint64_t bytes() const;
  std::uint64_t blocks() const;
};

constexpr std::uint64_t BlocksOf(std::uint64_t bytes) { return (bytes + kBlockBytes - 1) / kBlockBytes; }
// Of block `index` of a segment.
constexpr std::uint64_t BytesOfBlock(std::uint64_t segment_bytes, std::uint64_t index) {
  const std::uint64_t left = segment_bytes - index * kBlockBytes;
  return left < kBlockBytes ? left : kBlockBytes;
}

// Letters, digits, '.', '_' and '-', the first one a letter or a digit, at most kMaxTag.
bool IsTag(std::string_view text);

// Lines of words, the last one a checksum of the others.
std::string ToText(const SnapshotManifest& manifest);
// kDataLoss: torn or damaged, with what is wrong; kFailedPrecondition: of another version.
Result<SnapshotManifest> ParseManifest(std::string_view text);

}  // namespace msa::cli
