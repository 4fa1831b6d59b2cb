#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "msa/base/nam_ids.h"

namespace msa::namd {

// All segments of one generation of a region that lie on this node: one file.
struct ExtentKey {
  RegionUuid uuid;
  Generation generation;
  friend constexpr auto operator<=>(const ExtentKey&, const ExtentKey&) = default;
};

// "3f2a....2", for people.
std::string ToText(const ExtentKey& key);

enum class Stage { kPending, kCommitted };

// "<uuid>.<generation>.pending", "<uuid>.<generation>.extent".
std::string ExtentFileName(const ExtentKey& key, Stage stage);

struct ExtentName {
  ExtentKey key;
  Stage stage = Stage::kPending;
};
// nullopt: not exactly what ExtentFileName writes.
std::optional<ExtentName> ParseExtentName(std::string_view name);

}  // namespace msa::namd
