#include "msa/adapters/process/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/adapters/process/files.h"

#include "loop_support.h"

namespace msa {
namespace {

using test::ScratchDirectory;
using ::testing::HasSubstr;

bool Ended(const ProcessHandle& process) {
  pollfd wait{.fd = process.pidfd.get(), .events = POLLIN, .revents = 0};
  return ::poll(&wait, 1, 30'000) == 1;
}

TEST(ChildProcess, StartsAProgramWithExactlyItsEnvironmentAndStreams) {
  const ScratchDirectory dir;
  UniqueFd out(::open((dir / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  SpawnSpec spec;
  spec.argv = {"/bin/sh", "-c", "echo \"$A $HOME $(pwd)\"; cat"};
  spec.env = {"A=1"};
  spec.cwd = dir.path();
  spec.out = out.get();
  const auto process = Spawn(spec);
  ASSERT_TRUE(process.ok()) << process.status().message();
  ASSERT_TRUE(Ended(*process));
  EXPECT_EQ(ReapChild(process->pid), 0);
  EXPECT_EQ(ReadTail(dir / "out", 4096), "1  " + dir.path() + "\n");
}

TEST(ChildProcess, NamesAProgramThatIsNotThere) {
  SpawnSpec spec;
  spec.argv = {"/nowhere/msa-jobd"};
  const Status missing = Spawn(spec).status();
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_EQ(missing.message(), "start '/nowhere/msa-jobd': No such file or directory");
  spec.argv = {"/etc/passwd"};
  EXPECT_EQ(Spawn(spec).status().code(), Code::kPermissionDenied);
  spec.argv = {};
  EXPECT_EQ(Spawn(spec).status().code(), Code::kInvalidArgument);
}

TEST(ChildProcess, StartsWithDefaultSignalsWhateverTheCallerBlocks) {
  sigset_t set;
  sigset_t before;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGTERM);
  ASSERT_EQ(::sigprocmask(SIG_BLOCK, &set, &before), 0);
  SpawnSpec spec;
  spec.argv = {"/bin/sleep", "1000"};
  const auto process = Spawn(spec);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  ASSERT_TRUE(process.ok());
  EXPECT_EQ(ReapChild(process->pid), std::nullopt);
  EXPECT_TRUE(SignalProcess(*process, SIGTERM));
  ASSERT_TRUE(Ended(*process));
  const auto status = ReapChild(process->pid);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(DescribeWaitStatus(*status), "was killed by signal 15 (Terminated)");
  EXPECT_FALSE(SignalProcess(*process, SIGKILL)) << "it is gone";
}

TEST(ChildProcess, WatchesAProcessThatIsNoChild) {
  EXPECT_TRUE(OpenProcess(::getppid()).ok());
  SpawnSpec spec;
  spec.argv = {"/bin/true"};
  const auto process = Spawn(spec);
  ASSERT_TRUE(process.ok() && Ended(*process));
  EXPECT_EQ(ReapChild(process->pid), 0);
  EXPECT_EQ(OpenProcess(process->pid).status().code(), Code::kNotFound);
}

TEST(ChildProcess, DescribesEnds) {
  EXPECT_EQ(DescribeWaitStatus(3 << 8), "exited with code 3");
  EXPECT_EQ(DescribeWaitStatus(SIGSEGV | 0x80), "was killed by signal 11 (Segmentation fault, core dumped)");
}

}  // namespace
}  // namespace msa
