#include "msa/pmix/collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/base/wire.h"

namespace msa::pmix {
namespace {

using ::testing::HasSubstr;

CollectiveEngine::Contribution FenceOf(std::uint64_t operation, std::vector<std::uint32_t> participants,
                                       std::string data) {
  return {
      operation, CollectiveKind::kFence, {{"job", kRankWildcard}}, std::move(participants), std::move(data)};
}

std::vector<CollectiveComplete> CompletesOf(const CollectiveEffects& effects) {
  std::vector<CollectiveComplete> completes;
  for (const CollectiveEffect& effect : effects)
    if (const auto* complete = std::get_if<CollectiveComplete>(&effect)) completes.push_back(*complete);
  return completes;
}

std::vector<SendToPeer> SendsOf(const CollectiveEffects& effects) {
  std::vector<SendToPeer> sends;
  for (const CollectiveEffect& effect : effects)
    if (const auto* send = std::get_if<SendToPeer>(&effect)) sends.push_back(*send);
  return sends;
}

// The up message of member 1 for the fence of FenceOf, as member 0 gets it.
CollectiveMessage UpOf1(std::uint64_t sequence = 0) {
  return {{CollectiveKind::kFence, {{"job", kRankWildcard}}, sequence},
          CollectivePhase::kUp,
          {0, 1},
          {{1, "b"}},
          {},
          kPmixSuccess,
          {}};
}

TEST(Collective, OneMemberCompletesAtOnceWithItsOwnData) {
  CollectiveEngine engine({.self = 4});
  const auto effects = engine.LocalContribution(FenceOf(9, {4}, "mine"));
  ASSERT_EQ(effects.size(), 1u);
  const auto done = CompletesOf(effects);
  EXPECT_EQ(done[0].operation, 9u);
  EXPECT_EQ(done[0].status, kPmixSuccess);
  EXPECT_EQ(done[0].data, "mine");
  EXPECT_EQ(engine.pending() + engine.early(), 0u);
}

TEST(Collective, KeepsAPeersContributionUntilTheLocalOne) {
  CollectiveEngine engine({.self = 0});
  const auto early = engine.FromPeer(1, UpOf1());
  ASSERT_TRUE(early.ok()) << early.status().ToString();
  EXPECT_TRUE((*early).empty());
  EXPECT_EQ(engine.early(), 1u);
  const auto effects = engine.LocalContribution(FenceOf(1, {1, 0}, "a"));
  ASSERT_EQ(CompletesOf(effects).size(), 1u);
  EXPECT_EQ(CompletesOf(effects)[0].data, "ab");
  ASSERT_EQ(SendsOf(effects).size(), 1u);
  EXPECT_EQ(SendsOf(effects)[0].member, 1u);
  EXPECT_EQ(SendsOf(effects)[0].message.data, "ab");
  EXPECT_EQ(engine.pending() + engine.early(), 0u);
}

TEST(Collective, DoesNotMixRepeatedFencesOverTheSameProcesses) {
  CollectiveEngine engine({.self = 0});
  ASSERT_TRUE(engine.FromPeer(1, UpOf1(0)).ok());
  (void)engine.LocalContribution(FenceOf(1, {0, 1}, "a"));
  const auto waiting = engine.LocalContribution(FenceOf(2, {0, 1}, "c"));
  EXPECT_TRUE(waiting.empty());
  const auto late = engine.FromPeer(1, UpOf1(0));
  ASSERT_TRUE(late.ok());
  EXPECT_TRUE((*late).empty());
  EXPECT_EQ(engine.pending(), 1u);
}

TEST(Collective, ConnectAndDisconnectOverTheSameProcessesAreApart) {
  CollectiveEngine engine({.self = 0});
  ASSERT_TRUE(engine.FromPeer(1, UpOf1()).ok());
  auto connect = FenceOf(1, {0, 1}, "");
  connect.kind = CollectiveKind::kConnect;
  EXPECT_TRUE(engine.LocalContribution(connect).empty());
  EXPECT_EQ(engine.early(), 1u);
  EXPECT_EQ(engine.pending(), 1u);
}

TEST(Collective, ABarrierOfPmi1NeverMeetsAFenceOverTheSameProcesses) {
  CollectiveEngine engine({.self = 0});
  ASSERT_TRUE(engine.FromPeer(1, UpOf1()).ok());
  auto barrier = FenceOf(1, {0, 1}, "puts");
  barrier.kind = CollectiveKind::kPmi1Barrier;
  EXPECT_TRUE(engine.LocalContribution(barrier).empty());
  auto up = UpOf1();
  up.key.kind = CollectiveKind::kPmi1Barrier;
  const auto effects = engine.FromPeer(1, up);
  ASSERT_TRUE(effects.ok());
  ASSERT_EQ(CompletesOf(*effects).size(), 1u);
  EXPECT_EQ(CompletesOf(*effects)[0].data, "putsb");
  EXPECT_EQ(engine.early(), 1u);
}

TEST(Collective, LossOfAMemberFailsItsOperationsWithTheReasonNowAndLater) {
  CollectiveEngine engine({.self = 0});
  (void)engine.LocalContribution(FenceOf(1, {0, 1}, "a"));
  const auto effects = engine.MemberLost(1, "node bn1 is down: no heartbeat for 10 s");
  ASSERT_EQ(CompletesOf(effects).size(), 1u);
  EXPECT_EQ(CompletesOf(effects)[0].status, kPmixErrUnreachable);
  EXPECT_THAT(CompletesOf(effects)[0].reason, HasSubstr("bn1"));
  EXPECT_TRUE(SendsOf(effects).empty()) << "nothing is sent to the lost";
  const auto later = engine.LocalContribution(FenceOf(2, {0, 1}, "a"));
  ASSERT_EQ(CompletesOf(later).size(), 1u);
  EXPECT_EQ(CompletesOf(later)[0].status, kPmixErrUnreachable);
  EXPECT_EQ(engine.pending() + engine.early(), 0u);
}

TEST(Collective, TimeoutFailsTheOperationAtThoseWhoHaveNotCalledYet) {
  CollectiveEngine root({.self = 0});
  CollectiveEngine leaf({.self = 1});
  (void)root.LocalContribution(FenceOf(1, {0, 1}, "a"));
  const auto timeout = root.OnTimeout(1);
  ASSERT_EQ(CompletesOf(timeout).size(), 1u);
  EXPECT_EQ(CompletesOf(timeout)[0].status, kPmixErrTimeout);
  ASSERT_EQ(SendsOf(timeout).size(), 1u);
  ASSERT_TRUE(leaf.FromPeer(0, SendsOf(timeout)[0].message).ok());
  const auto effects = leaf.LocalContribution(FenceOf(7, {0, 1}, "b"));
  ASSERT_EQ(CompletesOf(effects).size(), 1u);
  EXPECT_EQ(CompletesOf(effects)[0].status, kPmixErrTimeout);
  EXPECT_EQ(leaf.pending() + leaf.early(), 0u);
  EXPECT_TRUE(root.OnTimeout(1).empty());
}

TEST(Collective, RefusesDataBeyondTheLimitNamingBoth) {
  CollectiveEngine engine({.self = 0, .max_data_bytes = 4});
  const auto effects = engine.LocalContribution(FenceOf(1, {0}, "12345"));
  ASSERT_EQ(CompletesOf(effects).size(), 1u);
  EXPECT_EQ(CompletesOf(effects)[0].status, kPmixErrOutOfResource);
  EXPECT_THAT(CompletesOf(effects)[0].reason, HasSubstr("5 bytes, at most 4"));
}

TEST(Collective, DifferentIdeasOfTheParticipantsFailTheOperation) {
  CollectiveEngine engine({.self = 0});
  ASSERT_TRUE(engine.FromPeer(1, UpOf1()).ok());
  const auto effects = engine.LocalContribution(FenceOf(1, {0, 1, 2}, "a"));
  ASSERT_EQ(CompletesOf(effects).size(), 1u);
  EXPECT_EQ(CompletesOf(effects)[0].status, kPmixErrBadParam);
}

TEST(Collective, RefusesWhatAMemberInStepCannotSend) {
  CollectiveEngine engine({.self = 0, .max_early_operations = 1});
  const auto code = [&](std::uint32_t from, const CollectiveMessage& message) {
    const auto result = engine.FromPeer(from, message);
    EXPECT_TRUE(engine.CheckInvariants().ok());
    return result.status().code();
  };
  auto message = UpOf1();
  EXPECT_EQ(code(2, message), Code::kInvalidArgument) << "no participant";
  message.participants = {1, 0};
  EXPECT_EQ(code(1, message), Code::kInvalidArgument) << "not sorted";
  message = UpOf1();
  message.blobs = {{0, "x"}};
  EXPECT_EQ(code(1, message), Code::kInvalidArgument) << "speaks for another";
  message = UpOf1();
  message.phase = CollectivePhase::kDown;
  EXPECT_EQ(code(1, message), Code::kInvalidArgument) << "a child sends no result";
  message = UpOf1();
  message.phase = CollectivePhase::kFail;
  EXPECT_EQ(code(1, message), Code::kInvalidArgument) << "a failure that succeeded";
  message = UpOf1();
  message.key.procs.clear();
  EXPECT_EQ(code(1, message), Code::kInvalidArgument) << "no processes";
  EXPECT_EQ(code(1, UpOf1(0)), Code::kOk);
  EXPECT_EQ(code(1, UpOf1(1)), Code::kResourceExhausted) << "too many early operations";
}

TEST(Collective, RefusesAResultBeforeTheLocalContribution) {
  CollectiveEngine engine({.self = 1});
  auto message = UpOf1();
  message.phase = CollectivePhase::kDown;
  message.blobs.clear();
  EXPECT_EQ(engine.FromPeer(0, message).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(engine.pending() + engine.early(), 0u);
}

TEST(Collective, ForgettingANamespaceStartsItsCountAnewAndEndsWhatIsUnderWay) {
  CollectiveEngine engine({.self = 0});
  (void)engine.LocalContribution(FenceOf(1, {0, 1}, "a"));
  const auto effects = engine.ForgetNamespace("job");
  ASSERT_EQ(CompletesOf(effects).size(), 1u);
  EXPECT_EQ(CompletesOf(effects)[0].status, kPmixErrUnreachable);
  ASSERT_TRUE(engine.FromPeer(1, UpOf1(0)).ok());
  EXPECT_EQ(engine.early(), 1u);
}

TEST(Collective, AResultThatComesAfterItsNamespaceWasForgottenIsIgnored) {
  CollectiveEngine engine({.self = 1});
  (void)engine.LocalContribution(FenceOf(1, {0, 1}, "b"));
  (void)engine.ForgetNamespace("job");
  auto late = UpOf1();
  late.phase = CollectivePhase::kDown;
  late.blobs.clear();
  const auto effects = engine.FromPeer(0, late);
  ASSERT_TRUE(effects.ok()) << effects.status().message();
  EXPECT_TRUE((*effects).empty());
  EXPECT_EQ(engine.pending() + engine.early(), 0u);
}

TEST(Collective, MessagesSurviveTheWire) {
  const auto decoded = wire::Decode<CollectiveMessage>(wire::Encode(UpOf1(3)));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ((*decoded).key, UpOf1(3).key);
  EXPECT_EQ((*decoded).participants, UpOf1().participants);
  EXPECT_EQ((*decoded).blobs[0].data, "b");
}

}  // namespace
}  // namespace msa::pmix
