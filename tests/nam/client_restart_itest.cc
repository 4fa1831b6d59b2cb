#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "client_fixture.h"

namespace msa::nam::test {
namespace {

using testing::HasSubstr;

class ClientRestart : public ClientTest {};

TEST_F(ClientRestart, PutsGetsAndAtomicsGoOnWhileNamdIsKilled) {
  msa_nam_region_t region = Create("load", {4096});
  std::atomic<bool> stop{false};
  std::atomic<std::int64_t> rounds{0};
  std::atomic<int> failures{0};
  std::thread load([&] {
    for (std::int64_t i = 1; !stop; ++i) {
      std::int64_t read = 0;
      if (msa_nam_put(region, 0, 0, &i, 8) != 0 || msa_nam_get(region, 0, 0, &read, 8) != 0 || read != i ||
          msa_nam_fetch_add(region, 0, 8, 1, nullptr) != 0 ||
          msa_nam_lock(region, 0, MSA_NAM_EXCLUSIVE) != 0 || msa_nam_unlock(region, 0) != 0)
        ++failures;
      ++rounds;
    }
  });
  for (int kill = 0; kill < 3; ++kill) {
    const std::int64_t until = rounds + 100;
    RestartNamd();
    EXPECT_TRUE(Eventually(namd::test::kLimit, [&] { return rounds > until; }));
  }
  stop = true;
  load.join();
  EXPECT_EQ(failures, 0);
  std::int64_t count = 0;
  ASSERT_NAM_OK(msa_nam_get(region, 0, 8, &count, 8));
  EXPECT_EQ(count, rounds);
  EXPECT_NAM_OK(msa_nam_close(Open("load"))) << "the control connection is made again";
  EXPECT_NAM_OK(msa_nam_close(region));
}

class ClientRestartOverFabric : public ClientTest {
 protected:
  ClientRestartOverFabric() : ClientTest("fabric") {}
};

TEST_F(ClientRestartOverFabric, PutsAndGetsAreRepeatedAndNoAtomicCountsTwice) {
  msa_nam_region_t region = Create("far", {4096});
  std::atomic<bool> stop{false};
  std::atomic<std::int64_t> rounds{0};
  std::int64_t sure = 0, unknown = 0;
  std::thread load([&] {
    for (std::int64_t i = 1; !stop; ++i, ++rounds) {
      std::int64_t read = 0;
      EXPECT_NAM_OK(msa_nam_put(region, 0, 0, &i, 8));
      EXPECT_NAM_OK(msa_nam_get(region, 0, 0, &read, 8));
      EXPECT_EQ(read, i);
      const int added = msa_nam_fetch_add(region, 0, 8, 1, &read);
      if (added == MSA_NAM_ERR_UNKNOWN)
        ++unknown;
      else if (added == MSA_NAM_OK)
        ++sure;
      else
        ADD_FAILURE() << msa_nam_error_text();
    }
  });
  for (int kill = 0; kill < 3; ++kill) {
    const std::int64_t until = rounds + 100;
    RestartNamd();
    EXPECT_TRUE(Eventually(namd::test::kLimit, [&] { return rounds > until; }));
  }
  stop = true;
  load.join();
  std::int64_t count = 0;
  ASSERT_NAM_OK(msa_nam_get(region, 0, 8, &count, 8));
  EXPECT_GE(count, sure);
  EXPECT_LE(count, sure + unknown);
  ChangeGeneration("far");
  RestartNamd();
  EXPECT_EQ(msa_nam_put(region, 0, 0, &count, 8), MSA_NAM_ERR_STALE);
  EXPECT_EQ(msa_nam_fetch_add(region, 0, 0, 1, &count), MSA_NAM_ERR_STALE);
  EXPECT_NAM_OK(msa_nam_close(region));
}

TEST_F(ClientRestartOverFabric, WhatANamdDoesNotAnswerIsGivenUpAtItsDeadlineAndTouchesNothingLater) {
  constexpr std::size_t kBytes = 1 << 16;
  constexpr std::size_t kGets = 40;
  msa_nam_region_t region = Create("silent", {4 << 20});
  std::vector<char> all(4 << 20, 'n'), got(kGets * kBytes, 'x');
  ASSERT_NAM_OK(msa_nam_put(region, 0, 0, all.data(), all.size()));
  constexpr std::uint32_t kTimeout = 500;
  ASSERT_NAM_OK(msa_nam_set_timeout(region, kTimeout));
  SignalProcess(namd_, SIGSTOP);
  // Its threads go on until the one that takes the signal gets a processor.
  ASSERT_EQ(::waitpid(namd_.pid, nullptr, WUNTRACED), namd_.pid);
  std::vector<msa_nam_request_t> requests(kGets);
  for (std::size_t i = 0; i < kGets; ++i) {
    const msa_nam_piece piece{i * kBytes, got.data() + i * kBytes, kBytes};
    ASSERT_NAM_OK(msa_nam_igetv(region, 0, &piece, 1, &requests[i]));
  }
  int done = 0, result = 0;
  EXPECT_TRUE(Eventually(namd::test::kLimit, [&] {
    result = msa_nam_test(requests[0], &done);
    return done != 0;
  }));
  EXPECT_EQ(result, MSA_NAM_ERR_TIMEOUT);
  EXPECT_EQ(msa_nam_flush(region, 0), MSA_NAM_ERR_TIMEOUT);
  const SteadyTime begin = SteadyNow();
  for (std::size_t i = 1; i < kGets; ++i) EXPECT_EQ(msa_nam_wait(requests[i]), MSA_NAM_ERR_TIMEOUT);
  EXPECT_LT(SteadyNow() - begin, Millis(kTimeout) * kGets / 2) << "they share their deadline";
  SignalProcess(namd_, SIGCONT);
  ASSERT_NAM_OK(msa_nam_set_timeout(region, 10'000));
  std::vector<char> again(all.size());
  ASSERT_NAM_OK(msa_nam_get(region, 0, 0, again.data(), again.size()));
  EXPECT_EQ(again, all);
  EXPECT_EQ(got, std::vector<char>(got.size(), 'x')) << "written to after it was given up";
  EXPECT_NAM_OK(msa_nam_close(region));
}

TEST_F(ClientRestart, AnOpenWaitsForANamdThatIsBeingRestarted) {
  EXPECT_NAM_OK(msa_nam_close(Create("waits", {64})));
  KillNamd();
  std::thread opens([this] { EXPECT_NAM_OK(msa_nam_close(Open("waits"))); });
  RestartNamd();
  opens.join();
}

TEST_F(ClientRestart, ARegionOfANewGenerationIsStale) {
  msa_nam_region_t region = Create("resized", {4096, 4096});
  const std::int64_t one = 1;
  ASSERT_NAM_OK(msa_nam_put(region, 0, 0, &one, 8));
  ChangeGeneration("resized");
  RestartNamd();
  EXPECT_TRUE(
      Eventually(namd::test::kLimit, [&] { return msa_nam_put(region, 0, 0, &one, 8) != MSA_NAM_OK; }));
  EXPECT_EQ(msa_nam_put(region, 0, 0, &one, 8), MSA_NAM_ERR_STALE);
  EXPECT_THAT(msa_nam_error_text(), HasSubstr("open it again"));
  std::int64_t result = 0;
  EXPECT_EQ(msa_nam_get(region, 0, 0, &result, 8), MSA_NAM_ERR_STALE);
  EXPECT_EQ(msa_nam_fetch_add(region, 0, 0, 1, &result), MSA_NAM_ERR_STALE);
  EXPECT_EQ(msa_nam_lock(region, 0, MSA_NAM_SHARED), MSA_NAM_ERR_STALE);
  EXPECT_EQ(msa_nam_try_lock(region, 0, MSA_NAM_SHARED), MSA_NAM_ERR_STALE);
  EXPECT_NAM_OK(msa_nam_close(region));
  region = Open("resized");
  struct msa_nam_stat stat;
  ASSERT_NAM_OK(msa_nam_stat(region, &stat));
  EXPECT_EQ(stat.generation, 2u);
  EXPECT_NAM_OK(msa_nam_close(region));
}

TEST_F(ClientRestart, AMappingWhoseLeaseHasEndedIsStaleAndHoldsNoLocks) {
  msa_nam_region_t region = Create("revoked", {4096, 4096});
  std::int64_t value = 1;
  ASSERT_NAM_OK(msa_nam_put(region, 0, 0, &value, 8));
  ASSERT_NAM_OK(msa_nam_lock(region, 0, MSA_NAM_EXCLUSIVE));
  OnController([](FakeController& controller) { controller.Revoke(controller.live); });
  EXPECT_TRUE(Eventually(namd::test::kLimit,
                         [&] { return msa_nam_fetch_add(region, 1, 0, 1, &value) == MSA_NAM_ERR_STALE; }));
  EXPECT_THAT(msa_nam_error_text(), HasSubstr("open it again"));
  EXPECT_EQ(msa_nam_put(region, 0, 0, &value, 8), MSA_NAM_ERR_STALE);
  EXPECT_EQ(msa_nam_get(region, 0, 0, &value, 8), MSA_NAM_ERR_STALE);
  EXPECT_EQ(msa_nam_unlock(region, 0), MSA_NAM_ERR_STALE) << "it holds the lock no more";
  EXPECT_EQ(msa_nam_try_lock(region, 1, MSA_NAM_EXCLUSIVE), MSA_NAM_ERR_STALE);
  EXPECT_NAM_OK(msa_nam_close(region));
}

TEST_F(ClientRestart, AMappingWhoseLeaseHasEndedSaysSoToPutsAndGets) {
  msa_nam_region_t region = Create("mapped", {4096});
  msa_nam_region_t reader = Open("mapped", MSA_NAM_READ);
  std::int64_t value = 1;
  ASSERT_NAM_OK(msa_nam_put(region, 0, 0, &value, 8));
  ASSERT_NAM_OK(msa_nam_get(reader, 0, 0, &value, 8));
  EndLeases();
  EXPECT_TRUE(Eventually(namd::test::kLimit,
                         [&] { return msa_nam_put(region, 0, 0, &value, 8) == MSA_NAM_ERR_STALE; }));
  EXPECT_THAT(msa_nam_error_text(), HasSubstr("open it again"));
  EXPECT_TRUE(Eventually(namd::test::kLimit,
                         [&] { return msa_nam_get(reader, 0, 0, &value, 8) == MSA_NAM_ERR_STALE; }));
  EXPECT_EQ(msa_nam_lock(reader, 0, MSA_NAM_SHARED), MSA_NAM_ERR_STALE);
  EXPECT_NAM_OK(msa_nam_close(reader));
  EXPECT_NAM_OK(msa_nam_close(region));
}

TEST_F(ClientRestartOverFabric, WhoHasLessRightsGoesOnWithThemAndIsDeniedTheOthersAtOnce) {
  msa_nam_region_t region = Create("less", {4096});
  std::int64_t value = 42;
  ASSERT_NAM_OK(msa_nam_put(region, 0, 0, &value, 8));
  OnController([&](FakeController&) { taken_ = NamRights::kWrite; });
  EndLeases();
  const SteadyTime begin = SteadyNow();
  const auto becomes = [&](int result, const auto& operation) {
    return Eventually(namd::test::kLimit, [&] { return operation(region, 0, 0, &value, 8) == result; });
  };
  EXPECT_TRUE(becomes(MSA_NAM_ERR_DENIED, msa_nam_put));
  for (int i = 0; i < 2; ++i) {
    value = 0;
    EXPECT_NAM_OK(msa_nam_get(region, 0, 0, &value, 8));
    EXPECT_EQ(value, 42);
    EXPECT_EQ(msa_nam_put(region, 0, 0, &value, 8), MSA_NAM_ERR_DENIED);
    EXPECT_THAT(msa_nam_error_text(), HasSubstr("msactl region acl"));
    EXPECT_EQ(msa_nam_fetch_add(region, 0, 0, 1, &value), MSA_NAM_ERR_DENIED);
    msa_nam_request_t request = nullptr;
    msa_nam_piece piece{0, &value, 8};
    ASSERT_NAM_OK(msa_nam_iputv(region, 0, &piece, 1, &request));
    EXPECT_EQ(msa_nam_wait(request), MSA_NAM_ERR_DENIED);
  }
  OnController([&](FakeController&) { taken_ = NamRights::kWrite | NamRights::kRead; });
  EndLeases();
  EXPECT_TRUE(becomes(MSA_NAM_ERR_DENIED, msa_nam_get));
  EXPECT_EQ(msa_nam_get(region, 0, 0, &value, 8), MSA_NAM_ERR_DENIED);
  EXPECT_LT(SteadyNow() - begin, std::chrono::seconds(10)) << "no operation has waited for its deadline";
  EXPECT_NAM_OK(msa_nam_close(region));
}

TEST_F(ClientRestartOverFabric, ALockThatIsLostWithItsLeaseIsNotTakenForHeld) {
  msa_nam_region_t region = Create("lost", {4096});
  ASSERT_NAM_OK(msa_nam_lock(region, 0, MSA_NAM_EXCLUSIVE));
  EndLeases();
  std::int64_t value = 0;
  EXPECT_TRUE(Eventually(namd::test::kLimit,
                         [&] { return msa_nam_put(region, 0, 0, &value, 8) == MSA_NAM_ERR_STALE; }));
  EXPECT_THAT(msa_nam_error_text(), HasSubstr("locks"));
  EXPECT_NAM_OK(msa_nam_close(region));
}

TEST_F(ClientRestartOverFabric, LocksWaitForANamdThatIsBeingRestarted) {
  msa_nam_region_t region = Create("waited-for", {4096, 4096});
  ASSERT_NAM_OK(msa_nam_set_timeout(region, 60'000));  // of several attempts, on a busy machine too
  ASSERT_NAM_OK(msa_nam_lock(region, 0, MSA_NAM_EXCLUSIVE));
  ASSERT_NAM_OK(msa_nam_unlock(region, 0));
  KillNamd();
  EXPECT_EQ(msa_nam_try_lock(region, 0, MSA_NAM_EXCLUSIVE), MSA_NAM_ERR_BUSY);
  EXPECT_THAT(msa_nam_error_text(), HasSubstr("cannot be asked"));
  // Longer than one attempt to reach it takes.
  std::atomic<bool> locked{false};
  std::thread waits([&] {
    EXPECT_NAM_OK(msa_nam_lock(region, 0, MSA_NAM_EXCLUSIVE));
    locked = true;
  });
  // Each takes as long as one attempt.
  for (int i = 0; i < 2; ++i) EXPECT_EQ(msa_nam_try_lock(region, 1, MSA_NAM_EXCLUSIVE), MSA_NAM_ERR_BUSY);
  EXPECT_FALSE(locked);
  RestartNamd();
  waits.join();
  EXPECT_NAM_OK(msa_nam_unlock(region, 0));
  ASSERT_NAM_OK(msa_nam_set_timeout(region, 1500));
  KillNamd();
  int tried = MSA_NAM_ERR_BUSY;
  EXPECT_TRUE(Eventually(namd::test::kLimit, [&] {
    tried = msa_nam_try_lock(region, 0, MSA_NAM_SHARED);
    return tried != MSA_NAM_ERR_BUSY;
  }));
  EXPECT_EQ(tried, MSA_NAM_ERR_UNAVAILABLE);
  EXPECT_EQ(msa_nam_lock(region, 0, MSA_NAM_SHARED), MSA_NAM_ERR_UNAVAILABLE);
  RestartNamd();
  EXPECT_NAM_OK(msa_nam_close(region));
}

// A process that has a region from another one by its lease, and dies with the lock.
class ClientDeath : public ClientRestartOverFabric {
 protected:
  // Returns when it is dead, and reaped.
  void LockAndDie(msa_nam_region_t region, const std::function<void()>& before_death = {}) {
    const void* lease = nullptr;
    std::size_t bytes = 0;
    ASSERT_NAM_OK(msa_nam_get_lease(region, &lease, &bytes));
    int locked[2];
    ASSERT_EQ(pipe(locked), 0);
    const pid_t child = Spawn([&] {
      msa_nam_region_t own = nullptr;
      if (msa_nam_attach(lease, bytes, &own) != MSA_NAM_OK) return 1;
      if (msa_nam_lock(own, 0, MSA_NAM_EXCLUSIVE) != MSA_NAM_OK) return 2;
      if (write(locked[1], "y", 1) != 1) return 3;
      pause();
      return 0;
    });
    char said = 0;
    ASSERT_EQ(read(locked[0], &said, 1), 1);
    EXPECT_EQ(msa_nam_try_lock(region, 0, MSA_NAM_EXCLUSIVE), MSA_NAM_ERR_BUSY);
    if (before_death) before_death();
    kill(child, SIGKILL);
    (void)ExitOf(child);
    close(locked[0]);
    close(locked[1]);
  }
};

TEST_F(ClientDeath, FreesALockOverTheFabricUnderAnothersLease) {
  msa_nam_region_t region = Create("dead", {4096});
  LockAndDie(region);
  EXPECT_TRUE(Eventually(kSoon, [&] { return msa_nam_try_lock(region, 0, MSA_NAM_EXCLUSIVE) == MSA_NAM_OK; }))
      << msa_nam_error_text();
  EXPECT_TRUE(Eventually(namd::test::kLimit, [&] { return gone_clients_ == 1; })) << "other namds are told";
  EXPECT_NAM_OK(msa_nam_close(region));
}

TEST_F(ClientDeath, FreesItsLockThoughNamdIsAwayMeanwhile) {
  msa_nam_region_t region = Create("dead-away", {4096});
  LockAndDie(region, [&] { KillNamd(); });
  RestartNamd();
  EXPECT_TRUE(Eventually(kSoon, [&] { return msa_nam_try_lock(region, 0, MSA_NAM_EXCLUSIVE) == MSA_NAM_OK; }))
      << msa_nam_error_text();
  EXPECT_NAM_OK(msa_nam_close(region));
}

TEST_F(ClientRestart, ACreateThatIsNotAnsweredIsWithdrawn) {
  EXPECT_NAM_OK(msa_nam_close(Create("answered", {64})));
  OnController([&](FakeController&) { EXPECT_EQ(withdrawn_, ""); });
  setenv("MSA_NAM_TIMEOUT", "1", 1);
  const msa_nam_segment segment{64, 8, 0};
  msa_nam_create_options options{};
  options.name = kNeverAnswered;
  options.segments = &segment;
  options.segment_count = 1;
  msa_nam_region_t region = nullptr;
  EXPECT_EQ(msa_nam_create(&options, &region), MSA_NAM_ERR_TIMEOUT);
  setenv("MSA_NAM_TIMEOUT", "10", 1);
  OnController([&](FakeController&) {
    EXPECT_NE(created_, "");
    EXPECT_EQ(withdrawn_, created_);
  });
}

TEST_F(ClientRestart, ControlRequestsKeepTheirDeadlineWithoutANamd) {
  EXPECT_NAM_OK(msa_nam_close(Create("away", {64})));
  KillNamd();
  setenv("MSA_NAM_TIMEOUT", "1", 1);
  msa_nam_region_t region = nullptr;
  const SteadyTime begin = SteadyNow();
  EXPECT_EQ(msa_nam_open("away", MSA_NAM_READ, &region), MSA_NAM_ERR_UNAVAILABLE);
  EXPECT_LT(SteadyNow() - begin, kSoon);
  RestartNamd();
}

}  // namespace
}  // namespace msa::nam::test
