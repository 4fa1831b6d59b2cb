#include "msa/gateway/delay_line.h"

#include <deque>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace msa::gateway {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

const SteadyTime kStart{std::chrono::hours(1)};

bool Put(DelayLine& line, const std::string& packet, SteadyTime now) {
  const std::span<char> room = line.Reserve();
  if (room.empty()) return false;
  packet.copy(room.data(), room.size());
  line.Commit(packet.size(), packet.size(), now);
  return true;
}

std::string Take(DelayLine& line) {
  const std::span<const char> front = line.Front();
  std::string packet(front.begin(), front.end());
  line.Pop();
  return packet;
}

TEST(DelayLine, DeliversEachPacketItsDelayLater) {
  DelayLine line({.delay = microseconds(300)});
  ASSERT_TRUE(Put(line, "one", kStart));
  ASSERT_TRUE(Put(line, "two", kStart + microseconds(10)));
  EXPECT_EQ(line.NextDue(), kStart + microseconds(300));
  EXPECT_EQ(Take(line), "one");
  EXPECT_EQ(line.NextDue(), kStart + microseconds(310));
  EXPECT_EQ(Take(line), "two");
  EXPECT_EQ(line.NextDue(), std::nullopt);
}

TEST(DelayLine, SendsOnePacketAfterTheOtherAtItsRate) {
  DelayLine line({.delay = microseconds(5), .bits_per_second = 8'000'000});  // a byte a microsecond
  ASSERT_TRUE(Put(line, std::string(100, 'a'), kStart));
  ASSERT_TRUE(Put(line, std::string(50, 'b'), kStart));
  EXPECT_EQ(line.NextDue(), kStart + microseconds(105));
  line.Pop();
  EXPECT_EQ(line.NextDue(), kStart + microseconds(155));
}

TEST(DelayLine, DoesNotSaveUpTheTimeInWhichNothingWasSent) {
  DelayLine line({.bits_per_second = 8'000'000});
  ASSERT_TRUE(Put(line, std::string(10, 'a'), kStart));
  line.Pop();
  ASSERT_TRUE(Put(line, std::string(10, 'b'), kStart + microseconds(1000)));
  EXPECT_EQ(line.NextDue(), kStart + microseconds(1010));
}

TEST(DelayLine, RefusesWhatItHasNoRoomForAndTakesItLater) {
  DelayLine line({.capacity = 0, .packet = 100});
  int count = 0;
  while (Put(line, std::string(100, 'x'), kStart)) ++count;
  EXPECT_GE(count, 2);
  line.Pop();
  EXPECT_TRUE(Put(line, "y", kStart));
}

RC_GTEST_PROP(DelayLineProperty, GivesBackWhatWasPutInInOrderAndNeverTooEarly, ()) {
  const auto delay = nanoseconds(*rc::gen::inRange(0, 5000));
  DelayLine line({.delay = delay,
                  .bits_per_second = *rc::gen::element<std::uint64_t>(0, 1'000'000, 10'000'000'000),
                  .capacity = *rc::gen::inRange<std::size_t>(0, 2000),
                  .packet = 200});
  std::deque<std::pair<std::string, SteadyTime>> model;
  SteadyTime now = kStart;
  SteadyTime last{};
  const int steps = *rc::gen::inRange(0, 200);
  for (int i = 0; i < steps; ++i) {
    now += nanoseconds(*rc::gen::inRange(0, 2000));
    if (*rc::gen::inRange(0, 3) > 0) {
      std::string packet(*rc::gen::inRange<std::size_t>(0, 201), static_cast<char>('a' + i % 26));
      if (Put(line, packet, now)) model.emplace_back(std::move(packet), now);
    } else if (!model.empty()) {
      RC_ASSERT(line.NextDue() >= model.front().second + delay);
      RC_ASSERT(line.NextDue() >= last);
      last = *line.NextDue();
      RC_ASSERT(Take(line) == model.front().first);
      model.pop_front();
    }
    RC_ASSERT(line.packets() == model.size());
  }
}

}  // namespace
}  // namespace msa::gateway
