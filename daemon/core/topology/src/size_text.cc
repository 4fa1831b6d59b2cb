#include "msa/topology/size_text.h"

namespace msa {

std::string SizeText(Bytes size) {
  constexpr char kUnits[] = {'K', 'M', 'G', 'T', 'P'};
  if (size.value == 0) return "0";
  std::uint64_t value = size.value;
  int unit = -1;
  for (; unit < 4 && value % 1024 == 0; ++unit) value /= 1024;
  if (unit < 0) return fmt::format("{} byte{}", value, value == 1 ? "" : "s");
  return fmt::format("{}{}", value, kUnits[unit]);
}

}  // namespace msa
