#include "msa/namd/book.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "book_fixture.h"

namespace msa::namd {
namespace {

using test::AttachOf;
using test::Fabric;
using test::kExtent;
using test::LeaseOf;
using test::Socket;
using test::WelcomeOf;
using ::testing::HasSubstr;
using State = wire::NamExtentState;

class BookTest : public ::testing::Test {
 protected:
  BookTest() { test::Fill(book_); }
  void TearDown() override {
    const Status status = book_.CheckInvariants();
    EXPECT_TRUE(status.ok()) << status.message();
  }
  Result<Grant> Attach(const Caller& caller, std::uint64_t lease = 1, std::uint64_t client = 1) {
    return book_.Attach(caller, AttachOf(LeaseOf(lease), client), ++random_);
  }
  Code AttachCode(const Caller& caller, const wire::NamLease& lease) {
    return book_.Attach(caller, AttachOf(lease), ++random_).status().code();
  }

  Book book_{"nam0", test::Sign};
  std::uint64_t random_ = 100;
};

TEST_F(BookTest, GivesTheHolderOfALeaseAnOwnerNumberAndTheFile) {
  const auto grant = Attach(Socket(1));
  ASSERT_TRUE(grant.ok()) << grant.status().message();
  EXPECT_EQ(grant->owner, 1u);
  EXPECT_TRUE(grant->map);
  EXPECT_EQ(grant->extent, kExtent);
}

TEST_F(BookTest, GivesNoFileWithoutTheRightToMapNorOverTheFabric) {
  wire::NamLease lease = LeaseOf(1);
  lease.rights = NamRights::kRead | NamRights::kWrite;
  EXPECT_FALSE(book_.Attach(Socket(1), AttachOf(lease), 1)->map);
  EXPECT_FALSE(Attach(Fabric(), 2, 2)->map);
}

TEST_F(BookTest, RefusesTheLeaseOfAnotherUserOnTheSocket) {
  EXPECT_EQ(Attach(Socket(1, 1001)).status().code(), Code::kPermissionDenied);
  EXPECT_EQ(Attach(Socket(1, 0)).status().code(), Code::kPermissionDenied);
}

TEST_F(BookTest, RefusesAClientNumberOfAnotherUsersProcess) {
  ASSERT_TRUE(Attach(Socket(1), 1, 77).ok());
  wire::NamLease other = LeaseOf(2);
  other.uid = 1001;
  EXPECT_EQ(book_.Attach(Socket(2, 1001), AttachOf(other, 77), ++random_).status().code(),
            Code::kPermissionDenied);
  wire::NamAttach far = AttachOf(other, 77);
  far.map = false;
  EXPECT_EQ(book_.Attach(Fabric(), far, ++random_).status().code(), Code::kPermissionDenied);
  EXPECT_TRUE(Attach(Socket(3), 3, 77).ok()) << "another lease of the same process";
  book_.ConnectionClosed(1);
  book_.ConnectionClosed(3);
  EXPECT_TRUE(book_.Attach(Socket(2, 1001), AttachOf(other, 77), ++random_).ok());

  ASSERT_TRUE(book_.Restore(kExtent, {9, NamClientId(78), LeaseId(4), 1000}).ok());
  EXPECT_EQ(book_.Attach(Socket(2, 1001), AttachOf(other, 78), ++random_).status().code(),
            Code::kPermissionDenied)
      << "also one of before a restart";
  EXPECT_EQ(Attach(Socket(4), 4, 78)->owner, 9u);
}

TEST_F(BookTest, SaysWhetherAClientHasTheLocksThatItHad) {
  EXPECT_FALSE(Attach(Fabric(), 1, 7)->known);
  EXPECT_TRUE(Attach(Fabric(), 1, 7)->known) << "its endpoint was lost";
  EXPECT_TRUE(Attach(Fabric(), 2, 7)->known) << "by another lease";
  (void)book_.Revoke({.leases = {LeaseId(1), LeaseId(2)}});
  EXPECT_FALSE(Attach(Fabric(), 3, 7)->known);
  ASSERT_TRUE(Attach(Socket(1), 4, 8).ok());
  (void)book_.Revoke({.leases = {LeaseId(4)}});
  EXPECT_FALSE(Attach(Fabric(), 5, 8)->known) << "nothing but a mapping was left";
  ASSERT_TRUE(book_.Restore(kExtent, {9, NamClientId(9), LeaseId(6), 1000}).ok());
  EXPECT_TRUE(Attach(Fabric(), 6, 9)->known) << "from before a restart";
}

TEST_F(BookTest, EndsWhatAGoneClientHasOverTheFabricIfItIsThatUsers) {
  ASSERT_TRUE(Attach(Fabric(), 1, 7).ok());
  ASSERT_TRUE(Attach(Socket(1), 1, 7).ok());
  ASSERT_TRUE(Attach(Fabric(), 1, 8).ok());
  EXPECT_EQ(book_.RemoteOwners(NamClientId(7), 1000).size(), 1u);
  (void)book_.ClientGone(NamClientId(7), 1001);
  EXPECT_EQ(book_.attachments(), 3u) << "another user's";
  (void)book_.ClientGone(NamClientId(7), 1000);
  EXPECT_EQ(book_.attachments(), 2u) << "a mapping ends with its connection";
  EXPECT_TRUE(book_.RemoteOwners(NamClientId(7), 1000).empty());
  EXPECT_EQ(book_.ClientGone(NamClientId(8), 1000).owners.size(), 1u);
}

TEST_F(BookTest, BoundsTheAttachmentsOfAConnection) {
  for (std::uint64_t client = 1; client <= kMaxAttachmentsOfAConnection; ++client)
    ASSERT_TRUE(Attach(Socket(1), 1, client).ok());
  const auto more = Attach(Socket(1), 1, 1000);
  EXPECT_EQ(more.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(more.status().message(), HasSubstr("64 attachments"));
  EXPECT_TRUE(Attach(Socket(1), 1, 1).ok()) << "what it has is told again";
  EXPECT_TRUE(Attach(Socket(2), 1, 1000).ok());
}

TEST_F(BookTest, RefusesALeaseThatIsNotForThisNode) {
  wire::NamLease lease = LeaseOf(1);
  lease.extents.pop_back();
  EXPECT_EQ(AttachCode(Socket(1), lease), Code::kNotFound);
}

TEST_F(BookTest, TellsAnOldGenerationFromAnUnknownRegion) {
  book_.Put({kExtent.uuid, Generation(3)}, State::kCommitted, {.segments = 2, .data = Bytes(4096)});
  wire::NamLease lease = LeaseOf(1);
  lease.generation = Generation(2);
  EXPECT_EQ(AttachCode(Socket(1), lease), Code::kFailedPrecondition);
  lease.generation = Generation(4);
  EXPECT_EQ(AttachCode(Socket(1), lease), Code::kNotFound);
  lease.uuid.low ^= 1;
  EXPECT_EQ(AttachCode(Socket(1), lease), Code::kNotFound);
}

TEST_F(BookTest, RefusesSegmentsThatAreNotInTheFile) {
  const auto with = [](auto change) {
    wire::NamLease lease = LeaseOf(1);
    change(lease.segments[2]);
    return lease;
  };
  using Segment = wire::NamSegmentPlace;
  constexpr auto kHuge = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(AttachCode(Socket(1), with([](Segment& s) { s.slot = 2; })), Code::kDataLoss);
  EXPECT_EQ(AttachCode(Socket(1), with([](Segment& s) { s.slot = 0; })), Code::kDataLoss);
  EXPECT_EQ(AttachCode(Socket(1), with([](Segment& s) { s.bytes = Bytes(3073); })), Code::kDataLoss);
  EXPECT_EQ(AttachCode(Socket(1), with([](Segment& s) { s.offset = kHuge - 63; })), Code::kDataLoss);
  EXPECT_EQ(AttachCode(Socket(1), with([](Segment& s) { s.bytes = Bytes(kHuge); })), Code::kDataLoss);
  EXPECT_EQ(AttachCode(Socket(1), with([](Segment& s) { s.extent = 0; })), Code::kDataLoss);
}

TEST_F(BookTest, RefusesADamagedExtentAndNamesTheDamage) {
  EXPECT_TRUE(book_.MarkDamaged(kExtent, "its file was truncated"));
  EXPECT_FALSE(book_.MarkDamaged(kExtent, "again"));
  const auto grant = Attach(Socket(1));
  EXPECT_EQ(grant.status().code(), Code::kDataLoss);
  EXPECT_THAT(grant.status().message(), HasSubstr("its file was truncated"));
}

TEST_F(BookTest, GivesAClientOneNumberHoweverOftenItAttaches) {
  EXPECT_EQ(Attach(Socket(1), 1, 5)->owner, 1u);
  EXPECT_EQ(Attach(Socket(2), 2, 6)->owner, 2u);
  EXPECT_EQ(Attach(Socket(1), 3, 5)->owner, 1u);
  EXPECT_EQ(Attach(Fabric(), 3, 5)->owner, 1u);
  EXPECT_EQ(book_.attachments(), 4u);
}

TEST_F(BookTest, AnswersARepeatedAttachWithTheSameAttachment) {
  const auto first = Attach(Socket(1));
  const auto second = Attach(Socket(1));
  EXPECT_EQ(first->attachment, second->attachment);
  EXPECT_EQ(book_.attachments(), 1u);
}

TEST_F(BookTest, ReplacesAFabricAttachmentThatItsClientHasLost) {
  const auto first = Attach(Fabric());
  ASSERT_TRUE(book_.SetFabricKey(first->attachment, 77));
  const auto second = Attach(Fabric());
  EXPECT_EQ(second->owner, first->owner);
  EXPECT_THAT(second->replaced.keys, ::testing::ElementsAre(77));
  EXPECT_TRUE(second->replaced.owners.empty()) << "its locks must stay";
  EXPECT_FALSE(book_.SetFabricKey(first->attachment, 78));
}

TEST_F(BookTest, FreesAnOwnerWhenItsLastAttachmentEnds) {
  const auto one = Attach(Socket(1), 1, 5);
  const auto two = Attach(Socket(1), 2, 5);
  EXPECT_TRUE(book_.Detach(Socket(1), one->attachment)->owners.empty());
  const auto end = book_.Detach(Socket(1), two->attachment);
  ASSERT_EQ(end->owners.size(), 1u);
  EXPECT_EQ(end->owners[0].owner, 1u);
  EXPECT_EQ(end->owners[0].what, OwnerEnd::What::kNumber);
}

TEST_F(BookTest, EndsAllThatCameOverAConnectionWhenItCloses) {
  (void)Attach(Socket(1), 1, 5);
  (void)Attach(Socket(1), 1, 6);
  (void)Attach(Socket(2), 1, 7);
  EXPECT_EQ(book_.ConnectionClosed(1).owners.size(), 2u);
  EXPECT_EQ(book_.attachments(), 1u);
  EXPECT_EQ(Attach(Socket(3), 1, 8)->owner, 1u) << "the number is free again";
}

TEST_F(BookTest, KeepsTheNumberOfARevokedMappingButNotItsLocks) {
  const auto grant = Attach(Socket(1), 4);
  const Outcome outcome = book_.Revoke({.leases = {LeaseId(4)}});
  ASSERT_EQ(outcome.owners.size(), 1u);
  EXPECT_EQ(outcome.owners[0].what, OwnerEnd::What::kLocks);
  EXPECT_EQ(Attach(Socket(2), 5, 9)->owner, 2u) << "who maps still may use number 1";
  EXPECT_EQ(book_.CheckLock(Socket(1), {.attachment = grant->attachment}).status().code(),
            Code::kFailedPrecondition);
  EXPECT_EQ(Attach(Socket(3), 4).status().code(), Code::kFailedPrecondition);
  const Outcome closed = book_.ConnectionClosed(1);
  ASSERT_EQ(closed.owners.size(), 1u);
  EXPECT_EQ(closed.owners[0].what, OwnerEnd::What::kNumber);
}

TEST_F(BookTest, GivesAClientWhoseMappingWasRevokedANewAttachment) {
  const auto first = Attach(Socket(1), 4, 5);
  (void)book_.Revoke({.clients = {NamClientId(5)}});
  const auto second = Attach(Socket(1), 4, 5);
  EXPECT_NE(second->attachment, first->attachment);
  EXPECT_EQ(second->owner, first->owner) << "it maps still";
  EXPECT_TRUE(book_.SetFabricKey(second->attachment, 78));
  EXPECT_TRUE(book_.CheckLock(Socket(1), {.attachment = second->attachment}).ok());
}

TEST_F(BookTest, EndsTheAttachmentsOfAClientThatIsGone) {
  const auto fabric = Attach(Fabric(), 1, 5);
  ASSERT_TRUE(book_.SetFabricKey(fabric->attachment, 55));
  (void)Attach(Fabric(), 1, 6);
  const Outcome outcome = book_.Revoke({.clients = {NamClientId(5)}});
  EXPECT_THAT(outcome.keys, ::testing::ElementsAre(55));
  EXPECT_EQ(outcome.owners.size(), 1u);
  EXPECT_EQ(book_.attachments(), 1u);
}

TEST_F(BookTest, RefusesTheClientBeyondTheLastOwnerNumber) {
  for (std::uint64_t client = 1; client <= nam::kMaxOwners; ++client)
    ASSERT_EQ(Attach(Socket(client), 1, client)->owner, client);
  const auto more = Attach(Socket(5000), 1, 5000);
  EXPECT_EQ(more.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(more.status().message(), HasSubstr("1024"));
  (void)book_.ConnectionClosed(1);
  EXPECT_EQ(Attach(Socket(5000), 1, 5000)->owner, 1u);
}

TEST_F(BookTest, LetsNobodyUseAnothersAttachment) {
  const auto grant = Attach(Socket(1));
  for (const Caller& other : {Socket(2), Fabric()}) {
    EXPECT_EQ(book_.CheckLock(other, {.attachment = grant->attachment}).status().code(),
              Code::kFailedPrecondition);
    EXPECT_EQ(book_.Detach(other, grant->attachment).status().code(), Code::kFailedPrecondition);
  }
}

TEST_F(BookTest, ChecksLocksAgainstTheSegmentsOfTheLease) {
  const auto grant = Attach(Fabric());
  wire::NamLock lock{.attachment = grant->attachment, .slot = 1, .mode = 2};
  EXPECT_EQ(book_.CheckLock(Fabric(), lock)->slot, 1u);
  lock.slot = 2;
  EXPECT_EQ(book_.CheckLock(Fabric(), lock).status().code(), Code::kOutOfRange);
  lock.slot = ~0U;
  EXPECT_EQ(book_.CheckLock(Fabric(), lock).status().code(), Code::kOutOfRange);
  lock = {.attachment = grant->attachment, .slot = 0, .mode = 3};
  EXPECT_EQ(book_.CheckLock(Fabric(), lock).status().code(), Code::kInvalidArgument);
}

wire::NamAtomic AtomicOf(std::uint64_t attachment, std::uint64_t offset, std::uint32_t count) {
  wire::NamAtomic atomic;
  atomic.attachment = attachment;
  atomic.slot = 1;
  atomic.offset = offset;
  atomic.op = 2;  // sum
  atomic.count = count;
  atomic.operand = std::string(std::size_t{count} * 8, '\0');
  return atomic;
}

TEST_F(BookTest, ChecksAtomicsAgainstTheBoundsOfTheSegment) {
  const std::uint64_t id = Attach(Fabric())->attachment;
  const auto code = [&](std::uint64_t offset, std::uint32_t count) {
    return book_.CheckAtomic(Fabric(), AtomicOf(id, offset, count), 8).status().code();
  };
  EXPECT_EQ(code(1024, 384), Code::kOk);
  EXPECT_EQ(code(4088, 1), Code::kOk);
  EXPECT_EQ(code(1016, 1), Code::kOutOfRange) << "the segment before";
  EXPECT_EQ(code(4089, 1), Code::kOutOfRange);
  EXPECT_EQ(code(4096, 1), Code::kOutOfRange);
  EXPECT_EQ(code(1024, 385), Code::kOutOfRange);
  EXPECT_EQ(code(std::numeric_limits<std::uint64_t>::max() - 7, 1), Code::kOutOfRange);
  EXPECT_EQ(code(std::numeric_limits<std::uint64_t>::max(), 1), Code::kOutOfRange);
  wire::NamAtomic many = AtomicOf(id, 1024, 1);
  many.count = ~0U;
  EXPECT_EQ(book_.CheckAtomic(Fabric(), many, 32).status().code(), Code::kOutOfRange);
  EXPECT_EQ(book_.CheckAtomic(Fabric(), many, 0).status().code(), Code::kInvalidArgument);
}

TEST_F(BookTest, ChecksThatOperandsHaveTheirElementsSize) {
  const std::uint64_t id = Attach(Fabric())->attachment;
  wire::NamAtomic atomic = AtomicOf(id, 1024, 2);
  atomic.operand.pop_back();
  EXPECT_EQ(book_.CheckAtomic(Fabric(), atomic, 8).status().code(), Code::kInvalidArgument);
  atomic = AtomicOf(id, 1024, 2);
  atomic.op = 1;  // no-op: reads only
  EXPECT_EQ(book_.CheckAtomic(Fabric(), atomic, 8).status().code(), Code::kInvalidArgument);
  atomic = AtomicOf(id, 1024, 1);
  atomic.op = 14;  // compare and swap
  EXPECT_EQ(book_.CheckAtomic(Fabric(), atomic, 8).status().code(), Code::kInvalidArgument);
  atomic.compare = std::string(8, '\0');
  EXPECT_EQ(book_.CheckAtomic(Fabric(), atomic, 8).status().code(), Code::kOk);
}

TEST_F(BookTest, AsksForTheRightThatAnAtomicNeeds) {
  wire::NamLease lease = LeaseOf(1);
  lease.rights = NamRights::kRead;
  const std::uint64_t reader = book_.Attach(Fabric(), AttachOf(lease, 1), 1)->attachment;
  lease.rights = NamRights::kWrite;
  const std::uint64_t writer = book_.Attach(Fabric(), AttachOf(lease, 2), 2)->attachment;
  const auto code = [&](std::uint64_t id, std::uint8_t op, bool fetch) {
    wire::NamAtomic atomic = AtomicOf(id, 1024, 1);
    atomic.op = op;
    atomic.fetch = fetch;
    if (op == 1) atomic.operand.clear();
    return book_.CheckAtomic(Fabric(), atomic, 8).status().code();
  };
  EXPECT_EQ(code(reader, 1, true), Code::kOk);
  EXPECT_EQ(code(reader, 2, false), Code::kPermissionDenied);
  EXPECT_EQ(code(writer, 2, false), Code::kOk);
  EXPECT_EQ(code(writer, 2, true), Code::kPermissionDenied);
  EXPECT_EQ(code(writer, 1, true), Code::kPermissionDenied);
}

TEST_F(BookTest, FreesAnExtentOnlyWhenNobodyMapsItAnyMore) {
  const auto fabric = Attach(Fabric(), 1, 5);
  ASSERT_TRUE(book_.SetFabricKey(fabric->attachment, 55));
  (void)Attach(Socket(1), 1, 6);
  const Outcome first = book_.Free(kExtent);
  EXPECT_THAT(first.keys, ::testing::ElementsAre(55)) << "access over the fabric ends at once";
  EXPECT_TRUE(first.removable.empty());
  EXPECT_EQ(Attach(Socket(2), 2, 7).status().code(), Code::kFailedPrecondition);
  EXPECT_THAT(book_.ConnectionClosed(1).removable, ::testing::ElementsAre(kExtent));
  book_.Remove(kExtent);
  EXPECT_TRUE(book_.Reports().empty());
}

TEST_F(BookTest, FreesAnExtentThatNobodyMapsAtOnce) {
  (void)Attach(Fabric(), 1, 5);
  EXPECT_THAT(book_.Free(kExtent).removable, ::testing::ElementsAre(kExtent));
}

TEST(BookWelcome, FreesPendingExtentsThatNobodyExpects) {
  Book book("nam0", test::Sign);
  book.Put(kExtent, State::kPending, {2, Bytes(4096)});
  wire::NamdWelcome welcome = WelcomeOf();
  welcome.extents.clear();
  const auto result = book.Welcome(welcome);
  EXPECT_THAT(result->free, ::testing::ElementsAre(kExtent));
  EXPECT_TRUE(result->unknown.empty());
}

TEST(BookWelcome, KeepsCommittedExtentsThatNobodyExpects) {
  Book book("nam0", test::Sign);
  book.Put(kExtent, State::kCommitted, {2, Bytes(4096)});
  wire::NamdWelcome welcome = WelcomeOf();
  welcome.extents.clear();
  const auto result = book.Welcome(welcome);
  EXPECT_TRUE(result->free.empty());
  EXPECT_THAT(result->unknown, ::testing::ElementsAre(kExtent));
}

TEST(BookWelcome, CommitsWhatIsCommittedThere) {
  Book book("nam0", test::Sign);
  book.Put(kExtent, State::kPending, {2, Bytes(4096)});
  EXPECT_THAT(book.Welcome(WelcomeOf())->commit, ::testing::ElementsAre(kExtent));
}

TEST(BookWelcome, ReportsWhatIsMissingAndWhatIsTooSmall) {
  Book book("nam0", test::Sign);
  ASSERT_EQ(book.Welcome(WelcomeOf())->damaged.size(), 1u);
  book.Put(kExtent, State::kCommitted, {2, Bytes(64)});
  wire::NamdWelcome welcome = WelcomeOf();
  welcome.extents[0].bytes = Bytes(4097);
  ASSERT_EQ(book.Welcome(welcome)->damaged.size(), 1u);
  welcome.extents[0].state = State::kPending;  // it is about to be made
  EXPECT_TRUE(book.Welcome(welcome)->damaged.empty());
}

TEST(BookWelcome, EndsAttachmentsWhoseLeaseHasEndedMeanwhile) {
  Book book("nam0", test::Sign);
  test::Fill(book);
  ASSERT_TRUE(book.Attach(Fabric(), AttachOf(LeaseOf(1), 1), 1).ok());
  ASSERT_TRUE(book.Attach(Fabric(), AttachOf(LeaseOf(2), 2), 2).ok());
  const auto result = book.Welcome(WelcomeOf({LeaseId(2)}, 2));
  EXPECT_EQ(result->ended.owners.size(), 1u);
  EXPECT_EQ(book.attachments(), 1u);
  EXPECT_TRUE(book.CheckInvariants().ok());
}

TEST(BookWelcome, IsOfOneSystemOnly) {
  Book book("nam0", test::Sign);
  test::Fill(book);
  wire::NamdWelcome other = WelcomeOf();
  other.system = 3;
  EXPECT_EQ(book.Welcome(other).status().code(), Code::kFailedPrecondition);
}

TEST(BookRestore, KeepsNumbersOfBeforeForTheClientsThatComeBack) {
  Book book("nam0", test::Sign);
  test::Fill(book);
  ASSERT_TRUE(book.Restore(kExtent, {3, NamClientId(7), LeaseId(1), 1000}).ok());
  EXPECT_FALSE(book.Restore(kExtent, {3, NamClientId(8), LeaseId(1)}).ok());
  EXPECT_FALSE(book.Restore(kExtent, {0, NamClientId(8), LeaseId(1)}).ok());
  EXPECT_FALSE(book.Restore(kExtent, {nam::kMaxOwners + 1, NamClientId(8), LeaseId(1)}).ok());
  const auto grant = book.Attach(Socket(1), AttachOf(LeaseOf(1), 7), 50);
  EXPECT_EQ(grant->owner, 3u);
  EXPECT_TRUE(grant->replaced.owners.empty()) << "its locks must stay";
  EXPECT_TRUE(book.OwnerProcessGone(kExtent, 3).owners.empty()) << "it is here";
  EXPECT_EQ(book.ConnectionClosed(1).owners.size(), 1u);
  EXPECT_TRUE(book.CheckInvariants().ok());
}

TEST(BookRestore, FreesNumbersWhoseProcessOrLeaseIsGone) {
  Book book("nam0", test::Sign);
  test::Fill(book);
  ASSERT_TRUE(book.Restore(kExtent, {1, NamClientId(7), LeaseId(1), 1000}).ok());
  ASSERT_TRUE(book.Restore(kExtent, {2, NamClientId(8), LeaseId(2), 1000}).ok());
  EXPECT_EQ(book.OwnerProcessGone(kExtent, 1).owners.size(), 1u);
  EXPECT_EQ(book.Welcome(WelcomeOf({}, 2))->ended.owners.size(), 1u);
  EXPECT_EQ(book.attachments(), 0u);
}

}  // namespace
}  // namespace msa::namd
