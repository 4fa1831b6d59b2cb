#pragma once
// What names things of the network attached memory (NAM).

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "msa/base/ids.h"

namespace msa {

// Unique in a system, from 1, never reused.
using LeaseId = Strong<struct LeaseIdTag, std::uint64_t>;
// Of a region's memory: grows by one whenever its layout changes (resize, restore). From 1.
using Generation = Strong<struct GenerationTag, std::uint32_t>;
// A process that uses regions: 64 random bits of its own choice, never 0. Locks are owned by it, and are
// freed when it is gone.
using NamClientId = Strong<struct NamClientIdTag, std::uint64_t>;

// 128 random bits (RFC 4122, version 4, without its fixed bits). All zero: none.
struct RegionUuid {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  constexpr bool valid() const noexcept { return (high | low) != 0; }
  friend constexpr auto operator<=>(const RegionUuid&, const RegionUuid&) = default;
  template <class A>
  void Fields(A& a) {
    a(high, low);
  }
};

// 32 hexadecimal digits.
std::string ToText(RegionUuid uuid);
// nullopt: not 32 hexadecimal digits, or all zero.
std::optional<RegionUuid> ParseRegionUuid(std::string_view text);

// A region's port name, what MPI programs pass on: "msa-nam:" and the uuid.
inline constexpr std::string_view kNamPortPrefix = "msa-nam:";
std::string NamPortName(RegionUuid uuid);

// What a lease lets its holder do. A set of bits.
enum class NamRights : std::uint8_t { kNone = 0, kRead = 1, kWrite = 2, kMap = 4, kAll = 7 };
constexpr NamRights operator|(NamRights a, NamRights b) {
  return static_cast<NamRights>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
constexpr NamRights operator&(NamRights a, NamRights b) {
  return static_cast<NamRights>(static_cast<std::uint8_t>(a) & static_cast<std::uint8_t>(b));
}
constexpr bool Has(NamRights set, NamRights wanted) { return (set & wanted) == wanted; }

}  // namespace msa

template <>
struct std::hash<msa::RegionUuid> {
  std::size_t operator()(const msa::RegionUuid& uuid) const noexcept { return uuid.high ^ uuid.low; }
};
