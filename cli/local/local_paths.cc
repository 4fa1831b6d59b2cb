#include "local/local_paths.h"

#include <fmt/format.h>

namespace msa::cli {

// FNV-1a of the directory, the same as in daemon/node/src/node_paths.cc.
std::string LocalPaths::shm(uid_t uid) const {
  std::uint32_t hash = 2166136261U;
  for (const char c : dir_) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return fmt::format("/dev/shm/msa-{}-{:08x}", uid, hash);
}

}  // namespace msa::cli
