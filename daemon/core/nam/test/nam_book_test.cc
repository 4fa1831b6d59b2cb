// Making and removing regions, and what their memory is charged to.
#include <gmock/gmock.h>

#include "book_harness.h"

namespace msa::nam_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using wire::NamLifetime;
using wire::NamRegionState;

TEST(NamBook, ARegionIsOnDiskBeforeItsExtentsAreCommittedAndAnswered) {
  Harness h;
  h.auto_pump = false;
  h.Pump();
  const std::uint64_t tag = h.Send(h.Ada(), h.Create("grid", {1000, 200}));
  EXPECT_TRUE(h.store.regions.empty()) << "reserved only";
  EXPECT_EQ(h.Usage().nodes[0].used, Bytes(1200));
  EXPECT_TRUE(h.Step("nam0"));
  ASSERT_TRUE(h.replies[tag].status.ok());
  EXPECT_EQ(h.store.regions.size(), 1u);
  EXPECT_EQ(h.store.leases.size(), 1u);
  EXPECT_EQ(h.namds["nam0"].extents.begin()->second.state, wire::NamExtentState::kPending);
  h.Pump();
  EXPECT_EQ(h.namds["nam0"].extents.begin()->second.state, wire::NamExtentState::kCommitted);
}

TEST(NamBook, ACreateTakesOneCommitAndNoSchedulePass) {
  Harness h;
  h.auto_pump = false;
  h.Pump();
  h.Send(h.Ada(), h.Create("grid", {64}));
  EXPECT_EQ(h.Count<nam_effect::PutRegion>() + h.Count<nam_effect::PutLease>(), 0u);
  h.Step("nam0");
  EXPECT_EQ(h.Count<nam_effect::PutRegion>(), 1u);
  EXPECT_EQ(h.Count<nam_effect::PutLease>(), 1u);
  EXPECT_EQ(h.Count<nam_effect::MoreFree>(), 0u);
  EXPECT_EQ(h.Count<nam_effect::Reply>(), 1u);
}

TEST(NamBook, ALeaseNamesTheExtentsAndTheAlignedPlacesOfTheSegments) {
  Harness h;
  const NamLeaseReply made = h.MustGrant(h.Ada(), h.Create("grid", {200, 0, 228}));
  EXPECT_EQ(made.lease.system, kSystem);
  EXPECT_EQ(made.lease.uid, 1000u);
  EXPECT_EQ(made.lease.rights, NamRights::kAll);
  ASSERT_EQ(made.lease.extents.size(), 1u);
  EXPECT_EQ(made.lease.extents[0].socket, "/d/n/nam0/namd.sock");
  EXPECT_EQ(made.lease.extents[0].bytes, Bytes(256 + 228));
  ASSERT_EQ(made.lease.segments.size(), 3u);
  EXPECT_EQ(made.lease.segments[1].offset, 256u);
  EXPECT_EQ(made.lease.segments[2].slot, 2u);
  EXPECT_EQ(made.granted.region.bytes, Bytes(428)) << "what aligns segments is not charged";
  EXPECT_EQ(h.Usage().nodes[0].used, Bytes(428 + 192)) << "nobody has a segment for nothing";
}

TEST(NamBook, SegmentsWithoutBytesAreChargedWhatTheirHeadersTake) {
  Harness h({{"nam0", Bytes(4 * kMiB)}}, {.user_quota = Bytes(kMiB), .job_default = Bytes(1000)});
  const Status status = h.Try(h.Ada(), h.Create("a", std::vector<std::uint64_t>(65536, 0)));
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("12M of network attached memory asked, the quota is 1M"));
  h.MustGrant(h.Ada(), h.Create("b", std::vector<std::uint64_t>(1000, 0)));
  const auto usage = h.Usage();
  EXPECT_EQ(usage.nodes[0].used, Bytes(192 * 1000));
  EXPECT_EQ(usage.users[0].used, Bytes(192 * 1000));
  h.StartJob(7);
  EXPECT_EQ(h.Try(h.InJob(7), h.Create("c", {0, 0, 0, 0, 0, 0}, NamLifetime::kLease)).code(),
            Code::kResourceExhausted);
  h.MustGrant(h.InJob(7), h.Create("c", {0, 0, 0, 0, 0}, NamLifetime::kLease));
  EXPECT_EQ(h.book->HeldBy(JobId(7)), Bytes(192 * 5));
}

