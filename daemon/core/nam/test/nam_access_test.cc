// Rights, leases, holders and jobs; NAM nodes that come and go.
#include <gmock/gmock.h>

#include "book_harness.h"

namespace msa::nam_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using wire::NamLifetime;
using wire::NamRegionState;
constexpr NamRights kReadWrite = NamRights::kRead | NamRights::kWrite;

wire::NamCreate Shared(const std::string& name, std::uint32_t mode) {
  wire::NamCreate m = Harness::Create(name, {64});
  m.mode = mode;
  return m;
}

TEST(NamAccess, TheModeGivesRightsAndMapIsTheOwnersAlone) {
  Harness h;
  h.MustGrant(h.Ada(), Shared("a", 0640));
  EXPECT_EQ(h.MustGrant(h.Ada(), wire::NamOpen{"", "a"}).lease.rights, NamRights::kAll);
  NamCaller member = h.Caller(1005, "eve");
  member.groups = {4, 100};
  EXPECT_EQ(h.MustGrant(member, wire::NamOpen{"", "a", NamRights::kRead}).lease.rights, NamRights::kRead);
  const Status status = h.Try(member, wire::NamOpen{"", "a", kReadWrite});
  EXPECT_EQ(status.code(), Code::kPermissionDenied);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("may not write"), HasSubstr("ada (uid 1000)"), HasSubstr("0640")));
  NamCaller other = h.Caller(2005, "mallory");
  EXPECT_EQ(h.Try(other, wire::NamOpen{"", "a", NamRights::kRead}).code(), Code::kPermissionDenied);
  EXPECT_EQ(h.MustGrant(h.Root(), wire::NamOpen{"", "a"}).lease.rights, kReadWrite);
  EXPECT_EQ(h.Try(h.Root(), wire::NamOpen{"", "a", NamRights::kAll}).code(), Code::kPermissionDenied);
  EXPECT_EQ(h.Try(h.Ada(), wire::NamOpen{"", "a", NamRights::kMap}).code(), Code::kInvalidArgument);
}

TEST(NamAccess, AnEntryGivesMapAndIsTakenBackWithTheLeasesThatItCovered) {
  Harness h;
  h.MustGrant(h.Ada(), Shared("a", 0600));
  wire::NamSetAccess give;
  give.region = "a";
  give.set = {{wire::NamAclKind::kUser, 1001, NamRights::kAll}};
  EXPECT_EQ(h.Try(h.Bob(), give).code(), Code::kPermissionDenied);
  ASSERT_TRUE(h.Try(h.Ada(), give).ok());
  const auto lease = h.MustGrant(h.Bob(), wire::NamOpen{"", "a"});
  EXPECT_EQ(lease.lease.rights, NamRights::kAll);
  give.set[0].rights = kReadWrite;
  ASSERT_TRUE(h.Try(h.Ada(), give).ok());
  EXPECT_TRUE(h.namds["nam0"].revoked.contains(lease.granted.lease));
  EXPECT_EQ(h.Try(h.Bob(), wire::NamRefresh{lease.granted.lease}).code(), Code::kNotFound);
  EXPECT_EQ(h.MustGrant(h.Bob(), wire::NamOpen{"", "a"}).lease.rights, kReadWrite);
  wire::NamSetAccess clear;
  clear.region = "a";
  clear.clear = true;
  ASSERT_TRUE(h.Try(h.Ada(), clear).ok());
  EXPECT_EQ(h.Try(h.Bob(), wire::NamOpen{"", "a"}).code(), Code::kPermissionDenied);
  EXPECT_EQ(h.List(h.Ada(), "a")[0].holders.size(), 1u) << "the owner keeps his";
}

TEST(NamAccess, AnAccessThatIsNoneIsRefusedAndChangesNothing) {
  Harness h;
  h.MustGrant(h.Ada(), Shared("a", 0600));
  wire::NamSetAccess m;
  m.region = "a";
  m.mode = 01777;
  EXPECT_EQ(h.Try(h.Ada(), m).code(), Code::kInvalidArgument);
  m.mode = 0660;
  m.gid = 4711;
  EXPECT_EQ(h.Try(h.Ada(), m).code(), Code::kPermissionDenied);
  m.gid = 100;
  for (std::uint32_t i = 0; i < 65; ++i) m.set.push_back({wire::NamAclKind::kGroup, i, NamRights::kRead});
  EXPECT_EQ(h.Try(h.Ada(), m).code(), Code::kInvalidArgument);
  EXPECT_EQ(h.List(h.Ada())[0].mode, 0600u);
}

