#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "launcher_fixture.h"
#include "leftovers.h"
#include "process_table.h"

namespace msa::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Launcher = LauncherFixture;

// Leaves group, session and parent: only the environment tells whose it is.
constexpr char kDaemon[] =
    "setsid sh -c 'setsid sleep 300 >/dev/null 2>&1 & echo $! > daemon' >/dev/null 2>&1; ";

std::vector<pid_t> Below() {
  std::vector<pid_t> out;
  for (const ProcessEntry& process : Descendants(::getpid())) out.push_back(process.pid);
  return out;
}

TEST_F(Launcher, KillsWhatTasksLeftBehind) {
  StartOne(Shell(std::string(kDaemon) + "sleep 300 & exit 0"));
  Exit();
  ASSERT_EQ(launcher_->running(), 0U);
  ASSERT_FALSE(Below().empty());
  EXPECT_EQ(Kill(), 0);
  EXPECT_TRUE(Below().empty());
}

TEST_F(Launcher, KillsTasksThatForkWithoutEnd) {
  StartOne(Shell("f() { while :; do sleep 0.01 & setsid sleep 300 & wait $!; done; }; f & f & f & f & wait"));
  ASSERT_TRUE(Eventually([] { return Below().size() > 8; }));
  EXPECT_EQ(Kill(), 0);
  EXPECT_TRUE(Below().empty());
  EXPECT_EQ(Exit().end.signal, SIGKILL);
}

TEST_F(Launcher, KillsOneNamespaceWithItsDaemonsAndSparesTheOther) {
  std::vector<TaskSpec> specs;
  for (const std::string nspace : {"msa.1.1.0", "msa.1.1.0.1"}) {
    specs.push_back(Shell(std::string(kDaemon) + "mv daemon " + nspace + "; sleep 300"));
    specs.back().nspace = nspace;
    specs.back().env.push_back("PMIX_NAMESPACE=" + nspace);
    specs.back().cwd = directory_.path() + "/" + nspace;
    ASSERT_EQ(::mkdir(specs.back().cwd.c_str(), 0755), 0);
  }
  Start(std::move(specs));
  std::array<pid_t, 2> daemons{};
  const auto read = [&](const std::string& nspace) {
    pid_t pid = 0;
    std::ifstream(directory_.path() + "/" + nspace + "/" + nspace) >> pid;
    return pid;
  };
  ASSERT_TRUE(Eventually([&] {
    daemons = {read("msa.1.1.0"), read("msa.1.1.0.1")};
    return daemons[0] > 0 && daemons[1] > 0;
  }));
  EXPECT_EQ(Kill("msa.1.1.0.1"), 0);
  EXPECT_FALSE(IsAlive(daemons[1]));
  EXPECT_TRUE(IsAlive(daemons[0]));
  EXPECT_EQ(Exit(0, "msa.1.1.0.1").end.signal, SIGKILL);
  EXPECT_EQ(launcher_->running(), 1U);
  EXPECT_EQ(Kill("msa.1.1.0.1"), 0) << "a second time: nothing to do";
  EXPECT_EQ(Kill("msa.1.1.0"), 0);
  EXPECT_FALSE(IsAlive(daemons[0]));
}

TEST_F(Launcher, KillsWhileAStartIsUnderWay) {
  bool started = false;
  std::vector<TaskSpec> specs;
  for (std::uint32_t rank = 0; rank < 16; ++rank) specs.push_back(Task({"sleep", "300"}, rank));
  launcher_->Start(std::move(specs), [&](auto, auto) { started = true; });
  EXPECT_EQ(Kill(), 0);
  ASSERT_TRUE(Eventually([&] { return started && launcher_->running() == 0; }));
}

TEST_F(Launcher, CollectsStraysWhileTasksRun) {
  StartOne(Shell("setsid sh -c 'sleep 0.05 & exit' ; sleep 300"));
  ASSERT_TRUE(Eventually([] {
    const auto below = Below();
    return below.size() == 2;
  }));
  // An adopted process that ended is no zombie for long.
  EXPECT_TRUE(Eventually([] {
    bool supported = false;
    return ChildrenOf(::getpid(), supported).size() == 1;
  }));
}