TEST(NamBook, AFailedExtentFreesTheOthersAndIsTold) {
  Harness h({{"nam0", Bytes(1000)}, {"nam1", Bytes(1000)}});
  h.namds["nam1"].fail_allocate = Code::kResourceExhausted;
  const Status status = h.Try(h.Ada(), h.Create("grid", {800, 800}));
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("nam1"), HasSubstr("no space"), HasSubstr("'grid'")));
  EXPECT_EQ(h.Extents(), 0u);
  EXPECT_TRUE(h.store.regions.empty());
  EXPECT_EQ(h.Usage().nodes[0].used, Bytes(0));
  h.namds["nam1"].fail_allocate = Code::kOk;
  h.MustGrant(h.Ada(), h.Create("grid", {800, 800}));
}

TEST(NamBook, ANamdThatIsSilentFailsTheRequestAfterThirtySeconds) {
  Harness h;
  h.auto_pump = false;
  const std::uint64_t tag = h.Send(h.Ada(), h.Create("grid", {64}));
  EXPECT_EQ(h.Count<nam_effect::WakeAt>(), 1u);
  h.Sleep(Millis(29999));
  EXPECT_TRUE(h.open.contains(tag));
  h.Sleep(Millis(1));
  EXPECT_EQ(h.replies[tag].status.code(), Code::kUnavailable);
  EXPECT_THAT(h.replies[tag].status.message(), AllOf(HasSubstr("nam0"), HasSubstr("30 s")));
  h.Pump();
  EXPECT_EQ(h.Extents(), 0u);
}