TEST(NamAccess, AListingShowsWhatTheCallerMaySee) {
  Harness h;
  h.MustGrant(h.Ada(), Shared("a", 0600));
  h.MustGrant(h.Ada(), Shared("b", 0640));
  EXPECT_EQ(h.List(h.Ada()).size(), 2u);
  ASSERT_EQ(h.List(h.Bob()).size(), 1u);
  EXPECT_EQ(h.List(h.Bob())[0].name, "b");
  EXPECT_EQ(h.List(h.Root()).size(), 2u);
  EXPECT_EQ(h.Try(h.Bob(), wire::NamList{"a", ""}).code(), Code::kPermissionDenied) << "as when it is opened";
  EXPECT_EQ(std::get<wire::NamListing>(h.Ask(h.Root(), wire::NamList{"", "bob"}).body).regions.size(), 0u);
  const auto one = h.List(h.Ada(), "a");
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].holders[0].who, "pid 1000 on nam0");
  EXPECT_EQ(h.List(h.Ada(), NamPortName(one[0].uuid)).size(), 1u);
  EXPECT_EQ(h.List(h.Ada(), ToText(one[0].uuid)).size(), 1u);
}

TEST(NamAccess, AClosedLeaseIsOverForTheNamdsToo) {
  Harness h;
  const auto lease = h.MustGrant(h.Ada(), Shared("a", 0600));
  EXPECT_TRUE(h.Try(h.Bob(), wire::NamClose{lease.granted.lease}).ok());
  EXPECT_TRUE(h.MustGrant(h.Ada(), wire::NamRefresh{lease.granted.lease}).granted.lease ==
              lease.granted.lease);
  EXPECT_EQ(h.Try(h.Bob(), wire::NamRefresh{lease.granted.lease}).code(), Code::kNotFound);
  EXPECT_TRUE(h.Try(h.Ada(), wire::NamClose{lease.granted.lease}).ok());
  EXPECT_TRUE(h.namds["nam0"].revoked.contains(lease.granted.lease));
  EXPECT_TRUE(h.Try(h.Ada(), wire::NamClose{lease.granted.lease}).ok());
  EXPECT_TRUE(h.store.leases.empty());
}

TEST(NamAccess, ARepeatedOpenGivesTheSameLease) {
  Harness h;
  h.MustGrant(h.Ada(), Shared("a", 0600));
  const auto first = h.MustGrant(h.Ada(), wire::NamOpen{"t", "a"});
  EXPECT_EQ(h.MustGrant(h.Ada(), wire::NamOpen{"t", "a"}).granted.lease, first.granted.lease);
  EXPECT_NE(h.MustGrant(h.Ada(), wire::NamOpen{"u", "a"}).granted.lease, first.granted.lease);
}

TEST(NamAccess, AHolderThatIsGoneLeavesNoLeaseAndNoRegionOfItsOwn) {
  Harness h;
  NamCaller caller = h.InJob(7, 42);
  h.StartJob(7);
  h.MustGrant(h.Ada(), Shared("kept", 0666));
  h.MustGrant(h.Ada(), h.Create("own", {64}, NamLifetime::kLease));
  h.MustGrant(caller, wire::NamOpen{"", "kept"});
  h.CloseAll(caller);
  EXPECT_TRUE(h.namds["nam0"].clients_gone.contains(NamClientId(42)));
  EXPECT_EQ(h.store.leases.size(), 2u);
  h.CloseAll(h.Ada());
  EXPECT_EQ(h.store.leases.size(), 0u);
  ASSERT_EQ(h.List(h.Ada()).size(), 1u);
  EXPECT_EQ(h.List(h.Ada())[0].name, "kept");
  EXPECT_EQ(h.Extents(), 1u);
}

