#include "msa/job/shared_strings.h"

#include <algorithm>
#include <functional>
#include <string_view>

namespace msa {
namespace {

constexpr std::size_t kFewestSwept = 64;

std::size_t HashOf(const SharedStrings::List& list) {
  std::size_t hash = list.size();
  for (const std::string& text : list)
    hash = hash * 1099511628211u ^ std::hash<std::string_view>()(text);  // the prime of FNV
  return hash;
}

}  // namespace

void StringsPool::Intern(SharedStrings& strings) {
  if (strings.empty()) return;
  std::weak_ptr<const SharedStrings::List>& place = known_[HashOf(strings.list())];
  if (auto known = place.lock(); known && *known == strings.list()) {
    strings.list_ = std::move(known);
  } else {
    place = strings.list_;
  }
  if (known_.size() < sweep_at_) return;
  std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
  sweep_at_ = std::max(kFewestSwept, 2 * known_.size());
}

}  // namespace msa
