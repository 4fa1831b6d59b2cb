#include "msa/job/resource_limits.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace msa {

std::string LimitName(std::int32_t resource) {
  const auto it = std::find_if(kNamedLimits.begin(), kNamedLimits.end(),
                               [&](const NamedLimit& limit) { return limit.resource == resource; });
  return it != kNamedLimits.end() ? std::string(it->name) : fmt::format("number {}", resource);
}

std::optional<std::int32_t> FindLimit(std::string_view name) {
  std::string upper(name);
  for (char& c : upper)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  constexpr std::string_view kPrefix = "RLIMIT_";
  if (upper.starts_with(kPrefix)) upper.erase(0, kPrefix.size());
  const auto it = std::find_if(kNamedLimits.begin(), kNamedLimits.end(),
                               [&](const NamedLimit& limit) { return limit.name == upper; });
  if (it == kNamedLimits.end()) return std::nullopt;
  return it->resource;
}

std::string LimitText(std::uint64_t value) {
  return value == kUnlimited ? "unlimited" : fmt::format("{}", value);
}

Status CheckLimits(const std::vector<wire::ResourceLimit>& limits) {
  std::set<std::int32_t> seen;
  for (const wire::ResourceLimit& limit : limits) {
    if (limit.resource < 0 || limit.resource >= kResources)
      return Error(Code::kInvalidArgument,
                   "resource limit {} does not exist; expected the number of one, 0 to {}, see setrlimit(2)",
                   limit.resource, kResources - 1);
    if (!seen.insert(limit.resource).second)
      return Error(Code::kInvalidArgument, "resource limit {} is given twice; give it once",
                   LimitName(limit.resource));
    // kUnlimited is the largest value there is.
    if (limit.soft > limit.hard)
      return Error(Code::kInvalidArgument,
                   "resource limit {}: the soft limit {} is above the hard limit {}; lower it",
                   LimitName(limit.resource), LimitText(limit.soft), LimitText(limit.hard));
  }
  return Status::Ok();
}

std::vector<std::string> LoweredLimits(const std::vector<wire::ResourceLimit>& wanted,
                                       const std::vector<wire::ResourceLimit>& own) {
  std::vector<std::string> out;
  for (const wire::ResourceLimit& limit : wanted)
    for (const wire::ResourceLimit& here : own)
      if (here.resource == limit.resource && limit.soft > here.hard)
        out.push_back(fmt::format(
            "limit {}: {} asked, lowered to {}, the hard limit of msa's daemons here; raise it for "
            "them, or leave it out of --propagate",
            LimitName(limit.resource), LimitText(limit.soft), LimitText(here.hard)));
  return out;
}

}  // namespace msa
