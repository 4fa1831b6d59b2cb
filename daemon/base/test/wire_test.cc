#include "msa/base/wire.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "msa/base/messages.h"

namespace msa::wire {
namespace {

struct Inner {
  std::uint16_t a = 0;
  std::string b;
  template <class A>
  void Fields(A& ar) {
    ar(a, b);
  }
};

struct OldMessage {
  static constexpr std::uint16_t kType = 0x7f01;
  std::uint32_t number = 0;
  std::vector<Inner> inner;
  template <class A>
  void Fields(A& ar) {
    ar(number, inner);
  }
};

struct NewMessage {
  static constexpr std::uint16_t kType = 0x7f01;
  std::uint32_t number = 0;
  std::vector<Inner> inner;
  std::string added = "default";
  std::optional<std::int64_t> more;
  template <class A>
  void Fields(A& ar) {
    ar(number, inner, added, more);
  }
};

std::string Bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int v : values) out.push_back(static_cast<char>(v));
  return out;
}

TEST(Wire, LaysIntegersOutLittleEndianWhateverTheMachine) {
  OldMessage message;
  message.number = 0x01020304;
  message.inner = {{0x0a0b, "hi"}};
  EXPECT_EQ(Encode(message), Bytes({4, 3, 2, 1, 1, 0, 0, 0, 0x0b, 0x0a, 2, 0, 0, 0, 'h', 'i'}));
}

TEST(Wire, PacksSixteenHeaderBytesBeforeThePayload) {
  const std::string packed = Pack(0x0102, 0x1122334455667788, "abc");
  EXPECT_EQ(packed,
            Bytes({3, 0, 0, 0, 2, 1, 0, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 'a', 'b', 'c'}));
}

TEST(Wire, ANewerReceiverKeepsDefaultsForWhatAnOlderSenderDoesNotKnow) {
  const auto decoded = Decode<NewMessage>(Encode(OldMessage{.number = 5, .inner = {{1, "x"}}}));
  ASSERT_TRUE(decoded.ok()) << decoded.status().message();
  EXPECT_EQ(decoded->number, 5u);
  EXPECT_EQ(decoded->inner.at(0).b, "x");
  EXPECT_EQ(decoded->added, "default");
  EXPECT_FALSE(decoded->more.has_value());
}

TEST(Wire, AnOlderReceiverIgnoresWhatANewerSenderAppended) {
  const auto decoded =
      Decode<OldMessage>(Encode(NewMessage{.number = 5, .inner = {}, .added = "x", .more = 3}));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->number, 5u);
}

TEST(Wire, RefusesAMessageCutInsideAField) {
  const std::string whole = Encode(OldMessage{.number = 5, .inner = {{1, "abc"}}});
  for (std::size_t cut = 5; cut < whole.size(); ++cut) {
    const auto decoded = Decode<OldMessage>(std::string_view(whole).substr(0, cut));
    EXPECT_EQ(decoded.status().code(), Code::kInvalidArgument) << "cut after " << cut << " bytes";
  }
}

TEST(Wire, RefusesACountBeyondItsInputBeforeItAllocates) {
  const auto decoded = Decode<OldMessage>(Bytes({5, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}));
  EXPECT_EQ(decoded.status().code(), Code::kInvalidArgument);
}

TEST(Wire, RefusesABooleanThatIsNeitherZeroNorOne) {
  std::string payload = Encode(AttachOpen{.owner = true});
  payload[0] = 2;
  EXPECT_EQ(Decode<AttachOpen>(payload).status().code(), Code::kInvalidArgument);
}

TEST(Wire, SaysSizeAndLimitOfAnOverlongMessage) {
  EXPECT_TRUE(CheckPayload(kMaxPayloadBytes).ok());
  const Status status = CheckPayload(kMaxPayloadBytes + 1);
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_EQ(status.message(), "message of 67108865 bytes exceeds the limit of 67108864 bytes");
}

