#include "user_names.h"

#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace msa {
namespace {

constexpr std::size_t kFirstBuffer = 1024;
constexpr std::size_t kLargestBuffer = 1 << 20;

constexpr std::chrono::minutes kGroupsAreKept{1};
constexpr int kMostGroups = 65536;  // NGROUPS_MAX

// getgrouplist takes a name that has no entry for one with no groups.
std::vector<std::uint32_t> LookUpGroups(const std::string& name, UserIdentity user) {
  int count = 64;
  std::vector<gid_t> found(static_cast<std::size_t>(count));
  while (::getgrouplist(name.c_str(), user.gid, found.data(), &count) < 0) {
    if (count > kMostGroups || static_cast<std::size_t>(count) <= found.size()) return {};
    found.resize(static_cast<std::size_t>(count));
  }
  found.resize(static_cast<std::size_t>(count));
  std::erase(found, user.gid);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return {found.begin(), found.end()};
}

// Empty: there is none, or nobody to ask.
std::string LookUp(std::uint32_t uid) {
  for (std::size_t size = kFirstBuffer; size <= kLargestBuffer; size *= 4) {
    std::vector<char> buffer(size);
    passwd entry{};
    passwd* found = nullptr;
    const int error = ::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
    if (error == ERANGE) continue;
    if (error == 0 && found != nullptr && found->pw_name[0] != '\0') return found->pw_name;
    break;
  }
  return {};
}

}  // namespace

std::string UserNames::Of(std::uint32_t uid) {
  {
    MutexLock lock(mu_);
    if (const auto it = names_.find(uid); it != names_.end()) return it->second;
  }
  std::string name = LookUp(uid);
  if (name.empty()) return std::to_string(uid);
  MutexLock lock(mu_);
  return names_.emplace(uid, std::move(name)).first->second;
}

std::vector<std::uint32_t> UserNames::GroupsOf(UserIdentity user) {
  const SteadyTime now = SteadyNow();
  {
    MutexLock lock(mu_);
    const auto it = groups_.find(user.uid);
    if (it != groups_.end() && now - it->second.asked < kGroupsAreKept) return it->second.ids;
  }
  std::vector<std::uint32_t> ids = LookUpGroups(Of(user.uid), user);
  MutexLock lock(mu_);
  groups_[user.uid] = {ids, now};
  return ids;
}

}  // namespace msa
