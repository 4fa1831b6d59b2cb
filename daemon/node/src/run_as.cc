#include "run_as.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <string_view>

#include <fmt/format.h>

#include "msa/adapters/process/become_user.h"
#include "msa/base/status.h"

namespace msa::node {
namespace {

constexpr int kCannotStart = 125;  // as a launcher's own failure

int Fail(const std::string& text) {
  fmt::print(stderr, "msa-noded: {}\n", text);
  return kCannotStart;
}

}  // namespace

int RunAs(int argc, char** argv) {
  const std::string_view who = argc > 2 ? argv[2] : "";
  uid_t uid = 0;
  gid_t gid = 0;
  const auto [colon, uid_error] = std::from_chars(who.data(), who.data() + who.size(), uid);
  if (argc < 4 || uid_error != std::errc() || colon == who.data() + who.size() || *colon != ':' ||
      std::from_chars(colon + 1, who.data() + who.size(), gid).ec != std::errc())
    return Fail(fmt::format("--run-as is '{}'; expected UID:GID and a program", who));
  if (const Status become = BecomeUser({uid, gid}); !become.ok()) return Fail(become.message());
  ::execv(argv[3], argv + 3);
  return Fail(ErrnoError(errno, fmt::format("start '{}' as uid {}", argv[3], uid)).message());
}

}  // namespace msa::node
