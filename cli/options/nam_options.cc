#include "options/nam_options.h"

#include <algorithm>

namespace msa::cli {
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

}  // namespace msa::cli
