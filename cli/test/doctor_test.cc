#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/support/scratch_directory.h"

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

TEST(DoctorChecks, NameTheNodeWhoseClockIsOff) {
  NodeInfo node = Node("bn1", 1'000'000);
  node.clock_off = true;
  node.clock_offset_ms = -90'000;
  const Finding found = CheckClocks({Node("cn0", 1'000'000), node}, 1'000'000);
  EXPECT_EQ(found.level, Level::kWarn);
  EXPECT_THAT(found.found, HasSubstr("the clock of bn1 is 1m 30s behind the controller's"));
}

TEST(DoctorChecks, TryTcpAndLookAtTheRangesOfPorts) {
  const support::ScratchDirectory scratch;
  const std::string& proc = scratch.path();
  std::map<std::string, std::string> variables;
  const auto environment = [&](const char* name) { return variables[name]; };
  Finding found = CheckPorts(proc, environment);
  EXPECT_EQ(found.level, Level::kOk) << found.found;
  EXPECT_THAT(found.found, HasSubstr("TCP over 127.0.0.1 works; Open MPI finds one in 1024-65535"));
  std::filesystem::create_directories(proc + "/sys/net/ipv4");
  std::ofstream(proc + "/sys/net/ipv4/ip_local_port_range") << "32768\t60999\n";
  EXPECT_THAT(CheckPorts(proc, environment).found, HasSubstr("ports 32768-60999 are given out"));
  std::ofstream(proc + "/sys/net/ipv4/ip_local_port_range") << "32768\t33000\n";
  found = CheckPorts(proc, environment);
  EXPECT_EQ(found.level, Level::kWarn);
  EXPECT_THAT(found.found, HasSubstr("233 are few"));
  std::filesystem::remove_all(proc + "/sys");
  // A range that somebody has filled: one port, which this test holds.
  const int holder = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(holder, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(holder, 1), 0);
  ASSERT_EQ(::getsockname(holder, reinterpret_cast<sockaddr*>(&address), &size), 0);
  variables["OMPI_MCA_btl_tcp_port_min_v4"] = std::to_string(ntohs(address.sin_port));
  variables["OMPI_MCA_btl_tcp_port_range_v4"] = "0";
  found = CheckPorts(proc, environment);
  EXPECT_EQ(found.level, Level::kFail) << found.found;
  EXPECT_THAT(found.remedy, HasSubstr("OMPI_MCA_btl_tcp_port_min_v4"));
  ::close(holder);
}

TEST(DoctorChecks, TellSocketsThatAnswerFromStaleOnes) {
  const support::ScratchDirectory scratch;
  const DoctorScope scope{scratch.path(), "", ""};
  EXPECT_THAT(CheckListeners(scope).found, HasSubstr("no sockets of a system"));
  const auto listen_on = [&](const std::string& name) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s", (scratch / name).c_str());
    EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd, 16), 0);  // nobody accepts
    return fd;
  };
  const int controller = listen_on("controller.sock");
  std::filesystem::create_directories(scratch / "n/cn0");
  const int node = listen_on("n/cn0/noded.sock");
  EXPECT_EQ(CheckListeners(scope).level, Level::kOk);
  EXPECT_THAT(CheckListeners(scope).found, HasSubstr("2 sockets"));
  ::close(node);
  const Finding stale = CheckListeners(scope);
  EXPECT_EQ(stale.level, Level::kWarn);
  EXPECT_THAT(stale.found, HasSubstr("nobody listens on 1 of 2 sockets"));
  EXPECT_THAT(stale.found, HasSubstr("n/cn0/noded.sock"));
  ::close(controller);
}

TEST(DoctorChecks, WantLockedMemoryOnlyForAFabric) {
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &old), 0);
  rlimit low = old;
  low.rlim_cur = 64 << 10;
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &low), 0);
  const auto memlock = [](const std::string& fabrics) { return CheckLimits(fabrics).at(2); };
  const support::ScratchDirectory scratch;
  EXPECT_EQ(memlock("/no/such/folder").level, Level::kOk);
  EXPECT_EQ(memlock(scratch.path()).level, Level::kOk);
  ASSERT_EQ(::mkdir((scratch / "mlx5_0").c_str(), 0700), 0);
  const Finding found = memlock(scratch.path());
  EXPECT_EQ(found.check, "memlock");
  EXPECT_EQ(found.level, Level::kWarn);
  EXPECT_THAT(found.found, HasSubstr("64K for fabric mlx5_0"));
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
