#include "user_names.h"

#include <pwd.h>

#include <cerrno>
#include <vector>

namespace msa {
namespace {

constexpr std::size_t kFirstBuffer = 1024;
constexpr std::size_t kLargestBuffer = 1 << 20;

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
  return std::to_string(uid);
}

}  // namespace

std::string UserNames::Of(std::uint32_t uid) {
  {
    MutexLock lock(mu_);
    if (const auto it = names_.find(uid); it != names_.end()) return it->second;
  }
  std::string name = LookUp(uid);
  MutexLock lock(mu_);
  return names_.emplace(uid, std::move(name)).first->second;
}

}  // namespace msa