TEST(NamBook, ANamdHasMoreTimeForMoreMemory) {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  Harness h({{"nam0", Bytes(1000 * kGiB)}});
  h.auto_pump = false;
  const std::uint64_t tag = h.Send(h.Ada(), h.Create("vast", {100 * kGiB}));
  h.Sleep(Millis(229'999));
  EXPECT_TRUE(h.open.contains(tag));
  h.Sleep(Millis(1));
  EXPECT_EQ(h.replies[tag].status.code(), Code::kUnavailable);
  EXPECT_THAT(h.replies[tag].status.message(), HasSubstr("230 s"));
  h.Pump();
  EXPECT_EQ(h.Extents(), 0u);
}

TEST(NamBook, ACreateThatIsWithdrawnLeavesNothing) {
  Harness h;
  h.auto_pump = false;
  const std::uint64_t early = h.Send(h.Ada(), h.Create("early", {64}));
  EXPECT_TRUE(h.Try(h.Bob(), wire::NamWithdraw{"token of early"}).ok())
      << "of another user's it says nothing";
  EXPECT_TRUE(h.open.contains(early));
  EXPECT_TRUE(h.Try(h.Ada(), wire::NamWithdraw{"token of early"}).ok());
  EXPECT_EQ(h.replies[early].status.code(), Code::kCancelled);
  h.Pump();
  h.auto_pump = true;
  h.MustGrant(h.Ada(), h.Create("late", {64}));
  EXPECT_TRUE(h.Try(h.Ada(), wire::NamWithdraw{"token of late"}).ok());
  EXPECT_TRUE(h.Try(h.Ada(), wire::NamWithdraw{"token of late"}).ok()) << "again";
  EXPECT_TRUE(h.Try(h.Ada(), wire::NamWithdraw{""}).ok());
  EXPECT_TRUE(h.List(h.Ada()).empty());
  EXPECT_EQ(h.Extents(), 0u);
  EXPECT_TRUE(h.store.leases.empty());
}

TEST(NamBook, NamdsAreToldOfAClientThatIsGoneAlsoThoseThatWereAway) {
  Harness h({{"nam0", Bytes(1000)}, {"nam1", Bytes(1000)}});
  h.Lose("nam1");
  h.On(nam_event::HolderGone{h.Ada().holder, NamClientId(77)});
  h.On(nam_event::HolderGone{h.InJob(1, 78).holder});
  h.Pump();
  EXPECT_EQ(h.namds["nam0"].clients_gone, (std::set{NamClientId(77), NamClientId(78)}));
  EXPECT_TRUE(h.namds["nam1"].clients_gone.empty());
  h.Up("nam1");
  EXPECT_EQ(h.namds["nam1"].clients_gone, (std::set{NamClientId(77), NamClientId(78)}));
  h.namds["nam1"].clients_gone.clear();
  h.Lose("nam1");
  h.Up("nam1");
  EXPECT_TRUE(h.namds["nam1"].clients_gone.empty()) << "told once";
}

TEST(NamBook, ALostNamdFailsWhatIsBeingMadeOnItAndFreesTheRest) {
  Harness h({{"nam0", Bytes(1000)}, {"nam1", Bytes(1000)}});
  h.auto_pump = false;
  const std::uint64_t tag = h.Send(h.Ada(), h.Create("grid", {800, 800}));
  h.Step("nam0");
  h.Step("nam0");
  h.Lose("nam1");
  EXPECT_EQ(h.replies[tag].status.code(), Code::kUnavailable);
  h.Pump();
  EXPECT_EQ(h.Extents(), 0u);
}

TEST(NamBook, ARepeatedTokenOpensWhatWasMadeThen) {
  Harness h;
  h.auto_pump = false;
  h.Pump();
  const std::uint64_t first = h.Send(h.Ada(), h.Create("grid", {64}));
  const std::uint64_t again = h.Send(h.Ada(), h.Create("grid", {64}));
  h.Pump();
  ASSERT_TRUE(h.replies[first].status.ok());
  ASSERT_TRUE(h.replies[again].status.ok());
  EXPECT_EQ(std::get<NamLeaseReply>(h.replies[first].body).granted.lease,
            std::get<NamLeaseReply>(h.replies[again].body).granted.lease);
  const auto later = h.MustGrant(h.Ada(), h.Create("grid", {64}));
  EXPECT_EQ(later.granted.lease, std::get<NamLeaseReply>(h.replies[first].body).granted.lease);
  EXPECT_EQ(h.store.regions.size(), 1u);
  EXPECT_EQ(h.store.leases.size(), 1u);
  EXPECT_EQ(h.Try(h.Bob(), h.Create("grid", {64})).code(), Code::kAlreadyExists) << "a token is of one user";
}

TEST(NamBook, ATokenHoldsOverARestart) {
  Harness h;
  const auto made = h.MustGrant(h.Ada(), h.Create("grid", {64}));
  h.Restart();
  h.Up("nam0");
  EXPECT_EQ(h.MustGrant(h.Ada(), h.Create("grid", {64})).granted.region.uuid, made.granted.region.uuid);
}

TEST(NamBook, NamesAreUniqueAndFoundWhereNoneIsGiven) {
  Harness h;
  EXPECT_EQ(h.MustGrant(h.Ada(), h.Create("", {1})).granted.region.name, "region-1");
  h.MustGrant(h.Ada(), h.Create("region-2", {1}));
  EXPECT_EQ(h.MustGrant(h.Ada(), h.Create("", {1})).granted.region.name, "region-3");
  h.StartJob(7);
  EXPECT_EQ(h.MustGrant(h.InJob(7), h.Create("", {1})).granted.region.name, "win-7-1");
  EXPECT_EQ(h.MustGrant(h.InJob(7), h.Create("", {1})).granted.region.name, "win-7-2");
  wire::NamCreate taken = h.Create("region-1", {1});
  EXPECT_EQ(h.Try(h.Bob(), taken).code(), Code::kAlreadyExists);
}

TEST(NamBook, WhatIsWrongWithACreateIsNamed) {
  Harness h;
  const auto refused = [&](wire::NamCreate m, Code code, const char* text) {
    const Status status = h.Try(h.Ada(), std::move(m));
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_THAT(status.message(), HasSubstr(text));
  };
  refused(h.Create("-x", {1}), Code::kInvalidArgument, "'-x'");
  refused(h.Create(std::string(128, 'a'), {1}), Code::kInvalidArgument, "127");
  refused(h.Create(std::string(32, 'a'), {1}), Code::kInvalidArgument, "uuid");
  refused(h.Create("x", {}), Code::kInvalidArgument, "0 segments");
  refused(h.Create("x", {~std::uint64_t{0}, 2}), Code::kResourceExhausted, "ask for less");
  refused(h.Create("x", std::vector<std::uint64_t>(65537, 1)), Code::kInvalidArgument, "65537");
  wire::NamCreate m = h.Create("x", {1});
  m.mode = 0700;
  refused(m, Code::kInvalidArgument, "0700");
  m = h.Create("x", {1});
  m.segments[0].disp_unit = 0;
  refused(m, Code::kInvalidArgument, "displacement unit 0");
  m = h.Create("x", {1});
  m.token = std::string(65, 't');
  refused(m, Code::kInvalidArgument, "65 bytes");
  m = h.Create("x", {1});
  m.nodes = {"nam9"};
  refused(m, Code::kNotFound, "did you mean 'nam0'");
  h.Lose("nam0");
  refused(h.Create("x", {1}), Code::kUnavailable, "nam0 away");
  EXPECT_TRUE(h.store.regions.empty());
}

TEST(NamBook, TheUsersQuotaIsToldInNumbersBeforeMemoryIsHandedOut) {
  Harness h({{"nam0", Bytes(kMiB)}}, {.user_quota = Bytes(1000)});
  h.MustGrant(h.Ada(), h.Create("a", {600}));
  const Status status = h.Try(h.Ada(), h.Create("b", {401}));
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("401 bytes"), HasSubstr("quota is 1000 bytes"), HasSubstr("600 bytes used"),
                    HasSubstr("400 bytes free"), HasSubstr("remove regions")));
  EXPECT_EQ(h.Extents(), 1u);
  h.MustGrant(h.Ada(), h.Create("b", {400}));
  h.MustGrant(h.Bob(), h.Create("c", {1000}));
}

