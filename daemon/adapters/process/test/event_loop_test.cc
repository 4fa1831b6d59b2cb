#include "msa/adapters/process/event_loop.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <thread>
#include <tuple>

#include <gtest/gtest.h>

#include "loop_support.h"

namespace msa {
namespace {

using test::RunUntil;
using test::SocketPair;

std::unique_ptr<EventLoop> NewLoop() {
  auto loop = EventLoop::Create();
  EXPECT_TRUE(loop.ok());
  return std::move(*loop);
}

TEST(EventLoop, RunsTimersInOrderOfTheirTimeAndNotEarly) {
  const auto loop = NewLoop();
  std::vector<int> order;
  const SteadyTime start = SteadyNow();
  SteadyTime last;
  loop->After(Millis(20), [&] { order.push_back(2), last = SteadyNow(); });
  loop->After(Millis(5), [&] { order.push_back(1); });
  EXPECT_TRUE(RunUntil(*loop, Millis(30'000), [&] { return order.size() == 2; }));
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_GE(last - start, Millis(20));
}

TEST(EventLoop, RunsTimersOfTheSameTimeInOrderOfTheirMaking) {
  const auto loop = NewLoop();
  std::string order;
  for (const char c : {'a', 'b', 'c'}) loop->After(Millis(0), [&order, c] { order += c; });
  EXPECT_TRUE(RunUntil(*loop, Millis(30'000), [&] { return order.size() == 3; }));
  EXPECT_EQ(order, "abc");
}

TEST(EventLoop, NeverRunsACancelledTimer) {
  const auto loop = NewLoop();
  bool ran = false;
  bool done = false;
  const TimerId timer = loop->After(Millis(1), [&] { ran = true; });
  loop->After(Millis(5), [&] { done = true; });
  loop->Cancel(timer);
  loop->Cancel(timer);
  EXPECT_TRUE(RunUntil(*loop, Millis(30'000), [&] { return done; }));
  EXPECT_FALSE(ran);
}

TEST(EventLoop, LetsATimerCancelAnotherThatIsDueAtTheSameTime) {
  const auto loop = NewLoop();
  bool second = false;
  bool done = false;
  TimerId later{};
  loop->After(Millis(0), [&] { loop->Cancel(later); });
  later = loop->After(Millis(0), [&] { second = true; });
  loop->After(Millis(2), [&] { done = true; });
  EXPECT_TRUE(RunUntil(*loop, Millis(30'000), [&] { return done; }));
  EXPECT_FALSE(second);
}

TEST(EventLoop, WhatACallbackPostsToItsOwnLoopDoesNotWait) {
  const auto loop = NewLoop();
  std::string order;
  loop->Post([&] {
    order += 'a';
    loop->Post([&] { order += 'b'; });
  });
  loop->After(Millis(0), [&] { loop->Post([&] { order += 'c'; }); });
  for (int round = 0; round < 2; ++round) EXPECT_TRUE(loop->RunOnce(std::chrono::hours(1)).ok());
  EXPECT_EQ(order, "abc");
}

TEST(EventLoop, WhatACallbackPostsToAnotherLoopWakesThatOne) {
  const auto one = NewLoop();
  const auto other = NewLoop();
  std::thread thread([&] { EXPECT_TRUE(other->Run().ok()); });
  one->Post([&] { other->Post([&] { other->Stop(); }); });
  EXPECT_TRUE(one->RunOnce(Millis(0)).ok());
  thread.join();
}

TEST(EventLoop, WakesForWorkPostedByAnotherThread) {
  const auto loop = NewLoop();
  const auto me = std::this_thread::get_id();
  std::thread::id ran_on;
  std::thread other([&] {
    loop->Post([&] {
      ran_on = std::this_thread::get_id();
      loop->Stop();
    });
  });
  EXPECT_TRUE(loop->Run().ok());
  other.join();
  EXPECT_EQ(ran_on, me);
}

TEST(EventLoop, KeepsTheOrderOfPostedWork) {
  const auto loop = NewLoop();
  std::string order;
  loop->Post([&] {
    order += 'a';
    loop->Post([&] { order += 'c'; });
  });
  loop->Post([&] { order += 'b'; });
  EXPECT_TRUE(RunUntil(*loop, Millis(30'000), [&] { return order.size() == 3; }));
  EXPECT_EQ(order, "abc");
}

TEST(EventLoop, RefusesToWatchADescriptorTwice) {
  const auto loop = NewLoop();
  auto [a, b] = SocketPair();
  EXPECT_TRUE(loop->Watch(a.get(), EPOLLIN, [](std::uint32_t) {}).ok());
  EXPECT_EQ(loop->Watch(a.get(), EPOLLIN, [](std::uint32_t) {}).code(), Code::kAlreadyExists);
  loop->Unwatch(a.get());
  EXPECT_TRUE(loop->Watch(a.get(), EPOLLIN, [](std::uint32_t) {}).ok());
}

TEST(EventLoop, CallsNoCallbackAfterUnwatchAlsoWithinTheSameRound) {
  const auto loop = NewLoop();
  auto [a, a2] = SocketPair();
  auto [b, b2] = SocketPair();
  int calls = 0;
  // Both are readable; whichever comes first removes the other.
  const auto remove_both = [&, fd_a = a.get(), fd_b = b.get()](std::uint32_t) {
    ++calls;
    loop->Unwatch(fd_a);
    loop->Unwatch(fd_b);
  };
  ASSERT_TRUE(loop->Watch(a.get(), EPOLLIN, remove_both).ok());
  ASSERT_TRUE(loop->Watch(b.get(), EPOLLIN, remove_both).ok());
  ASSERT_EQ(::write(a2.get(), "x", 1), 1);
  ASSERT_EQ(::write(b2.get(), "x", 1), 1);
  bool done = false;
  loop->After(Millis(10), [&] { done = true; });
  EXPECT_TRUE(RunUntil(*loop, Millis(30'000), [&] { return done; }));
  EXPECT_EQ(calls, 1);
}

TEST(EventLoop, TellsNoEventOfADescriptorsFormerLife) {
  const auto loop = NewLoop();
  // std::tie: clang 14 lets no lambda capture structured bindings.
  UniqueFd a, a2, b, b2;
  std::tie(a, a2) = SocketPair();
  std::tie(b, b2) = SocketPair();
  const int number_b = b.get();
  bool stale = false;
  // Reuses b's number for a silent descriptor in the round in which b had an event.
  const auto replace = [&](std::uint32_t) {
    loop->Unwatch(a.get());
    loop->Unwatch(number_b);
    b.reset();
    auto [c, c2] = SocketPair();
    a2 = std::move(c2);
    b = std::move(c);
    if (b.get() != number_b) return;
    (void)loop->Watch(b.get(), EPOLLIN, [&](std::uint32_t) { stale = true; });
  };
  ASSERT_TRUE(loop->Watch(a.get(), EPOLLIN, replace).ok());
  ASSERT_TRUE(loop->Watch(number_b, EPOLLIN, [&](std::uint32_t) { loop->Modify(number_b, 0); }).ok());
  ASSERT_EQ(::write(a2.get(), "x", 1), 1);
  ASSERT_EQ(::write(b2.get(), "x", 1), 1);
  bool done = false;
  loop->After(Millis(10), [&] { done = true; });
  EXPECT_TRUE(RunUntil(*loop, Millis(30'000), [&] { return done; }));
  EXPECT_FALSE(stale);
}

}  // namespace
}  // namespace msa
