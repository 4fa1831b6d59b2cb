#include "nam_relay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace msa::jobd {
namespace {

using ::testing::HasSubstr;

class NamRelayTest : public ::testing::Test {
 protected:
  explicit NamRelayTest(NamRelayLimits limits = {})
      : relay_({[this](std::uint16_t type, std::string payload) {
                  if (type == wire::NamFromTask::kType)
                    asked_.push_back(*wire::Decode<wire::NamFromTask>(payload));
                  else
                    gone_.push_back(*wire::Decode<wire::NamTaskGone>(payload));
                },
                [this](std::uint64_t client, const wire::Frame& frame) {
                  answered_.emplace_back(client, frame);
                }},
               limits) {}

  void Hello(std::uint64_t client, std::uint64_t id) {
    const wire::NamClientHello hello{NamClientId(id), 1};
    relay_.OnTaskFrame(client, "", {wire::NamClientHello::kType, 0, 0, wire::Encode(hello)}, now_);
  }
  void Ask(std::uint64_t client, std::uint64_t id, std::string payload = "ask") {
    relay_.OnTaskFrame(client, "rank 1", {wire::NamOpen::kType, 0, id, std::move(payload)}, now_);
  }
  void Answer(std::uint64_t client, std::uint64_t id) {
    relay_.OnToTask({client, wire::NamDone::kType, id, "done"});
  }
  wire::NamFailed LastFailure() {
    EXPECT_FALSE(answered_.empty());
    if (answered_.empty()) return {};
    EXPECT_EQ(answered_.back().second.type, wire::NamFailed::kType);
    return *wire::Decode<wire::NamFailed>(answered_.back().second.payload);
  }

