#include "msa/adapters/process/sweep.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>

#include <gtest/gtest.h>

#include "msa/adapters/process/child_process.h"
#include "msa/adapters/process/files.h"

#include "loop_support.h"

namespace msa {
namespace {

using test::Eventually;
using test::ScratchDirectory;

// Programs of a job whose socket is DIR/job.sock; each writes its pid into a file of the directory.
class SweepTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(BecomeSubreaper().ok()); }
  void TearDown() override {
    SweepLeftovers(socket(), Millis(5000));
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }
  std::string socket() const { return dir_ / "job.sock"; }
  // Runs a shell script as a task of the job.
  void Task(const std::string& script) {
    SpawnSpec spec;
    spec.argv = {"/bin/sh", "-c", script};
    spec.env = {"PATH=/usr/bin:/bin", "MSA_JOB_SOCKET=" + socket()};
    spec.cwd = dir_.path();
    const auto process = Spawn(spec);
    ASSERT_TRUE(process.ok());
    started_ = process->pid;
  }
  pid_t Pid(const std::string& file) {
    pid_t pid = 0;
    EXPECT_TRUE(Eventually(Millis(30'000), [&] {
      const std::string text = ReadTail(dir_ / file, 64);
      return text.ends_with('\n') &&
             std::from_chars(text.data(), text.data() + text.size(), pid).ec == std::errc();
    })) << file;
    return pid;
  }
  // Dead, also as a zombie that nobody has reaped yet.
  static bool Dead(pid_t pid) {
    ::waitpid(pid, nullptr, WNOHANG);
    if (::kill(pid, 0) != 0) return true;
    const std::string stat = ReadTail("/proc/" + std::to_string(pid) + "/stat", 4096);
    const auto end = stat.rfind(')');
    return end == std::string::npos || stat[end + 2] == 'Z';
  }

  ScratchDirectory dir_;
  pid_t started_ = 0;
};

TEST_F(SweepTest, KillsATaskAndWhatItStartedInOtherSessions) {
  Task("setsid sh -c 'echo $$ > session; exec sleep 1000' & echo $$ > task; wait");
  const pid_t task = Pid("task");
  const pid_t session = Pid("session");
  EXPECT_GE(SweepLeftovers(socket(), Millis(5000)), 2);
  EXPECT_TRUE(Eventually(Millis(30'000), [&] { return Dead(task) && Dead(session); }));
}

TEST_F(SweepTest, KillsDaemonsThatForkedTwiceAndWhoseParentsAreGone) {
  Task(
      "(setsid sh -c '(echo $$ > middle; setsid sh -c \"echo \\$\\$ > daemon; exec sleep 1000\" &) ' &); "
      "exit 0");
  const pid_t daemon = Pid("daemon");
  ASSERT_TRUE(Eventually(Millis(30'000), [&] { return Dead(started_); }));
  EXPECT_GE(SweepLeftovers(socket(), Millis(5000)), 1);
  EXPECT_TRUE(Eventually(Millis(30'000), [&] { return Dead(daemon); }));
}

TEST_F(SweepTest, KillsAChildThatClearedItsEnvironmentWithItsParent) {
  Task("env -i /bin/sh -c 'echo $$ > bare; exec /bin/sleep 1000' & echo $$ > task; wait");
  const pid_t bare = Pid("bare");
  EXPECT_GE(SweepLeftovers(socket(), Millis(5000)), 2);
  EXPECT_TRUE(Eventually(Millis(30'000), [&] { return Dead(bare); }));
}

TEST_F(SweepTest, WinsAgainstAProgramThatForksAllTheTime) {
  Task(
      "n=0; while [ $n -lt 50 ]; do n=$((n+1)); (sleep 1000) & done; echo $$ > task; "
      "while :; do sh -c 'sleep 0.01' & sleep 0.005; done");
  Pid("task");
  EXPECT_GT(SweepLeftovers(socket(), Millis(10'000)), 25);
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  EXPECT_EQ(SweepLeftovers(socket(), Millis(5000)), 0);
}

TEST_F(SweepTest, LeavesOtherJobsAlone) {
  Task("echo $$ > other; exec sleep 1000");
  const pid_t other = Pid("other");
  EXPECT_EQ(SweepLeftovers(socket() + "2", Millis(1000)), 0);
  EXPECT_EQ(SweepLeftovers(dir_ / "job", Millis(1000)), 0);
  EXPECT_FALSE(Dead(other));
  EXPECT_EQ(SweepLeftovers(socket(), Millis(5000)), 1);
}

TEST_F(SweepTest, KillsStrayChildrenAndSparesThoseNamed) {
  Task("echo $$ > spared; exec sleep 1000");
  const pid_t spared = Pid("spared");
  Task("(env -i /bin/sh -c 'echo $$ > stray; exec /bin/sleep 1000' &); exit 0");
  const pid_t stray = Pid("stray");
  EXPECT_TRUE(Eventually(Millis(30'000), [&] {
    KillStrayChildren([&](pid_t pid) { return pid == spared; });
    return Dead(stray);
  }));
  EXPECT_FALSE(Dead(spared));
  EXPECT_EQ(KillStrayChildren([](pid_t) { return false; }), 1);
  EXPECT_TRUE(Eventually(Millis(30'000), [&] { return Dead(spared); }));
}

}  // namespace
}  // namespace msa
