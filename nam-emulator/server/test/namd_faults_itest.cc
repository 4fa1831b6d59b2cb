// The real msa-namd, killed at each point where a file changes: no committed extent is lost, none is left
// over.
#include <signal.h>

#include <cstring>

#include "namd_fixture.h"

namespace msa::namd::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using State = wire::NamExtentState;

class NamdFaults : public NamdTest {
 protected:
  void StartKilledAt(const std::string& point) { StartNamd({.env = {"MSA_FAULT=" + point + "=kill"}}); }
};

class KilledWhileAllocating : public NamdFaults, public ::testing::WithParamInterface<const char*> {};

TEST_P(KilledWhileAllocating, IsAskedAgainAndMakesIt) {
  StartKilledAt(GetParam());
  ASSERT_TRUE(controller_->Connect());
  ASSERT_FALSE(controller_->Allocate(kExtent, {4096}).has_value());
  ASSERT_TRUE(NamdEnds());
  StartNamd();
  ASSERT_TRUE(controller_->AwaitHello().has_value());
  controller_->expected[kExtent] = {State::kPending, FakeController::Places({4096})};
  controller_->Welcome();
  ASSERT_TRUE(controller_->AllocateAndCommit(kExtent, {4096}));
  EXPECT_TRUE(Eventually(kLimit, [&] { return Exists(FileOf(kExtent, Stage::kCommitted)); }));
  EXPECT_EQ(Files().size(), 1u);
  EXPECT_EQ(Client().Attach(Blob(), 1).answer.owner, 1u);
}

TEST_P(KilledWhileAllocating, LeavesNothingWhenNobodyAsksAgain) {
  StartKilledAt(GetParam());
  ASSERT_TRUE(controller_->Connect());
  ASSERT_FALSE(controller_->Allocate(kExtent, {4096}).has_value());
  ASSERT_TRUE(NamdEnds());
  StartNamd();
  ASSERT_TRUE(controller_->Connect());
  EXPECT_TRUE(Eventually(kLimit, [&] { return Files().empty(); }));
}

INSTANTIATE_TEST_SUITE_P(Points, KilledWhileAllocating,
                         ::testing::Values("namd.allocate.before", "namd.allocate.made",
                                           "namd.allocate.after"),
                         [](const auto& info) { return std::string(std::strrchr(info.param, '.') + 1); });

class KilledWhileCommitting : public NamdFaults, public ::testing::WithParamInterface<const char*> {};

TEST_P(KilledWhileCommitting, CommitsAtTheNextWelcomeAndKeepsTheBytes) {
  StartKilledAt(GetParam());
  ASSERT_TRUE(controller_->Connect());
  ASSERT_TRUE(controller_->AllocateAndCommit(kExtent, {4096}));
  ASSERT_TRUE(NamdEnds());
  ASSERT_EQ(Files().size(), 1u);
  StartNamd();
  ASSERT_TRUE(controller_->Connect());
  EXPECT_TRUE(Eventually(kLimit, [&] { return Exists(FileOf(kExtent, Stage::kCommitted)); }));
  EXPECT_THAT(Files(), ElementsAre(ExtentFileName(kExtent, Stage::kCommitted)));
  TestClient client = Client();
  const auto attached = client.Attach(Blob(), 1);
  EXPECT_EQ(client.FetchAdd(attached.answer.attachment, 0, 1), 0);
}

INSTANTIATE_TEST_SUITE_P(Points, KilledWhileCommitting,
                         ::testing::Values("namd.commit.before", "namd.commit.after"),
                         [](const auto& info) { return std::string(std::strrchr(info.param, '.') + 1); });

class KilledWhileFreeing : public NamdFaults, public ::testing::WithParamInterface<const char*> {};

