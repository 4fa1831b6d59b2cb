#include "msa/job/name_text.h"

#include <algorithm>

namespace msa {
namespace {

constexpr std::size_t kShown = 40;  // bytes of a name in a message

// Bytes of the character that `text` starts with, 0 if it starts with none that may stand in a name.
std::size_t CharacterLength(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = at(0);
  if (lead < 0x80) return lead < 0x20 || lead == 0x7f ? 0 : 1;
  const std::size_t length = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((at(i) & 0xc0) != 0x80) return 0;
  const unsigned second = at(1);
  const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool beyond = (lead == 0xed && second > 0x9f) || (lead == 0xf4 && second > 0x8f);  // surrogates too
  const bool control = lead == 0xc2 && second < 0xa0;
  return overlong || beyond || control ? 0 : length;
}

}  // namespace

Status CheckName(std::string_view what, std::string_view text) {
  bool good = true;
  std::string shown;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = CharacterLength(text.substr(i));
    good = good && length > 0;
    if (length > 0 && i < kShown) shown += text.substr(i, length);
    if (length == 0 && i < kShown) shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i]));
    i += std::max<std::size_t>(length, 1);
  }
  if (good) return Status::Ok();
  return Error(Code::kInvalidArgument,
               "{} '{}' is not plain text; leave control characters out and write it in UTF-8", what, shown);
}

std::string CleanName(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = CharacterLength(text);
    if (length == 0) {
      out += '?';
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string CleanReason(std::string_view text) { return CleanName(text.substr(0, kMaxReasonBytes)); }

}  // namespace msa