TEST(NamBook, AJobDrawsOnItsAllotmentAndNoFurther) {
  Harness h;
  h.StartJob(7, 1000);
  h.MustGrant(h.InJob(7), h.Create("a", {600}, NamLifetime::kLease));
  const Status status = h.Try(h.InJob(7), h.Create("b", {401}, NamLifetime::kLease));
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("job 7"), HasSubstr("allotment is 1000 bytes"), HasSubstr("--nam")));
  h.MustGrant(h.InJob(7), h.Create("b", {400}, NamLifetime::kLease));
  EXPECT_EQ(h.Usage().reserved, Bytes(0));
}

TEST(NamBook, WhatIsPromisedToAJobIsNotGivenToOthers) {
  Harness h;
  h.StartJob(7, kMiB - 500);
  const Status status = h.Try(h.Ada(), h.Create("a", {501}));
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("500 bytes free"), HasSubstr("promised to running jobs")));
  h.MustGrant(h.Ada(), h.Create("a", {500}));
  h.MustGrant(h.InJob(7), h.Create("b", {kMiB - 500}, NamLifetime::kLease));
  h.EndJob(7);
  h.MustGrant(h.Ada(), h.Create("c", {kMiB - 500}));
}

TEST(NamBook, AJobWithoutAnAllotmentDrawsThePolicysDefaultOfWhatIsFree) {
  Harness h({{"nam0", Bytes(kMiB)}}, {.job_default = Bytes(500)});
  h.StartJob(7);
  EXPECT_EQ(h.book->HeldBy(JobId(7)), Bytes(0)) << "nothing is kept from others";
  const Status status = h.Try(h.InJob(7), h.Create("a", {501}, NamLifetime::kLease));
  EXPECT_THAT(status.message(), AllOf(HasSubstr("without --nam may draw 500 bytes"), HasSubstr("--nam")));
  h.MustGrant(h.InJob(7), h.Create("a", {500}, NamLifetime::kLease));
  EXPECT_EQ(h.book->HeldBy(JobId(7)), Bytes(500));
  EXPECT_EQ(h.book->persistent(), Bytes(0));
}

