#include "lint/batch_script.h"

#include <algorithm>
#include <array>
#include <utility>

#include "batch/directives.h"

namespace msa::cli {
namespace {

constexpr std::size_t kMaxLines = 100'000;  // more than any script; the rest is not read

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r'; }

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

constexpr std::pair<char, std::string_view> kLetters[] = {
    {'A', "account"},       {'a', "array"},      {'b', "begin"},        {'B', "extra-node-info"},
    {'c', "cpus-per-task"}, {'C', "constraint"}, {'d', "dependency"},   {'D', "chdir"},
    {'e', "error"},         {'F', "nodefile"},   {'G', "gpus"},         {'i', "input"},
    {'J', "job-name"},      {'L', "licenses"},   {'m', "distribution"}, {'M', "clusters"},
    {'n', "ntasks"},        {'N', "nodes"},      {'o', "output"},       {'p', "partition"},
    {'q', "qos"},           {'r', "relative"},   {'S', "core-spec"},    {'t', "time"},
    {'T', "threads"},       {'w', "nodelist"},   {'x', "exclude"},
};

// Long options without a value, or with one only behind '='.
constexpr std::string_view kFlags[] = {
    "contiguous",
    "disable-status",
    "exact",
    "exclusive",
    "get-user-env",
    "help",
    "hold",
    "ignore-pbs",
    "immediate",
    "interactive",
    "kill-on-bad-exit",
    "label",
    "multi-prog",
    "nice",
    "no-allocate",
    "no-kill",
    "no-requeue",
    "overcommit",
    "overlap",
    "oversubscribe",
    "parsable",
    "preserve-env",
    "pty",
    "quiet",
    "quit-on-interrupt",
    "reboot",
    "requeue",
    "spread-job",
    "test-only",
    "unbuffered",
    "usage",
    "use-min-nodes",
    "verbose",
    "version",
    "whole",
};
bool IsFlag(std::string_view name, LintTool tool) {
  if (name == "wait") return tool == LintTool::kSbatch;
  return std::find(std::begin(kFlags), std::end(kFlags), name) != std::end(kFlags);
}

std::string_view LongName(char letter) {
  for (const auto& [one, name] : kLetters)
    if (one == letter) return name;
  return {};
}

// One word of shell, and whether an operator stands there instead.
struct Token {
  std::string text;
  bool is_operator = false;
};

bool IsOperator(char c) { return std::string_view(";&|()<>").find(c) != std::string_view::npos; }

// $'...', in which a backslash takes away what the next character means.
bool OpensDollarQuote(std::string_view line, std::size_t at) {
  return line[at] == '\'' && at > 0 && line[at - 1] == '$';
}

// The quote that is open behind a line, '$' for $'...', 0 for none; `open`: the one before it.
char OpenQuote(std::string_view line, char open) {
  bool in_word = open != 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\\' && open != '\'') {
      in_word = true;
      ++i;
    } else if (open != 0) {
      if (c == (open == '$' ? '\'' : open)) open = 0;
    } else if (c == '#' && !in_word) {
      return 0;
    } else {
      if (c == '\'' || c == '"') open = OpensDollarQuote(line, i) ? '$' : c;
      in_word = !IsBlank(c) && !IsOperator(c);
    }
  }
  return open;
}

// Of a line; '#' begins a comment. Quotes hold words together, what is expanded stays as it is written.
class Tokens {
 public:
  explicit Tokens(std::string_view line) : line_(line) {}

  std::vector<Token> Read() {
    while (at_ < line_.size()) {
      const char c = line_[at_];
      if (IsBlank(c)) {
        Finish();
        ++at_;
      } else if (c == '#' && !in_word_) {
        break;
      } else if (IsOperator(c)) {
        Operator(c);
      } else {
        Character(c);
      }
    }
    Finish();
    return std::move(tokens_);
  }