TEST(Leftovers, BelongByAncestryGroupSessionOrName) {
  const std::vector<ProcessEntry> below{
      {.pid = 10, .parent = 1, .group = 10, .session = 1},    // our task
      {.pid = 11, .parent = 10, .group = 11, .session = 1},   // its child in an own group
      {.pid = 12, .parent = 11, .group = 12, .session = 12},  // and its grandchild in an own session
      {.pid = 13, .parent = 1, .group = 9, .session = 1},     // in the group of a task of ours that has ended
      {.pid = 20, .parent = 1, .group = 20, .session = 1},    // another's task
      {.pid = 21, .parent = 20, .group = 21, .session = 21},  // its child, although it carries our name
      {.pid = 30, .parent = 1, .group = 30, .session = 30},   // a daemon that carries our name
      {.pid = 31, .parent = 30, .group = 31, .session = 31},  // its child that has cleared its environment
      {.pid = 40, .parent = 1, .group = 40, .session = 40},   // nobody's
  };
  const Ownership ownership{
      .ours = {9, 10}, .others = {20}, .carries_name = [](pid_t pid) { return pid == 21 || pid == 30; }};
  EXPECT_THAT(SelectLeftovers(below, ownership), ElementsAre(10, 11, 12, 13, 30, 31));
}

// Runs a launcher in a process of its own, which the test can kill or limit.
class LauncherProcess {
 public:
  using Main = std::function<void(int report_fd)>;
  explicit LauncherProcess(const Main& main) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      main(ends[1]);
      ::_exit(0);
    }
    ::close(ends[1]);
    reader_ = UniqueFd(ends[0]);
  }
  ~LauncherProcess() { Kill(); }
  void Kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  std::string ReadLine() const {
    std::string line;
    char c = 0;
    while (::read(reader_.get(), &c, 1) == 1 && c != '\n') line += c;
    return line;
  }

 private:
  pid_t pid_ = 0;
  UniqueFd reader_;
};

void Report(int fd, const std::string& line) {
  const std::string text = line + "\n";
  if (::write(fd, text.data(), text.size()) < 0) ::_exit(1);
}

// A launcher that starts `argv` and reports "pid", or "code message" of the failure.
void RunLauncher(const std::string& trampoline, const std::vector<std::string>& argv, int report_fd) {
  auto loop = std::move(*EventLoop::Create());
  TaskLauncher::Handlers handlers{[](auto&&...) {}, [](auto&&...) {}, [](auto&&...) {}};
  auto launcher = TaskLauncher::Create(*loop, {.trampoline = trampoline, .node = "cn0"}, handlers);
  if (!launcher.ok()) return Report(report_fd, launcher.status().message());
  std::vector<TaskSpec> specs(1);
  specs[0].nspace = kNamespace;
  specs[0].argv = argv;
  specs[0].cwd = "/";
  (*launcher)->Start(std::move(specs), [&](std::vector<pid_t> started, std::vector<StartFailure> failures) {
    Report(report_fd, started.empty() ? fmt::format("{} {}", failures[0].exit_code, failures[0].message)
                                      : std::to_string(started[0]));
  });
  (void)loop->Run();
}

TEST(LauncherDeath, TakesTheTasksAlong) {
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
  LauncherProcess process([](int fd) { RunLauncher(MSA_EXEC_PATH, {"sleep", "300"}, fd); });
  const pid_t task = std::stoi(process.ReadLine());
  ASSERT_TRUE(IsAlive(task));
  process.Kill();
  const SteadyTime deadline = SteadyNow() + std::chrono::seconds(10);
  while (IsAlive(task) && SteadyNow() < deadline) ::sched_yield();
  EXPECT_FALSE(IsAlive(task));
}

TEST(LauncherLimits, ReportThatNoMoreProcessesAreAllowed) {
  // The limit is of a user's processes and does not bind root: the launcher becomes a user that has none. The
  // directory of the build may be closed to that user.
  const support::ScratchDirectory directory;
  ASSERT_EQ(::chmod(directory.path().c_str(), 0755), 0);
  std::ifstream source(MSA_EXEC_PATH, std::ios::binary);
  const std::string trampoline =
      directory.Write("msa-exec", std::string(std::istreambuf_iterator<char>(source), {}), 0755);
  const LauncherProcess process([&](int fd) {
    const rlimit one{.rlim_cur = 1, .rlim_max = 1};
    if (::setrlimit(RLIMIT_NPROC, &one) != 0) Report(fd, "setrlimit failed");
    if (::getuid() == 0 && ::setuid(54321) != 0) Report(fd, "setuid failed");
    RunLauncher(trampoline, {"true"}, fd);
  });
  const std::string report = process.ReadLine();
  EXPECT_EQ(report.substr(0, 4), "125 ") << report;
  EXPECT_THAT(report, HasSubstr("ulimit -u"));
}

}  // namespace
}  // namespace msa::launch
