#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/checks.h"

namespace msa::cli {
namespace {

using ::testing::HasSubstr;
using Level = Finding::Level;

NodeInfo Node(const std::string& name, std::int64_t heartbeat_ms) {
  NodeInfo node;
  node.name = name;
  node.state = NodeState::kUp;
  node.last_heartbeat_ms = heartbeat_ms;
  return node;
}

TEST(DoctorChecks, SeeClocksThatDiffer) {
  constexpr std::int64_t kNow = 1'000'000;
  EXPECT_EQ(CheckClocks({}, kNow).level, Level::kOk);
  EXPECT_EQ(CheckClocks({Node("cn0", kNow - 900), Node("cn1", kNow + 500)}, kNow).level, Level::kOk);
  const Finding ahead = CheckClocks({Node("cn0", kNow), Node("cn1", kNow + 90'000)}, kNow);
  EXPECT_EQ(ahead.level, Level::kWarn);
  EXPECT_THAT(ahead.found, HasSubstr("1m 30s ahead"));
  const Finding old = CheckClocks({Node("cn0", kNow), Node("bn7", kNow - 60'000)}, kNow);
  EXPECT_EQ(old.level, Level::kWarn);
  EXPECT_THAT(old.found, HasSubstr("bn7"));
  NodeInfo down = Node("cn2", 1);
  down.state = NodeState::kDown;
  EXPECT_EQ(CheckClocks({down}, kNow).level, Level::kOk) << "the check of nodes tells of it";
}

TEST(DoctorChecks, WantLockedMemoryOnlyForAFabric) {
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &old), 0);
  rlimit low = old;
  low.rlim_cur = 64 << 10;
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &low), 0);
  const auto memlock = [](const std::string& fabrics) { return CheckLimits(fabrics).at(2); };
  char folder[] = "/tmp/msa-doctor-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  EXPECT_EQ(memlock("/no/such/folder").level, Level::kOk);
  EXPECT_EQ(memlock(folder).level, Level::kOk);
  ASSERT_EQ(::mkdir((std::string(folder) + "/mlx5_0").c_str(), 0700), 0);
  const Finding found = memlock(folder);
  EXPECT_EQ(found.check, "memlock");
  EXPECT_EQ(found.level, Level::kWarn);
  EXPECT_THAT(found.found, HasSubstr("64K for fabric mlx5_0"));
  std::filesystem::remove_all(folder);
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &old), 0);
}

TEST(DoctorChecks, SeeASharedMemoryDirectoryThatIsMissing) {
  const Finding found = CheckSharedMemory("/no/such/shm");
  EXPECT_EQ(found.level, Level::kFail);
  EXPECT_THAT(found.remedy, HasSubstr("mount -t tmpfs"));
}

TEST(DoctorChecks, AreShownWithTheirRemediesAndASum) {
  const Findings findings = {{Level::kOk, "disk", "30G free", ""},
                             {Level::kWarn, "mpich", "none", "install it"},
                             {Level::kFail, "shm", "gone\n", "mount it"}};
  EXPECT_EQ(ShowFindings(findings),
            "OK    disk   30G free\n"
            "WARN  mpich  none\n"
            "             -> install it\n"
            "FAIL  shm    gone?\n"
            "             -> mount it\n"
            "\n3 checks: 1 ok, 1 warning, 1 failure\n");
  EXPECT_TRUE(AnyFailed(findings));
  EXPECT_FALSE(AnyFailed({findings[0], findings[1]}));
  FormatOptions json;
  json.format = Format::kJson;
  EXPECT_THAT(Render(FindingListing(findings), json), HasSubstr("\"kind\": \"FindingList\""));
}

}  // namespace
}  // namespace msa::cli
