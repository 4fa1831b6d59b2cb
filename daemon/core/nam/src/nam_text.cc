#include "msa/nam/nam_text.h"

#include <algorithm>

namespace msa {
namespace {

bool IsLetterOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

Status CheckNamName(std::string_view name) {
  if (name.size() > wire::kMaxNamName)
    return Error(Code::kInvalidArgument, "the region's name has {} bytes, the limit is {}; shorten it",
                 name.size(), wire::kMaxNamName);
  const auto fits = [](char c) { return IsLetterOrDigit(c) || c == '.' || c == '_' || c == '-'; };
  if (name.empty() || !IsLetterOrDigit(name[0]) || !std::all_of(name.begin(), name.end(), fits))
    return Error(
        Code::kInvalidArgument,
        "region name '{}' is not valid; expected letters, digits and '.', '_', '-', a letter or digit "
        "first",
        name);
  if (ParseRegionUuid(name))
    return Error(Code::kInvalidArgument, "region name '{}' reads as a uuid; choose another", name);
  return Status::Ok();
}

Status CheckNamSelector(std::string_view selector) {
  std::string_view uuid = selector;
  if (uuid.starts_with(kNamPortPrefix)) uuid.remove_prefix(kNamPortPrefix.size());
  return ParseRegionUuid(uuid) ? Status::Ok() : CheckNamName(selector);
}

Status CheckNamBinding(const wire::NamRegionBinding& binding) {
  MSA_RETURN_IF_ERROR(CheckNamSelector(binding.region).WithContext("--nam-region"));
  constexpr NamRights kBoth = NamRights::kRead | NamRights::kWrite;
  if (binding.rights == NamRights::kNone || !Has(kBoth, binding.rights))
    return Error(Code::kInvalidArgument, "--nam-region {}: rights {}; expected 1 (read), 2 (write) or both",
                 binding.region, static_cast<int>(binding.rights));
  return Status::Ok();
}

}  // namespace msa
