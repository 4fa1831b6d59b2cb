#include "region/region_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "region/region_path.h"
#include "region/region_system.h"

namespace msa::cli {
namespace {

using ::testing::HasSubstr;

wire::NamRegionInfo ThreeSegments() {
  wire::NamRegionInfo out;
  out.name = "fields";
  for (const std::uint64_t bytes : {100U, 0U, 50U}) out.segments.push_back({Bytes(bytes), 1, "nam0"});
  out.bytes = Bytes(150);
  return out;
}

TEST(RegionSize, CountsAsMemorySizesDoAndInBytesToo) {
  EXPECT_EQ(ParseRegionSize("64")->value, 64U << 20);
  EXPECT_EQ(ParseRegionSize("64K")->value, 64U << 10);
  EXPECT_EQ(ParseRegionSize("2GB")->value, std::uint64_t{2} << 30);
  EXPECT_EQ(ParseRegionSize("1234567B")->value, 1234567U);
  EXPECT_EQ(ParseRegionSize("0B")->value, 0U);
  for (const char* wrong : {"", "B", "-1B", "x", "1X", "99999999999999999999B", "18446744073709551615B"})
    EXPECT_EQ(ParseRegionSize(wrong).status().code(), Code::kInvalidArgument) << wrong;
  EXPECT_THAT(ParseRegionSize("99999999T").status().message(),
              HasSubstr("4096B, up to 9223372036854775807B"));
  EXPECT_EQ(*ParseByteCount("4096"), 4096U);
  EXPECT_EQ(*ParseByteCount("4K"), 4096U);
  EXPECT_FALSE(ParseByteCount("4k4").ok());
}

TEST(RegionPath, HasNameSegmentAndOffset) {
  EXPECT_EQ(*ParseRegionPath("fields"), (RegionPath{"fields", std::nullopt, 0}));
  EXPECT_EQ(*ParseRegionPath("fields/3"), (RegionPath{"fields", 3, 0}));
  EXPECT_EQ(*ParseRegionPath("fields@1K"), (RegionPath{"fields", std::nullopt, 1024}));
  EXPECT_EQ(*ParseRegionPath("a.b-c_d/0@7"), (RegionPath{"a.b-c_d", 0, 7}));
  const std::string port = "msa-nam:0123456789abcdef0123456789abcdef";
  EXPECT_EQ(ParseRegionPath(port + "/1@2")->region, port);
  for (const char* wrong : {"", "/1", "@1", "a/", "a/x", "a@", "a@x", "a/65536", "-a", "a b", "a@1/2",
                            "msa-nam:12", "a/-1", "a@99999999999999999999"})
    EXPECT_EQ(ParseRegionPath(wrong).status().code(), Code::kInvalidArgument) << wrong;
}

TEST(RegionPath, NeverLeavesItsSegmentOrItsRegion) {
  const wire::NamRegionInfo region = ThreeSegments();
  const auto range = [&](const char* path, std::optional<std::uint64_t> length = std::nullopt) {
    return RangeOf(*ParseRegionPath(path), length, region);
  };
  EXPECT_EQ(*range("fields"), (RegionRange{0, 150}));
  EXPECT_EQ(*range("fields@120"), (RegionRange{120, 30}));
  EXPECT_EQ(*range("fields/2@10"), (RegionRange{110, 40}));
  EXPECT_EQ(*range("fields/2@10", 40), (RegionRange{110, 40}));
  EXPECT_EQ(*range("fields/1"), (RegionRange{100, 0}));
  EXPECT_EQ(*range("fields@150"), (RegionRange{150, 0}));
  EXPECT_EQ(range("fields@151").status().code(), Code::kOutOfRange);
  EXPECT_EQ(range("fields/0", 101).status().code(), Code::kOutOfRange);
  EXPECT_EQ(range("fields@10", ~std::uint64_t{0}).status().code(), Code::kOutOfRange) << "overflows";
  const Status missing = range("fields/3").status();
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_THAT(missing.message(), HasSubstr("has no segment 3: its segments are 0 to 2"));
}

TEST(RegionPath, CutsAStretchIntoPiecesOfSegments) {
  std::vector<std::string> pieces;
  const auto note = [&](const SegmentPiece& piece) {
    pieces.push_back(fmt::format("{}:{}+{}", piece.segment, piece.offset, piece.bytes));
    return Status::Ok();
  };
  ASSERT_TRUE(ForEachPiece(ThreeSegments(), {90, 30}, note).ok());
  EXPECT_EQ(pieces, (std::vector<std::string>{"0:90+10", "2:0+20"}));
  EXPECT_EQ(ForEachPiece(ThreeSegments(), {140, 11}, note).code(), Code::kOutOfRange);
  pieces.clear();
  EXPECT_TRUE(ForEachPiece(ThreeSegments(), {150, 0}, note).ok());
  EXPECT_TRUE(pieces.empty());
}

TEST(RegionSegments, AreGivenOneByOneOrInEqualParts) {
  EXPECT_EQ(ParseSegment("1K:8")->bytes.value, 1024U);
  EXPECT_EQ(ParseSegment("1K:8")->disp_unit, 8U);
  EXPECT_EQ(ParseSegment("0B")->disp_unit, 1U);
  for (const char* wrong : {"", ":8", "1K:", "1K:0", "1K:x", "1K:8:9"})
    EXPECT_EQ(ParseSegment(wrong).status().code(), Code::kInvalidArgument) << wrong;
  const auto equal = EqualSegments(Bytes(10), 3);
  ASSERT_EQ(equal.size(), 3u);
  EXPECT_EQ(equal[0].bytes.value, 3U);
  EXPECT_EQ(equal[2].bytes.value, 4U);
  EXPECT_EQ(ParseSegmentSize("2=1G")->segment, 2U);
  EXPECT_EQ(ParseSegmentSize("2=1G")->bytes.value, 1U << 30);
  for (const char* wrong : {"", "2", "=1G", "x=1G", "2=", "65536=1G"})
    EXPECT_EQ(ParseSegmentSize(wrong).status().code(), Code::kInvalidArgument) << wrong;
}

TEST(RegionAccess, TakesModesOfReadAndWriteBitsOnly) {
  EXPECT_EQ(*ParseRegionMode("0640"), 0640U);
  EXPECT_EQ(*ParseRegionMode("666"), 0666U);
  EXPECT_EQ(*ParseRegionMode("0"), 0U);
  for (const char* wrong : {"", "0700", "0641", "8", "rw", "01000", "-1"})
    EXPECT_EQ(ParseRegionMode(wrong).status().code(), Code::kInvalidArgument) << wrong;
}

TEST(RegionAccess, NamesUsersGroupsAndTheirRights) {
  const auto root = ParseAclEntry("user:root:rwm");
  ASSERT_TRUE(root.ok()) << root.status().message();
  EXPECT_EQ(root->kind, wire::NamAclKind::kUser);
  EXPECT_EQ(root->id, 0U);
  EXPECT_EQ(root->rights, NamRights::kAll);
  EXPECT_EQ(ShowAclSubject(*root), "user:root");
  const auto group = ParseAclEntry("group:4294967:r");
  ASSERT_TRUE(group.ok());
  EXPECT_EQ(group->kind, wire::NamAclKind::kGroup);
  EXPECT_EQ(group->id, 4294967U);
  EXPECT_EQ(ShowRights(group->rights), "r");
  EXPECT_EQ(ShowAclSubject(*group), "group:4294967");
  EXPECT_EQ(ParseAclRemoval("user:root")->rights, NamRights::kNone);
  for (const char* wrong :
       {"", "root:rw", "user:root", "user:root:", "user:root:rx", "user:root:rr", "group"})
    EXPECT_EQ(ParseAclEntry(wrong).status().code(), Code::kInvalidArgument) << wrong;
  EXPECT_EQ(ParseAclRemoval("user:root:r").status().code(), Code::kInvalidArgument);
  for (const char* wrong : {"user:4294967295:r", "group:4294967295:r"})
    EXPECT_EQ(ParseAclEntry(wrong).status().code(), Code::kInvalidArgument) << wrong;
  const Status nobody = ParseAclEntry("user:no-such-user:r").status();
  EXPECT_EQ(nobody.code(), Code::kNotFound);
  EXPECT_THAT(nobody.message(), HasSubstr("no user 'no-such-user'"));
}

TEST(RegionNames, AreQuotedInErrorsSoThatNoTerminalObeysThem) {
  for (const Status& status :
       {ParseRegionName("a\nb\x1b[1m").status(), ParseNewRegionName("a\nb\x1b[1m").status()})
    EXPECT_THAT(status.message(), HasSubstr("'a\\x0ab\\x1b[1m'"));
}

TEST(RegionLayout, SaysWhatDiffers) {
  const wire::NamRegionInfo region = ThreeSegments();
  auto expected = SegmentsOf(region);
  EXPECT_TRUE(CheckSameLayout(region, expected).ok());
  expected[2].bytes = Bytes(51);
  EXPECT_THAT(CheckSameLayout(region, expected).message(),
              HasSubstr("segment 2 of region 'fields' has 50 bytes, expected 51"));
  expected[2] = {Bytes(50), 4};
  EXPECT_THAT(CheckSameLayout(region, expected).message(), HasSubstr("displacement unit 1, expected 4"));
  expected.pop_back();
  EXPECT_EQ(CheckSameLayout(region, expected).code(), Code::kFailedPrecondition);
}

}  // namespace
}  // namespace msa::cli
