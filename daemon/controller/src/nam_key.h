#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "msa/base/nam_ids.h"
#include "msa/base/status.h"

namespace msa {

// What makes this system's leases its own.
struct NamKey {
  std::uint64_t system = 0;  // random, never 0: whose extents a namd holds
  std::string key;           // 32 random bytes
};

// The key file, made if there is none: mode 0600, complete and on disk or not there at all. kDataLoss: it is
// there but is no key file; kPermissionDenied: others may read it, or it is another user's. kInternal: no
// randomness.
Result<NamKey> LoadOrMakeNamKey(const std::string& path);

// HMAC-SHA256 (RFC 2104) of what it is given: the signer of leases. Any thread.
std::function<std::string(std::string_view)> MakeLeaseSigner(std::string key);

// 128 random bits, never all zero. Any thread. The kernel's randomness is there once the system has booted.
RegionUuid RandomUuid();

}  // namespace msa
