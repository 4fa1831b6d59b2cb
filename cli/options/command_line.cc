#include "options/command_line.h"

namespace msa::cli {
namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";
constexpr std::string_view kOperators = "|&;<>";
constexpr std::string_view kEscapedInDoubleQuotes = "\"\\$`";

class Splitter {
 public:
  explicit Splitter(std::string_view line) : line_(line) {}

  Result<std::vector<std::string>> Run() {
    while (at_ < line_.size()) {
      const char c = line_[at_];
      if (kBlanks.find(c) != std::string_view::npos) {
        EndWord();
        ++at_;
      } else if (c == '#' && !in_word_) {
        break;
      } else {
        in_word_ = true;
        MSA_RETURN_IF_ERROR(Take(c));
      }
    }
    EndWord();
    return std::move(words_);
  }

 private:
  Status Take(char c) {
    ++at_;
    if (c == '\'') return Quoted('\'', "");
    if (c == '"') return Quoted('"', kEscapedInDoubleQuotes);
    if (c == '\\') {
      if (at_ == line_.size())
        return Status(
            Code::kInvalidArgument,
            "the line ends with a backslash; a submission is one line, write '\\\\' for a backslash");
      word_ += line_[at_++];
      return Status::Ok();
    }
    if (kOperators.find(c) != std::string_view::npos)
      return Error(Code::kInvalidArgument,
                   "'{}' at column {} is for a shell, and none reads this line; quote it, or run sh -c '...'",
                   c, at_);
    word_ += c;
    return Status::Ok();
  }

  // Up to the closing quote. A backslash takes the meaning from the characters in `escaped`.
  Status Quoted(char quote, std::string_view escaped) {
    const std::size_t begin = at_;
    while (at_ < line_.size()) {
      const char c = line_[at_++];
      if (c == quote) return Status::Ok();
      const bool escapes =
          c == '\\' && at_ < line_.size() && escaped.find(line_[at_]) != std::string_view::npos;
      word_ += escapes ? line_[at_++] : c;
    }
    return Error(Code::kInvalidArgument,
                 "the quote {} at column {} is not closed; close it, or put a backslash in front", quote,
                 begin);
  }

  void EndWord() {
    if (in_word_) words_.push_back(std::move(word_));
    word_.clear();
    in_word_ = false;
  }

  std::string_view line_;
  std::size_t at_ = 0;
  bool in_word_ = false;
  std::string word_;
  std::vector<std::string> words_;
};

}  // namespace

Result<std::vector<std::string>> SplitCommandLine(std::string_view line) { return Splitter(line).Run(); }

}  // namespace msa::cli