TEST(NamAccess, ARegionOfAProcessEndsWithItsFirstLeaseThoughOthersHaveItOpen) {
  Harness h;
  wire::NamCreate m = h.Create("own", {64}, NamLifetime::kLease);
  m.mode = 0666;
  const auto life = h.MustGrant(h.Ada(), m);
  const auto other = h.MustGrant(h.Bob(), wire::NamOpen{"", "own"});
  EXPECT_TRUE(h.Try(h.Ada(), wire::NamClose{life.granted.lease}).ok());
  EXPECT_TRUE(h.namds["nam0"].revoked.contains(other.granted.lease));
  EXPECT_EQ(h.Extents(), 0u);
}

TEST(NamAccess, WhoGoesWhileHisRegionIsMadeLeavesNothing) {
  Harness h;
  h.auto_pump = false;
  h.Pump();
  const std::uint64_t tag = h.Send(h.Ada(), Shared("a", 0600));
  h.On(nam_event::HolderGone{h.Ada().holder});
  EXPECT_EQ(h.replies[tag].status.code(), Code::kCancelled);
  h.Pump();
  EXPECT_EQ(h.Extents(), 0u);
  EXPECT_TRUE(h.store.regions.empty());
}

TEST(NamAccess, AJobsEndTakesItsWindowsAndPassesThePersistentOnesToTheUser) {
  Harness h({{"nam0", Bytes(kMiB)}}, {.user_quota = Bytes(1000)});
  h.StartJob(7, 5000);
  h.MustGrant(h.InJob(7), h.Create("win", {3000}, NamLifetime::kLease));
  h.MustGrant(h.InJob(7), h.Create("kept", {900}));
  EXPECT_EQ(h.Try(h.InJob(7), h.Create("more", {101})).code(), Code::kResourceExhausted)
      << "a persistent region that the user could not keep is refused at once";
  EXPECT_EQ(h.book->persistent(), Bytes(0));
  h.EndJob(7);
  EXPECT_EQ(h.book->persistent(), Bytes(900));
  const auto left = h.List(h.Ada());
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].name, "kept");
  EXPECT_EQ(left[0].job, JobId(7)) << "who made it is still told";
  EXPECT_EQ(h.Usage().users[0].used, Bytes(900));
  EXPECT_TRUE(h.store.leases.empty());
}

TEST(NamAccess, AWindowMadePersistentIsChargedToTheUserAndNotToTheJob) {
  Harness h({{"nam0", Bytes(2000)}}, {.user_quota = Bytes(1000)});
  h.StartJob(7, 1000);
  h.MustGrant(h.InJob(7), h.Create("win", {600}, NamLifetime::kLease));
  EXPECT_EQ(h.Usage().users[0].used, Bytes(0));
  ASSERT_TRUE(h.Try(h.InJob(7), wire::NamSetLifetime{"win", NamLifetime::kPersistent}).ok());
  EXPECT_EQ(h.Usage().users[0].used, Bytes(600));
  EXPECT_EQ(h.Usage().jobs[0].used, Bytes(0));
  EXPECT_EQ(h.Usage().reserved, Bytes(1000)) << "its allotment is whole again";
  h.MustGrant(h.InJob(7), h.Create("big", {700}, NamLifetime::kLease));
  EXPECT_THAT(h.Try(h.InJob(7), wire::NamSetLifetime{"big", NamLifetime::kPersistent}).message(),
              HasSubstr("quota is 1000 bytes"));
  ASSERT_TRUE(h.Try(h.InJob(7), wire::NamSetLifetime{"big", NamLifetime::kLease}).ok());
  EXPECT_EQ(h.Try(h.InJob(7), wire::NamSetLifetime{"win", NamLifetime::kLease}).code(),
            Code::kResourceExhausted)
      << "beyond the allotment";
  h.EndJob(7);
  EXPECT_EQ(h.List(h.Ada()).size(), 1u);
}

TEST(NamAccess, ABoundRegionStaysAndTheJobHasNoMoreRightsThanItsBinding) {
  Harness h;
  h.MustGrant(h.Ada(), Shared("data", 0600));
  h.CloseAll(h.Ada());
  h.StartJob(7, 0, {{"data", NamRights::kRead}, {"gone", NamRights::kRead}});
  EXPECT_EQ(h.Count<nam_effect::Log>(), 1u);
  const Status status = h.Try(h.InJob(7), wire::NamOpen{"", "data", kReadWrite});
  EXPECT_EQ(status.code(), Code::kPermissionDenied);
  EXPECT_THAT(status.message(), HasSubstr("--nam-region"));
  EXPECT_EQ(h.MustGrant(h.InJob(7), wire::NamOpen{"", "data", NamRights::kRead}).lease.rights,
            NamRights::kRead | NamRights::kMap);
  h.CloseAll(h.InJob(7));
  EXPECT_THAT(h.Try(h.Ada(), wire::NamRemove{"data", false}).message(), HasSubstr("job 7"));
  h.Restart();
  EXPECT_EQ(h.store.leases.size(), 1u) << "bound once";
  h.Up("nam0");
  h.EndJob(7);
  EXPECT_TRUE(h.Try(h.Ada(), wire::NamRemove{"data", false}).ok());
}

