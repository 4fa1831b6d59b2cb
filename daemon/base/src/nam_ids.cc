#include "msa/base/nam_ids.h"

#include <charconv>

#include <fmt/format.h>

namespace msa {

std::string ToText(RegionUuid uuid) { return fmt::format("{:016x}{:016x}", uuid.high, uuid.low); }

std::optional<RegionUuid> ParseRegionUuid(std::string_view text) {
  constexpr std::size_t kHalf = 16;
  if (text.size() != 2 * kHalf) return std::nullopt;
  RegionUuid uuid;
  const char* middle = text.data() + kHalf;
  const char* end = middle + kHalf;
  if (const auto [at, error] = std::from_chars(text.data(), middle, uuid.high, 16);
      error != std::errc() || at != middle)
    return std::nullopt;
  if (const auto [at, error] = std::from_chars(middle, end, uuid.low, 16); error != std::errc() || at != end)
    return std::nullopt;
  return uuid.valid() ? std::optional(uuid) : std::nullopt;
}

std::string NamPortName(RegionUuid uuid) { return std::string(kNamPortPrefix) + ToText(uuid); }

}  // namespace msa
