#pragma once
// What may stand at the end of a command line that is being typed: from the commands' own tables of options,
// and from the running system. Shells ask by 'msactl completion words'.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "commands/command.h"
#include "options/parser.h"

namespace msa::cli {

struct Candidate {
  std::string text;
  std::string help;  // may be empty
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

// What the shell itself adds.
enum class Also { kNothing, kFiles, kDirectories, kCommands };

struct Completion {
  std::vector<Candidate> candidates;  // whole words that begin with the one that is being typed
  Also also = Also::kNothing;
};

// Things that only the running system knows.
struct Wanted {
  enum class What { kModules, kNodes, kJobs, kLiveJobs, kDaemons, kGrants, kRegions } what;
  std::string dir;      // as given by --dir, else ""
  std::string backend;  // as given by --backend, else ""
};
using Source = std::function<std::vector<Candidate>(const Wanted&)>;

// `words`: what stands after "msactl", the last one is being typed and may be empty. Calls no command but for
// its table (OptionProbe).
Completion Complete(const std::vector<std::string>& words, const Source& source);

// The table of a command; nullopt if it parses no options.
std::optional<OptionTable> TableOf(const Command& command);

// The script of "bash", "zsh" or "fish".
std::string_view CompletionScript(std::string_view shell);

}  // namespace msa::cli
