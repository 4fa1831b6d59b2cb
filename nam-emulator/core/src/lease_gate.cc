#include "msa/namd/lease_gate.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace msa::namd {

bool SameSecret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char differs = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    differs = static_cast<unsigned char>(
        differs | (static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i])));
  return differs == 0;
}

void LeaseGate::Open(const wire::NamdWelcome& welcome) {
  open_ = true;
  system_ = welcome.system;
  key_ = welcome.key;
  newest_ = welcome.newest.value;
  live_.clear();
  revoked_.clear();
  for (const LeaseId lease : welcome.leases) {
    live_.insert(lease.value);
    newest_ = std::max(newest_, lease.value);
  }
}

void LeaseGate::Revoke(LeaseId lease) {
  std::uint64_t first = lease.value;
  std::uint64_t last = lease.value;
  if (first <= newest_) {
    live_.erase(first);
    return;
  }
  if (!IsLive(lease)) return;
  auto after = revoked_.upper_bound(first);
  if (after != revoked_.end() && after->first == last + 1) {
    last = after->second;
    after = revoked_.erase(after);
  }
  if (after != revoked_.begin() && std::prev(after)->second + 1 == first) {
    std::prev(after)->second = last;
    return;
  }
  revoked_.emplace(first, last);
}

bool LeaseGate::IsLive(LeaseId lease) const {
  if (!open_ || lease.value == 0) return false;
  if (lease.value <= newest_) return live_.contains(lease.value);
  const auto after = revoked_.upper_bound(lease.value);
  return after == revoked_.begin() || std::prev(after)->second < lease.value;
}

Result<wire::NamLease> LeaseGate::Check(const std::string& blob) const {
  if (!open_)
    return Status(Code::kUnavailable,
                  "NAM daemon waits for the controller and cannot check leases yet; try again");
  MSA_ASSIGN_OR_RETURN(const wire::SignedNamLease blob_parts, wire::Decode<wire::SignedNamLease>(blob));
  if (!SameSecret(hmac_(key_, blob_parts.lease), blob_parts.signature))
    return Status(Code::kUnauthenticated,
                  "signature of the lease is not the controller's; open the region again");
  // NamLease is no message of its own; its type number is that of what carries it.
  wire::NamLease lease;
  wire::Decoder decoder(blob_parts.lease);
  lease.Fields(decoder);
  if (!decoder.ok())
    return Error(Code::kInvalidArgument, "lease of {} bytes is truncated or malformed",
                 blob_parts.lease.size());
  if (lease.version != wire::kNamProtocolVersion)
    return Error(Code::kInvalidArgument,
                 "lease has version {}, this NAM daemon speaks {}; use one msa throughout", lease.version,
                 wire::kNamProtocolVersion);
  if (lease.system != system_)
    return Error(Code::kUnauthenticated, "lease is of system {:016x}, this is {:016x}; open the region again",
                 lease.system, system_);
  if (!IsLive(lease.lease))
    return Error(Code::kFailedPrecondition, "lease {} of region '{}' has ended; open the region again",
                 lease.lease, lease.name);
  return lease;
}

}  // namespace msa::namd
