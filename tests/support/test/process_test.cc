#include "msa/support/process.h"

#include <signal.h>

#include <gtest/gtest.h>

namespace msa::support {
namespace {

using namespace std::chrono_literals;

TEST(Process, KeepsBothStreamsAndTheCode) {
  const Outcome outcome = RunCommand({.argv = {"sh", "-c", "echo out; echo err >&2; exit 7"}});
  EXPECT_EQ(outcome.out, "out\n");
  EXPECT_EQ(outcome.err, "err\n");
  EXPECT_EQ(outcome.code, 7);
}

TEST(Process, FeedsInputLargerThanAPipe) {
  const Outcome outcome = RunCommand({.argv = {"wc", "-c"}, .input = std::string(1'000'000, 'x')});
  EXPECT_EQ(outcome.out, "1000000\n");
}

TEST(Process, IsKilledAfterItsTimeout) {
  const Outcome outcome = RunCommand({.argv = {"sleep", "60"}, .timeout = 100ms});
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_EQ(outcome.code, 128 + SIGKILL);
  EXPECT_LT(outcome.wall, 10s);
}

TEST(Process, ReadsUntilATextAndTakesSignals) {
  Process process(
      {.argv = {"sh", "-c", "trap 'echo got; exit 3' TERM; echo up; while :; do sleep 0.05; done"}});
  ASSERT_TRUE(process.ReadUntilText("up"));
  process.Signal(SIGTERM);
  const Outcome outcome = process.Wait();
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.out, "up\ngot\n");
}

TEST(Process, SetsEnvironmentDirectoryAndLimits) {
  Command command{.argv = {"/bin/sh", "-c", "echo $A $PWD $(ulimit -n)"},
                  .env = {{"A", "1"}},
                  .empty_env = true,
                  .cwd = "/usr"};
  command.limits[7] = 64;  // RLIMIT_NOFILE
  EXPECT_EQ(RunCommand(command).out, "1 /usr 64\n");
}

TEST(Process, SaysThatAProgramIsNotThere) { EXPECT_EQ(RunCommand({.argv = {"/no/such/program"}}).code, 127); }

}  // namespace
}  // namespace msa::support