 private:
  void Finish() {
    if (in_word_) tokens_.push_back({std::exchange(word_, {}), false});
    in_word_ = false;
  }
  void Operator(char c) {
    // "2>&1" and ">&2" are redirections, not the end of a command.
    const bool redirects = c == '<' || c == '>';
    if (redirects) {
      if (in_word_ && std::all_of(word_.begin(), word_.end(), [](char d) { return d >= '0' && d <= '9'; }))
        word_.clear(), in_word_ = false;
      Finish();
      std::string text(1, c);
      for (++at_; at_ < line_.size() && std::string_view("<>&-").find(line_[at_]) != std::string_view::npos;
           ++at_)
        text += line_[at_];
      tokens_.push_back({std::move(text), true});
      return;
    }
    Finish();
    std::string text(1, c);
    ++at_;
    if (c == '&' && at_ < line_.size() && line_[at_] == '>') {
      text = ">";
      ++at_;
    } else if (at_ < line_.size() && (c == '&' || c == '|' || c == ';' || c == '(') && line_[at_] == c) {
      text += line_[at_++];
    }
    tokens_.push_back({std::move(text), true});
  }
  void Character(char c) {
    in_word_ = true;
    if (c == '\\' && at_ + 1 < line_.size()) {
      word_ += line_[at_ + 1];
      at_ += 2;
    } else if (c == '\'' || c == '"') {
      Quoted(c);
    } else {
      word_ += c;
      ++at_;
    }
  }
  void Quoted(char quote) {
    const bool escapes = quote == '"' || OpensDollarQuote(line_, at_);
    for (++at_; at_ < line_.size() && line_[at_] != quote; ++at_) {
      if (escapes && line_[at_] == '\\' && at_ + 1 < line_.size()) ++at_;
      word_ += line_[at_];
    }
    if (at_ < line_.size()) ++at_;
  }

  const std::string_view line_;
  std::size_t at_ = 0;
  std::string word_;
  bool in_word_ = false;
  std::vector<Token> tokens_;
};

bool IsAssignment(std::string_view word) {
  const std::size_t at = word.find('=');
  return at != std::string_view::npos && at > 0 &&
         std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(at), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
         });
}

// Words of the shell that another command follows.
bool IsPrefix(std::string_view word) {
  constexpr std::string_view kPrefixes[] = {"if", "then", "else", "elif",  "do",  "while", "until",
                                            "!",  "time", "exec", "nohup", "env", "{",     "command"};
  return std::find(std::begin(kPrefixes), std::end(kPrefixes), word) != std::end(kPrefixes);
}

void AddCommands(std::size_t line, std::string_view text, std::vector<LintCommand>* out) {
  LintCommand command{line, {}, false};
  const auto finish = [&](bool background) {
    std::size_t first = 0;
    while (first < command.words.size() &&
           (IsAssignment(command.words[first]) || IsPrefix(command.words[first])))
      ++first;
    command.words.erase(command.words.begin(), command.words.begin() + static_cast<std::ptrdiff_t>(first));
    command.background = background;
    if (!command.words.empty()) out->push_back(std::move(command));
    command = {line, {}, false};
  };
  bool target = false;  // of a redirection
  for (Token& token : Tokens(text).Read()) {
    if (token.is_operator && (token.text.front() == '<' || token.text.front() == '>')) {
      target = !token.text.ends_with('-');
    } else if (token.is_operator) {
      finish(token.text == "&");
      target = false;
    } else if (!std::exchange(target, false)) {
      command.words.push_back(std::move(token.text));
    }
  }
  finish(false);
}

// The word that ends a here-document which begins in this line; "" if none does.
std::string HereWord(std::string_view line) {
  const std::vector<Token> tokens = Tokens(line).Read();
  std::size_t arithmetic = 0;  // parentheses that are open from "((" on, where "<<" shifts
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (!tokens[i].is_operator) continue;
    const std::string& text = tokens[i].text;
    if (text == "((") {
      arithmetic += 2;
    } else if (arithmetic > 0) {
      if (text == "(") ++arithmetic;
      if (text == ")") --arithmetic;
    } else if ((text == "<<" || text == "<<-") && !tokens[i + 1].is_operator) {
      return tokens[i + 1].text;
    }
  }
  return "";
}

// "# SBATCH -N1", "#sbatch -N1": meant as options, read as a comment. A word alone is prose.
bool LooksLikeDirective(std::string_view line) {
  if (!line.starts_with('#')) return false;
  const std::string_view rest = Trim(line.substr(1));
  constexpr std::string_view kWord = "SBATCH";
  if (rest.size() <= kWord.size()) return false;
  for (std::size_t i = 0; i < kWord.size(); ++i)
    if (rest[i] != kWord[i] && rest[i] != kWord[i] + ('a' - 'A')) return false;
  const std::string_view options = Trim(rest.substr(kWord.size()));
  return IsBlank(rest[kWord.size()]) && (options.starts_with('-') || options == "hetjob");
}

class Reader {
 public:
  Reader() { out_.components.push_back({1, {}}); }

  void Take(std::size_t number, std::string_view line) {
    if (!here_.empty()) {
      if (Trim(line) == here_) here_.clear();
      return;
    }
    if (line.ends_with('\r') && !std::exchange(dos_, true)) Fault(number, LintFault::Kind::kDosLines, line);
    const std::string_view trimmed = Trim(line);
    if (!pending_.empty()) return Continue(number, line);
    if (trimmed.starts_with('#')) return Comment(number, line, trimmed);
    if (trimmed.empty()) return;
    head_ = false;
    first_ = number;
    Continue(number, line);
  }

