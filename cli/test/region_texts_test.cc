#include "output/region_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace msa::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

wire::NamRegionInfo Fields() {
  wire::NamRegionInfo out;
  out.uuid = {0x0123456789abcdefU, 0x1U};
  out.generation = Generation(3);
  out.name = "fields";
  out.uid = 1000;
  out.gid = 100;
  out.user_name = "alice";
  out.mode = 0640;
  out.acl = {{wire::NamAclKind::kUser, 4294967, NamRights::kRead | NamRights::kMap}};
  out.lifetime = wire::NamLifetime::kPersistent;
  out.job = JobId(7);
  out.created_ms = 1795255200000;
  out.bytes = Bytes(3 << 20);
  out.segments = {{Bytes(1 << 20), 8, "nam0"}, {Bytes(2 << 20), 4, "nam1"}};
  out.holders = {{LeaseId(12), JobId(9), "rank 3 of msa.9.1.0 on cn0", 1000, "alice",
                  NamRights::kRead | NamRights::kWrite, 1795255260000}};
  return out;
}

TEST(RegionTexts, ListOneLineForEachRegion) {
  const Listing listing = RegionListing({Fields()});
  const std::string table = Render(listing, {});
  EXPECT_THAT(table, HasSubstr("NAME    USER   MODE   SIZE  SEGMENTS  NODELIST  STATE  LIFETIME\n"));
  EXPECT_THAT(table, HasSubstr("fields  alice  0640+    3M         2  nam[0-1]  READY  persistent\n"));
  EXPECT_THAT(Render(listing, {.format = Format::kWide}),
              HasSubstr("msa-nam:0123456789abcdef0000000000000001"));
  EXPECT_EQ(Render(listing, {.format = Format::kName}), "fields\n");
  EXPECT_THAT(Render(listing, {.format = Format::kCsv}),
              HasSubstr("\nfields,alice,0640+,3145728,2,nam[0-1],READY"));
  EXPECT_EQ(Render(RegionListing({}), {}), "no regions\n");
  const std::string json = Render(listing, {.format = Format::kJson});
  EXPECT_THAT(json, AllOf(HasSubstr("\"apiVersion\": \"msa/v1\""), HasSubstr("\"kind\": \"RegionList\""),
                          HasSubstr("\"bytes\": 3145728"), HasSubstr("\"displacement_unit\": 8"),
                          HasSubstr("\"port\": \"msa-nam:0123"), HasSubstr("\"rights\": \"rm\""),
                          HasSubstr("\"created_at\": \"2026-11-21T10:00:00.000Z\"")));
}

TEST(RegionTexts, ShowSegmentsAndWhoIsAttached) {
  wire::NamRegionInfo region = Fields();
  const std::string text = *Render(RegionDetails(region), {});
  EXPECT_THAT(text, AllOf(HasSubstr("port:       msa-nam:0123456789abcdef0000000000000001\n"),
                          HasSubstr("segments:   0  1048576 bytes, displacement unit 8, on nam0\n"
                                    "            1  2097152 bytes, displacement unit 4, on nam1\n"),
                          HasSubstr("attached:   rank 3 of msa.9.1.0 on cn0, alice, job 9, rw since "),
                          HasSubstr("(lease 12)"), HasSubstr("acl:        user:4294967:rm\n"),
                          HasSubstr("state:      READY\n"), HasSubstr("lifetime:   until it is removed\n")));
  EXPECT_THAT(*Render(RegionDetails(region), {.format = Format::kJson}),
              AllOf(HasSubstr("\"kind\": \"Region\""), HasSubstr("\"who\": \"rank 3 of msa.9.1.0 on cn0\""),
                    HasSubstr("\"lease\": 12")));
  region.holders.clear();
  region.state = wire::NamRegionState::kDamaged;
  region.lifetime = wire::NamLifetime::kLease;
  EXPECT_THAT(*Render(RegionDetails(region), {}),
              AllOf(HasSubstr("attached:   nobody\n"), HasSubstr("DAMAGED"), HasSubstr("as long as job 7")));
}

TEST(RegionTexts, ShowUseByNodeUserAndJob) {
  wire::NamUsage usage;
  usage.nodes = {{"nam0", true, Bytes(1 << 30), Bytes(256 << 20), 3},
                 {"nam1", false, Bytes(10), Bytes(20), 1}};
  usage.users = {{1000, "alice", Bytes(1 << 20), Bytes(4 << 20), 2}, {1001, "bob", Bytes(5), Bytes(0), 1}};
  usage.jobs = {{JobId(9), Bytes(1), Bytes(2)}};
  usage.reserved = Bytes(77);
  EXPECT_THAT(Render(NodeUsageListing(usage), {}),
              AllOf(HasSubstr("nam0  UP       1G  256M  768M   25%        3\n"),
                    HasSubstr("nam1  DOWN     10    20     0  200%        1\n")));
  EXPECT_THAT(Render(UserUsageListing(usage), {}), AllOf(HasSubstr("alice    1M     4M   25%        2\n"),
                                                         HasSubstr("bob       5   none     -        1\n")));
  EXPECT_THAT(Render(JobUsageListing(usage), {}), HasSubstr("  9     1          2   50%\n"));
  EXPECT_THAT(UsageDocument(usage).ToJson(),
              AllOf(HasSubstr("\"kind\": \"RegionUsage\""), HasSubstr("\"reserved\": 77"),
                    HasSubstr("\"quota\": null"), HasSubstr("\"allotment\": 2")));
}

TEST(RegionTexts, NameFindingsAndNodesThatWereNotAsked) {
  wire::NamCheckResult result;
  EXPECT_EQ(Render(CheckListing(result), {}), "regions and NAM nodes agree\n");
  result.findings = {{"nam0", "fields", "its memory is gone", true}};
  result.away = {"nam1"};
  EXPECT_THAT(
      Render(CheckListing(result), {}),
      AllOf(HasSubstr("nam0  fields  yes       its memory is gone\n"), HasSubstr("nam1  -       no")));
}

TEST(RegionTexts, ListSnapshotsAndSayWhichAreDamaged) {
  SnapshotStore::Entry good;
  good.tag = "one";
  good.manifest.tag = "one";
  good.manifest.region = "fields";
  good.manifest.created_ms = 1795255200000;
  good.manifest.segments.push_back({1 << 20, 1, {Checksum{1, 2}}});
  SnapshotStore::Entry bad;
  bad.tag = "two";
  bad.status = Status(Code::kDataLoss, "it is torn");
  const std::string table = Render(SnapshotListing({good, bad}), {});
  EXPECT_THAT(table, AllOf(HasSubstr("one  fields    1M         1  "), HasSubstr("whole\n"),
                           HasSubstr("it is torn")));
  EXPECT_THAT(Render(SnapshotListing({good}), {.format = Format::kJson}), HasSubstr("\"blocks\": 1"));
}

}  // namespace
}  // namespace msa::cli
