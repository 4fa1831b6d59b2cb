#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <numeric>

#include "client_fixture.h"

namespace msa::nam::test {
namespace {

using testing::HasSubstr;

class Client : public ClientTest {};

// What is alike whichever way the data goes.
class ClientOver : public ClientTest, public testing::WithParamInterface<const char*> {
 protected:
  ClientOver() : ClientTest(GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(Transport, ClientOver, testing::Values("local", "fabric"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(ClientOver, TwoProcessesShareARegion) {
  msa_nam_region_t mine = Create("shared", {4096, 100});
  const pid_t other = Spawn([] {
    msa_nam_region_t region = nullptr;
    const char text[] = "from the child";
    if (msa_nam_open("shared", MSA_NAM_READ | MSA_NAM_WRITE, &region) != 0) return 1;
    if (msa_nam_put(region, 1, 3, text, sizeof text) != 0) return 2;
    for (int i = 0; i < 5000; ++i)
      if (msa_nam_fetch_add(region, 0, 8, 1, nullptr) != 0) return 3;
    return msa_nam_close(region) == 0 ? 0 : 4;
  });
  for (int i = 0; i < 5000; ++i) ASSERT_NAM_OK(msa_nam_fetch_add(mine, 0, 8, 2, nullptr));
  EXPECT_EQ(ExitOf(other), 0);
  std::array<char, 15> text{};
  std::int64_t sum = 0;
  ASSERT_NAM_OK(msa_nam_get(mine, 1, 3, text.data(), text.size()));
  EXPECT_STREQ(text.data(), "from the child");
  ASSERT_NAM_OK(msa_nam_get(mine, 0, 8, &sum, sizeof sum));
  EXPECT_EQ(sum, 15000);
  EXPECT_NAM_OK(msa_nam_close(mine));
}

TEST_P(ClientOver, RangesThatLeaveTheSegmentAreRefusedAndNothingIsTouched) {
  msa_nam_region_t region = Create("ranges", {64, 64});
  std::array<char, 64> bytes{};
  bytes.fill('x');
  constexpr std::uint64_t kHuge = ~std::uint64_t{0};
  const std::pair<std::uint64_t, std::uint64_t> wrong[] = {
      {0, 65}, {64, 1}, {65, 0}, {kHuge, 1}, {1, kHuge}, {kHuge - 7, 64}, {32, kHuge - 31}};
  for (const auto& [offset, size] : wrong) {
    EXPECT_EQ(msa_nam_put(region, 0, offset, bytes.data(), size), MSA_NAM_ERR_RANGE) << offset << "+" << size;
    EXPECT_EQ(msa_nam_get(region, 0, offset, bytes.data(), size), MSA_NAM_ERR_RANGE);
    const msa_nam_piece pieces[] = {{0, bytes.data(), 8}, {offset, bytes.data(), size}};
    EXPECT_EQ(msa_nam_putv(region, 0, pieces, 2), MSA_NAM_ERR_RANGE);
    EXPECT_EQ(msa_nam_getv(region, 0, pieces, 2), MSA_NAM_ERR_RANGE);
    msa_nam_request_t request = nullptr;
    EXPECT_EQ(msa_nam_iputv(region, 0, pieces, 2, &request), MSA_NAM_ERR_RANGE);
  }
  EXPECT_THAT(msa_nam_error_text(), HasSubstr("64 bytes"));
  EXPECT_EQ(msa_nam_put(region, 2, 0, bytes.data(), 1), MSA_NAM_ERR_RANGE) << "no such segment";
  const msa_nam_strided shapes[] = {{0, 33, 1, 32, 2},           {0, -1, 1, 1, 2},    {0, INT64_MAX, 0, 1, 3},
                                    {0, INT64_MIN, 0, 1, kHuge}, {0, 1, 0, kHuge, 1}, {65, 0, 0, 1, 1}};
  for (const auto& shape : shapes)
    EXPECT_EQ(msa_nam_put_strided(region, 0, &shape, bytes.data()), MSA_NAM_ERR_RANGE) << shape.stride;
  std::int64_t result = 0;
  EXPECT_EQ(msa_nam_fetch_add(region, 0, 57, 1, &result), MSA_NAM_ERR_RANGE);
  EXPECT_EQ(msa_nam_accumulate(region, 0, 0, MSA_NAM_SUM, MSA_NAM_INT64, bytes.data(), kHuge / 8 + 2),
            MSA_NAM_ERR_RANGE);
  std::array<char, 64> now{};
  ASSERT_NAM_OK(msa_nam_get(region, 0, 0, now.data(), now.size()));
  EXPECT_EQ(std::accumulate(now.begin(), now.end(), 0), 0) << "nothing was touched";
  EXPECT_NAM_OK(msa_nam_put(region, 0, 64, nullptr, 0));
  EXPECT_EQ(msa_nam_put(region, 0, 0, nullptr, 1), MSA_NAM_ERR_ARG);
  EXPECT_NAM_OK(msa_nam_close(region));
}

TEST_P(ClientOver, StridesAndPiecesLandWhereTheyShould) {
  msa_nam_region_t region = Create("shapes", {1024});
  std::array<std::int32_t, 8> column{1, 2, 3, 4, 5, 6, 7, 8};
  const msa_nam_strided down{64, 16, 4, 4, 8};
  ASSERT_NAM_OK(msa_nam_put_strided(region, 0, &down, column.data()));
  std::int32_t third = 0;
  ASSERT_NAM_OK(msa_nam_get(region, 0, 64 + 2 * 16, &third, 4));
  EXPECT_EQ(third, 3);
  std::array<std::int32_t, 8> backwards{};
  const msa_nam_strided up{64 + 7 * 16, -16, 4, 4, 8};
  ASSERT_NAM_OK(msa_nam_get_strided(region, 0, &up, backwards.data()));
  EXPECT_EQ(backwards, (std::array<std::int32_t, 8>{8, 7, 6, 5, 4, 3, 2, 1}));

  char a[] = "first", b[] = "second", c[8] = {}, d[8] = {};
  const msa_nam_piece out[] = {{600, a, sizeof a}, {700, b, sizeof b}, {1024, nullptr, 0}};
  const msa_nam_piece in[] = {{700, d, sizeof b}, {600, c, sizeof a}};
  ASSERT_NAM_OK(msa_nam_putv(region, 0, out, 3));
  ASSERT_NAM_OK(msa_nam_getv(region, 0, in, 2));
  EXPECT_STREQ(c, "first");
  EXPECT_STREQ(d, "second");

  msa_nam_request_t put = nullptr, get = nullptr;
  int done = 0;
  a[0] = 'F';
  ASSERT_NAM_OK(msa_nam_iputv(region, 0, out, 3, &put));
  ASSERT_NAM_OK(msa_nam_flush(region, 0));
  ASSERT_NAM_OK(msa_nam_wait(put));
  ASSERT_NAM_OK(msa_nam_igetv(region, 0, in, 2, &get));
  ASSERT_TRUE(Eventually(namd::test::kLimit, [&] {
    EXPECT_NAM_OK(msa_nam_test(get, &done));
    return done == 1;
  }));
  EXPECT_STREQ(c, "First");
  EXPECT_NAM_OK(msa_nam_flush(region, ~0u));
  EXPECT_NAM_OK(msa_nam_close(region));
}

TEST_P(ClientOver, AtomicsComputeAndTellWhatWasThere) {
  msa_nam_region_t region = Create("atomics", {4096});
  std::array<double, 512> ones{}, before{};
  ones.fill(1.5);
  ASSERT_NAM_OK(msa_nam_accumulate(region, 0, 0, MSA_NAM_SUM, MSA_NAM_DOUBLE, ones.data(), ones.size()));
  ASSERT_NAM_OK(msa_nam_lock(region, 0, MSA_NAM_EXCLUSIVE));
  ASSERT_NAM_OK(
      msa_nam_get_accumulate(region, 0, 0, MSA_NAM_SUM, MSA_NAM_DOUBLE, ones.data(), before.data(), 512));
  ASSERT_NAM_OK(msa_nam_unlock(region, 0));
  EXPECT_EQ(before[511], 1.5);
  ASSERT_NAM_OK(
      msa_nam_get_accumulate(region, 0, 0, MSA_NAM_NO_OP, MSA_NAM_DOUBLE, nullptr, before.data(), 512));
  EXPECT_EQ(before[0], 3.0);
  std::int64_t zero = 0, result = -1;
  ASSERT_NAM_OK(msa_nam_put(region, 0, 0, &zero, 8));
  ASSERT_NAM_OK(msa_nam_fetch_add(region, 0, 0, 5, &result));
  EXPECT_EQ(result, 0);
  ASSERT_NAM_OK(msa_nam_swap(region, 0, 0, 9, &result));
  EXPECT_EQ(result, 5);
  const std::int64_t nine = 9, ten = 10;
  ASSERT_NAM_OK(msa_nam_compare_swap(region, 0, 0, MSA_NAM_INT64, &nine, &ten, &result));
  EXPECT_EQ(result, 9);
  ASSERT_NAM_OK(msa_nam_compare_swap(region, 0, 0, MSA_NAM_INT64, &nine, &nine, &result));
  EXPECT_EQ(result, 10);
  const auto refusal = [&](int op, int type) -> std::string {
    EXPECT_EQ(msa_nam_accumulate(region, 0, 0, static_cast<msa_nam_op>(op), static_cast<msa_nam_type>(type),
                                 ones.data(), 1),
              MSA_NAM_ERR_ARG);
    return msa_nam_error_text();
  };
  EXPECT_THAT(refusal(MSA_NAM_BAND, MSA_NAM_DOUBLE),
              HasSubstr("operation MSA_NAM_BAND does not go with element type MSA_NAM_DOUBLE"));
  EXPECT_THAT(refusal(14, MSA_NAM_INT64),
              HasSubstr("operation 14 does not exist; expected MSA_NAM_REPLACE (0) to MSA_NAM_MAXLOC (13)"));
  EXPECT_THAT(refusal(-1, MSA_NAM_INT64), HasSubstr("operation -1 does not exist"));
  EXPECT_THAT(refusal(MSA_NAM_SUM, 77),
              HasSubstr("element type 77 does not exist; expected MSA_NAM_INT8 (0) to MSA_NAM_BYTE (20)"));
  EXPECT_NAM_OK(msa_nam_close(region));
}

TEST_P(ClientOver, AReadOnlyHandleReadsLocksAndWritesNothing) {
  msa_nam_region_t writer = Create("readonly", {64});
  const std::int64_t seven = 7;
  ASSERT_NAM_OK(msa_nam_put(writer, 0, 0, &seven, 8));
  msa_nam_region_t reader = Open("readonly", MSA_NAM_READ);
  std::int64_t result = 0;
  ASSERT_NAM_OK(msa_nam_get(reader, 0, 0, &result, 8));
  EXPECT_EQ(result, 7);
  EXPECT_EQ(msa_nam_put(reader, 0, 0, &seven, 8), MSA_NAM_ERR_DENIED);
  EXPECT_EQ(msa_nam_fetch_add(reader, 0, 0, 1, &result), MSA_NAM_ERR_DENIED);
  EXPECT_THAT(msa_nam_error_text(), HasSubstr("write"));
  result = 0;
  ASSERT_NAM_OK(msa_nam_get_accumulate(reader, 0, 0, MSA_NAM_NO_OP, MSA_NAM_INT64, nullptr, &result, 1));
  EXPECT_EQ(result, 7);
  ASSERT_NAM_OK(msa_nam_lock(reader, 0, MSA_NAM_SHARED));
  EXPECT_EQ(msa_nam_lock(writer, 0, MSA_NAM_EXCLUSIVE), MSA_NAM_ERR_ARG) << "one lock of a process";
  ASSERT_NAM_OK(msa_nam_unlock(reader, 0));
  struct msa_nam_stat stat;
  ASSERT_NAM_OK(msa_nam_stat(reader, &stat));
  EXPECT_EQ(stat.rights & MSA_NAM_WRITE, 0);
  EXPECT_NAM_OK(msa_nam_close(reader));
  EXPECT_NAM_OK(msa_nam_close(writer));
}

TEST_F(Client, WhatCannotBeMappedIsRefusedOrSaysWhy) {
  EXPECT_NAM_OK(msa_nam_close(Create("foreign", {64})));
  OnController([this](FakeController&) { withheld_ = NamRights::kMap; });
  msa_nam_region_t region = nullptr;
  EXPECT_EQ(msa_nam_open("foreign", MSA_NAM_READ, &region), MSA_NAM_ERR_DENIED);
  EXPECT_THAT(msa_nam_error_text(), HasSubstr("map"));
  EXPECT_EQ(region, nullptr);
  setenv("MSA_NAM_TRANSPORT", "auto", 1);
  EXPECT_EQ(msa_nam_open("foreign", MSA_NAM_READ, &region), MSA_NAM_ERR_UNAVAILABLE);
  EXPECT_THAT(msa_nam_error_text(), HasSubstr("serves no fabric"));
  EXPECT_EQ(msa_nam_open("nowhere", MSA_NAM_READ, &region), MSA_NAM_ERR_NOT_FOUND);
  EXPECT_TRUE(Eventually(namd::test::kLimit, [&] { return closed_leases_ == 3; })) << "no lease is left over";
}

TEST_F(Client, ALeaseLetsAnotherProcessOfTheUserIn) {
  msa_nam_region_t region = Create("leased", {64});
  const void* lease = nullptr;
  size_t bytes = 0;
  ASSERT_NAM_OK(msa_nam_get_lease(region, &lease, &bytes));
  const std::string blob(static_cast<const char*>(lease), bytes);
  const auto attach = [&blob] {
    msa_nam_region_t other = nullptr;
    const int failed = msa_nam_attach(blob.data(), blob.size(), &other);
    return failed != 0 ? failed : msa_nam_fetch_add(other, 0, 0, 1, nullptr);
  };
  EXPECT_EQ(ExitOf(Spawn(attach)), 0);
  std::int64_t count = 0;
  ASSERT_NAM_OK(msa_nam_get(region, 0, 0, &count, 8));
  EXPECT_EQ(count, 1);
  std::string forged = blob;
  forged.back() = static_cast<char>(forged.back() ^ 1);
  msa_nam_region_t other = nullptr;
  EXPECT_EQ(msa_nam_attach(forged.data(), forged.size(), &other), MSA_NAM_ERR_DENIED);
  if (geteuid() == 0) {
    EXPECT_EQ(ExitOf(Spawn([&] {
                if (setgid(65534) != 0 || setuid(65534) != 0) return 100;
                return attach();
              })),
              MSA_NAM_ERR_DENIED)
        << "another user";
  }
  EXPECT_NAM_OK(msa_nam_close(region));
}

TEST_F(Client, TellsWhatARegionIsAndRemovesIt) {
  msa_nam_region_t region = Create("described", {100, 0, 28});
  struct msa_nam_stat stat;
  ASSERT_NAM_OK(msa_nam_stat(region, &stat));
  EXPECT_STREQ(stat.name, "described");
  EXPECT_EQ(std::string(stat.port).rfind("msa-nam:", 0), 0u);
  EXPECT_EQ(stat.bytes, 128u);
  EXPECT_EQ(stat.segment_count, 3u);
  EXPECT_EQ(stat.generation, 1u);
  EXPECT_EQ(stat.rights, MSA_NAM_READ | MSA_NAM_WRITE | MSA_NAM_MAP);
  EXPECT_EQ(stat.lifetime, MSA_NAM_PERSISTENT);
  ASSERT_NAM_OK(msa_nam_set_lifetime(region, MSA_NAM_LEASE));
  ASSERT_NAM_OK(msa_nam_stat(region, &stat));
  EXPECT_EQ(stat.lifetime, MSA_NAM_LEASE);
  struct msa_nam_segment_stat segment;
  ASSERT_NAM_OK(msa_nam_segment_stat(region, 2, &segment));
  EXPECT_EQ(segment.bytes, 28u);
  EXPECT_EQ(segment.disp_unit, 8u);
  EXPECT_EQ(segment.transport, MSA_NAM_LOCAL);
  ASSERT_NE(segment.address, nullptr);
  ASSERT_NAM_OK(msa_nam_put(region, 2, 0, "direct", 7));
  EXPECT_STREQ(static_cast<const char*>(segment.address), "direct");
  EXPECT_EQ(msa_nam_segment_stat(region, 3, &segment), MSA_NAM_ERR_RANGE);
  EXPECT_NAM_OK(msa_nam_close(Open(stat.port, MSA_NAM_READ)));

  const msa_nam_segment one{64, 1, 0};
  msa_nam_create_options again{};
  again.name = "described";
  again.segments = &one;
  again.segment_count = 1;
  msa_nam_region_t second = nullptr;
  EXPECT_EQ(msa_nam_create(&again, &second), MSA_NAM_ERR_EXISTS);
  EXPECT_EQ(msa_nam_delete("described", 0), MSA_NAM_ERR_BUSY);
  EXPECT_THAT(msa_nam_error_text(), HasSubstr("pid 7"));
  EXPECT_NAM_OK(msa_nam_delete("described", 1));
  EXPECT_EQ(msa_nam_delete("described", 1), MSA_NAM_ERR_NOT_FOUND);
  EXPECT_NAM_OK(msa_nam_close(region));
}

TEST_F(Client, MoreThanTheQuotaIsRefusedWithTheNumbers) {
  const msa_nam_segment large{std::uint64_t{1} << 40, 1, 0};
  msa_nam_create_options options{};
  options.name = "large";
  options.segments = &large;
  options.segment_count = 1;
  msa_nam_region_t region = nullptr;
  EXPECT_EQ(msa_nam_create(&options, &region), MSA_NAM_ERR_NO_SPACE);
  EXPECT_THAT(msa_nam_error_text(), HasSubstr("quota is 33554432"));
}

TEST_F(Client, ATruncatedRegionIsLostToWhoOpensIt) {
  EXPECT_NAM_OK(msa_nam_close(Create("cut", {4096, 4096})));
  ExtentKey extent;
  OnController([&](FakeController&) { extent = regions_.at("cut").extent; });
  const std::string file = FileOf(extent, namd::Stage::kCommitted);
  ASSERT_TRUE(Eventually(namd::test::kLimit, [&] { return truncate(file.c_str(), 100) == 0; }));
  msa_nam_region_t region = nullptr;
  EXPECT_EQ(msa_nam_open("cut", MSA_NAM_READ, &region), MSA_NAM_ERR_LOST);
}

}  // namespace
}  // namespace msa::nam::test
