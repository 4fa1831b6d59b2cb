#include "msa/namd/extent_name.h"

#include <charconv>

#include <fmt/format.h>

namespace msa::namd {
namespace {

constexpr std::string_view kPendingSuffix = ".pending";
constexpr std::string_view kCommittedSuffix = ".extent";
constexpr std::size_t kUuidDigits = 32;

}  // namespace

std::string ToText(const ExtentKey& key) {
  return fmt::format("{}.{}", msa::ToText(key.uuid), key.generation);
}

std::string ExtentFileName(const ExtentKey& key, Stage stage) {
  return fmt::format("{}{}", ToText(key), stage == Stage::kPending ? kPendingSuffix : kCommittedSuffix);
}

std::optional<ExtentName> ParseExtentName(std::string_view name) {
  ExtentName parsed;
  std::string_view rest = name;
  if (rest.ends_with(kCommittedSuffix)) {
    parsed.stage = Stage::kCommitted;
    rest.remove_suffix(kCommittedSuffix.size());
  } else if (rest.ends_with(kPendingSuffix)) {
    rest.remove_suffix(kPendingSuffix.size());
  } else {
    return std::nullopt;
  }
  if (rest.size() < kUuidDigits + 2 || rest[kUuidDigits] != '.') return std::nullopt;
  const auto uuid = ParseRegionUuid(rest.substr(0, kUuidDigits));
  if (!uuid) return std::nullopt;
  rest.remove_prefix(kUuidDigits + 1);
  const auto [end, error] =
      std::from_chars(rest.data(), rest.data() + rest.size(), parsed.key.generation.value);
  if (error != std::errc() || end != rest.data() + rest.size()) return std::nullopt;
  parsed.key.uuid = *uuid;
  // One file has one name: "01" or capitals are somebody else's.
  if (parsed.key.generation.value == 0 || ExtentFileName(parsed.key, parsed.stage) != name)
    return std::nullopt;
  return parsed;
}

}  // namespace msa::namd
