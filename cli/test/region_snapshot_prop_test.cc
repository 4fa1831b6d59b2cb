// Random regions, edits, snapshots and losses of blocks: each snapshot restores to exactly what the region
// held, and writes no block that the directory has.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "snapshot_fixture.h"

namespace msa::cli {
namespace {

using namespace region_test;

// From the whole range, however small the case is.
std::size_t Below(std::size_t n) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::size_t>(0, n));
}

// Some bytes of one segment, copies of other blocks, or zeros.
void Edit(Content& content) {
  auto& segment = content[Below(content.size())];
  if (segment.empty()) return;
  const std::size_t begin = Below(segment.size());
  const std::size_t bytes = std::min(segment.size() - begin, Below(kMiB + kMiB / 2) + 1);
  const auto at = segment.begin() + static_cast<std::ptrdiff_t>(begin);
  switch (Below(3)) {
    case 0: {
      const auto noise = Noise(bytes, Below(1000));
      std::copy(noise.begin(), noise.end(), at);
      break;
    }
    case 1:
      std::fill_n(at, bytes, std::byte{0});
      break;
    default:
      std::copy_n(std::vector<std::byte>(segment).begin(), bytes, at);
  }
}

std::set<Checksum> BlocksOfContent(const Content& content) {
  std::set<Checksum> out;
  for (const auto& segment : content)
    for (std::size_t at = 0; at < segment.size(); at += kBlockBytes)
      out.insert(ChecksumOf(
          std::span(segment).subspan(at, std::min<std::size_t>(kBlockBytes, segment.size() - at))));
  return out;
}

TEST(SnapshotProperty, EverySnapshotRestoresToWhatTheRegionHeld) {
  EXPECT_TRUE(rc::check([] {
    SnapshotWorld world;
    std::vector<wire::NamSegmentSpec> segments;
    for (std::size_t i = Below(3) + 1; i > 0; --i)
      segments.push_back(
          {Bytes(Below(4) == 0 ? 0 : Below(3 * kMiB)), static_cast<std::uint32_t>(Below(9) + 1)});
    FakeRegion& region = world.system.Add("fields", segments);
    std::vector<Content> history;
    std::set<Checksum> stored;
    for (std::size_t round = Below(4) + 1; round > 0; --round) {
      for (std::size_t edits = Below(3); edits > 0; --edits) Edit(region.content);
      const auto counts = world.Take("fields", {.tag = fmt::format("s{}", history.size())});
      RC_ASSERT(counts.ok());
      std::size_t fresh = 0;
      for (const Checksum& block : BlocksOfContent(region.content)) fresh += stored.insert(block).second;
      RC_ASSERT(counts->blocks_written == fresh);
      RC_ASSERT(world.Blocks().size() == stored.size());
      history.push_back(region.content);
    }
    for (std::size_t i = 0; i < history.size(); ++i) {
      const std::string name = fmt::format("again{}", i);
      RC_ASSERT(world.Restore(fmt::format("s{}", i), {.name = name}).ok());
      RC_ASSERT(world.system.regions.at(name)->content == history[i]);
      const auto& restored = world.system.regions.at(name)->info.segments;
      RC_ASSERT(restored.size() == segments.size());
    }
    // Without one block, exactly the snapshots that need it are refused.
    if (stored.empty()) return;
    const auto lost = std::next(stored.begin(), static_cast<std::ptrdiff_t>(Below(stored.size())));
    const std::string hex = ToText(*lost);
    std::filesystem::remove(world.dir + "/blocks/" + hex.substr(0, 2) + "/" + hex);
    for (std::size_t i = 0; i < history.size(); ++i) {
      const std::string name = fmt::format("torn{}", i);
      const bool whole = !BlocksOfContent(history[i]).contains(*lost);
      RC_ASSERT(world.Restore(fmt::format("s{}", i), {.name = name}).ok() == whole);
      RC_ASSERT(world.system.regions.contains(name) == whole);
    }
  }));
}

}  // namespace
}  // namespace msa::cli
