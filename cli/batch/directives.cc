#include "batch/directives.h"

#include <array>
#include <optional>

#include "msa/job/job_spec.h"

namespace msa::cli {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f'; }

std::string_view TrimLeft(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  return text;
}

std::string Upper(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

// "#WORD" at the start of a line, and what follows it.
struct Marked {
  std::string_view word;
  std::string_view rest;
};
std::optional<Marked> MarkOf(std::string_view line) {
  if (!line.starts_with('#')) return std::nullopt;
  std::size_t end = 1;
  while (end < line.size() &&
         ((line[end] >= 'A' && line[end] <= 'Z') || (line[end] >= 'a' && line[end] <= 'z')))
    ++end;
  if (end == 1) return std::nullopt;
  return Marked{line.substr(1, end - 1), line.substr(end)};
}

std::optional<Dialect> DialectOf(std::string_view word) {
  if (word == "MSA") return Dialect::kMsa;
  if (word == "SBATCH") return Dialect::kSbatch;
  return std::nullopt;
}

// Directives of other systems, which change what a job gets.
std::optional<std::string_view> MeaningOf(std::string_view word) {
  if (word == "BB" || word == "DW") return "asks for a burst buffer, and msa has none";
  if (word == "NAM") return "is not read; write '#MSA --nam SIZE', or '#MSA --nam-region NAME'";
  if (word == "PBS") return "is for PBS, and is not read; write '#MSA' with the options of 'msactl submit'";
  if (word == "BSUB") return "is for LSF, and is not read; write '#MSA' with the options of 'msactl submit'";
  return std::nullopt;
}

std::string At(std::string_view file, std::size_t line) { return fmt::format("{}:{}", file, line); }

Status CheckText(std::string_view file, std::string_view text) {
  if (text.size() > kMaxScriptBytes)
    return Error(Code::kInvalidArgument,
                 "{}: the script has {} bytes, the limit is {}; keep data in other files", file, text.size(),
                 kMaxScriptBytes);
  if (text.empty()) return Error(Code::kInvalidArgument, "{}: the batch script is empty", file);
  if (text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos)
    return Error(Code::kInvalidArgument, "{}: the batch script contains only white space", file);
  if (text.find('\0') != std::string_view::npos)
    return Error(Code::kInvalidArgument,
                 "{}: the batch script contains a zero byte; a program is submitted with --wrap, or by a "
                 "script that calls it",
                 file);
  if (!text.starts_with("#!"))
    return Error(
        Code::kInvalidArgument,
        "{}:1: this does not look like a batch script: the first line must start with #! followed by "
        "the path to an interpreter, for instance: #!/bin/sh",
        file);
  if (const std::size_t at = text.find("\r\n"); at != std::string_view::npos) {
    std::size_t line = 1;
    for (const char c : text.substr(0, at)) line += c == '\n' ? 1 : 0;
    return Error(
        Code::kInvalidArgument,
        "{}:{}: the batch script contains DOS line breaks (\\r\\n) instead of UNIX ones (\\n); convert "
        "it with dos2unix, or with sed -i 's/\\r$//' {}",
        file, line, file);
  }
  return Status::Ok();
}

// Reads line by line; `head_ended_` from the first command on.
class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file) {}

  Status Take(std::string_view line, std::size_t number) {
    const auto mark = MarkOf(line);
    if (!mark) {
      const std::string_view text = TrimLeft(line);
      head_ended_ = head_ended_ || (!text.empty() && text.front() != '#');
      return Status::Ok();
    }
    const auto dialect = DialectOf(mark->word);
    const bool separate = mark->rest.empty() || IsBlank(mark->rest.front());
    if (dialect && separate) return TakeDirective(*dialect, mark->rest, number);
    const bool asks = TrimLeft(mark->rest).starts_with('-');
    if (DialectOf(Upper(mark->word)) && asks)
      Warn(number, fmt::format("'#{}' is taken for a comment; options stand behind '#{} '", mark->word,
                               Upper(mark->word)));
    if (const auto meaning = MeaningOf(mark->word); meaning && separate && !head_ended_)
      Warn(number, fmt::format("'#{}' {}", mark->word, *meaning));
    return Status::Ok();
  }
  ScriptHead Finish() && { return std::move(head_); }

 private:
  Status TakeDirective(Dialect dialect, std::string_view rest, std::size_t number) {
    if (head_ended_) {
      Warn(number, fmt::format("'#{}' stands behind the first command and is not read; move it up",
                               dialect == Dialect::kMsa ? "MSA" : "SBATCH"));
      return Status::Ok();
    }
    Result<std::vector<std::string>> words = SplitDirective(rest);
    if (!words.ok()) return words.status().WithContext(At(file_, number));
    if (!words->empty()) head_.directives.push_back({number, dialect, *std::move(words)});
    return Status::Ok();
  }
  void Warn(std::size_t number, const std::string& text) {
    head_.warnings.push_back(At(file_, number) + ": " + text);
  }

  const std::string file_;
  ScriptHead head_;
  bool head_ended_ = false;
};

}  // namespace

Result<std::vector<std::string>> SplitDirective(std::string_view text) {
  std::vector<std::string> out;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && quote != '\'') {
      if (++i >= text.size())
        return Error(Code::kInvalidArgument, "'{}' ends with a backslash; remove it", TrimLeft(text));
      word += text[i];
      in_word = true;
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (IsBlank(c)) {
      if (in_word) out.push_back(std::exchange(word, {}));
      in_word = false;
    } else if (c == '#' && !in_word) {
      break;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != 0)
    return Error(Code::kInvalidArgument, "'{}': a quote ({}) is not closed", TrimLeft(text), quote);
  if (in_word) out.push_back(std::move(word));
  return out;
}

Result<ScriptHead> ReadDirectives(std::string_view file, std::string_view text) {
  MSA_RETURN_IF_ERROR(CheckText(file, text));
  Reader reader(file);
  std::size_t number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    MSA_RETURN_IF_ERROR(reader.Take(line, ++number));
  }
  return std::move(reader).Finish();
}

}  // namespace msa::cli
