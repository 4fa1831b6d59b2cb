#include <msa_nam_direct.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>
#include <vector>

#include "client_fixture.h"

namespace msa::nam::test {
namespace {

using testing::HasSubstr;

class ClientLocks : public ClientTest {
 protected:
  using ClientTest::ClientTest;
  // A child that holds the lock of segment 0 and says so in the region, until it is killed.
  pid_t SpawnHolder(const char* name, msa_nam_lock_mode mode, msa_nam_region_t watch) {
    const std::int64_t zero = 0;
    EXPECT_NAM_OK(msa_nam_put(watch, 1, 0, &zero, 8));
    const pid_t child = Spawn([=] {
      msa_nam_region_t region = nullptr;
      const std::int64_t one = 1;
      if (msa_nam_open(name, MSA_NAM_READ | MSA_NAM_WRITE, &region) != 0) return 1;
      if (msa_nam_lock(region, 0, mode) != 0) return 2;
      if (msa_nam_put(region, 1, 0, &one, 8) != 0) return 3;
      for (;;) pause();
    });
    EXPECT_TRUE(Eventually(namd::test::kLimit, [&] {
      std::int64_t held = 0;
      EXPECT_NAM_OK(msa_nam_get(watch, 1, 0, &held, 8));
      return held == 1;
    }));
    return child;
  }
  static void Kill(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
};

// With a namd that serves the fabric; whoever says nothing else takes that way.
class ClientLocksOver : public ClientLocks, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    ClientLocks::SetUp();
    setenv("MSA_NAM_TRANSPORT", GetParam(), 1);
  }
  ClientLocksOver() : ClientLocks("fabric") {}
  static bool fabric_now() { return std::string(GetParam()) == "fabric"; }
};
INSTANTIATE_TEST_SUITE_P(Transport, ClientLocksOver, testing::Values("local", "fabric"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(ClientLocksOver, ExcludeOtherProcessesAndTellWhoHoldsThem) {
  msa_nam_region_t region = Create("locks", {64, 64});
  const pid_t holder = SpawnHolder("locks", MSA_NAM_EXCLUSIVE, region);
  EXPECT_EQ(msa_nam_try_lock(region, 0, MSA_NAM_SHARED), MSA_NAM_ERR_BUSY);
  EXPECT_EQ(msa_nam_try_lock(region, 0, MSA_NAM_EXCLUSIVE), MSA_NAM_ERR_BUSY);
  ASSERT_NAM_OK(msa_nam_set_timeout(region, 100));
  EXPECT_EQ(msa_nam_lock(region, 0, MSA_NAM_EXCLUSIVE), MSA_NAM_ERR_TIMEOUT);
  // Whoever maps the region sees who it is.
  EXPECT_THAT(msa_nam_error_text(), HasSubstr(fabric_now() ? "another process" : "owner 2"));
  EXPECT_THAT(msa_nam_error_text(), HasSubstr("rank 3 of a.job on cn0"));
  std::int64_t before = 0;
  EXPECT_EQ(msa_nam_fetch_add(region, 0, 0, 1, &before), MSA_NAM_ERR_TIMEOUT) << "atomics wait for it too";
  ASSERT_NAM_OK(msa_nam_set_timeout(region, 0));
  EXPECT_EQ(msa_nam_lock(region, 0, MSA_NAM_SHARED), MSA_NAM_ERR_TIMEOUT);
  EXPECT_NAM_OK(msa_nam_lock(region, 1, MSA_NAM_EXCLUSIVE)) << "another segment";
  Kill(holder);
  EXPECT_NAM_OK(msa_nam_close(region));
}

TEST_P(ClientLocksOver, OfAKilledHolderAreFreeWithinASecond) {
  msa_nam_region_t region = Create("killed", {64, 64});
  ASSERT_NAM_OK(msa_nam_set_timeout(region, 1000));
  for (const auto mode : {MSA_NAM_EXCLUSIVE, MSA_NAM_SHARED}) {
    Kill(SpawnHolder("killed", mode, region));
    ASSERT_NAM_OK(msa_nam_lock(region, 0, MSA_NAM_EXCLUSIVE));
    ASSERT_NAM_OK(msa_nam_unlock(region, 0));
  }
  EXPECT_NAM_OK(msa_nam_close(region));
}

TEST_P(ClientLocksOver, OfAHolderThatDiesAfterARestartOfNamdAreFreeWithinASecond) {
  msa_nam_region_t region = Create("orphan", {64, 64});
  const pid_t holder = SpawnHolder("orphan", MSA_NAM_EXCLUSIVE, region);
  RestartNamd();
  // A try bridges a second at most, and a namd's fabric may take longer to start.
  int tried = MSA_NAM_ERR_UNAVAILABLE;
  EXPECT_TRUE(Eventually(namd::test::kLimit, [&] {
    tried = msa_nam_try_lock(region, 0, MSA_NAM_EXCLUSIVE);
    return tried != MSA_NAM_ERR_UNAVAILABLE;
  }));
  EXPECT_EQ(tried, MSA_NAM_ERR_BUSY) << "locks survive a restart: " << msa_nam_error_text();
  // The holder, which sleeps, too.
  EXPECT_TRUE(Eventually(namd::test::kLimit, [this] { return LeasesAreHeld(); }));
  Kill(holder);
  ASSERT_NAM_OK(msa_nam_set_timeout(region, 1000));
  EXPECT_NAM_OK(msa_nam_lock(region, 0, MSA_NAM_EXCLUSIVE));
  EXPECT_NAM_OK(msa_nam_close(region));
}

TEST_P(ClientLocksOver, OfALeaseThatHasEndedAreLostAndSaidToBe) {
  msa_nam_region_t region = Create("lost", {64, 64});
  ASSERT_NAM_OK(msa_nam_lock(region, 0, MSA_NAM_EXCLUSIVE));
  EndLeases();
  if (fabric_now()) {
    EXPECT_TRUE(Eventually(namd::test::kLimit, [&] {
      const std::int64_t one = 1;
      return msa_nam_put(region, 0, 0, &one, 8) == MSA_NAM_ERR_STALE;
    }));
    EXPECT_THAT(msa_nam_error_text(), HasSubstr("locks of region 'lost' are lost"));
    EXPECT_EQ(msa_nam_unlock(region, 0), MSA_NAM_ERR_STALE);
  }
  EXPECT_NAM_OK(msa_nam_close(region));
  region = Open("lost");
  EXPECT_NAM_OK(msa_nam_lock(region, 0, MSA_NAM_EXCLUSIVE));
  EXPECT_NAM_OK(msa_nam_close(region));
}

TEST_P(ClientLocksOver, AreFreedWithTheHandleAndNotWithAnother) {
  msa_nam_region_t first = Create("handles", {64, 64});
  msa_nam_region_t second = Open("handles");
  ASSERT_NAM_OK(msa_nam_lock(first, 0, MSA_NAM_EXCLUSIVE));
  EXPECT_EQ(msa_nam_lock(second, 0, MSA_NAM_SHARED), MSA_NAM_ERR_ARG);
  EXPECT_EQ(msa_nam_unlock(second, 1), MSA_NAM_ERR_ARG) << "not locked";
  ASSERT_NAM_OK(msa_nam_close(second));
  const auto other_can = [] {
    msa_nam_region_t region = nullptr;
    if (msa_nam_open("handles", MSA_NAM_READ | MSA_NAM_WRITE, &region) != 0) return 100;
    return msa_nam_try_lock(region, 0, MSA_NAM_EXCLUSIVE);
  };
  EXPECT_EQ(ExitOf(Spawn(other_can)), MSA_NAM_ERR_BUSY);
  ASSERT_NAM_OK(msa_nam_close(first));
  EXPECT_EQ(ExitOf(Spawn(other_can)), MSA_NAM_OK);
}

TEST_P(ClientLocksOver, OfAParentDoNotLiveOnInItsChildren) {
  msa_nam_region_t region = Create("forked", {64, 64});
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t parent = Spawn([&] {
    msa_nam_region_t mine = nullptr;
    if (msa_nam_open("forked", MSA_NAM_READ | MSA_NAM_WRITE, &mine) != 0) return 1;
    if (msa_nam_lock(mine, 0, MSA_NAM_EXCLUSIVE) != 0) return 2;
    const pid_t child = Spawn([] {
      for (;;) pause();
      return 0;
    });
    if (write(ready[1], &child, sizeof child) != sizeof child) return 3;
    for (;;) pause();
  });
  pid_t grandchild = 0;
  ASSERT_EQ(read(ready[0], &grandchild, sizeof grandchild), static_cast<ssize_t>(sizeof grandchild));
  Kill(parent);
  ASSERT_NAM_OK(msa_nam_set_timeout(region, 1000));
  EXPECT_NAM_OK(msa_nam_lock(region, 0, MSA_NAM_EXCLUSIVE));
  kill(grandchild, SIGKILL);
  close(ready[0]);
  close(ready[1]);
  EXPECT_NAM_OK(msa_nam_close(region));
}

// What readers in relay and a writer tell each other, in segment 1.
enum : std::uint64_t { kTurns = 0, kWritten = 8 };
constexpr std::int64_t kMostTurns = 1500;

std::int64_t Told(msa_nam_region_t region, std::uint64_t at) {
  std::int64_t value = -1;
  EXPECT_NAM_OK(msa_nam_get(region, 1, at, &value, 8));
  return value;
}

// Reads until the writer has written; holds the lock until the next reader has it, but 5 ms at most.
int ReadInRelay() {
  msa_nam_region_t region = nullptr;
  if (msa_nam_open("relay", MSA_NAM_READ | MSA_NAM_WRITE, &region) != 0) return 1;
  for (std::int64_t turn = 0; turn < kMostTurns && Told(region, kWritten) == 0;) {
    if (msa_nam_lock(region, 0, MSA_NAM_SHARED) != 0) return 2;
    if (msa_nam_fetch_add(region, 1, kTurns, 1, &turn) != 0) return 3;
    int looks = 0;
    (void)Eventually(Millis(5), [&] { return ++looks > 1 && Told(region, kTurns) != turn + 1; });
    if (msa_nam_unlock(region, 0) != 0) return 4;
  }
  return msa_nam_close(region);
}

TEST_P(ClientLocksOver, OfAWriterComeWithinATurnOfReadersInRelay) {
  msa_nam_region_t region = Create("relay", {64, 64});
  const auto pause = [](void*) {
    sched_yield();
    return 1;
  };
  for (const bool own_pause : {false, true}) {
    const std::int64_t zeros[2] = {0, 0};
    ASSERT_NAM_OK(msa_nam_put(region, 1, 0, zeros, sizeof zeros));
    pid_t readers[3];
    for (pid_t& reader : readers) reader = Spawn(ReadInRelay);
    ASSERT_TRUE(Eventually(namd::test::kLimit, [&] { return Told(region, kTurns) > 30; }));
    const std::int64_t before = Told(region, kTurns);
    ASSERT_NAM_OK(own_pause ? msa_nam_lock_while(region, 0, MSA_NAM_EXCLUSIVE, pause, nullptr)
                            : msa_nam_lock(region, 0, MSA_NAM_EXCLUSIVE));
    // Some more than three: of those before the claim was made, on a machine with much to do.
    EXPECT_LT(Told(region, kTurns) - before, 100) << "it waited until the readers had enough";
    const std::int64_t one = 1;
    EXPECT_NAM_OK(msa_nam_put(region, 1, kWritten, &one, 8));
    EXPECT_NAM_OK(msa_nam_unlock(region, 0));
    for (const pid_t reader : readers) EXPECT_EQ(ExitOf(reader), 0);
  }
  EXPECT_NAM_OK(msa_nam_close(region));
}

TEST_P(ClientLocksOver, ThatAreOnlyClaimedAreGivenUpWithTheWaitOrWithTheProcess) {
  msa_nam_region_t region = Create("claimed", {64, 64});
  ASSERT_NAM_OK(msa_nam_lock(region, 0, MSA_NAM_SHARED));
  const auto claim = [](std::uint32_t timeout) {
    return [timeout] {
      msa_nam_region_t mine = nullptr;
      if (msa_nam_open("claimed", MSA_NAM_READ | MSA_NAM_WRITE, &mine) != 0) return 100;
      if (msa_nam_set_timeout(mine, timeout) != 0) return 101;
      const int failed = msa_nam_lock(mine, 0, MSA_NAM_EXCLUSIVE);
      const std::int64_t one = 1;
      if (msa_nam_put(mine, 1, 0, &one, 8) != 0) return 102;
      if (failed == MSA_NAM_ERR_TIMEOUT)
        for (;;) pause();
      return failed;
    };
  };
  const auto share = [] {
    msa_nam_region_t mine = nullptr;
    if (msa_nam_open("claimed", MSA_NAM_READ | MSA_NAM_WRITE, &mine) != 0) return 100;
    return msa_nam_try_lock(mine, 0, MSA_NAM_SHARED);
  };
  const auto shared_is = [&](int result) {
    return Eventually(kSoon, [&] { return ExitOf(Spawn(share)) == result; });
  };
  const pid_t waits = Spawn(claim(30'000));
  ASSERT_TRUE(Eventually(namd::test::kLimit, [&] { return ExitOf(Spawn(share)) == MSA_NAM_ERR_BUSY; }));
  Kill(waits);
  EXPECT_TRUE(shared_is(MSA_NAM_OK)) << "the claim of a killed process";
  const pid_t gives_up = Spawn(claim(50));
  ASSERT_TRUE(Eventually(namd::test::kLimit, [&] { return Told(region, 0) == 1; }));
  EXPECT_EQ(ExitOf(Spawn(share)), MSA_NAM_OK) << "of a process that lives on";
  Kill(gives_up);
  EXPECT_NAM_OK(msa_nam_close(region));
}

TEST_P(ClientLocksOver, OfTwoSegmentsClaimedInDifferentOrdersDoNotWaitForEachOther) {
  msa_nam_region_t region = Create("orders", {64, 64});
  // Writers of both orders, two threads of each process at once, and readers who have both at once.
  const auto write = [](std::uint32_t first) {
    msa_nam_region_t mine = nullptr;
    if (msa_nam_open("orders", MSA_NAM_READ | MSA_NAM_WRITE, &mine) != 0) return 1;
    std::atomic<int> failed{0};
    std::vector<std::thread> threads;
    for (const std::uint32_t segment : {first, 1 - first})
      threads.emplace_back([&failed, mine, segment] {
        for (int i = 0; i < 100; ++i)
          if (msa_nam_lock(mine, segment, MSA_NAM_EXCLUSIVE) != 0 || msa_nam_unlock(mine, segment) != 0)
            ++failed;
      });
    for (std::thread& thread : threads) thread.join();
    return failed == 0 ? 0 : 2;
  };
  const auto read = [] {
    msa_nam_region_t mine = nullptr;
    if (msa_nam_open("orders", MSA_NAM_READ | MSA_NAM_WRITE, &mine) != 0) return 1;
    for (int i = 0; i < 100; ++i) {
      for (const std::uint32_t segment : {0u, 1u})
        if (msa_nam_lock(mine, segment, MSA_NAM_SHARED) != 0) return 2;
      for (const std::uint32_t segment : {0u, 1u})
        if (msa_nam_unlock(mine, segment) != 0) return 3;
    }
    return 0;
  };
  std::vector<pid_t> children = {Spawn([&] { return write(0); }), Spawn([&] { return write(1); }),
                                 Spawn(read), Spawn(read)};
  for (const pid_t child : children) EXPECT_EQ(ExitOf(child), 0);
  EXPECT_NAM_OK(msa_nam_lock(region, 0, MSA_NAM_EXCLUSIVE));
  EXPECT_NAM_OK(msa_nam_lock(region, 1, MSA_NAM_EXCLUSIVE));
  EXPECT_NAM_OK(msa_nam_close(region));
}

TEST_P(ClientLocksOver, ThatAreOnlyClaimedLetTheProcessesOwnUpdatesCountBesideThoseOfReaders) {
  msa_nam_region_t region = Create("beside", {64, 64});
  constexpr int kRounds = 2000;
  const auto add = [](msa_nam_region_t to) {
    const double one = 1;
    for (int i = 0; i < kRounds; ++i)
      if (msa_nam_accumulate(to, 0, 0, MSA_NAM_SUM, MSA_NAM_DOUBLE, &one, 1) != 0) return 3;
    return 0;
  };
  // A reader, which goes when another process has claimed the lock and both have made their updates.
  const pid_t reader = Spawn([&] {
    msa_nam_region_t mine = nullptr;
    setenv("MSA_NAM_TRANSPORT", "local", 1);
    if (msa_nam_open("beside", MSA_NAM_READ | MSA_NAM_WRITE, &mine) != 0) return 1;
    if (msa_nam_lock(mine, 0, MSA_NAM_SHARED) != 0) return 2;
    std::int64_t before = 0;
    if (msa_nam_fetch_add(mine, 1, 0, 1, &before) != 0) return 4;
    if (!Eventually(namd::test::kLimit, [&] { return Told(mine, 8) >= 1; })) return 5;
    if (add(mine) != 0) return 3;
    if (!Eventually(namd::test::kLimit, [&] { return Told(mine, 8) == 2; })) return 6;
    return msa_nam_unlock(mine, 0);
  });
  ASSERT_TRUE(Eventually(namd::test::kLimit, [&] { return Told(region, 0) == 1; }));
  std::thread updater;
  struct State {
    std::thread* updater;
    const std::function<int()> work;
  } state{&updater, [&] {
            std::int64_t before = 0;
            EXPECT_NAM_OK(msa_nam_fetch_add(region, 1, 8, 1, &before));
            EXPECT_EQ(add(region), 0);
            EXPECT_NAM_OK(msa_nam_fetch_add(region, 1, 8, 1, &before));
            return 0;
          }};
  const auto start_once = [](void* at) {
    auto& mine = *static_cast<State*>(at);
    if (!mine.updater->joinable()) *mine.updater = std::thread(mine.work);
    sched_yield();
    return 1;
  };
  EXPECT_NAM_OK(msa_nam_lock_while(region, 0, MSA_NAM_EXCLUSIVE, start_once, &state));
  EXPECT_EQ(ExitOf(reader), 0);
  updater.join();
  double sum = 0;
  EXPECT_NAM_OK(msa_nam_get(region, 0, 0, &sum, 8));
  EXPECT_EQ(sum, 2.0 * kRounds);
  EXPECT_NAM_OK(msa_nam_close(region));
}

TEST_P(ClientLocksOver, PlainAndAtomicUpdatesOfProcessesCountExactly) {
  msa_nam_region_t region = Create("exact", {4096, 64});
  constexpr int kRounds = 500;
  const auto work = [](msa_nam_region_t shared, bool locks) {
    const double ones[4] = {1, 1, 1, 1};
    for (int i = 0; i < kRounds; ++i) {
      if (locks && msa_nam_lock(shared, 0, i % 2 == 0 ? MSA_NAM_EXCLUSIVE : MSA_NAM_SHARED) != 0) return 2;
      if (msa_nam_accumulate(shared, 0, 8, MSA_NAM_SUM, MSA_NAM_DOUBLE, ones, 4) != 0) return 3;
      if (locks && msa_nam_unlock(shared, 0) != 0) return 4;
    }
    return 0;
  };
  pid_t children[3];
  for (int c = 0; c < 3; ++c)
    children[c] = Spawn([&] {
      msa_nam_region_t mine = nullptr;
      setenv("MSA_NAM_TRANSPORT", c == 1 ? "local" : GetParam(), 1);
      if (msa_nam_open("exact", MSA_NAM_READ | MSA_NAM_WRITE, &mine) != 0) return 1;
      return work(mine, c % 2 == 0);
    });
  EXPECT_EQ(work(region, true), 0) << msa_nam_error_text();
  for (const pid_t child : children) EXPECT_EQ(ExitOf(child), 0);
  double sums[4] = {};
  ASSERT_NAM_OK(msa_nam_get(region, 0, 8, sums, sizeof sums));
  for (const double sum : sums) EXPECT_EQ(sum, 4.0 * kRounds);
  EXPECT_NAM_OK(msa_nam_close(region));
}

}  // namespace
}  // namespace msa::nam::test
