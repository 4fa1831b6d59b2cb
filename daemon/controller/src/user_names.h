#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "msa/base/mutex.h"

namespace msa {

// Names of users, as the system's user database has them; asked once for each uid. Any thread; may block on
// the first call for a uid.
class UserNames {
 public:
  // The uid in decimal if it has no name.
  std::string Of(std::uint32_t uid) MSA_EXCLUDES(mu_);

 private:
  Mutex mu_;
  std::unordered_map<std::uint32_t, std::string> names_ MSA_GUARDED_BY(mu_);
};

}  // namespace msa