  SteadyTime now_{};
  std::vector<wire::NamFromTask> asked_;
  std::vector<wire::NamTaskGone> gone_;
  std::vector<std::pair<std::uint64_t, wire::Frame>> answered_;
  NamRelay relay_;
};

TEST_F(NamRelayTest, CarriesARequestAndItsAnswer) {
  Hello(5, 77);
  Ask(5, 9, "payload");
  ASSERT_EQ(asked_.size(), 1u);
  EXPECT_EQ(asked_[0].connection, 5u);
  EXPECT_EQ(asked_[0].client, NamClientId(77));
  EXPECT_EQ(asked_[0].who, "rank 1");
  EXPECT_EQ(asked_[0].type, wire::NamOpen::kType);
  EXPECT_EQ(asked_[0].id, 9u);
  EXPECT_EQ(asked_[0].payload, "payload");
  Answer(5, 9);
  ASSERT_EQ(answered_.size(), 1u);
  EXPECT_EQ(answered_[0].first, 5u);
  EXPECT_EQ(answered_[0].second.type, wire::NamDone::kType);
  EXPECT_EQ(answered_[0].second.id, 9u);
  EXPECT_EQ(answered_[0].second.payload, "done");
}

TEST_F(NamRelayTest, TakesItsOwnMessagesOnly) {
  EXPECT_TRUE(NamRelay::Takes(wire::NamClientHello::kType));
  EXPECT_TRUE(NamRelay::Takes(0x0701));
  EXPECT_TRUE(NamRelay::Takes(0x07ff));
  EXPECT_FALSE(NamRelay::Takes(0x0603));
  EXPECT_FALSE(NamRelay::Takes(0x0801));
}

TEST_F(NamRelayTest, RefusesARequestBeforeAValidHello) {
  Ask(5, 9);
  EXPECT_EQ(LastFailure().code, static_cast<std::uint8_t>(Code::kFailedPrecondition));
  EXPECT_EQ(answered_.back().second.id, 9u);
  Hello(5, 0);
  Ask(5, 10);
  EXPECT_EQ(answered_.size(), 2u);
  relay_.OnTaskGone(5);
  EXPECT_TRUE(asked_.empty());
  EXPECT_TRUE(gone_.empty()) << "of whom the controller knows nothing";
}

TEST_F(NamRelayTest, AProcessIsOneClient) {
  Hello(5, 77);
  Hello(5, 78);
  Ask(5, 1);
  EXPECT_EQ(asked_.at(0).client, NamClientId(77));
}

TEST_F(NamRelayTest, TellsOnceWhenAClientIsGoneAndAnswersItNoMore) {
  Hello(5, 77);
  Ask(5, 1);
  relay_.OnTaskGone(5);
  relay_.OnTaskGone(5);
  relay_.OnTaskGone(6);
  ASSERT_EQ(gone_.size(), 1u);
  EXPECT_EQ(gone_[0].connection, 5u);
  EXPECT_EQ(gone_[0].client, NamClientId(77));
  Answer(5, 1);
  EXPECT_TRUE(answered_.empty());
}

TEST_F(NamRelayTest, AllAreGoneWhenTheJobDaemonLeaves) {
  Hello(5, 77);
  Hello(6, 78);
  relay_.AllGone();
  EXPECT_EQ(gone_.size(), 2u);
  relay_.OnTaskGone(5);
  EXPECT_EQ(gone_.size(), 2u);
}

TEST_F(NamRelayTest, RefusesAMessageThatIsTooLong) {
  Hello(5, 77);
  Ask(5, 1, std::string(wire::kMaxNamPayload + 1, 'x'));
  EXPECT_EQ(LastFailure().code, static_cast<std::uint8_t>(Code::kInvalidArgument));
  EXPECT_TRUE(asked_.empty());
}

class NamRelayLimitsTest : public NamRelayTest {
 protected:
  NamRelayLimitsTest() : NamRelayTest({.outstanding = 3, .answered_by = Millis(1000), .gone = 2}) {}
};

TEST_F(NamRelayLimitsTest, BoundsWhatIsNotAnsweredOfEachConnection) {
  Hello(5, 77);
  Hello(6, 78);
  for (std::uint64_t id = 1; id <= 4; ++id) Ask(5, id);
  EXPECT_EQ(asked_.size(), 3u);
  EXPECT_EQ(LastFailure().code, static_cast<std::uint8_t>(Code::kResourceExhausted));
  EXPECT_THAT(LastFailure().message, HasSubstr("3 requests"));
  Ask(6, 1);
  EXPECT_EQ(asked_.size(), 4u) << "another process is not concerned";
  Answer(5, 2);
  Ask(5, 5);
  EXPECT_EQ(asked_.size(), 5u);
}

TEST_F(NamRelayLimitsTest, RequestsThatWereLostCountNoLongerThanAnAnswerTakes) {
  Hello(5, 77);
  for (std::uint64_t id = 1; id <= 3; ++id) Ask(5, id);
  now_ += Millis(1001);
  Ask(5, 4);
  EXPECT_EQ(asked_.size(), 4u);
  EXPECT_TRUE(answered_.empty());
}

TEST_F(NamRelayTest, DoesNotTellAgainThatAProcessWentWhichHasConnectedAgain) {
  Hello(5, 77);
  Hello(6, 78);
  relay_.OnTaskGone(5);
  relay_.OnTaskGone(6);
  EXPECT_EQ(gone_.size(), 2u);
  gone_.clear();
  Hello(7, 77);
  relay_.OnLinkUp();
  ASSERT_EQ(gone_.size(), 1u);
  EXPECT_EQ(gone_[0].client, NamClientId(78));
}

TEST_F(NamRelayLimitsTest, TellsTheNewestEndsAgainWhenTheNodeDaemonIsBack) {
  for (std::uint64_t client = 1; client <= 3; ++client) {
    Hello(client, client);
    relay_.OnTaskGone(client);
  }
  gone_.clear();
  relay_.OnLinkUp();
  ASSERT_EQ(gone_.size(), 2u);
  EXPECT_EQ(gone_[0].connection, 2u);
  EXPECT_EQ(gone_[1].connection, 3u);
}

}  // namespace
}  // namespace msa::jobd
