#include <atomic>
#include <thread>

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

TEST_F(ClientRestart, ControlRequestsKeepTheirDeadlineWithoutANamd) {
  EXPECT_NAM_OK(msa_nam_close(Create("away", {64})));
  KillNamd();
  setenv("MSA_NAM_TIMEOUT", "1", 1);
  msa_nam_region_t region = nullptr;
  const SteadyTime begin = SteadyNow();
  EXPECT_EQ(msa_nam_open("away", MSA_NAM_READ, &region), MSA_NAM_ERR_UNAVAILABLE);
  EXPECT_LT(SteadyNow() - begin, std::chrono::seconds(3));
  RestartNamd();
}

}  // namespace
}  // namespace msa::nam::test
