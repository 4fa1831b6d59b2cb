#include "options/resource_limits.h"

#include <sys/resource.h>

#include <algorithm>

#include "msa/job/resource_limits.h"
#include "msa/topology/suggest.h"

namespace msa::cli {
namespace {

constexpr bool IsKernels(std::string_view name, int resource) {
  for (const NamedLimit& limit : kNamedLimits)
    if (limit.name == name) return limit.resource == resource;
  return false;
}
static_assert(IsKernels("AS", RLIMIT_AS) && IsKernels("CORE", RLIMIT_CORE) && IsKernels("CPU", RLIMIT_CPU) &&
              IsKernels("DATA", RLIMIT_DATA) && IsKernels("FSIZE", RLIMIT_FSIZE) &&
              IsKernels("MEMLOCK", RLIMIT_MEMLOCK) && IsKernels("NOFILE", RLIMIT_NOFILE) &&
              IsKernels("NPROC", RLIMIT_NPROC) && IsKernels("RSS", RLIMIT_RSS) &&
              IsKernels("STACK", RLIMIT_STACK));

}  // namespace

std::vector<wire::ResourceLimit> OwnLimits() {
  std::vector<wire::ResourceLimit> out;
  for (const NamedLimit& named : kNamedLimits) {
    rlimit limit{};
    if (::getrlimit(static_cast<__rlimit_resource>(named.resource), &limit) == 0)
      out.push_back({named.resource, limit.rlim_cur, limit.rlim_max});
  }
  return out;
}

std::vector<std::string> PropagateWords() {
  std::vector<std::string> out = {"ALL", "NONE"};
  for (const NamedLimit& named : kNamedLimits) out.emplace_back(named.name);
  return out;
}

Result<std::vector<wire::ResourceLimit>> Propagated(std::string_view expression,
                                                    const std::vector<wire::ResourceLimit>& own) {
  std::string upper(expression);
  for (char& c : upper)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  if (upper.empty() || upper == "ALL") return own;
  std::vector<wire::ResourceLimit> out;
  if (upper == "NONE") return out;
  for (std::string_view rest = expression;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view name = rest.substr(0, comma);
    const auto resource = FindLimit(name);
    if (!resource)
      return Error(Code::kInvalidArgument, "'{}' is no resource limit; {}expected {}, limits joined by ','",
                   name, DidYouMean(std::string(name), PropagateWords()), ListNames(PropagateWords(), 20));
    const auto is_it = [&](const wire::ResourceLimit& limit) { return limit.resource == *resource; };
    const auto found = std::find_if(own.begin(), own.end(), is_it);
    if (found != own.end() && std::none_of(out.begin(), out.end(), is_it)) out.push_back(*found);
    if (comma == std::string_view::npos) return out;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace msa::cli
