#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/adapters/grpc/convert_nam_internal.h"

namespace msa {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ConvertNam, ACreationIsPersistentAndKeepsItsFields) {
  v1::CreateRegionRequest in;
  in.set_token("t");
  in.set_name("field");
  in.set_mode(0640);
  in.set_placement(v1::NAM_SPREAD);
  v1::NamSegment* segment = in.add_segments();
  segment->set_bytes(4096);
  segment->set_disp_unit(8);
  in.add_nodes("nam0");
  const Result<wire::NamCreate> out = FromProto(in);
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->token, "t");
  EXPECT_EQ(out->name, "field");
  EXPECT_EQ(out->mode, 0640u);
  EXPECT_EQ(out->lifetime, wire::NamLifetime::kPersistent);
  EXPECT_EQ(out->placement, wire::NamPlacement::kSpread);
  ASSERT_EQ(out->segments.size(), 1u);
  EXPECT_EQ(out->segments[0].bytes, Bytes(4096));
  EXPECT_EQ(out->segments[0].disp_unit, 8u);
  EXPECT_THAT(out->nodes, ElementsAre("nam0"));
}

TEST(ConvertNam, ACreationWithoutModeAndUnitGetsTheDefaults) {
  v1::CreateRegionRequest in;
  in.add_segments()->set_bytes(1);
  const Result<wire::NamCreate> out = FromProto(in);
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->mode, 0600u);
  EXPECT_EQ(out->segments[0].disp_unit, 1u);
}

TEST(ConvertNam, RefusesWhatThisVersionDoesNotKnow) {
  v1::CreateRegionRequest create;
  create.set_placement(static_cast<v1::NamPlacement>(7));
  EXPECT_THAT(FromProto(create).status().message(), HasSubstr("placement 7; expected 0 to 1"));
  v1::OpenRegionRequest open;
  open.set_rights(8);
  EXPECT_THAT(FromProto(open).status().message(), HasSubstr("rights 8"));
  v1::SetRegionAccessRequest access;
  access.add_set()->set_rights(256 + 1);  // not the read right of its lowest byte
  EXPECT_EQ(FromProto(access).status().code(), Code::kInvalidArgument);
  v1::SetRegionLifetimeRequest lifetime;
  lifetime.set_lifetime(static_cast<v1::NamLifetime>(2));
  EXPECT_EQ(FromProto(lifetime).status().code(), Code::kInvalidArgument);
}

TEST(ConvertNam, AnAccessRequestTellsWhatIsGivenFromWhatIsNot) {
  v1::SetRegionAccessRequest in;
  in.set_region("field");
  in.set_mode(0);
  v1::NamAclEntry* entry = in.add_set();
  entry->set_group(true);
  entry->set_id(100);
  entry->set_rights(5);
  const Result<wire::NamSetAccess> out = FromProto(in);
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->mode, 0u);
  EXPECT_FALSE(out->gid.has_value());
  ASSERT_EQ(out->set.size(), 1u);
  EXPECT_EQ(out->set[0].kind, wire::NamAclKind::kGroup);
  EXPECT_EQ(out->set[0].id, 100u);
  EXPECT_EQ(out->set[0].rights, NamRights::kRead | NamRights::kMap);
}