TEST(NamAccess, AJobBoundToReadNeitherRemovesNorChangesTheRegionThoughItsUserOwnsIt) {
  Harness h;
  h.MustGrant(h.Ada(), Shared("data", 0600));
  h.CloseAll(h.Ada());
  h.StartJob(7, 0, {{"data", NamRights::kRead}});
  NamCaller in_job = h.InJob(7);
  wire::NamSetAccess access;
  access.region = "data";
  access.mode = 0666;
  for (const bool is_operator : {false, true}) {
    in_job.operator_ = is_operator;
    for (const NamRequest& request :
         {NamRequest(wire::NamRemove{"data", true}), NamRequest(wire::NamResize{"data", {Bytes(8)}}),
          NamRequest(wire::NamSetLifetime{"data", NamLifetime::kLease}), NamRequest(access)}) {
      const Status status = h.Try(in_job, request);
      EXPECT_EQ(status.code(), Code::kPermissionDenied) << request.index();
      EXPECT_THAT(status.message(), AllOf(HasSubstr("job 7"), HasSubstr("--nam-region")));
    }
  }
  EXPECT_EQ(h.List(h.Ada(), "data").at(0).mode, 0600u);
  h.EndJob(7);
  h.StartJob(8, 0, {{"data", kReadWrite}});
  EXPECT_TRUE(h.Try(h.InJob(8), access).ok());
  EXPECT_TRUE(h.Try(h.InJob(8), wire::NamRemove{"data", true}).ok());
}

TEST(NamAccess, AnOwnerSeesARegionThatHeHasNoRightsTo) {
  Harness h;
  h.MustGrant(h.Ada(), Shared("shut", 0));
  EXPECT_EQ(h.List(h.Ada()).size(), 1u) << "or he could not find what he may open again";
  EXPECT_TRUE(h.List(h.Bob()).empty());
}

TEST(NamAccess, ABindingIsJudgedAsAnOpenIs) {
  Harness h;
  h.MustGrant(h.Ada(), Shared("data", 0640));
  EXPECT_TRUE(h.book->CheckBinding(h.Ada(), {"data", kReadWrite}).ok());
  EXPECT_EQ(h.book->CheckBinding(h.Bob(), {"data", kReadWrite}).code(), Code::kPermissionDenied);
  EXPECT_EQ(h.book->CheckBinding(h.Ada(), {"nodata", kReadWrite}).code(), Code::kNotFound);
  h.Lose("nam0");
  EXPECT_TRUE(h.book->CheckBinding(h.Ada(), {"data", kReadWrite}).ok())
      << "it may be back when the job starts";
}

TEST(NamAccess, OneHolderHasNoMoreThanSoManyLeases) {
  Harness h;
  h.MustGrant(h.Ada(), Shared("a", 0600));
  h.checks = false;  // each looks at every lease
  for (int i = 1; i < 4096; ++i) h.MustGrant(h.Ada(), wire::NamOpen{"", "a"});
  h.checks = true;
  EXPECT_EQ(h.Try(h.Ada(), wire::NamOpen{"", "a"}).code(), Code::kResourceExhausted);
  EXPECT_EQ(h.Try(h.Ada(), Shared("b", 0600)).code(), Code::kResourceExhausted);
  EXPECT_EQ(h.Extents(), 1u);
}

// ---------------------------------------------------------------------------------------------- NAM nodes

