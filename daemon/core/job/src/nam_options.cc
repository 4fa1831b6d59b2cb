#include "msa/job/nam_options.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

#include "msa/topology/size_text.h"

namespace msa {
namespace {

bool IsAlnum(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool IsRegionName(std::string_view name) {
  return !name.empty() && name.size() <= wire::kMaxNamName && IsAlnum(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return IsAlnum(c) || c == '.' || c == '_' || c == '-'; });
}

}  // namespace

Result<wire::NamRegionBinding> ParseNamRegion(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  wire::NamRegionBinding out;
  out.region = text.substr(0, colon);
  if (colon != std::string_view::npos) {
    const std::string_view rights = text.substr(colon + 1);
    if (rights != "ro" && rights != "rw")
      return Error(Code::kInvalidArgument, "'{}' has the rights '{}'; expected NAME, NAME:ro or NAME:rw",
                   text, rights);
    if (rights == "ro") out.rights = NamRights::kRead;
  }
  if (!IsRegionName(out.region))
    return Error(Code::kInvalidArgument,
                 "'{}' is no name of a region; expected 1 to {} letters, digits, '.', '_' and '-', a letter "
                 "or digit first",
                 out.region, wire::kMaxNamName);
  return out;
}

Status AddNamRegion(std::string_view text, std::vector<wire::NamRegionBinding>* to) {
  MSA_ASSIGN_OR_RETURN(wire::NamRegionBinding binding, ParseNamRegion(text));
  if (std::any_of(to->begin(), to->end(),
                  [&](const wire::NamRegionBinding& other) { return other.region == binding.region; }))
    return Error(Code::kInvalidArgument, "region '{}' is named twice; leave one of them out", binding.region);
  if (to->size() == kMaxNamRegions)
    return Error(Code::kInvalidArgument, "more than {} regions; name fewer", kMaxNamRegions);
  to->push_back(std::move(binding));
  return Status::Ok();
}

Result<std::vector<wire::NamRegionBinding>> ParseNamRegions(std::string_view text) {
  std::vector<wire::NamRegionBinding> regions;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    MSA_RETURN_IF_ERROR(AddNamRegion(text.substr(0, comma), &regions));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) return Status(Code::kInvalidArgument, "a name is missing behind the last comma");
  }
  return regions;
}

namespace {

// Hands on "SIZE" of "SIZE", or each of "0:SIZE,1:SIZE". `example`: "0:1G,1:2G".
template <class Take>
Status EachComponent(std::string_view text, std::string_view example, Take take) {
  if (text.empty()) return Status::Ok();
  if (text.find(':') == std::string_view::npos) return take(text);
  std::set<std::uint32_t> seen;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const std::size_t colon = part.find(':');
    std::uint32_t component = 0;
    const char* digits_end = part.data() + std::min(colon, part.size());
    const auto [end, error] = std::from_chars(part.data(), digits_end, component);
    if (colon == std::string_view::npos || colon == 0 || error != std::errc() || end != digits_end)
      return Error(Code::kInvalidArgument,
                   "'{}': '{}' is not COMPONENT:VALUE; give one value for the job, or one for each component "
                   "as in {}",
                   text, part, example);
    if (!seen.insert(component).second)
      return Error(Code::kInvalidArgument, "'{}': component {} is there twice; leave one out", text,
                   component);
    MSA_RETURN_IF_ERROR(take(part.substr(colon + 1)));
    if (comma == std::string_view::npos) return Status::Ok();
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace

Result<Bytes> ParseNamOfComponents(std::string_view text) {
  Bytes sum;
  MSA_RETURN_IF_ERROR(EachComponent(text, "0:1G,1:2G", [&](std::string_view value) -> Status {
    MSA_ASSIGN_OR_RETURN(const Bytes size, ParseMemory(value));
    if (size.value > std::numeric_limits<std::int64_t>::max() - sum.value)
      return Error(Code::kInvalidArgument, "'{}': the sizes add up to more than there can be", text);
    sum.value += size.value;
    return Status::Ok();
  }));
  return sum;
}

Result<std::uint32_t> ParseGatewaysOfComponents(std::string_view text) {
  std::uint32_t sum = 0;
  MSA_RETURN_IF_ERROR(EachComponent(text, "0:1,1:2", [&](std::string_view value) -> Status {
    std::uint32_t count = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
    if (error != std::errc() || end != value.data() + value.size() || count > kMaxGateways ||
        sum > kMaxGateways - count)
      return Error(Code::kInvalidArgument,
                   "'{}' is not a number of gateway nodes; give one as in 1, at most {}", text, kMaxGateways);
    sum += count;
    return Status::Ok();
  }));
  return sum;
}

}  // namespace msa
