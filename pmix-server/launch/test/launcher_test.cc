#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <numeric>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "msa/launch/output_file.h"

#include "launcher_fixture.h"
#include "process_table.h"

namespace msa::launch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Launcher = LauncherFixture;

TEST_F(Launcher, ReportsExitCodesComponentAndNode) {
  TaskSpec spec = Shell("exit 42");
  spec.component = 3;
  StartOne(std::move(spec));
  const TaskExit exit = Exit();
  EXPECT_EQ(exit.end.exit_code, 42);
  EXPECT_EQ(exit.end.signal, 0);
  EXPECT_EQ(exit.end.component, 3U);
  EXPECT_EQ(exit.end.node, "cn0");
  EXPECT_FALSE(exit.looks_like_singleton);
  EXPECT_EQ(exit.mpi_library, "");
  EXPECT_EQ(launcher_->running(), 0U);
}

TEST_F(Launcher, ReportsDeathBySignal) {
  StartOne(Shell("kill -TERM $$"));
  const TaskExit exit = Exit();
  EXPECT_EQ(exit.end.signal, SIGTERM);
  EXPECT_EQ(exit.end.exit_code, 0);
  EXPECT_FALSE(exit.end.core_dumped);
}

TEST_F(Launcher, AppliesLimitsAndLowersThemToTheHardLimit) {
  rlimit own{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &own), 0);
  TaskSpec spec = Shell("ulimit -Sn; ulimit -Sc");
  spec.limits = {{RLIMIT_NOFILE, own.rlim_max, own.rlim_max}, {RLIMIT_CORE, 0, 0}};
  const std::string open_files = own.rlim_max == RLIM_INFINITY ? "unlimited" : std::to_string(own.rlim_max);
  EXPECT_EQ(OutputOf(std::move(spec)), open_files + "\n0\n");
}

// Whether the kernel writes a core depends on the machine (hard limit, core_pattern); that the flag is what
// waitid says does not: the same death of an own child is the measure.
TEST_F(Launcher, ReportsACoreDumpAsWaitDoes) {
  const std::string script =
      fmt::format("cd {}; ulimit -c unlimited 2>/dev/null; kill -ABRT $$", directory_.path());
  const pid_t pid = ::fork();
  if (pid == 0) ::execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  StartOne(Shell(script));
  const TaskExit exit = Exit();
  EXPECT_EQ(exit.end.signal, SIGABRT);
  EXPECT_EQ(exit.end.core_dumped, static_cast<bool>(WCOREDUMP(status)));
}

TEST_F(Launcher, CarriesTenMegabytesOfEachOfEightTasksWholeAndInOrder) {
  std::vector<TaskSpec> specs;
  for (std::uint32_t rank = 0; rank < 8; ++rank)
    specs.push_back(Shell("seq -f %015.0f 1 655360; echo done >&2", rank));
  Start(std::move(specs));
  std::string expected;
  for (int i = 1; i <= 655360; ++i) expected += fmt::format("{:015}\n", i);
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(Exit(rank).end.exit_code, 0);
    EXPECT_TRUE(out_[Key(kNamespace, rank)] == expected) << "rank " << rank;
    EXPECT_EQ(err_[Key(kNamespace, rank)], "done\n");
  }
}