TEST(NamNodes, ARegionOfANodeThatIsAwayIsAwayAndComesBackWithItsLeases) {
  Harness h;
  const auto lease = h.MustGrant(h.Ada(), Shared("a", 0600));
  h.Lose("nam0");
  EXPECT_EQ(h.List(h.Ada())[0].state, NamRegionState::kAway);
  EXPECT_EQ(h.Try(h.Ada(), wire::NamOpen{"", "a"}).code(), Code::kUnavailable);
  EXPECT_EQ(h.book->capacity(), Bytes(0));
  h.Up("nam0");
  EXPECT_EQ(h.namds["nam0"].welcome.leases, std::vector<LeaseId>{lease.granted.lease});
  EXPECT_EQ(h.namds["nam0"].welcome.extents.size(), 1u);
  h.MustGrant(h.Ada(), wire::NamRefresh{lease.granted.lease});
}

TEST(NamNodes, ANamdOfAnotherSystemIsRefused) {
  Harness h;
  h.Lose("nam0");
  h.Up("nam0", kSystem + 1);
  ASSERT_EQ(h.refused.size(), 1u);
  EXPECT_THAT(h.refused[0], HasSubstr("another system"));
  EXPECT_FALSE(h.Usage().nodes[0].up);
  h.Up("nam0", 0);
  EXPECT_EQ(h.refused.size(), 1u) << "one without extents joins";
  h.Up("cn0");
  EXPECT_THAT(h.refused.back(), HasSubstr("'cn0' has no network attached memory"));
}

TEST(NamNodes, ACommitThatWasLostIsRepeatedAndAReservationOfBeforeIsFreed) {
  Harness h;
  h.auto_pump = false;
  h.Pump();
  h.Send(h.Ada(), Shared("a", 0600));
  h.Step("nam0");
  h.Send(h.Bob(), Shared("b", 0600));
  Namd& namd = h.namds["nam0"];
  namd.inbox.pop_front();  // the commit of a
  h.auto_pump = true;
  namd.extents[{RegionUuid{9, 9}, Generation(1)}] = {};
  h.Restart();
  h.Up("nam0");
  ASSERT_EQ(h.Extents(), 1u);
  EXPECT_EQ(namd.extents.begin()->second.state, wire::NamExtentState::kCommitted);
  EXPECT_EQ(h.List(h.Root()).size(), 1u);
}

TEST(NamNodes, AHelloInBetweenAsksAgainForWhatIsBeingMade) {
  Harness h;
  h.auto_pump = false;
  h.Pump();
  const std::uint64_t tag = h.Send(h.Ada(), Shared("a", 0600));
  h.Up("nam0");
  h.Pump();
  EXPECT_TRUE(h.replies[tag].status.ok());
  EXPECT_EQ(h.Extents(), 1u);
}

TEST(NamNodes, MemoryThatIsGoneIsDamagedAndFsckSaysSoAndMarksIt) {
  Harness h;
  h.MustGrant(h.Ada(), Shared("a", 0600));
  h.Lose("nam0");
  const auto extents = std::exchange(h.namds["nam0"].extents, {});
  h.Up("nam0");
  EXPECT_EQ(h.List(h.Ada())[0].state, NamRegionState::kDamaged);
  EXPECT_EQ(h.Try(h.Ada(), wire::NamOpen{"", "a"}).code(), Code::kDataLoss);
  ASSERT_EQ(h.Check(false).findings.size(), 1u);
  EXPECT_FALSE(h.Check(false).findings[0].repaired);
  // A directory that was not mounted yet costs nobody his region.
  h.Lose("nam0");
  h.namds["nam0"].extents = extents;
  h.Up("nam0");
  EXPECT_EQ(h.List(h.Ada())[0].state, NamRegionState::kReady);
  h.Lose("nam0");
  h.namds["nam0"].extents.clear();
  h.Up("nam0");
  EXPECT_TRUE(h.Check(true).findings[0].repaired);
  h.Restart();
  h.Up("nam0");
  EXPECT_EQ(h.List(h.Ada())[0].state, NamRegionState::kDamaged);
  EXPECT_TRUE(h.Try(h.Ada(), wire::NamRemove{"a", true}).ok());
  EXPECT_TRUE(h.Check(false).findings.empty());
}

TEST(NamNodes, AnExtentThatAClientCutIsDamaged) {
  Harness h;
  const auto lease = h.MustGrant(h.Ada(), Shared("a", 0600));
  h.On(nam_event::ExtentDamaged{"nam0", {lease.lease.uuid, Generation(2), "another"}});
  EXPECT_EQ(h.List(h.Ada())[0].state, NamRegionState::kReady);
  h.On(nam_event::ExtentDamaged{"nam0", {lease.lease.uuid, Generation(1), "truncated to 0"}});
  EXPECT_EQ(h.Count<nam_effect::PutRegion>(), 1u);
  EXPECT_EQ(h.Try(h.Ada(), wire::NamRefresh{lease.granted.lease}).code(), Code::kDataLoss);
}

