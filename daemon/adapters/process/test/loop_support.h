#pragma once

#include <sys/socket.h>

#include <utility>

#include <gtest/gtest.h>

#include "msa/base/unique_fd.h"
#include "msa/support/eventually.h"
#include "msa/support/run_until.h"
#include "msa/support/scratch_directory.h"

namespace msa::test {

using support::Eventually;
using support::RunUntil;
using support::ScratchDirectory;

inline std::pair<UniqueFd, UniqueFd> SocketPair() {
  int fds[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

}  // namespace msa::test
