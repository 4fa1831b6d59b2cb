#include "options/parser.h"

#include <algorithm>

#include "msa/topology/suggest.h"

namespace msa::cli {
namespace {

std::string Shown(const OptionSpec& option) { return "--" + option.name; }

// What stands left of the explanation in the help.
std::string Left(const OptionSpec& option) {
  std::string out = option.letter == 0 ? "    " : fmt::format("-{}, ", option.letter);
  out += Shown(option);
  if (option.takes == Takes::kValue) out += " " + option.value_name;
  if (option.takes == Takes::kOptionalValue) out += "[=" + option.value_name + "]";
  return out;
}

// `text` in lines of at most `width`, all but the first indented.
std::string Wrap(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (column > 0 && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = 0;
    }
    if (column > 0) out += ' ', ++column;
    out += word;
    column += word.size();
  }
  return out;
}

constexpr std::size_t kHelpColumn = 30;
constexpr std::size_t kHelpWidth = 68;

thread_local OptionProbe* current_probe = nullptr;

}  // namespace

OptionProbe::OptionProbe() : outer_(current_probe) { current_probe = this; }
OptionProbe::~OptionProbe() { current_probe = outer_; }

OptionParser::OptionParser(std::string command, std::string usage, std::string summary)
    : command_(std::move(command)), usage_(std::move(usage)), summary_(std::move(summary)) {
  Add({.letter = 'h', .name = "help", .help = "show this text"});
}

Status OptionParser::Apply(const OptionSpec& option, std::string_view value) {
  if (!option.set) {
    help_asked_ = true;
    return Status::Ok();
  }
  return option.set(value).WithContext(Shown(option));
}

OptionParser& OptionParser::Add(OptionSpec option) {
  options_.push_back(std::move(option));
  return *this;
}

OptionParser& OptionParser::Flag(char letter, std::string name, std::string help, bool* flag) {
  return Add(
      {.letter = letter, .name = std::move(name), .help = std::move(help), .set = [flag](std::string_view) {
         *flag = true;
         return Status::Ok();
       }});
}

OptionParser& OptionParser::Text(char letter, std::string name, std::string value_name, std::string help,
                                 std::string* value) {
  return Add({.letter = letter,
              .name = std::move(name),
              .takes = Takes::kValue,
              .value_name = std::move(value_name),
              .help = std::move(help),
              .set = [value](std::string_view given) {
                *value = given;
                return Status::Ok();
              }});
}

OptionParser& OptionParser::Epilogue(std::string text) {
  epilogue_ = std::move(text);
  return *this;
}

const OptionSpec* OptionParser::FindLong(std::string_view name) const {
  const auto it =
      std::find_if(options_.begin(), options_.end(), [&](const auto& o) { return o.name == name; });
  return it == options_.end() ? nullptr : &*it;
}

const OptionSpec* OptionParser::FindLetter(char letter) const {
  const auto it =
      std::find_if(options_.begin(), options_.end(), [&](const auto& o) { return o.letter == letter; });
  return it == options_.end() || letter == 0 ? nullptr : &*it;
}

Status OptionParser::Unknown(std::string_view option) const {
  std::vector<std::string> names;
  for (const OptionSpec& known : options_) names.push_back(Shown(known));
  return Error(Code::kInvalidArgument, "{}: unknown option '{}'; {}'{} --help' lists the options", command_,
               option, DidYouMean(option, names), command_);
}

Status OptionParser::ParseLong(const std::vector<std::string>& args, std::size_t& at) {
  const std::string_view word = std::string_view(args[at]).substr(2);
  const std::size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const OptionSpec* option = FindLong(name);
  if (option == nullptr) return Unknown("--" + std::string(name));
  if (equals != std::string_view::npos) {
    if (option->takes == Takes::kNothing)
      return Error(Code::kInvalidArgument, "--{} takes no value, '{}' was given; leave '={}' out", name,
                   word.substr(equals + 1), word.substr(equals + 1));
    return Apply(*option, word.substr(equals + 1));
  }
  if (option->takes != Takes::kValue) return Apply(*option, "");
  if (++at >= args.size())
    return Error(Code::kInvalidArgument, "--{} needs a value: --{} {}", name, name, option->value_name);
  return Apply(*option, args[at]);
}

Status OptionParser::ParseLetters(const std::vector<std::string>& args, std::size_t& at) {
  std::string_view letters = std::string_view(args[at]).substr(1);
  while (!letters.empty() && !help_asked_) {
    const OptionSpec* option = FindLetter(letters[0]);
    if (option == nullptr) return Unknown("-" + std::string(letters.substr(0, 1)));
    std::string_view rest = letters.substr(1);
    if (option->takes == Takes::kNothing) {
      MSA_RETURN_IF_ERROR(Apply(*option, ""));
      letters = rest;
      continue;
    }
    if (rest.starts_with('=')) rest.remove_prefix(1);
    if (!rest.empty() || option->takes == Takes::kOptionalValue) return Apply(*option, rest);
    if (++at >= args.size())
      return Error(Code::kInvalidArgument, "-{} (--{}) needs a value: -{} {}", option->letter, option->name,
                   option->letter, option->value_name);
    return Apply(*option, args[at]);
  }
  return Status::Ok();
}

OptionTable OptionParser::Table(Operands operands) const {
  OptionTable out{command_, usage_, options_, operands};
  std::erase_if(out.options, [](const OptionSpec& option) { return option.hidden; });
  // They refer to variables of the command, which is about to return.
  for (OptionSpec& option : out.options) option.set = nullptr;
  return out;
}

Result<std::vector<std::string>> OptionParser::Parse(const std::vector<std::string>& args,
                                                     Operands operands) {
  if (current_probe != nullptr) {
    if (!current_probe->table_) current_probe->table_ = Table(operands);
    return Status(Code::kAborted, "asked for its options only");
  }
  std::vector<std::string> out;
  std::size_t at = 0;
  for (; at < args.size() && !help_asked_; ++at) {
    const std::string& word = args[at];
    if (word == "--") {
      ++at;
      break;
    }
    if (word.starts_with("--")) {
      MSA_RETURN_IF_ERROR(ParseLong(args, at));
    } else if (word.size() > 1 && word[0] == '-') {
      MSA_RETURN_IF_ERROR(ParseLetters(args, at));
    } else if (operands == Operands::kEndOptions) {
      break;
    } else {
      out.push_back(word);
    }
  }
  for (; at < args.size(); ++at) out.push_back(args[at]);
  return out;
}

std::string OptionParser::Help() const {
  std::string out =
      fmt::format("usage: {}{}{}\n\n{}\n", command_, usage_.empty() ? "" : " ", usage_, summary_);
  out += "\noptions:\n";
  for (const OptionSpec& option : options_) {
    if (option.hidden) continue;
    std::string left = "  " + Left(option);
    if (left.size() + 2 > kHelpColumn) {
      left += "\n" + std::string(kHelpColumn, ' ');
    } else {
      left.resize(kHelpColumn, ' ');
    }
    out += left + Wrap(option.help, kHelpWidth, kHelpColumn) + "\n";
  }
  if (!epilogue_.empty()) out += "\n" + epilogue_ + "\n";
  return out;
}

}  // namespace msa::cli
