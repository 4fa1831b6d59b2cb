#pragma once
// XXH3 of 128 bits: finds what was damaged or changed, not what somebody forged.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace msa::cli {

struct Checksum {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend auto operator<=>(const Checksum&, const Checksum&) = default;
};

// 32 hexadecimal digits, as `xxhsum -H2` prints them.
std::string ToText(Checksum checksum);
// nullopt: not 32 lower-case hexadecimal digits.
std::optional<Checksum> ParseChecksum(std::string_view text);

Checksum ChecksumOf(std::span<const std::byte> bytes);
Checksum ChecksumOf(std::string_view text);

// Of bytes that come piece by piece. One thread.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  void Add(std::span<const std::byte> bytes);
  // Of all that was added so far; more may follow.
  Checksum Now() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace msa::cli