TEST_F(Launcher, FeedsStdinAndEndsItAtEof) {
  std::string text(5 << 20, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 2654435761U >> 13);
  TaskSpec spec = Task({"cat"});
  spec.want_stdin = true;
  StartOne(std::move(spec));
  for (std::size_t at = 0; at < text.size(); at += 100'000)
    launcher_->WriteStdin(kNamespace, Rank(0), text.substr(at, 100'000), at + 100'000 >= text.size());
  EXPECT_EQ(Exit().end.exit_code, 0);
  EXPECT_TRUE(out_[Key(kNamespace, 0)] == text);
  EXPECT_EQ(taken_[Key(kNamespace, 0)], text.size());
  EXPECT_TRUE(closed_[Key(kNamespace, 0)]);
}

TEST_F(Launcher, ReportsStdinThatTheTaskClosed) {
  TaskSpec spec = Shell("exec <&-; echo closed; sleep 100");
  spec.want_stdin = true;
  StartOne(std::move(spec));
  EXPECT_TRUE(Eventually([&] { return closed_[Key(kNamespace, 0)]; }));
  launcher_->WriteStdin(kNamespace, Rank(0), "nobody reads this", false);
  launcher_->WriteStdin(kNamespace, Rank(7), "no such rank", true);
  EXPECT_EQ(launcher_->Signal(kNamespace, SIGKILL), 1);
  EXPECT_EQ(Exit().end.signal, SIGKILL);
}

TEST_F(Launcher, GivesDevNullWithoutStdin) {
  EXPECT_EQ(OutputOf(Shell("readlink /proc/self/fd/0; cat")), "/dev/null\n");
}

TEST_F(Launcher, HandsDescriptorsToTheTask) {
  TaskSpec spec = Shell("cat; echo two >&2");
  const std::string in = directory_.Write("in", "one\n");
  const std::string path = directory_.path() + "/out";
  spec.in = UniqueFd(::open(in.c_str(), O_RDONLY | O_CLOEXEC));
  spec.out = std::move(*OpenOutputFile(path, OpenMode::kTruncate));
  spec.err = std::move(*OpenOutputFile(path, OpenMode::kAppend));
  EXPECT_EQ(OutputOf(std::move(spec)), "");
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "one\ntwo\n");
}

TEST_F(Launcher, BlocksTasksWhileOutputIsPaused) {
  launcher_->PauseOutput(kNamespace);
  StartOne(Shell("while :; do head -c 65536 /dev/zero; echo x >> progress; done"));
  const auto progress = [&] {
    struct stat status {};
    return ::stat((directory_.path() + "/progress").c_str(), &status) == 0 ? status.st_size : 0;
  };
  // One write fits into the pipe, the second blocks: its writer sleeps in pipe_write, whoever looks and when.
  ASSERT_TRUE(Eventually([&] {
    for (const ProcessEntry& process : Descendants(::getpid()))
      if (process.name == "head" && process.state == 'S' && progress() >= 1 * 2) return true;
    return false;
  }));
  EXPECT_LE(progress(), 2 * 2);
  EXPECT_TRUE(out_.empty());
  launcher_->ResumeOutput(kNamespace);
  EXPECT_TRUE(Eventually([&] { return out_[Key(kNamespace, 0)].size() > (4U << 20); }));
  launcher_->PauseOutput(kNamespace);
  const std::size_t paused_at = out_[Key(kNamespace, 0)].size();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(loop_->RunOnce(Millis(5)).ok());
  EXPECT_EQ(out_[Key(kNamespace, 0)].size(), paused_at);
}

TEST_F(Launcher, DeliversNothingMoreOnceAHandlerPauses) {
  on_output_hook_ = [&] { launcher_->PauseOutput(kNamespace); };
  StartOne(Shell("head -c 60000 /dev/zero; head -c 60000 /dev/zero >&2"));
  ASSERT_TRUE(Eventually([&] { return !out_.empty() || !err_.empty(); }));
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(loop_->RunOnce(Millis(5)).ok());
  EXPECT_TRUE(exits_.empty());
  while (exits_.empty()) {
    launcher_->ResumeOutput(kNamespace);
    ASSERT_TRUE(loop_->RunOnce(Millis(5)).ok());
  }
  EXPECT_EQ(out_[Key(kNamespace, 0)].size(), 60000U);
  EXPECT_EQ(err_[Key(kNamespace, 0)].size(), 60000U);
}

TEST_F(Launcher, ReportsTheEndAlthoughAGrandchildKeepsThePipe) {
  StartOne(Shell("sleep 300 & echo last words"));
  const SteadyTime begin = SteadyNow();
  const TaskExit exit = Exit();
  EXPECT_EQ(exit.end.exit_code, 0);
  EXPECT_GE(SteadyNow() - begin, Millis(150));
  EXPECT_EQ(out_[Key(kNamespace, 0)], "last words\n");
}

TEST_F(Launcher, ReportsTheEndAlthoughAGrandchildWritesForever) {
  StartOne(Shell("yes & exit 5"));
  EXPECT_EQ(Exit().end.exit_code, 5);
}

TEST_F(Launcher, StartsSixtyFourTasksAtOnce) {
  std::vector<TaskSpec> specs;
  for (std::uint32_t rank = 0; rank < 64; ++rank)
    specs.push_back(Shell(fmt::format("echo {}; exit {}", rank, rank), rank));
  Start(std::move(specs));
  EXPECT_EQ(started_.size(), 64U);
  EXPECT_TRUE(failures_.empty());
  for (std::uint32_t rank = 0; rank < 64; ++rank) {
    EXPECT_EQ(Exit(rank).end.exit_code, static_cast<int>(rank));
    EXPECT_EQ(out_[Key(kNamespace, rank)], fmt::format("{}\n", rank));
  }
}

TEST_F(Launcher, PassesAnEmptyEnvironment) {
  TaskSpec spec = Task({"/usr/bin/env"});
  spec.env.clear();
  EXPECT_EQ(OutputOf(std::move(spec)), "");
}

TEST_F(Launcher, PassesArgumentsAndEnvironmentOfAMegabyte) {
  const std::string big(100'000, 'x');
  TaskSpec spec = Task({"/bin/sh", "-c", "printf '%s ' $# \"${V7}\" | wc -c; env | wc -c", "sh"});
  for (int i = 0; i < 5; ++i) spec.argv.push_back(big);
  for (int i = 0; i < 8; ++i) spec.env.push_back(fmt::format("V{}={}", i, big));
  // Large: its pieces; "5 " and 100,000 letters and a blank.
  const std::string out = OutputOf(std::move(spec));
  EXPECT_EQ(out.substr(0, out.find('\n')), "100003");
  EXPECT_GT(std::stol(out.substr(out.find('\n'))), 800'000);
}

TEST_F(Launcher, NamesTheSizeOfArgumentsThatAreTooLong) {
  StartOne(Task({"/bin/true", std::string(200'000, 'x')}));
  ASSERT_EQ(failures_.size(), 1U);
  EXPECT_EQ(failures_[0].exit_code, 126);
  EXPECT_THAT(failures_[0].message, AllOf(HasSubstr("bytes"), HasSubstr("131072")));
  EXPECT_EQ(launcher_->running(), 0U);
}

TEST_F(Launcher, BindsToTheGivenCpus) {
  cpu_set_t own;
  CPU_ZERO(&own);
  ASSERT_EQ(::sched_getaffinity(0, sizeof own, &own), 0);
  ASSERT_GE(CPU_COUNT(&own), 2) << "this machine has one CPU: binding cannot be seen on it";
  std::vector<std::uint16_t> cpus;
  for (std::uint16_t cpu = 0; cpu < CPU_SETSIZE && cpus.size() < 2; ++cpu)
    if (CPU_ISSET(cpu, &own)) cpus.push_back(cpu);
  std::vector<TaskSpec> specs;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    specs.push_back(Shell("grep Cpus_allowed_list /proc/self/status | cut -f2", rank));
    specs.back().cpus = {cpus[rank]};
  }
  Start(std::move(specs));
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    Exit(rank);
    EXPECT_EQ(out_[Key(kNamespace, rank)], fmt::format("{}\n", cpus[rank]));
  }
}

TEST_F(Launcher, RefusesCpusThatAreNotThere) {
  TaskSpec spec = Task({"true"});
  spec.cpus = {4000};
  StartOne(std::move(spec));
  ASSERT_EQ(failures_.size(), 1U);
  EXPECT_EQ(failures_[0].exit_code, 125);
  EXPECT_THAT(failures_[0].message, HasSubstr("cannot be bound to CPUs 4000"));
}

TEST_F(Launcher, StartsTasksCleanGroupSignalsMaskAndDescriptors) {
  sigset_t mask;
  ::sigemptyset(&mask);
  ::sigaddset(&mask, SIGUSR1);
  ::sigprocmask(SIG_BLOCK, &mask, nullptr);
  ::signal(SIGUSR2, SIG_IGN);
  const UniqueFd leaked(::fcntl(STDERR_FILENO, F_DUPFD, 50));  // not close-on-exec
  const std::string out = OutputOf(Shell(
      "grep -E '^Sig(Blk|Ign):' /proc/$$/status | cut -f2; ls /proc/self/fd; cut -d' ' -f5 /proc/$$/stat; "
      "echo $$; pwd"));
  ::sigprocmask(SIG_UNBLOCK, &mask, nullptr);
  ::signal(SIGUSR2, SIG_DFL);
  const std::string pid = std::to_string(started_[0]);
  // 3 is the directory that ls reads.
  EXPECT_EQ(out, "0000000000000000\n0000000000000000\n0\n1\n2\n3\n" + pid + "\n" + pid + "\n" +
                     directory_.path() + "\n");
}

TEST_F(Launcher, ATaskAndItsChildrenInheritTheirChannelAndNoOther) {
  const UniqueFd leaked(
      ::fcntl(STDERR_FILENO, F_DUPFD, 12));  // below and above the channel, not close-on-exec
  const UniqueFd leaked_too(::fcntl(STDERR_FILENO, F_DUPFD, 50));
  std::vector<TaskSpec> specs;
  std::vector<UniqueFd> ours;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    ours.emplace_back(ends[0]);
    specs.push_back(Shell("ls /proc/self/fd; bash -c 'read -r x <&20; echo got $x >&20'", rank));
    specs.back().channel.reset(ends[1]);
  }
  Start(std::move(specs));
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const std::string text = std::to_string(rank) + "\n";
    ASSERT_EQ(::send(ours[rank].get(), text.data(), text.size(), 0), 2);
    EXPECT_EQ(Exit(rank).end.exit_code, 0);
    EXPECT_EQ(out_[Key(kNamespace, rank)], "0\n1\n2\n20\n3\n");
    std::array<char, 64> reply{};
    const ssize_t n = ::recv(ours[rank].get(), reply.data(), reply.size(), MSG_DONTWAIT);
    EXPECT_EQ(std::string(reply.data(), n > 0 ? static_cast<std::size_t>(n) : 0), "got " + text);
    EXPECT_EQ(::recv(ours[rank].get(), reply.data(), reply.size(), MSG_DONTWAIT), 0) << "somebody holds it";
  }
}

TEST_F(Launcher, SignalsTheWholeGroupOfOneNamespace) {
  TaskSpec other = Shell("sleep 100", 0);
  other.nspace = "msa.1.1.0.1";
  std::vector<TaskSpec> specs;
  specs.push_back(Shell("sleep 100 & wait", 0));
  specs.push_back(
      Shell("trap 'echo caught; exit 9' USR1; echo ready; while :; do sleep 100 & wait; done", 1));
  specs.push_back(std::move(other));
  Start(std::move(specs));
  ASSERT_TRUE(Eventually([&] { return out_[Key(kNamespace, 1)] == "ready\n"; }));
  EXPECT_EQ(launcher_->Signal(kNamespace, SIGUSR1), 2);
  EXPECT_EQ(Exit(0).end.signal, SIGUSR1);
  EXPECT_EQ(Exit(1).end.exit_code, 9);
  EXPECT_EQ(out_[Key(kNamespace, 1)], "ready\ncaught\n");
  EXPECT_EQ(launcher_->running("msa.1.1.0.1"), 1U);
  EXPECT_EQ(launcher_->Signal("", SIGKILL), 1);
}

TEST_F(Launcher, StartsTheOthersWhenOneFails) {
  std::vector<TaskSpec> specs;
  specs.push_back(Task({"true"}, 0));
  specs.push_back(Task({"./nothing-here"}, 1));
  specs.push_back(Task({"true"}, 2));
  specs.push_back(Task({directory_.Write("broken", "#!/nowhere/python\n", 0755)}, 3));
  Start(std::move(specs));
  EXPECT_EQ(started_.size(), 2U);
  ASSERT_EQ(failures_.size(), 2U);
  EXPECT_EQ(failures_[0].rank, Rank(1));
  EXPECT_EQ(failures_[0].exit_code, 127);
  EXPECT_EQ(failures_[1].rank, Rank(3));
  EXPECT_EQ(failures_[1].exit_code, 126);
  EXPECT_THAT(failures_[1].message, HasSubstr("its interpreter '/nowhere/python' does not exist"));
  Exit(0);
  Exit(2);
  EXPECT_EQ(launcher_->running(), 0U);
  EXPECT_EQ(exits_.size(), 2U);
}

TEST_F(Launcher, RefusesARankThatRunsAlready) {
  StartOne(Task({"sleep", "100"}));
  StartOne(Task({"sleep", "100"}));
  ASSERT_EQ(failures_.size(), 1U);
  EXPECT_EQ(failures_[0].exit_code, 125);
  EXPECT_EQ(launcher_->running(), 1U);
}

TEST_F(Launcher, TellsFormatsThatCannotRun) {
  StartOne(Task({directory_.Write("text", "echo hello\n", 0755)}));
  ASSERT_EQ(failures_.size(), 1U);
  EXPECT_EQ(failures_[0].exit_code, 126);
  EXPECT_THAT(failures_[0].message, HasSubstr("'#!/bin/sh'"));
  StartOne(Task({directory_.Write("dos", "#!/bin/sh\r\necho hello\r\n", 0755)}));
  ASSERT_EQ(failures_.size(), 1U);
  EXPECT_THAT(failures_[0].message, HasSubstr("carriage returns"));
}

TEST(LauncherCreation, NamesAMissingTrampoline) {
  const auto loop = EventLoop::Create();
  const auto launcher = TaskLauncher::Create(**loop, {.trampoline = "/nowhere/msa-exec", .node = "cn0"}, {});
  ASSERT_FALSE(launcher.ok());
  EXPECT_EQ(launcher.status().code(), Code::kInternal);
  EXPECT_THAT(launcher.status().message(), HasSubstr("'/nowhere/msa-exec'"));
}

}  // namespace
}  // namespace msa::launch
