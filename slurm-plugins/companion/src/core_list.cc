#include "core_list.h"

#include <charconv>
#include <set>
#include <string>

namespace msa::companion {
namespace {

bool TakeNumber(std::string_view& rest, std::uint32_t& number) {
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc()) return false;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return true;
}

}  // namespace

Result<std::vector<std::uint16_t>> ParseCores(std::string_view list) {
  const Status bad = Error(Code::kInternal, "Slurm lists a job's cores as '{}', expected numbers and ranges",
                           std::string(list.substr(0, 200)));
  std::set<std::uint16_t> cores;
  std::string_view rest = list;
  while (!rest.empty()) {
    std::uint32_t first = 0;
    if (!TakeNumber(rest, first)) return bad;
    std::uint32_t last = first;
    if (rest.starts_with('-')) {
      rest.remove_prefix(1);
      if (!TakeNumber(rest, last)) return bad;
    }
    if (last < first || last > UINT16_MAX) return bad;
    for (std::uint32_t core = first; core <= last; ++core) cores.insert(static_cast<std::uint16_t>(core));
    if (rest.empty()) break;
    if (!rest.starts_with(',') || rest.size() == 1) return bad;
    rest.remove_prefix(1);
  }
  return std::vector<std::uint16_t>(cores.begin(), cores.end());
}

}  // namespace msa::companion
