#pragma once
// Options as getopt_long reads them: -n2, -n 2, --ntasks=2, --ntasks 2, -lv for -l -v, `--` ends them. An
// option with an optional value takes it only when attached (-I5, --immediate=5), as srun's do. That, and the
// stop at the program's name, is what CLI11 cannot do; its tree of all commands also costs 4 ms at each
// start.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msa/base/status.h"

namespace msa::cli {

enum class Takes { kNothing, kValue, kOptionalValue };

struct OptionSpec {
  char letter = 0;   // 0: none
  std::string name;  // without dashes
  Takes takes = Takes::kNothing;
  std::string value_name;  // for the help, "SECONDS"
  std::string help;        // one sentence
  bool hidden = false;     // understood, but neither in the help nor offered for completion
  // Called once for each use, in order; with "" if there is no value. Its error gets the option's name in
  // front.
  std::function<Status(std::string_view value)> set;
};

enum class Operands {
  kAnywhere,    // options may follow operands
  kEndOptions,  // the first operand ends the options: the rest belongs to a program
};

// All that a parser knows.
struct OptionTable {
  std::string command;              // "msactl job list"
  std::string usage;                // "[OPTIONS] [JOB...]"
  std::vector<OptionSpec> options;  // without `set`
  Operands operands = Operands::kAnywhere;
};

// While one lives, the first Parse on its thread notes its table here, and every Parse fails with kAborted
// before it has set anything: so a command tells what it takes and does nothing.
class OptionProbe {
 public:
  OptionProbe();
  ~OptionProbe();
  OptionProbe(const OptionProbe&) = delete;
  OptionProbe& operator=(const OptionProbe&) = delete;
  const std::optional<OptionTable>& table() const noexcept { return table_; }

 private:
  friend class OptionParser;
  OptionProbe* const outer_;
  std::optional<OptionTable> table_;
};

class OptionParser {
 public:
  // `command` as the user types it, "msactl job list"; `usage` what follows it; `summary` one sentence.
  OptionParser(std::string command, std::string usage, std::string summary);

  OptionParser& Add(OptionSpec option);
  // -X/--name that sets *flag.
  OptionParser& Flag(char letter, std::string name, std::string help, bool* flag);
  // A free text.
  OptionParser& Text(char letter, std::string name, std::string value_name, std::string help,
                     std::string* value);
  // A paragraph after the options in the help.
  OptionParser& Epilogue(std::string text);

  // The operands. kInvalidArgument: an unknown option (with the nearest one), a missing or surplus value, or
  // what a `set` found; the message names the option. --help and -h set help_asked() and end the parsing.
  Result<std::vector<std::string>> Parse(const std::vector<std::string>& args,
                                         Operands operands = Operands::kAnywhere);

  bool help_asked() const noexcept { return help_asked_; }
  std::string Help() const;
  const std::string& command() const noexcept { return command_; }

 private:
  const OptionSpec* FindLong(std::string_view name) const;
  const OptionSpec* FindLetter(char letter) const;
  Status ParseLong(const std::vector<std::string>& args, std::size_t& at);
  Status ParseLetters(const std::vector<std::string>& args, std::size_t& at);
  Status Apply(const OptionSpec& option, std::string_view value);
  Status Unknown(std::string_view option) const;
  OptionTable Table(Operands operands) const;

  std::string command_;
  std::string usage_;
  std::string summary_;
  std::string epilogue_;
  std::vector<OptionSpec> options_;
  bool help_asked_ = false;
};

}  // namespace msa::cli
