#include "region/checksum.h"

#include <fmt/format.h>

// In this unit alone, so that msactl loads no further library at its start.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace msa::cli {
namespace {

Checksum From(XXH128_hash_t hash) { return {hash.high64, hash.low64}; }

std::optional<std::uint64_t> ParseHalf(std::string_view text) {
  std::uint64_t out = 0;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && (c < 'a' || c > 'f')) return std::nullopt;
    out = out << 4 | static_cast<std::uint64_t>(digit ? c - '0' : c - 'a' + 10);
  }
  return out;
}

}  // namespace

std::string ToText(Checksum checksum) { return fmt::format("{:016x}{:016x}", checksum.high, checksum.low); }

std::optional<Checksum> ParseChecksum(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  const auto high = ParseHalf(text.substr(0, 16));
  const auto low = ParseHalf(text.substr(16));
  if (!high || !low) return std::nullopt;
  return Checksum{*high, *low};
}

Checksum ChecksumOf(std::span<const std::byte> bytes) {
  return From(XXH3_128bits(bytes.data(), bytes.size()));
}

Checksum ChecksumOf(std::string_view text) { return From(XXH3_128bits(text.data(), text.size())); }

class Hasher::State {
 public:
  XXH3_state_t xxh;
};

Hasher::Hasher() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh); }
Hasher::~Hasher() = default;

void Hasher::Add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
}

Checksum Hasher::Now() const { return From(XXH3_128bits_digest(&state_->xxh)); }

}  // namespace msa::cli