TEST(NamBook, ALargerAllotmentIsGivenOfWhatIsFreeAndRefusedWithNumbers) {
  Harness h({{"nam0", Bytes(1000)}}, {.job_quota = Bytes(900)});
  h.StartJob(7, 200);
  h.On(nam_event::AllotmentAsk{JobId(7), 1, Bytes(300)});
  ASSERT_EQ(h.allotments.size(), 1u);
  EXPECT_EQ(h.allotments[0].allotment, Bytes(500));
  EXPECT_EQ(h.allotments[0].reason, "");
  h.On(nam_event::AllotmentAsk{JobId(7), 2, Bytes(401)});
  EXPECT_THAT(h.allotments[1].reason, AllOf(HasSubstr("401 bytes"), HasSubstr("may have 900 bytes")));
  h.MustGrant(h.Ada(), h.Create("a", {300}));
  h.On(nam_event::AllotmentAsk{JobId(7), 3, Bytes(300)});
  EXPECT_THAT(h.allotments[2].reason, HasSubstr("200 bytes are free"));
  h.On(nam_event::AllotmentAsk{JobId(7), 4, Bytes(~std::uint64_t{0})});
  EXPECT_EQ(h.allotments[3].allotment, Bytes(500));
  h.MustGrant(h.InJob(7), h.Create("b", {500}, NamLifetime::kLease));
}

TEST(NamBook, AnAllotmentMayTakeTheLastByteThatIsFree) {
  Harness h({{"nam0", Bytes(1000)}});
  h.StartJob(7, 200);
  h.MustGrant(h.Ada(), h.Create("a", {300}));
  h.On(nam_event::AllotmentAsk{JobId(7), 1, Bytes(501)});
  EXPECT_THAT(h.allotments.at(0).reason, HasSubstr("500 bytes are free"));
  h.On(nam_event::AllotmentAsk{JobId(7), 2, Bytes(500)});
  EXPECT_EQ(h.allotments.at(1).reason, "");
  EXPECT_EQ(h.allotments.at(1).allotment, Bytes(700));
}

TEST(NamBook, AUserIsToldOfHisOwnUseAndTheOperatorOfEverybodys) {
  Harness h({{"nam0", Bytes(2000)}});
  h.MustGrant(h.Ada(), h.Create("a", {300}));
  h.MustGrant(h.Bob(), h.Create("b", {400}));
  h.StartJob(7, 200);  // ada's
  const wire::NamUsage bob = h.Usage(h.Bob());
  ASSERT_EQ(bob.users.size(), 1u);
  EXPECT_EQ(bob.users[0].used, Bytes(400));
  EXPECT_TRUE(bob.jobs.empty());
  EXPECT_EQ(h.Usage(h.Ada()).jobs.size(), 1u);
  EXPECT_EQ(h.Usage().users.size(), 2u);
  const wire::NamUsage eve = h.Usage(h.Caller(1005, "eve"));
  ASSERT_EQ(eve.users.size(), 1u) << "who has nothing sees that";
  EXPECT_EQ(eve.users[0].used, Bytes(0));
}

TEST(NamBook, PackTakesAsFewNodesAsHoldItAndTheSmallestThatHoldsAll) {
  Harness h({{"nam0", Bytes(1000)}, {"nam1", Bytes(400)}, {"nam2", Bytes(600)}});
  EXPECT_EQ(h.MustGrant(h.Ada(), h.Create("a", {200, 200})).lease.extents[0].node, "nam1");
  const auto two = h.MustGrant(h.Ada(), h.Create("b", {500, 500, 500}));
  ASSERT_EQ(two.lease.extents.size(), 2u);
  EXPECT_EQ(two.lease.extents[0].node, "nam0");
  EXPECT_EQ(two.lease.extents[1].node, "nam2");
  const Status status = h.Try(h.Ada(), h.Create("c", {101}));
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
}

