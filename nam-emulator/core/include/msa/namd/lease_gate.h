#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "msa/base/nam_messages.h"
#include "msa/base/status.h"

namespace msa::namd {

// HMAC-SHA256 of `text` under `key`: 32 bytes.
using Hmac = std::function<std::string(std::string_view key, std::string_view text)>;

// Equal, in a time that does not tell where they differ.
bool SameSecret(std::string_view a, std::string_view b);

// Which leases are good: signed with this system's key, and not ended. What was given before the welcome is
// good if it is listed there; what was given later is good until it is revoked. One thread.
class LeaseGate {
 public:
  explicit LeaseGate(Hmac hmac) : hmac_(std::move(hmac)) {}

  // Forgets what was known before.
  void Open(const wire::NamdWelcome& welcome);
  bool is_open() const { return open_; }
  std::uint64_t system() const { return system_; }
  void Revoke(LeaseId lease);
  bool IsLive(LeaseId lease) const;

  // kUnavailable: no welcome yet; kInvalidArgument: malformed; kUnauthenticated: signature or system;
  // kFailedPrecondition: it has ended.
  Result<wire::NamLease> Check(const std::string& blob) const;

 private:
  Hmac hmac_;
  bool open_ = false;
  std::uint64_t system_ = 0;
  std::string key_;
  std::uint64_t newest_ = 0;      // of the welcome
  std::set<std::uint64_t> live_;  // of those up to newest_
  // Of those beyond: [first, last] ranges, for leases end nearly in the order in which they were given.
  std::map<std::uint64_t, std::uint64_t> revoked_;
};

}  // namespace msa::namd
