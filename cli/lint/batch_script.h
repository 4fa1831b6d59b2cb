#pragma once
// A batch script for sbatch as 'msactl job lint' sees it: the options of its components, and the commands
// that its text holds. No shell runs: what a script computes is not seen. Pure; any thread.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace msa::cli {

struct LintOption {
  std::size_t line = 0;  // from 1
  std::string name;      // long, without dashes: "nodes" for -N
  std::string value;     // empty: none
};

// Options up to a "#SBATCH hetjob" (or packjob), which begins the next one.
struct LintComponent {
  std::size_t line = 0;
  std::vector<LintOption> options;

  const LintOption* Find(std::string_view name) const;  // the last one, as in sbatch; nullptr: none
};

struct LintCommand {
  std::size_t line = 0;
  std::vector<std::string> words;  // the first is the program; no assignments before it
  bool background = false;         // '&' ends it
};

// A "#NAM" line.
struct LintNam {
  std::size_t line = 0;
  std::vector<std::string> words;
  bool late = false;  // behind the first command
};

// A line that cannot be what its author meant.
struct LintFault {
  enum class Kind : std::uint8_t {
    kNoInterpreter,  // no "#!" in line 1
    kDosLines,
    kLate,        // #SBATCH behind the first command
    kMisspelled,  // "# SBATCH", "#sbatch", a blank before it
    kQuote,       // not closed
  };
  std::size_t line = 0;
  Kind kind = Kind::kLate;
  std::string text;  // of the line
};

struct LintScript {
  std::vector<LintComponent> components;  // at least one
  std::vector<LintCommand> commands;
  std::vector<LintNam> nam;
  std::vector<LintFault> faults;
  struct Line {
    std::size_t number = 0;
    std::string text;
  };
  std::vector<Line> body;  // lines of commands, without comments and here-documents

  bool het() const { return components.size() > 1; }
};

LintScript ReadLintScript(std::string_view text);

// Options as srun and sbatch read them, up to the first word that is none. `rest`: where that word stands.
enum class LintTool { kSbatch, kSrun };
std::vector<LintOption> ReadLintOptions(const std::vector<std::string>& words, std::size_t line,
                                        LintTool tool, std::size_t* rest);

}  // namespace msa::cli
