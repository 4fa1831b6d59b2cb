#pragma once
// Credentials of munge(7): a payload, with the uid and gid of who made it as munged saw them, which any host
// with the same key can check, once and for a short time. Any thread; both calls ask munged, which answers
// within milliseconds.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "msa/base/ids.h"
#include "msa/base/status.h"

namespace msa {

struct MungeOptions {
  std::string socket;                     // of munged; empty: libmunge's own
  std::chrono::seconds ttl{60};           // from encoding; munged allows at most its own --max-ttl
  std::optional<std::uint32_t> only_uid;  // only this user (and root, by munged's option) may decode it
};

// kUnavailable: munged does not answer.
Result<std::string> MungeEncode(const std::string& payload, const MungeOptions& options);

struct MungeCredential {
  UserIdentity user;
  std::string payload;
};
// kUnauthenticated: forged, damaged, or of another key; expired, from the future, or decoded on this host
// before. kPermissionDenied: made for another user. kUnavailable: munged does not answer.
Result<MungeCredential> MungeDecode(const std::string& credential, const MungeOptions& options);

}  // namespace msa
