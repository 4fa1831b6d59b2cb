// Any text is a list of names whose shortest form names the same, or is refused with the text named.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "msa/topology/host_list.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // Many groups and many names show nothing that a few do not, and take seconds under the sanitizers.
  if (std::count(text.begin(), text.end(), '[') > 4) return 0;
  const auto names = msa::ExpandHostList(text);
  if (!names.ok()) {
    if (names.status().code() != msa::Code::kInvalidArgument) std::abort();
    return 0;
  }
  if (names->size() > msa::kMaxHostListNames) std::abort();
  if (names->size() > 1000) return 0;
  const auto again = msa::ExpandHostList(msa::CompressHostList(*names));
  if (!again.ok() || std::set(again->begin(), again->end()) != std::set(names->begin(), names->end()))
    std::abort();
  return 0;
}
