#include "msa/adapters/process/become_user.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include <fmt/format.h>

namespace msa {

Status BecomeUser(const UserIdentity& user) {
  const passwd* entry = ::getpwuid(user.uid);
  if ((entry != nullptr ? ::initgroups(entry->pw_name, user.gid) : ::setgroups(1, &user.gid)) != 0)
    return ErrnoError(errno, fmt::format("set groups of uid {}", user.uid));
  if (::setresgid(user.gid, user.gid, user.gid) != 0)
    return ErrnoError(errno, fmt::format("become gid {}", user.gid));
  if (::setresuid(user.uid, user.uid, user.uid) != 0)
    return ErrnoError(errno, fmt::format("become uid {}", user.uid));
  // Not that of whom this program was started by.
  ::setenv("HOME", entry != nullptr ? entry->pw_dir : "/", 1);
  return Status::Ok();
}

}  // namespace msa