TEST(ConvertNam, ARegionKeepsAllOfItsFields) {
  wire::NamRegionInfo in;
  in.uuid = {1, 2};
  in.generation = Generation(3);
  in.name = "field";
  in.uid = 4;
  in.gid = 5;
  in.user_name = "ada";
  in.mode = 0660;
  in.acl = {{wire::NamAclKind::kUser, 6, NamRights::kRead}};
  in.lifetime = wire::NamLifetime::kPersistent;
  in.placement = wire::NamPlacement::kSpread;
  in.state = wire::NamRegionState::kAway;
  in.job = JobId(7);
  in.created_ms = 8;
  in.bytes = Bytes(9);
  in.segments = {{Bytes(9), 8, "nam0"}};
  in.holders = {{LeaseId(10), JobId(11), "rank 3", 12, "bob", NamRights::kAll, 13}};
  v1::ListRegionsReply reply;
  ToProto(wire::NamListing{{in}}, reply);
  ASSERT_EQ(reply.regions_size(), 1);
  const v1::NamRegion& out = reply.regions(0);
  EXPECT_EQ(out.uuid(), "00000000000000010000000000000002");
  EXPECT_EQ(out.port(), "msa-nam:" + out.uuid());
  EXPECT_EQ(out.generation(), 3u);
  EXPECT_EQ(out.name(), "field");
  EXPECT_EQ(out.uid(), 4u);
  EXPECT_EQ(out.gid(), 5u);
  EXPECT_EQ(out.user(), "ada");
  EXPECT_EQ(out.mode(), 0660u);
  ASSERT_EQ(out.acl_size(), 1);
  EXPECT_FALSE(out.acl(0).group());
  EXPECT_EQ(out.acl(0).id(), 6u);
  EXPECT_EQ(out.acl(0).rights(), 1u);
  EXPECT_EQ(out.lifetime(), v1::NAM_PERSISTENT);
  EXPECT_EQ(out.placement(), v1::NAM_SPREAD);
  EXPECT_EQ(out.state(), v1::NAM_AWAY);
  EXPECT_EQ(out.job(), 7u);
  EXPECT_EQ(out.created_ms(), 8);
  EXPECT_EQ(out.bytes(), 9u);
  ASSERT_EQ(out.segments_size(), 1);
  EXPECT_EQ(out.segments(0).node(), "nam0");
  EXPECT_EQ(out.segments(0).disp_unit(), 8u);
  ASSERT_EQ(out.holders_size(), 1);
  EXPECT_EQ(out.holders(0).lease(), 10u);
  EXPECT_EQ(out.holders(0).job(), 11u);
  EXPECT_EQ(out.holders(0).who(), "rank 3");
  EXPECT_EQ(out.holders(0).user(), "bob");
  EXPECT_EQ(out.holders(0).rights(), 7u);
  EXPECT_EQ(out.holders(0).since_ms(), 13);
}

TEST(ConvertNam, UsageAndFindingsKeepAllOfTheirFields) {
  v1::RegionUsageReply usage;
  ToProto(wire::NamUsage{.nodes = {{"nam0", true, Bytes(100), Bytes(60), 2}},
                         .users = {{1000, "ada", Bytes(50), Bytes(80), 1}},
                         .jobs = {{JobId(7), Bytes(10), Bytes(20)}},
                         .reserved = Bytes(10)},
          usage);
  EXPECT_EQ(usage.nodes(0).name(), "nam0");
  EXPECT_TRUE(usage.nodes(0).up());
  EXPECT_EQ(usage.nodes(0).capacity(), 100u);
  EXPECT_EQ(usage.nodes(0).used(), 60u);
  EXPECT_EQ(usage.nodes(0).regions(), 2u);
  EXPECT_EQ(usage.users(0).uid(), 1000u);
  EXPECT_EQ(usage.users(0).name(), "ada");
  EXPECT_EQ(usage.users(0).used(), 50u);
  EXPECT_EQ(usage.users(0).quota(), 80u);
  EXPECT_EQ(usage.jobs(0).id(), 7u);
  EXPECT_EQ(usage.jobs(0).used(), 10u);
  EXPECT_EQ(usage.jobs(0).allotment(), 20u);
  EXPECT_EQ(usage.reserved(), 10u);
  v1::CheckRegionsReply check;
  ToProto(wire::NamCheckResult{{{"nam0", "field", "is gone", true}}, {"nam1"}}, check);
  EXPECT_EQ(check.findings(0).node(), "nam0");
  EXPECT_EQ(check.findings(0).region(), "field");
  EXPECT_EQ(check.findings(0).what(), "is gone");
  EXPECT_TRUE(check.findings(0).repaired());
  EXPECT_THAT(check.away(), ElementsAre("nam1"));
}

}  // namespace
}  // namespace msa