TEST_P(KilledWhileFreeing, IsAskedAgainAndLeavesNothing) {
  StartKilledAt(GetParam());
  ASSERT_TRUE(controller_->Connect());
  ASSERT_TRUE(controller_->AllocateAndCommit(kExtent, {4096}));
  ASSERT_TRUE(controller_->AllocateAndCommit(kOther, {4096}));
  const std::uint64_t request = controller_->Free(kExtent);
  EXPECT_FALSE(controller_->AwaitDone(request).has_value());
  ASSERT_TRUE(NamdEnds());
  StartNamd();
  ASSERT_TRUE(controller_->Connect());
  const auto done = controller_->AwaitDone(controller_->Free(kExtent));
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->code, 0);
  EXPECT_THAT(Files(), ElementsAre(ExtentFileName(kOther, Stage::kCommitted)));
}

INSTANTIATE_TEST_SUITE_P(Points, KilledWhileFreeing, ::testing::Values("namd.free.before", "namd.free.after"),
                         [](const auto& info) { return std::string(std::strrchr(info.param, '.') + 1); });

TEST_F(NamdFaults, RemovesWhatAFailedCopyHasMade) {
  StartNamd({.env = {"MSA_FAULT=namd.allocate.made=fail"}});
  ASSERT_TRUE(controller_->Connect());
  const auto done = controller_->Allocate(kExtent, {4096});
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(static_cast<Code>(done->code), Code::kInternal);
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(NamdFaults, ServesWhileALongAllocationGoesOn) {
  StartNamd({.env = {"MSA_FAULT=namd.allocate.before=sleep:2000@2"}});
  ASSERT_TRUE(controller_->Connect());
  ASSERT_TRUE(controller_->AllocateAndCommit(kExtent, {4096}));
  TestClient client = Client();
  const auto attached = client.Attach(Blob(), 1);
  wire::NamExtentAllocate slow;
  slow.request = 1000;
  slow.uuid = kOther.uuid;
  slow.generation = kOther.generation;
  slow.segments = FakeController::Places({4096});
  controller_->expected[kOther] = {State::kPending, slow.segments};
  controller_->Send(slow);
  // Asked twice and freed while it is being made: answered in that order, and nothing stays.
  controller_->Send(wire::NamExtentFree{1001, kOther.uuid, kOther.generation});
  ASSERT_EQ(client.FetchAdd(attached.answer.attachment, 0, 1), 0);
  EXPECT_FALSE(Exists(FileOf(kOther, Stage::kPending)));
  EXPECT_EQ(controller_->Await<wire::NamExtentDone>()->request, 1000u);
  EXPECT_EQ(controller_->Await<wire::NamExtentDone>()->request, 1001u);
  EXPECT_THAT(Files(), ElementsAre(ExtentFileName(kExtent, Stage::kCommitted)));
}

TEST_F(NamdFaults, FreesWhatWasMadeForASessionThatIsOver) {
  StartNamd({.env = {"MSA_FAULT=namd.allocate.before=sleep:500"}});
  ASSERT_TRUE(controller_->Connect());
  wire::NamExtentAllocate slow;
  slow.uuid = kOther.uuid;
  slow.generation = kOther.generation;
  slow.segments = FakeController::Places({4096});
  controller_->Send(slow);
  controller_->Hangup();
  ASSERT_TRUE(controller_->Connect());
  ASSERT_TRUE(controller_->AllocateAndCommit(kExtent, {4096})) << "the worker has done both";
  EXPECT_TRUE(Eventually(kLimit, [&] {
    return Files() == std::vector<std::string>{ExtentFileName(kExtent, Stage::kCommitted)};
  })) << ::testing::PrintToString(Files());
}

TEST_F(NamdFaults, LosesNoDeliveredWriteWhenItIsKilledUnderLoad) {
  StartWithExtent();
  const std::string blob = Blob();
  std::int64_t counted = 0;
  for (int round = 0; round < 10; ++round) {
    TestClient client = Client();
    TestClient::Attached attached;
    ASSERT_TRUE(Eventually(kLimit, [&] { return (attached = client.Attach(blob, 5)).status.ok(); }));
    for (int i = 0; i < 200; ++i) {
      ASSERT_EQ(client.FetchAdd(attached.answer.attachment, 64, 1), counted);
      ++counted;
    }
    Restart();
    ASSERT_TRUE(controller_->Connect());
  }
}

}  // namespace
}  // namespace msa::namd::test