  LintScript Finish() && {
    if (!pending_.empty()) EndCommand();
    return std::move(out_);
  }

  void Fault(std::size_t line, LintFault::Kind kind, std::string_view text) {
    out_.faults.push_back({line, kind, std::string(Trim(text))});
  }

 private:
  void Comment(std::size_t number, std::string_view line, std::string_view trimmed) {
    const bool begins = line.front() == '#';
    constexpr std::string_view kSbatch = "#SBATCH", kNam = "#NAM";
    if (begins && line.starts_with(kSbatch) &&
        (line.size() == kSbatch.size() || IsBlank(line[kSbatch.size()]))) {
      if (!head_) return Fault(number, LintFault::Kind::kLate, line);
      return Directive(number, Trim(line.substr(kSbatch.size())));
    }
    if (begins && line.starts_with(kNam) && (line.size() == kNam.size() || IsBlank(line[kNam.size()]))) {
      LintNam nam{number, {}, !head_};
      for (Token& token : Tokens(line.substr(kNam.size())).Read()) nam.words.push_back(std::move(token.text));
      out_.nam.push_back(std::move(nam));
      return;
    }
    if (LooksLikeDirective(trimmed)) Fault(number, LintFault::Kind::kMisspelled, line);
  }

  void Directive(std::size_t number, std::string_view text) {
    const Result<std::vector<std::string>> words = SplitDirective(text);
    if (!words.ok()) return Fault(number, LintFault::Kind::kQuote, text);
    if (!words->empty() && (words->front() == "hetjob" || words->front() == "packjob")) {
      out_.components.push_back({number, {}});
      return;
    }
    std::size_t rest = 0;
    for (LintOption& option : ReadLintOptions(*words, number, LintTool::kSbatch, &rest))
      out_.components.back().options.push_back(std::move(option));
  }

  // A command may go on behind a backslash, or in a quote that the line leaves open.
  void Continue(std::size_t number, std::string_view line) {
    std::string_view text = line;
    if (text.ends_with('\r')) text.remove_suffix(1);
    quote_ = OpenQuote(text, quote_);
    const bool more = quote_ == 0 && text.ends_with('\\');
    if (more) text.remove_suffix(1);
    out_.body.push_back({number, std::string(text)});
    pending_ += text;
    pending_ += quote_ != 0 ? '\n' : ' ';
    if (!more && quote_ == 0) EndCommand();
  }

  void EndCommand() {
    const std::string text = std::exchange(pending_, {});
    here_ = HereWord(text);
    AddCommands(first_, text, &out_.commands);
  }

  LintScript out_;
  bool head_ = true;
  bool dos_ = false;
  std::size_t first_ = 0;
  std::string pending_;
  char quote_ = 0;  // open behind pending_, as OpenQuote tells it
  std::string here_;
};

}  // namespace

const LintOption* LintComponent::Find(std::string_view name) const {
  const auto it =
      std::find_if(options.rbegin(), options.rend(), [&](const LintOption& o) { return o.name == name; });
  return it == options.rend() ? nullptr : &*it;
}

std::vector<LintOption> ReadLintOptions(const std::vector<std::string>& words, std::size_t line,
                                        LintTool tool, std::size_t* rest) {
  std::vector<LintOption> out;
  std::size_t i = 0;
  for (; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.size() < 2 || word[0] != '-') break;
    if (word == "--") {
      ++i;
      break;
    }
    LintOption option{line, "", ""};
    if (word[1] == '-') {
      const std::size_t at = word.find('=');
      option.name = word.substr(2, at == std::string::npos ? at : at - 2);
      if (at != std::string::npos)
        option.value = word.substr(at + 1);
      else if (!IsFlag(option.name, tool) && i + 1 < words.size())
        option.value = words[++i];
    } else {
      option.name = LongName(word[1]);
      if (option.name.empty()) {
        option.name = word.substr(1, 1);  // a flag, or several
        // srun -W takes seconds.
        if (tool == LintTool::kSrun && word == "-W" && i + 1 < words.size()) ++i;
      } else if (word.size() > 2) {
        option.value = word.substr(2);
      } else if (i + 1 < words.size()) {
        option.value = words[++i];
      }
    }
    // packjob's and hetjob's options have one meaning.
    if (option.name == "pack-group") option.name = "het-group";
    out.push_back(std::move(option));
  }
  *rest = i;
  return out;
}

LintScript ReadLintScript(std::string_view text) {
  Reader reader;
  if (!text.starts_with("#!"))
    reader.Fault(1, LintFault::Kind::kNoInterpreter, text.substr(0, text.find('\n')));
  for (std::size_t number = 1; !text.empty() && number <= kMaxLines; ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    reader.Take(number, line);
  }
  return std::move(reader).Finish();
}

}  // namespace msa::cli