TEST(NamNodes, FsckFindsExtentsThatNoRegionKnowsAndFreesThemForTheOperatorAlone) {
  Harness h({{"nam0", Bytes(kMiB)}, {"nam1", Bytes(kMiB)}});
  h.Lose("nam0");
  h.Lose("nam1");
  h.namds["nam0"].extents[{RegionUuid{9, 9}, Generation(1)}] = {wire::NamExtentState::kCommitted, Bytes(77)};
  h.Up("nam0");
  EXPECT_EQ(h.Extents(), 1u) << "committed extents are never freed unasked";
  const auto found = h.Check(false);
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_EQ(found.findings[0].region, ToText(RegionUuid{9, 9}));
  EXPECT_EQ(found.away, std::vector<std::string>{"nam1"});
  EXPECT_EQ(h.Try(h.Ada(), wire::NamCheckAsk{true}).code(), Code::kPermissionDenied);
  EXPECT_TRUE(h.Check(true).findings[0].repaired);
  EXPECT_EQ(h.Extents(), 0u);
  EXPECT_TRUE(h.Check(false).findings.empty());
}

TEST(NamNodes, ProcessesThatWentWhileNobodyCouldTellLoseTheirLeases) {
  Harness h;
  h.MustGrant(h.Ada(), Shared("a", 0666));
  h.MustGrant(h.Bob(), wire::NamOpen{"", "a"});
  h.Restart();
  h.namds["nam0"].connections = std::vector<std::uint64_t>{h.Bob().holder.connection};
  h.Up("nam0");
  h.Lose("nam0");
  h.Up("nam0");
  EXPECT_EQ(h.store.leases.size(), 1u) << "the same namd says which connections it has";
}

TEST(NamNodes, AWelcomeNamesTheNewestLeaseSoThatAnEndedOneIsNotTakenForALaterOne) {
  Harness h;
  h.MustGrant(h.Ada(), Shared("a", 0666));
  const LeaseId ended = h.MustGrant(h.Bob(), wire::NamOpen{"", "a"}).granted.lease;
  h.CloseAll(h.Bob());
  h.Up("nam0");
  EXPECT_EQ(h.namds["nam0"].welcome.newest, ended);
  EXPECT_EQ(h.namds["nam0"].welcome.leases.size(), 1u);
}

