#include "msa/adapters/process/fork_server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <map>

#include <gtest/gtest.h>

#include "msa/adapters/process/child_process.h"
#include "msa/base/clock.h"

namespace msa {
namespace {

// A server in a process of its own, whose children write what they were told to a pipe and end with the code
// that they were told.
class ForkServer : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(BecomeSubreaper().ok());
    auto sockets = MakeForkSockets();
    ASSERT_TRUE(sockets.ok()) << sockets.status().message();
    ours_ = std::move(sockets->ours);
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    said_.reset(ends[0]);
    const UniqueFd writer(ends[1]);
    server_ = ::fork();
    ASSERT_GE(server_, 0);
    if (server_ > 0) return;
    ours_.reset();
    const auto order = ServeForks(std::move(sockets->server));
    if (!order.ok()) ::_exit(99);
    if (!*order) ::_exit(0);
    const std::string& word = (*order)->words.at(0);
    [[maybe_unused]] const auto n = ::write(writer.get(), word.data(), word.size());
    if ((*order)->words.size() > 1) ::pause();
    ::_exit(static_cast<int>((*order)->number));
  }
  void TearDown() override {
    ours_.reset();
    if (server_ > 0) ::waitpid(server_, nullptr, 0);
  }
  ForkReport Report() {
    pollfd wait{.fd = ours_.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&wait, 1, 30'000), 1);
    const auto report = ReceiveForkReport(ours_.get());
    EXPECT_TRUE(report.ok() && *report) << report.status().message();
    return report.ok() && *report ? **report : ForkReport{};
  }
  std::string Said(std::size_t size) {
    std::string text(size, '\0');
    std::size_t at = 0;
    while (at < size) {
      const ssize_t n = ::read(said_.get(), text.data() + at, size - at);
      if (n <= 0) break;
      at += static_cast<std::size_t>(n);
    }
    return text;
  }

  UniqueFd ours_;
  UniqueFd said_;
  pid_t server_ = 0;
};

TEST_F(ForkServer, ChildrenAreThoseOfTheOneWhoOrderedThem) {
  for (std::uint64_t number : {3, 4, 5}) ASSERT_TRUE(SendForkOrder(ours_.get(), {number, {"w"}}).ok());
  std::map<pid_t, std::uint64_t> children;
  for (int i = 0; i < 3; ++i) {
    const ForkReport report = Report();
    ASSERT_GT(report.pid, 0);
    children[report.pid] = report.number;
  }
  EXPECT_EQ(Said(3), "www");
  for (const auto& [pid, number] : children) {
    int status = 0;
    // The process in between may take its leave a moment later.
    while (::waitpid(pid, &status, 0) < 0) ASSERT_TRUE(errno == ECHILD || errno == EINTR);
    EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(number));
  }
}

TEST_F(ForkServer, AReportComesBeforeTheChildIsOurs) {
  ASSERT_TRUE(SendForkOrder(ours_.get(), {7, {"x"}}).ok());
  int status = 0;
  pid_t pid = 0;
  do pid = ::waitpid(-1, &status, 0);
  while (pid == server_);
  const auto report = ReceiveForkReport(ours_.get());
  ASSERT_TRUE(report.ok() && *report);
  EXPECT_EQ((*report)->pid, pid);
}

TEST_F(ForkServer, EndsWithTheSocketAndLeavesItsChildren) {
  ASSERT_TRUE(SendForkOrder(ours_.get(), {7, {"x", "stay"}}).ok());
  const ForkReport report = Report();
  EXPECT_EQ(Said(1), "x");
  ours_.reset();
  int status = 0;
  ASSERT_EQ(::waitpid(server_, &status, 0), server_);
  server_ = 0;
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(::getsid(report.pid), report.pid);
  EXPECT_EQ(::kill(report.pid, SIGKILL), 0);
  EXPECT_EQ(::waitpid(report.pid, &status, 0), report.pid);
}

TEST_F(ForkServer, TheDeathOfTheServerIsTold) {
  ::kill(server_, SIGKILL);
  pollfd wait{.fd = ours_.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&wait, 1, 30'000), 1);
  EXPECT_EQ(ReceiveForkReport(ours_.get()).status().code(), Code::kUnavailable);
  EXPECT_EQ(SendForkOrder(ours_.get(), {1, {}}).code(), Code::kUnavailable);
}

}  // namespace
}  // namespace msa