TEST(FrameReader, CutsFramesWhateverWayTheBytesArrive) {
  const std::string stream = Pack(1, 10, "first") + Pack(2, 20, "") + Pack(3, 30, std::string(100'000, 'z'));
  for (const std::size_t step :
       {std::size_t{1}, std::size_t{7}, std::size_t{16}, std::size_t{4096}, stream.size()}) {
    FrameReader reader;
    std::vector<Frame> frames;
    for (std::size_t at = 0; at < stream.size(); at += step) {
      reader.Append(std::string_view(stream).substr(at, step));
      for (;;) {
        auto next = reader.Next();
        ASSERT_TRUE(next.ok());
        if (!next->has_value()) break;
        frames.push_back(std::move(**next));
      }
    }
    ASSERT_EQ(frames.size(), 3u) << "step " << step;
    EXPECT_EQ(frames[0].payload, "first");
    EXPECT_EQ(frames[1].id, 20u);
    EXPECT_EQ(frames[2].type, 3);
    EXPECT_EQ(frames[2].payload.size(), 100'000u);
    EXPECT_EQ(reader.buffered(), 0u);
  }
}

TEST(FrameReader, RefusesAHeaderThatAnnouncesMoreThanTheLimit) {
  FrameReader reader(100);
  reader.Append(Pack(1, 0, std::string(101, 'x')).substr(0, kHeaderBytes));
  const auto next = reader.Next();
  ASSERT_FALSE(next.ok());
  EXPECT_EQ(next.status().message(), "frame header announces 101 bytes, the limit is 100");
}

TEST(FrameReader, TakesAFrameOfExactlyTheLimit) {
  FrameReader reader(100);
  reader.Append(Pack(1, 0, std::string(100, 'x')));
  const auto next = reader.Next();
  ASSERT_TRUE(next.ok());
  ASSERT_TRUE(next->has_value());
  EXPECT_EQ((*next)->payload.size(), 100u);
}

TEST(Messages, NumbersAreUniqueAndInTheirRange) {
  std::map<std::uint16_t, int> seen;
  for (const std::uint16_t type :
       {JobdHello::kType,      JobdWelcome::kType, JobdQuit::kType,        LaunchJob::kType,
        MembersChanged::kType, CancelJob::kType,   SignalJob::kType,       ExitAck::kType,
        GrantAnswer::kType,    JobStarted::kType,  NamespaceReport::kType, GrantAsk::kType,
        GrantRelease::kType,   JobExit::kType,     MemberFailed::kType,    AttachOpen::kType,
        Output::kType,         OutputAck::kType,   Input::kType,           InputAck::kType,
        ClientSignal::kType,   Notice::kType,      SessionEnd::kType}) {
    EXPECT_EQ(++seen[type], 1) << "type " << type << " is used twice";
    EXPECT_TRUE(type >= 0x0100 && type < 0x0500) << type;
  }
}

TEST(Messages, ALaunchCrossesTheWireUnchanged) {
  LaunchJob launch;
  launch.job = JobId(77);
  launch.incarnation = Incarnation(2);
  launch.secret = std::string(64, 'a');
  launch.members = {
      {.index = 3, .node = "bn0", .module = ModuleId(1), .cores = {0, 1, 7}, .oversubscribed = true}};
  launch.step.apps = {
      {.component = 1, .argv = {"./a", std::string("nul\0byte", 8)}, .env = {"A=1"}, .ntasks = 4}};
  launch.step.rank_member = {3, 3, 3, 3};
  launch.step.kill_policy = KillPolicy::kNever;
  const auto decoded = Decode<LaunchJob>(Encode(launch));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->job, JobId(77));
  EXPECT_EQ(decoded->members.at(0).cores, (std::vector<std::uint16_t>{0, 1, 7}));
  EXPECT_TRUE(decoded->members.at(0).oversubscribed);
  EXPECT_EQ(decoded->step.apps.at(0).argv.at(1), std::string("nul\0byte", 8));
  EXPECT_EQ(decoded->step.kill_policy, KillPolicy::kNever);
  EXPECT_EQ(Encode(*decoded), Encode(launch));
}

}  // namespace
}  // namespace msa::wire
