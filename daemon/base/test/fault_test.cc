// The points are read from the environment before main: CMakeLists.txt sets MSA_FAULT for this program.
#include "msa/base/fault.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include <gtest/gtest.h>

namespace msa {
namespace {

TEST(Fault, IsSilentAtAPointThatNobodyNamed) { EXPECT_TRUE(Fault("test.unnamed").ok()); }

TEST(Fault, FailsExactlyAtTheNamedPass) {
  EXPECT_TRUE(Fault("test.third").ok());
  EXPECT_TRUE(Fault("test.third").ok());
  const Status third = Fault("test.third");
  EXPECT_EQ(third.code(), Code::kInternal);
  EXPECT_NE(third.message().find("test.third"), std::string::npos);
  EXPECT_TRUE(Fault("test.third").ok());
}

TEST(Fault, WaitsTheNamedTime) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(Fault("test.slow").ok());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(30));
}

TEST(Fault, KillsTheProcessAsSigkillWould) {
  const pid_t child = ::fork();
  if (child == 0) {
    (void)Fault("test.kill");
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

TEST(Fault, IgnoresAnItemThatItCannotRead) { EXPECT_TRUE(Fault("broken").ok()); }

}  // namespace
}  // namespace msa
