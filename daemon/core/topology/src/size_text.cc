#include "msa/topology/size_text.h"

#include <charconv>
#include <limits>

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

Result<Bytes> ParseMemory(std::string_view text) {
  std::string_view number = text;
  if (number.size() > 1 && (number.back() == 'B' || number.back() == 'b')) number.remove_suffix(1);
  int shift = 20;
  if (!number.empty()) {
    const char last = number.back();
    const std::size_t unit = std::string_view("KMGT").find(
        last >= 'a' && last <= 'z' ? static_cast<char>(last - 'a' + 'A') : last);
    if (unit != std::string_view::npos) {
      shift = 10 * (static_cast<int>(unit) + 1);
      number.remove_suffix(1);
    } else if (number.size() != text.size()) {
      number = text;  // "12B": no unit of ours
    }
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (number.empty() || error != std::errc() || end != number.data() + number.size() ||
      value > (std::numeric_limits<std::uint64_t>::max() >> (shift + 1)))
    return Error(Code::kInvalidArgument,
                 "'{}' is not a size; expected a number of MiB, or one with K, M, G or T, as 512M or 4G",
                 text);
  return Bytes(value << shift);
}

}  // namespace msa