TEST(NamBook, SpreadGoesEvenlyOverAllNodesThatHaveRoom) {
  Harness h({{"nam0", Bytes(1100)}, {"nam1", Bytes(1100)}, {"nam2", Bytes(1100)}});
  wire::NamCreate m = h.Create("a", {200, 200, 200, 200, 200, 200});
  m.placement = wire::NamPlacement::kSpread;
  const auto made = h.MustGrant(h.Ada(), m);
  ASSERT_EQ(made.lease.extents.size(), 3u);
  std::vector<int> count(3);
  for (const auto& segment : made.lease.segments) ++count[segment.extent];
  EXPECT_EQ(count, (std::vector<int>{2, 2, 2}));
  m = h.Create("b", {700, 700});
  m.nodes = {"nam2", "nam0"};
  m.placement = wire::NamPlacement::kSpread;
  for (const auto& extent : h.MustGrant(h.Ada(), m).lease.extents) EXPECT_NE(extent.node, "nam1");
}

TEST(NamBook, ASegmentThatLiesOnNoSingleNodeIsRefusedWithWhatIsFreeOnEach) {
  Harness h({{"nam0", Bytes(1000)}, {"nam1", Bytes(800)}});
  const Status status = h.Try(h.Ada(), h.Create("a", {1001}));
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("nam0 1000 bytes"), HasSubstr("nam1 800 bytes"), HasSubstr("1001 bytes")));
}

TEST(NamBook, ARemovedRegionIsChargedUntilItsLastMappingIsGone) {
  Harness h({{"nam0", Bytes(kMiB)}}, {.user_quota = Bytes(1000)});
  h.MustGrant(h.Ada(), h.Create("a", {1000}));
  h.namds["nam0"].extents.begin()->second.mapped = true;
  const std::uint64_t tag = h.Send(h.Ada(), wire::NamRemove{"a", false});
  EXPECT_TRUE(h.open.contains(tag));
  EXPECT_EQ(h.List(h.Ada())[0].state, NamRegionState::kRemoving);
  EXPECT_EQ(h.Try(h.Ada(), wire::NamOpen{"", "a"}).code(), Code::kNotFound);
  EXPECT_EQ(h.Try(h.Ada(), h.Create("b", {1})).code(), Code::kResourceExhausted) << "still charged";
  h.Sleep(Millis(2000));
  EXPECT_TRUE(h.replies[tag].status.ok()) << "its caller does not wait for others";
  h.MustGrant(h.Bob(), h.Create("a", {200}));
  h.Unmap("nam0");
  EXPECT_EQ(h.Count<nam_effect::MoreFree>(), 1u);
  EXPECT_EQ(h.Usage().nodes[0].used, Bytes(200));
  h.MustGrant(h.Ada(), h.Create("b", {1000}));
}

TEST(NamBook, ARegionInUseIsRemovedByForceAloneAndItsHoldersAreNamed) {
  Harness h;
  wire::NamCreate m = h.Create("a", {64});
  m.mode = 0666;
  h.MustGrant(h.Ada(), m);
  const auto lease = h.MustGrant(h.Bob(), wire::NamOpen{"", "a"});
  const Status status = h.Try(h.Ada(), wire::NamRemove{"a", false});
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("pid 1001 on nam0 (bob)"), HasSubstr("--force")));
  EXPECT_TRUE(h.Try(h.Ada(), wire::NamRemove{"a", true}).ok());
  EXPECT_TRUE(h.namds["nam0"].revoked.contains(lease.granted.lease));
  EXPECT_EQ(h.Extents(), 0u);
  EXPECT_TRUE(h.store.regions.empty());
  EXPECT_TRUE(h.store.leases.empty());
  EXPECT_EQ(h.Try(h.Ada(), wire::NamRemove{"a", true}).code(), Code::kNotFound);
}

