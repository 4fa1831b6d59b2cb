#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/adapters/process/files.h"
#include "msa/support/run_until.h"
#include "msa/support/scratch_directory.h"

#include "local/daemon_table.h"
#include "local/local_paths.h"
#include "local/supervisor.h"
#include "local/system_files.h"

namespace msa::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DaemonTable, ReadsBackWhatItWrote) {
  const std::vector<DaemonEntry> entries = {{"controller", 12, 345, 678, 9}, {"noded-cn0", 0, 0, 0, 2}};
  EXPECT_EQ(ParseDaemonTable(FormatDaemonTable(entries)), entries);
  EXPECT_EQ(ParseDaemonTable("half a line\n" + FormatDaemonTable(entries)), entries);
  EXPECT_TRUE(LoadDaemonTable("/nonexistent/table").empty());
}

TEST(DaemonTable, TellsALivingProcessFromAReusedNumber) {
  DaemonEntry own{"self", ::getpid(), ProcessStartTicks(::getpid()), 0, 0};
  EXPECT_TRUE(IsAlive(own));
  own.start_ticks += 1;
  EXPECT_FALSE(IsAlive(own));
  EXPECT_GT(ResidentBytes(::getpid()), 0u);
  EXPECT_EQ(ProcessStartTicks(0), 0u);
}

TEST(LocalPaths, NamesSharedMemoryAsTheNodeDaemonsDo) {
  // FNV-1a of "/tmp/msa-0".
  EXPECT_EQ(LocalPaths("/tmp/msa-0").shm(0).substr(0, 15), "/dev/shm/msa-0-");
  EXPECT_EQ(LocalPaths("").shm(7), "/dev/shm/msa-7-811c9dc5");
  EXPECT_EQ(LocalPaths("a").shm(7), "/dev/shm/msa-7-e40c292c");
}

class SystemFiles : public ::testing::Test {
 protected:
  void Write(const std::string& path) { ASSERT_TRUE(WriteFileAtomically(path, "text").ok()); }
  static bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

  support::ScratchDirectory scratch_;
};

TEST_F(SystemFiles, AreRemovedByNameAndNothingElse) {
  const LocalPaths paths(scratch_ / "d");
  ASSERT_TRUE(ClaimDirectory(paths).ok());
  EXPECT_TRUE(HoldsSystem(paths));
  ASSERT_TRUE(MakeDirectory(paths.log_directory()).ok());
  ASSERT_TRUE(MakeDirectory(paths.node("cn0")).ok());
  ASSERT_TRUE(MakeDirectory(paths.nam() + "/nam0").ok());
  for (const std::string& path :
       {paths.state_db(), paths.state_db() + "-wal", paths.topology(), paths.daemon_table(),
        paths.log("controller"), paths.node("cn0") + "/noded.lock", paths.dir() + "/mine",
        paths.dir() + "/nam.key", paths.nam() + "/nam0/00ff.1.extent", paths.topology() + ".backup"})
    Write(path);
  ASSERT_TRUE(RemoveRunFiles(paths).ok());
  EXPECT_FALSE(Exists(paths.nodes()));
  EXPECT_TRUE(Exists(paths.state_db()) && Exists(paths.log("controller")));
  EXPECT_TRUE(Exists(paths.dir() + "/nam.key") && Exists(paths.nam() + "/nam0/00ff.1.extent"))
      << "persistent regions stay";
  const auto left = RemoveState(paths);
  ASSERT_TRUE(left.ok()) << left.status().message();
  EXPECT_THAT(*left, ElementsAre("mine", "topology.toml.backup"));
  EXPECT_THAT(*ListDirectory(paths.dir()), ElementsAre("mine", "topology.toml.backup"));
}

TEST_F(SystemFiles, LeaveNoDirectoryBehindThatHoldsNothingElse) {
  const LocalPaths paths(scratch_ / "d");
  ASSERT_TRUE(ClaimDirectory(paths).ok());
  ASSERT_TRUE(ClaimDirectory(paths).ok()) << "an earlier system's directory is taken again";
  Write(paths.state_db());
  EXPECT_TRUE(RemoveState(paths)->empty());
  EXPECT_FALSE(Exists(paths.dir()));
}

TEST_F(SystemFiles, AreNotPutAmongSomebodysOwn) {
  Write(scratch_ / "mine");
  const Status full = ClaimDirectory(LocalPaths(scratch_.path()));
  EXPECT_EQ(full.code(), Code::kInvalidArgument);
  EXPECT_THAT(full.message(), HasSubstr("mine"));
  EXPECT_FALSE(HoldsSystem(LocalPaths(scratch_.path())));
  const Status file = ClaimDirectory(LocalPaths(scratch_ / "mine"));
  EXPECT_EQ(file.code(), Code::kInvalidArgument);
  EXPECT_THAT(file.message(), HasSubstr("choose another"));
}

TEST_F(SystemFiles, DoNotChangeTheModeOfADirectoryThatWasThere) {
  const std::string dir = scratch_ / "open";
  ASSERT_TRUE(MakeDirectory(dir, 0777).ok());
  const Status status = ClaimDirectory(LocalPaths(dir));
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr((::geteuid() == 0 ? "chmod 755 " : "chmod 700 ") + dir));
  struct stat info {};
  ASSERT_EQ(::stat(dir.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0777u);
}

TEST_F(SystemFiles, OfRootMayBeReachedByOthersAndOfAUserMayNot) {
  const std::string dir = scratch_ / "open";
  ASSERT_TRUE(MakeDirectory(dir, 0755).ok());
  const Status status = ClaimDirectory(LocalPaths(dir));
  if (::geteuid() == 0) {
    EXPECT_TRUE(status.ok()) << status.message();
  } else {
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("chmod 700 " + dir));
  }
}