TEST(NamNodes, ProcessesOfARestartedNamdTakeTheirLeasesOverOrLoseThemAfterTenSeconds) {
  Harness h;
  wire::NamCreate lease_region = Shared("a", 0600);
  lease_region.lifetime = NamLifetime::kLease;
  const LeaseId kept = h.MustGrant(h.Ada(), lease_region).granted.lease;
  h.MustGrant(h.Ada(), Shared("b", 0666));
  h.MustGrant(h.Bob(), wire::NamOpen{"", "b"});
  h.namds["nam0"].connections = std::vector<std::uint64_t>{};
  h.namds["nam0"].pid++;
  h.Lose("nam0");
  h.Up("nam0");
  NamCaller ada = h.Ada();
  ada.holder.connection += 1000;
  EXPECT_TRUE(h.Try(ada, wire::NamRefresh{kept}).ok());
  h.Sleep(Millis(10'001));
  ASSERT_EQ(h.store.leases.size(), 1u);
  EXPECT_EQ(h.store.leases.begin()->first, kept);
  EXPECT_EQ(h.store.Load().leases.at(0).holder, ada.holder);
  EXPECT_EQ(h.List(h.Ada()).size(), 2u) << "the region that ends with its lease is there";
}

TEST(NamAccess, AnEntryThatIsNotThereOrIsNobodysIsRefused) {
  Harness h;
  h.MustGrant(h.Ada(), Shared("a", 0600));
  wire::NamSetAccess m;
  m.region = "a";
  m.set = {{wire::NamAclKind::kUser, 1001, NamRights::kNone}};
  EXPECT_EQ(h.Try(h.Ada(), m).code(), Code::kNotFound);
  m.set[0].rights = NamRights::kRead;
  EXPECT_TRUE(h.Try(h.Ada(), m).ok());
  m.set[0].rights = NamRights::kNone;
  EXPECT_TRUE(h.Try(h.Ada(), m).ok());
  m.set = {{wire::NamAclKind::kUser, ~std::uint32_t{0}, NamRights::kRead}};
  EXPECT_EQ(h.Try(h.Ada(), m).code(), Code::kInvalidArgument);
}

TEST(NamJobs, ABindingLimitsTheJobThoughItFailedWhenTheJobStarted) {
  Harness h;
  wire::NamCreate m = Shared("a", 0600);
  h.MustGrant(h.Ada(), m);
  h.CloseAll(h.Ada());
  h.auto_pump = false;
  h.Send(h.Ada(), wire::NamResize{"a", {Bytes(400)}});
  h.StartJob(7, 0, {{"a", NamRights::kRead}});  // refused: it is being resized
  h.auto_pump = true;
  h.Pump();
  EXPECT_EQ(h.Try(h.InJob(7), wire::NamOpen{"", "a", NamRights::kRead | NamRights::kWrite}).code(),
            Code::kPermissionDenied);
  EXPECT_TRUE(h.Try(h.InJob(7), wire::NamOpen{"", "a", NamRights::kRead}).ok());
  h.StartJob(8);
  EXPECT_TRUE(h.Try(h.InJob(8), wire::NamOpen{"", "a", NamRights::kRead | NamRights::kWrite}).ok());
}

TEST(NamJobs, ABindingIsJudgedByTheUsersSupplementaryGroups) {
  Harness h;
  h.MustGrant(h.Bob(), Shared("a", 0640));
  nam_event::JobStarted job{JobId(7), {1000, 999}, "ada", Bytes(), false, {{"a", NamRights::kRead}}, {}};
  job.groups = {100};  // bob's
  h.jobs[7] = job;
  h.On(job);
  EXPECT_EQ(h.List(h.Root(), "a").at(0).holders.size(), 2u) << "bob and the job";
}

// Two NAM nodes on one host. The process asks by way of nam0; what it has lies on nam1.
class TwoNamds : public ::testing::Test {
 protected:
  TwoNamds() : h({{"nam0", Bytes(kMiB)}, {"nam1", Bytes(kMiB)}}) {
    wire::NamCreate m = Shared("a", 0600);
    m.lifetime = NamLifetime::kLease;
    m.nodes = {"nam1"};
    lease = h.MustGrant(h.Ada(), m).granted.lease;
    again = h.Ada();
    again.holder.node = "nam1";
    again.holder.connection += 1000;
  }
  void RestartNam0() {
    h.namds["nam0"].connections = std::vector<std::uint64_t>{};
    h.namds["nam0"].pid++;
    h.Up("nam0");
  }
  Harness h;
  LeaseId lease;
  NamCaller again;  // the same process, by way of nam1
};

TEST_F(TwoNamds, ALeasePassesToWhoAskedByTheOtherNamdBeforeTheFirstWasBack) {
  h.Lose("nam0");
  ASSERT_TRUE(h.Try(again, wire::NamRefresh{lease}).ok());
  RestartNam0();
  h.Sleep(Millis(10'001));
  ASSERT_EQ(h.store.leases.size(), 1u);
  EXPECT_EQ(h.store.Load().leases.at(0).holder, again.holder);
  EXPECT_EQ(h.List(h.Ada()).size(), 1u);
  h.CloseAll(again);
  EXPECT_TRUE(h.List(h.Ada()).empty()) << "it ends with its new holder";
}

TEST_F(TwoNamds, ALeasePassesThoughTheEndOfItsNamdWasNotHeardOf) {
  ASSERT_TRUE(h.Try(again, wire::NamRefresh{lease}).ok());
  EXPECT_NE(h.store.Load().leases.at(0).holder, again.holder) << "its first holder may be there";
  RestartNam0();
  EXPECT_EQ(h.store.Load().leases.at(0).holder, again.holder);
}

TEST_F(TwoNamds, ALeaseStaysWithItsHolderIfWhoSharesItAsks) {
  ASSERT_TRUE(h.Try(again, wire::NamRefresh{lease}).ok());
  h.namds["nam0"].connections = std::vector<std::uint64_t>{h.Ada().holder.connection};
  h.Lose("nam0");
  h.Up("nam0");
  EXPECT_EQ(h.store.Load().leases.at(0).holder, h.Ada().holder);
  h.On(nam_event::HolderGone{h.Ada().holder});
  EXPECT_TRUE(h.store.leases.empty());
}

TEST_F(TwoNamds, ALeaseWhoseHeirIsGoneWaitsAsAnyOtherAndEnds) {
  ASSERT_TRUE(h.Try(again, wire::NamRefresh{lease}).ok());
  h.On(nam_event::HolderGone{again.holder});
  RestartNam0();
  EXPECT_EQ(h.store.leases.size(), 1u);
  h.Sleep(Millis(10'001));
  EXPECT_TRUE(h.store.leases.empty());
}

TEST_F(TwoNamds, ARestartOfTheNamdThatHoldsTheRegionEndsNoLease) {
  h.namds["nam1"].connections = std::vector<std::uint64_t>{};
  h.namds["nam1"].pid++;
  h.Lose("nam1");
  h.Up("nam1");
  EXPECT_EQ(h.namds["nam1"].welcome.leases, std::vector<LeaseId>{lease});
  h.Sleep(Millis(10'001));
  EXPECT_EQ(h.store.leases.size(), 1u);
}

TEST(NamNodes, ANodeThatLeftTheTopologyLeavesItsRegionsAwayAndRemovable) {
  Harness h({{"nam0", Bytes(kMiB)}, {"nam1", Bytes(kMiB)}});
  wire::NamCreate m = h.Create("a", {64});
  m.nodes = {"nam1"};
  h.MustGrant(h.Ada(), m);
  h.CloseAll(h.Ada());
  h.specs.pop_back();
  h.Restart();
  h.Up("nam0");
  EXPECT_EQ(h.List(h.Ada())[0].state, NamRegionState::kAway);
  EXPECT_THAT(h.Check(false).findings.at(0).what, HasSubstr("topology"));
  EXPECT_TRUE(h.Try(h.Ada(), wire::NamRemove{"a", false}).ok());
  EXPECT_TRUE(h.store.regions.empty());
}

TEST(NamNodes, RecordsThatContradictEachOtherAreRefused) {
  Harness h;
  h.MustGrant(h.Ada(), Shared("a", 0600));
  const auto refused = [&](auto change) {
    StoredNam state = h.store.Load();
    change(state);
    NamBook book(h.specs, {}, kSystem);
    const auto effects = book.Restore(std::move(state), {}, h.now);
    ASSERT_FALSE(effects.ok());
    EXPECT_EQ(effects.status().code(), Code::kInvalidArgument);
  };
  refused([](StoredNam& s) { s.regions.push_back(s.regions[0]); });
  refused([](StoredNam& s) {
    s.regions.push_back(s.regions[0]);
    s.regions[1].uuid.low ^= 1;
  });
  refused([](StoredNam& s) { s.regions[0].segments[0].extent = 1; });
  refused([](StoredNam& s) { s.regions[0].segments[0].bytes = Bytes(~std::uint64_t{0}); });
  refused([](StoredNam& s) { s.regions[0].phase = RegionPhase::kReserved; });
}

TEST(NamNodes, ARestartEndsLeasesOfCallsAndOfJobsThatHaveEnded) {
  Harness h;
  NamCaller call = h.Ada();
  call.holder = NamHolder{.call = 5};
  h.StartJob(7, 1000);
  h.MustGrant(call, Shared("kept", 0600));
  h.MustGrant(call, h.Create("own", {64}, NamLifetime::kLease));
  h.MustGrant(h.InJob(7), h.Create("win", {64}, NamLifetime::kLease));
  h.jobs.clear();
  h.Restart();
  h.Up("nam0");
  EXPECT_TRUE(h.store.leases.empty());
  ASSERT_EQ(h.List(h.Root()).size(), 1u);
  EXPECT_EQ(h.List(h.Root())[0].name, "kept");
  EXPECT_EQ(h.Extents(), 1u);
  EXPECT_GT(h.MustGrant(h.Ada(), wire::NamOpen{"", "kept"}).granted.lease, LeaseId(3))
      << "numbers are not reused";
}

}  // namespace
}  // namespace msa::nam_test
