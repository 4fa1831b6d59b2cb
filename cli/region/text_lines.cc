#include "region/text_lines.h"

#include <algorithm>

#include "region/checksum.h"

namespace msa::cli {
namespace {

constexpr std::string_view kEnd = "end ";

std::vector<std::string_view> Split(std::string_view line) {
  std::vector<std::string_view> out;
  for (;;) {
    const std::size_t blank = line.find(' ');
    out.push_back(line.substr(0, blank));
    if (blank == std::string_view::npos) return out;
    line.remove_prefix(blank + 1);
  }
}

}  // namespace

std::string Seal(std::string text) {
  const Checksum checksum = ChecksumOf(text);
  text += fmt::format("{}{}\n", kEnd, ToText(checksum));
  return text;
}

Result<SealedLines> SealedLines::Open(std::string_view text, std::string_view head) {
  constexpr std::size_t kLast = kEnd.size() + 32 + 1;
  if (text.size() < kLast || !text.ends_with('\n') || !text.substr(text.size() - kLast).starts_with(kEnd))
    return Status(Code::kDataLoss, "it is torn: its last line is missing");
  const std::string_view body = text.substr(0, text.size() - kLast);
  const auto checksum = ParseChecksum(text.substr(text.size() - 33, 32));
  if (!checksum || *checksum != ChecksumOf(body))
    return Status(Code::kDataLoss, "it is damaged: its checksum is not that of its text");
  const std::string_view first = body.substr(0, body.find('\n'));
  if (first != head)
    return Error(Code::kFailedPrecondition, "it begins with '{}', expected '{}'", first.substr(0, 64), head);
  SealedLines out(body);
  out.rest_.remove_prefix(std::min(body.size(), first.size() + 1));
  return out;
}

bool SealedLines::NextIs(std::string_view key) const {
  return rest_.starts_with(key) && rest_.size() > key.size() &&
         (rest_[key.size()] == ' ' || rest_[key.size()] == '\n');
}

Result<std::vector<std::string_view>> SealedLines::Next(std::string_view key, std::size_t count) {
  const std::size_t end = rest_.find('\n');
  const std::string_view line = rest_.substr(0, end);
  std::vector<std::string_view> words = Split(line);
  if (end == std::string_view::npos || words[0] != key || words.size() != count + 1)
    return Error(Code::kDataLoss, "line {} is '{}', expected '{}' and {} words", line_ + 1,
                 line.substr(0, 64), key, count);
  ++line_;
  rest_.remove_prefix(end + 1);
  words.erase(words.begin());
  return words;
}

Status SealedLines::End() const {
  if (rest_.empty()) return Status::Ok();
  return Error(Code::kDataLoss, "line {} is one too many: '{}'", line_ + 1, rest_.substr(0, 64));
}

}  // namespace msa::cli
