#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "msa/base/clock.h"
#include "msa/base/ids.h"
#include "msa/base/mutex.h"

namespace msa {

// Names of users, as the system's user database has them; asked until it has one for the uid. Any thread; may
// block on the first call for a uid.
class UserNames {
 public:
  // The uid in decimal if it has no name.
  std::string Of(std::uint32_t uid) MSA_EXCLUDES(mu_);
  // Supplementary groups, without user.gid, sorted; empty for a uid without a name. Asked again after a
  // minute: they change while this process runs.
  std::vector<std::uint32_t> GroupsOf(UserIdentity user) MSA_EXCLUDES(mu_);

 private:
  struct Groups {
    std::vector<std::uint32_t> ids;
    SteadyTime asked;
  };
  Mutex mu_;
  std::unordered_map<std::uint32_t, std::string> names_ MSA_GUARDED_BY(mu_);
  std::unordered_map<std::uint32_t, Groups> groups_ MSA_GUARDED_BY(mu_);  // by uid
};

}  // namespace msa