TEST(LocalDaemons, AreAControllerANodeDaemonForEachNodeAndANamDaemonWhereThereIsMemory) {
  SystemTopology topology;
  topology.nodes = {{.name = "cn0"}, {.name = "nam0", .nam = Bytes(1u << 30)}};
  const std::vector<DaemonSpec> daemons = LocalDaemons(LocalPaths("/d"), "/bin", topology);
  ASSERT_EQ(daemons.size(), 4u);
  EXPECT_EQ(daemons[0].name, "controller");
  EXPECT_EQ(daemons[1].name, "noded-cn0");
  EXPECT_EQ(daemons[2].name, "noded-nam0");
  EXPECT_EQ(daemons[3].name, "namd-nam0");
  EXPECT_THAT(daemons[3].argv, ElementsAre("/bin/msa-namd", "--name", "nam0", "--dir", "/d", "--topology",
                                           "/d/topology.toml"));
  EXPECT_EQ(daemons[3].stop_signal, SIGTERM);
  EXPECT_EQ(daemons[2].stop_signal, SIGINT) << "with its jobs";
  EXPECT_LT(daemons[2].stop_phase, daemons[3].stop_phase) << "jobs use its memory to their end";
  EXPECT_LT(daemons[3].stop_phase, daemons[0].stop_phase);
}

class SupervisorTest : public ::testing::Test {
 protected:
  std::unique_ptr<Supervisor> Make(const std::string& script) {
    Supervisor::Options options;
    options.table = scratch_ / "daemons";
    options.log_directory = scratch_.path();
    options.first_backoff = Millis(1);
    options.last_backoff = Millis(20);
    options.stop_limit = Millis(500);
    std::vector<DaemonSpec> daemons;
    daemons.push_back({"first", {"/bin/sh", "-c", script}, SIGTERM, 0});
    daemons.push_back({"second", {"/bin/sh", "-c", "exec sleep 1000"}, SIGTERM, 1});
    return std::make_unique<Supervisor>(*loop_, std::move(options), std::move(daemons),
                                        [this](const std::string& text) { log_ += text + "\n"; });
  }
  bool Eventually(const std::function<bool()>& fact) {
    return support::RunUntil(*loop_, Millis(10'000), fact);
  }
  bool StopAll(Supervisor& supervisor) {
    bool stopped = false;
    supervisor.Stop([&] { stopped = true; });
    return Eventually([&] { return stopped; });
  }

  support::ScratchDirectory scratch_;
  std::unique_ptr<EventLoop> loop_ = *EventLoop::Create();
  std::string log_;
};

TEST_F(SupervisorTest, StartsAgainWhateverIsKilled) {
  const auto supervisor = Make("exec sleep 1000");
  supervisor->Start();
  const DaemonEntry before = supervisor->entries()[0];
  ASSERT_TRUE(IsAlive(before));
  EXPECT_EQ(LoadDaemonTable(scratch_ / "daemons"), supervisor->entries());
  ::kill(before.pid, SIGKILL);
  EXPECT_TRUE(Eventually(
      [&] { return supervisor->entries()[0].restarts == 1 && IsAlive(supervisor->entries()[0]); }));
  EXPECT_NE(supervisor->entries()[0].pid, before.pid);
  EXPECT_EQ(supervisor->entries()[1].restarts, 0u);
  EXPECT_THAT(log_, HasSubstr("was killed by signal 9"));
  EXPECT_TRUE(StopAll(*supervisor));
  EXPECT_FALSE(IsAlive(supervisor->entries()[0]));
  EXPECT_FALSE(IsAlive(supervisor->entries()[1]));
}

TEST_F(SupervisorTest, WaitsLongerAfterEachFailure) {
  const auto supervisor = Make("exit 3");
  supervisor->Start();
  EXPECT_TRUE(Eventually([&] { return supervisor->entries()[0].restarts >= 6; }));
  EXPECT_THAT(log_, HasSubstr("exited with code 3"));
  EXPECT_THAT(log_, HasSubstr("starts again in 2 ms"));
  EXPECT_THAT(log_, HasSubstr("starts again in 20 ms"));
  EXPECT_TRUE(StopAll(*supervisor));
}

TEST_F(SupervisorTest, AdoptsWhatAKilledSupervisorLeft) {
  auto first = Make("exec sleep 1000");
  first->Start();
  const std::vector<DaemonEntry> left = first->entries();
  first.reset();  // as if killed: its daemons go on
  const auto second = Make("exec sleep 1000");
  second->Start();
  EXPECT_EQ(second->entries(), left);
  EXPECT_THAT(log_, HasSubstr(fmt::format("first runs already with pid {}", left[0].pid)));
  EXPECT_TRUE(StopAll(*second));
  EXPECT_FALSE(IsAlive(left[0]));
}

TEST_F(SupervisorTest, KillsWhatDoesNotEnd) {
  const auto supervisor = Make("trap '' TERM; while :; do sleep 1000; done");
  supervisor->Start();
  const pid_t pid = supervisor->entries()[0].pid;
  // The trap is set when the shell sleeps in its child.
  ASSERT_TRUE(Eventually([&] {
    const auto children = ReadFile(fmt::format("/proc/{}/task/{}/children", pid, pid), 4096);
    return children.ok() && !children->empty();
  }));
  const auto children = ReadFile(fmt::format("/proc/{}/task/{}/children", pid, pid), 4096);
  EXPECT_TRUE(StopAll(*supervisor));
  EXPECT_THAT(log_, HasSubstr("does not end; it is killed"));
  EXPECT_FALSE(IsAlive(supervisor->entries()[0]));
  ::kill(std::atoi(children->c_str()), SIGKILL);
}

}  // namespace
}  // namespace msa::cli