TEST(NamBook, OnlyTheOwnerRootAndTheOperatorRemove) {
  Harness h;
  wire::NamCreate m = h.Create("a", {64});
  m.mode = 0666;
  h.MustGrant(h.Ada(), m);
  h.CloseAll(h.Ada());
  EXPECT_EQ(h.Try(h.Bob(), wire::NamRemove{"a", true}).code(), Code::kPermissionDenied);
  EXPECT_TRUE(h.Try(h.Root(), wire::NamRemove{"a", false}).ok());
}

TEST(NamBook, ARemovalWaitsForANodeThatIsAwayAndEndsWhenItIsBack) {
  Harness h({{"nam0", Bytes(300)}, {"nam1", Bytes(300)}});
  h.MustGrant(h.Ada(), h.Create("a", {240, 240}));
  h.Lose("nam1");
  h.Send(h.Ada(), wire::NamRemove{"a", false});
  EXPECT_EQ(h.store.regions.size(), 1u);
  h.Restart();
  h.Up("nam0");
  h.Up("nam1");
  EXPECT_EQ(h.Extents(), 0u);
  EXPECT_TRUE(h.store.regions.empty());
}

TEST(NamBook, AnExtentThatCouldNotBeFreedIsAskedForAgain) {
  Harness h;
  h.MustGrant(h.Ada(), h.Create("a", {64}));
  h.auto_pump = false;
  h.Send(h.Ada(), wire::NamRemove{"a", false});
  wire::NamExtentFree ask;
  for (const auto& message : h.namds["nam0"].inbox)
    if (const auto* free = std::get_if<wire::NamExtentFree>(&message)) ask = *free;
  h.namds["nam0"].inbox.clear();
  h.On(nam_event::ExtentDone{"nam0",
                             {ask.request, static_cast<std::uint8_t>(Code::kInternal), "unlink: EIO"}});
  EXPECT_EQ(h.Extents(), 1u);
  h.Sleep(Millis(5000));
  h.Pump();
  EXPECT_EQ(h.Extents(), 0u);
  EXPECT_TRUE(h.store.regions.empty());
}

TEST(NamBook, TheAllotmentInEffectIsShown) {
  Harness h({{"nam0", Bytes(kMiB)}}, {.job_default = Bytes(1000)});
  h.StartJob(7);
  h.MustGrant(h.InJob(7), h.Create("a", {800}, NamLifetime::kLease));
  EXPECT_EQ(h.Usage().jobs.at(0).allotment, Bytes(1000));
  h.On(nam_event::AllotmentAsk{JobId(7), 1, Bytes(300)});
  EXPECT_EQ(h.Usage().jobs.at(0).allotment, Bytes(1300));
  h.MustGrant(h.InJob(7), h.Create("b", {500}, NamLifetime::kLease));
  Harness free;
  free.StartJob(8);
  free.On(nam_event::AllotmentAsk{JobId(8), 1, Bytes(300)});
  free.MustGrant(free.InJob(8), free.Create("a", {800}, NamLifetime::kLease));
  EXPECT_EQ(free.Usage().jobs.at(0).allotment, Bytes(0)) << "nothing limits it";
}

TEST(NamBook, AThousandRegionsLeaveNothingBehind) {
  Harness h;
  h.StartJob(7, kMiB);
  for (int i = 0; i < 1000; ++i) h.MustGrant(h.InJob(7), h.Create("", {1000}, NamLifetime::kLease));
  EXPECT_EQ(h.Usage().nodes[0].used, Bytes(1000 * 1000));
  h.EndJob(7);
  EXPECT_EQ(h.Extents(), 0u);
  EXPECT_TRUE(h.store.regions.empty());
  EXPECT_TRUE(h.store.leases.empty());
}

}  // namespace
}  // namespace msa::nam_test
