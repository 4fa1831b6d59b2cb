#pragma once
// Files of lines "KEY WORD...", closed by "end CHECKSUM" of all that stands before. Pure.

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msa/base/status.h"

namespace msa::cli {

// `text` with its last line.
std::string Seal(std::string text);

// Reads a sealed text line by line. After an error all further calls give the same one.
class SealedLines {
 public:
  // kDataLoss: it does not end as it should, or the checksum is another; kFailedPrecondition: the first line
  // is not `head` ("msa-part 1"), though the checksum is right.
  static Result<SealedLines> Open(std::string_view text, std::string_view head);

  // The words after `key` in the next line, `count` of them. kDataLoss: another key, another number of words.
  Result<std::vector<std::string_view>> Next(std::string_view key, std::size_t count);
  // True if the next line has this key; it is not taken.
  bool NextIs(std::string_view key) const;
  // kDataLoss: there are further lines.
  Status End() const;
  std::size_t line() const noexcept { return line_; }

 private:
  explicit SealedLines(std::string_view text) : rest_(text) {}
  std::string_view rest_;
  std::size_t line_ = 1;
};

// Decimal digits alone, no sign but '-' of signed types. nullopt: something else.
template <class T>
std::optional<T> NumberFrom(std::string_view text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// *out becomes the number; kDataLoss names `what` and the word.
template <class T>
Status TakeNumber(std::string_view word, std::string_view what, T* out) {
  const auto value = NumberFrom<T>(word);
  if (!value) return Error(Code::kDataLoss, "{} is '{}', not a number that fits", what, word);
  *out = *value;
  return Status::Ok();
}

}  // namespace msa::cli
