#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

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
  EXPECT_EQ(msa_nam_try_lock(region, 0, MSA_NAM_EXCLUSIVE), MSA_NAM_ERR_BUSY)
      << "locks survive a restart: " << msa_nam_error_text();
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
