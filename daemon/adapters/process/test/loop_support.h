#pragma once

#include <stdlib.h>
#include <sys/socket.h>

#include <functional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "msa/adapters/process/event_loop.h"
#include "msa/adapters/process/files.h"
#include "msa/base/clock.h"
#include "msa/base/unique_fd.h"

namespace msa::test {

// Runs the loop until `condition` holds; false if `limit` passed first.
inline bool RunUntil(EventLoop& loop, Millis limit, const std::function<bool()>& condition) {
  const SteadyTime until = SteadyNow() + limit;
  while (!condition()) {
    if (SteadyNow() >= until || !loop.RunOnce(Millis(10)).ok()) return condition();
  }
  return true;
}

// Polls without a loop.
inline bool Eventually(Millis limit, const std::function<bool()>& condition) {
  auto loop = EventLoop::Create();
  return loop.ok() && RunUntil(**loop, limit, condition);
}

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    char path[] = "/tmp/msa-test-XXXXXX";
    path_ = ::mkdtemp(path);
  }
  ~TemporaryDirectory() { EXPECT_TRUE(RemoveTree(path_).ok()); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::pair<UniqueFd, UniqueFd> SocketPair() {
  int fds[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

}  // namespace msa::test
