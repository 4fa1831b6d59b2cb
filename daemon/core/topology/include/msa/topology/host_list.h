#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "msa/base/status.h"

namespace msa {

// A list of at most this many names comes out of one expression.
inline constexpr std::size_t kMaxHostListNames = 65536;

// Expands "cn[0-3,7],dn0" to names in the order written, repeats kept; leading zeros are kept ("n[08-10]").
// Several bracket groups in one name multiply ("r[0-1]n[0-1]"). "" is an empty list. kInvalidArgument:
// unbalanced or empty brackets, a range that runs backwards, an empty name, one of more than 255 bytes, more
// than kMaxHostListNames names.
Result<std::vector<std::string>> ExpandHostList(std::string_view expression);

// The shortest expression with one bracket group a prefix: {"bn0","bn1","cn3"} -> "bn[0-1],cn3". Prefixes in
// order of first appearance, numbers ascending, repeats once. ExpandHostList of it gives the same set.
std::string CompressHostList(const std::vector<std::string>& names);

}  // namespace msa
