#pragma once
// What tests of namd's core share: leases signed by a stand-in for HMAC-SHA256.

#include <string>
#include <vector>

#include "msa/base/nam_messages.h"
#include "msa/namd/book.h"

namespace msa::namd::test {

inline constexpr std::uint64_t kSystem = 0x5157;
inline const std::string kSecret = std::string(32, 'k');
inline const ExtentKey kExtent{{7, 9}, Generation(1)};

// Not HMAC, but as particular about key and text.
inline std::string Sign(std::string_view key, std::string_view text) {
  std::uint64_t hash = 14695981039346656037U;
  for (const std::string_view part : {key, text})
    for (const char c : part) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return std::to_string(hash);
}

inline wire::NamLease LeaseOf(std::uint64_t lease) {
  wire::NamLease value;
  value.system = kSystem;
  value.lease = LeaseId(lease);
  value.uuid = kExtent.uuid;
  value.generation = kExtent.generation;
  value.name = "field";
  value.rights = NamRights::kAll;
  value.uid = 1000;
  value.extents = {{.node = "nam1", .bytes = Bytes(64)}, {.node = "nam0", .bytes = Bytes(4096)}};
  value.segments = {{.extent = 0, .slot = 0, .offset = 0, .bytes = Bytes(64)},
                    {.extent = 1, .slot = 0, .offset = 0, .bytes = Bytes(1000)},
                    {.extent = 1, .slot = 1, .offset = 1024, .bytes = Bytes(3072)}};
  return value;
}

inline std::string Blob(const wire::NamLease& lease) {
  std::string text;
  wire::Encoder encoder(text);
  const_cast<wire::NamLease&>(lease).Fields(encoder);  // it only reads
  return wire::Encode(wire::SignedNamLease{text, Sign(kSecret, text)});
}

inline wire::NamAttach AttachOf(const wire::NamLease& lease, std::uint64_t client = 1) {
  return {.blob = Blob(lease), .client = NamClientId(client), .map = true};
}

inline Caller Socket(std::uint64_t connection, std::uint32_t uid = 1000) {
  return {Caller::Via::kSocket, connection, uid};
}
inline Caller Fabric() { return {Caller::Via::kFabric, 0, 0}; }

inline wire::NamdWelcome WelcomeOf(std::vector<LeaseId> live = {}, std::uint64_t newest = 0) {
  return {.system = kSystem,
          .key = kSecret,
          .leases = std::move(live),
          .extents = {{kExtent.uuid, kExtent.generation, wire::NamExtentState::kCommitted, Bytes(4096)}},
          .newest = LeaseId(newest)};
}

inline void Fill(Book& book) {
  book.Put(kExtent, wire::NamExtentState::kCommitted, {.segments = 2, .data = Bytes(4096)});
  (void)book.Welcome(WelcomeOf());
}

}  // namespace msa::namd::test
