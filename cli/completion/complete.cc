#include "completion/complete.h"

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <set>

#include "msa/job/records.h"

#include "commands/registry.h"
#include "options/resource_limits.h"
#include "output/listing.h"

namespace msa::cli {
namespace {

// Options that stand in the help to refuse their use.
constexpr std::string_view kRefusedHelp = "not in this version";

struct Typing {
  const Command* command = nullptr;
  OptionTable table;
  std::vector<std::string> words;  // after the command; the last one is being typed
};

std::vector<std::string> SplitAt(std::string_view text, char separator) {
  std::vector<std::string> out;
  for (;;) {
    const std::size_t end = text.find(separator);
    out.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

std::vector<Candidate> Words(const std::vector<std::string>& words) {
  std::vector<Candidate> out;
  for (const std::string& word : words) out.push_back({word, ""});
  return out;
}

std::vector<Candidate> SignalNames() {
  std::vector<Candidate> out;
  for (int signal = 1; signal < 32; ++signal)
    if (const char* name = ::sigabbrev_np(signal)) out.push_back({name, ::strsignal(signal)});
  return out;
}

// Of jobs that have ended: `history` alone asks for states.
std::vector<Candidate> StateNames() {
  std::vector<Candidate> out;
  for (auto state = wire::JobState::kCompleted; state <= wire::JobState::kNodeFail;
       state = static_cast<wire::JobState>(static_cast<int>(state) + 1))
    out.push_back({std::string(StateName(state)), ""});
  return out;
}

// What the line says of the system that it is about.
struct System {
  std::string dir;
  std::string backend;
};

void TakeSystem(std::string_view option, const std::string& value, System* system) {
  if (option == "dir" || option == "server") system->dir = value;
  if (option == "backend") system->backend = value;
}

// Values by the name that the help gives them.
class Values {
 public:
  Values(const Source& source, std::string_view verb, System system)
      : source_(source),
        live_(verb == "cancel" || verb == "signal" || verb == "attach"),
        system_(std::move(system)) {}

  Completion Of(const std::string& kind) const {
    using What = Wanted::What;
    if (kind == "FILE" || kind == "SCRIPT" || kind == "ARGS") return {{}, Also::kFiles};
    if (kind == "DIR" || kind == "DIRECTORY") return {{}, Also::kDirectories};
    if (kind == "PROGRAM") return {{}, Also::kCommands};
    if (kind == "FORMAT") return {Words(FormatNames())};
    if (kind == "SIGNAL") return {SignalNames()};
    if (kind == "STATE" || kind == "STATES") return {StateNames()};
    if (kind == "VARIABLES") return {{{"ALL", "all of them"}, {"NONE", "none of them"}}};
    if (kind == "LIMITS") return {Words(PropagateWords())};
    if (kind == "SHELL") return {Words({"bash", "zsh", "fish"})};
    if (kind == "MODULE") return {Ask(What::kModules)};
    if (IsNodes(kind)) return {Ask(What::kNodes)};
    if (kind == "JOB" || kind == "JOBS") return {Ask(live_ ? What::kLiveJobs : What::kJobs)};
    if (kind == "GRANT") return {Ask(What::kGrants)};
    if (kind == "REGION") return {Ask(What::kRegions)};
    if (kind == "DAEMON") return {Ask(What::kDaemons)};
    // "append|truncate", or the one word that is possible.
    if (!kind.empty() && std::none_of(kind.begin(), kind.end(), [](char c) { return c >= 'A' && c <= 'Z'; }))
      return {Words(SplitAt(kind, '|'))};
    return {};
  }
  static bool IsNodes(std::string_view kind) { return kind == "NODES" || kind == "NODE"; }

 private:
  std::vector<Candidate> Ask(Wanted::What what) const {
    return source_({what, system_.dir, system_.backend});
  }

  const Source& source_;
  const bool live_;
  const System system_;
};

// Keeps what begins with `typed`, and puts `prefix` before it.
Completion Fitting(Completion all, const std::string& typed, const std::string& prefix = "") {
  Completion out{{}, all.also};
  for (Candidate& candidate : all.candidates)
    if (candidate.text.starts_with(typed))
      out.candidates.push_back({prefix + candidate.text, candidate.help});
  return out;
}

// `typed` is the value so far; `prefix` stands before it in the same word. Of a list of nodes the last is
// completed.
Completion CompleteValue(const Values& values, const std::string& kind, std::string typed,
                         std::string prefix) {
  std::set<std::string> used;
  if (Values::IsNodes(kind)) {
    if (const std::size_t comma = typed.rfind(','); comma != std::string::npos) {
      for (std::string& name : SplitAt(typed.substr(0, comma), ',')) used.insert(std::move(name));
      prefix += typed.substr(0, comma + 1);
      typed.erase(0, comma + 1);
    }
  }
  Completion all = values.Of(kind);
  std::erase_if(all.candidates, [&](const Candidate& c) { return used.contains(c.text); });
  return Fitting(std::move(all), typed, prefix);
}

// "[OPTIONS] SIGNAL JOB..." -> SIGNAL, JOB...; options in it are left out with their values.
std::vector<std::string> OperandKinds(const std::string& usage) {
  std::vector<std::string> out;
  bool skip = false;
  for (std::string word : SplitAt(usage, ' ')) {
    if (word == ":" || word == "[:") break;
    if (std::exchange(skip, false) || word == "[OPTIONS]" || word.empty()) continue;
    if (word.starts_with("--")) {
      skip = true;
      continue;
    }
    std::erase_if(word, [](char c) { return c == '[' || c == ']'; });
    out.push_back(std::move(word));
  }
  return out;
}

const OptionSpec* FindOption(const OptionTable& table, std::string_view word) {
  for (const OptionSpec& option : table.options) {
    if (word.starts_with("--") ? word.substr(2) == option.name
                               : word.size() >= 2 && option.letter != 0 && word[1] == option.letter)
      return &option;
  }
  return nullptr;
}

// What the words before the one being typed leave open.
struct Before {
  const OptionSpec* waits = nullptr;  // an option whose value comes next
  bool options_ended = false;
  std::vector<std::string> operands;
  System system;
};

Before ReadBefore(const OptionTable& table, const std::vector<std::string>& words) {
  Before out;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (out.waits != nullptr) {
      TakeSystem(out.waits->name, word, &out.system);
      out.waits = nullptr;
      continue;
    }
    if (out.options_ended || word.size() < 2 || word[0] != '-') {
      out.operands.push_back(word);
      out.options_ended = out.options_ended || table.operands == Operands::kEndOptions;
      continue;
    }
    if (word == "--") {
      out.options_ended = true;
      continue;
    }
    const std::size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
    const OptionSpec* option = FindOption(table, std::string_view(word).substr(0, equals));
    if (option == nullptr || option->takes != Takes::kValue) continue;
    const bool attached = equals != std::string::npos || (word[1] != '-' && word.size() > 2);
    if (!attached) out.waits = option;
    if (equals != std::string::npos) TakeSystem(option->name, word.substr(equals + 1), &out.system);
  }
  return out;
}

Completion CompleteOptionName(const OptionTable& table, const std::string& typed) {
  Completion out;
  for (const OptionSpec& option : table.options)
    if (option.help != kRefusedHelp) out.candidates.push_back({"--" + option.name, option.help});
  return Fitting(std::move(out), typed);
}

Completion CompleteOperand(const Values& values, const OptionTable& table, const Before& before,
                           const std::string& typed) {
  std::vector<std::string> kinds = OperandKinds(table.usage);
  if (kinds.empty()) return {};
  const std::size_t index = before.operands.size();
  std::string kind = kinds.back();
  if (index < kinds.size()) kind = kinds[index];
  const bool many = kind.ends_with("...");
  if (index >= kinds.size() && !many) return {};
  if (many) kind.erase(kind.size() - 3);
  Completion out = CompleteValue(values, kind, typed, "");
  std::erase_if(out.candidates, [&](const Candidate& c) {
    return std::find(before.operands.begin(), before.operands.end(), c.text) != before.operands.end();
  });
  return out;
}

// `run a : b`: each component has options of its own.
std::vector<std::string> LastComponent(std::vector<std::string> words) {
  const auto colon = std::find(words.rbegin(), words.rend(), ":");
  if (words.size() > 1 && colon != words.rend() && colon != words.rbegin())
    words.erase(words.begin(), colon.base());
  return words;
}

Completion CompleteArguments(const Typing& typing, const Source& source) {
  const bool run = typing.table.operands == Operands::kEndOptions;
  const std::vector<std::string> words = run ? LastComponent(typing.words) : typing.words;
  Before before = ReadBefore(typing.table, words);
  // --dir and --backend belong to the whole job and may stand in the first component.
  if (run) {
    std::vector<std::string> first(typing.words.begin(),
                                   std::find(typing.words.begin(), typing.words.end(), ":"));
    first.emplace_back();
    const System system = ReadBefore(typing.table, first).system;
    if (before.system.dir.empty()) before.system.dir = system.dir;
    if (before.system.backend.empty()) before.system.backend = system.backend;
  }
  const Values values(source, typing.command->verb, before.system);
  const std::string& typed = words.back();
  if (before.waits != nullptr) return CompleteValue(values, before.waits->value_name, typed, "");
  if (before.options_ended || !typed.starts_with('-'))
    return CompleteOperand(values, typing.table, before, typed);
  const std::size_t equals = typed.find('=');
  if (typed == "-" || (typed.starts_with("--") && equals == std::string::npos))
    return CompleteOptionName(typing.table, typed);
  const OptionSpec* option = FindOption(typing.table, std::string_view(typed).substr(0, equals));
  if (option == nullptr || option->takes == Takes::kNothing) return {};
  const std::size_t value = typed.starts_with("--") ? equals + 1 : 2;
  return CompleteValue(values, option->value_name, typed.substr(value), typed.substr(0, value));
}

// Nouns with what they do, or what their verbs are.
std::vector<Candidate> Nouns() {
  std::vector<Candidate> out;
  for (const Command& command : Commands()) {
    const auto known =
        std::find_if(out.begin(), out.end(), [&](const Candidate& c) { return c.text == command.noun; });
    if (known == out.end()) {
      out.push_back(
          {std::string(command.noun), std::string(command.verb.empty() ? command.summary : command.verb)});
    } else {
      known->help += ", " + std::string(command.verb);
    }
  }
  out.push_back({"nam", "alias of 'region'"});
  out.push_back({"help", "explain a command"});
  return out;
}

std::vector<Candidate> Verbs(std::string_view noun) {
  std::vector<Candidate> out;
  for (const Command& command : Commands())
    if (command.noun == noun && !command.verb.empty())
      out.push_back({std::string(command.verb), std::string(command.summary)});
  return out;
}

// Options that stand before the command at `at` of `words` leave them, with their values. True: one of them
// is being typed, and `out` is what may stand there.
bool CompleteGlobals(std::vector<std::string>& words, std::size_t at, Completion* out) {
  const Source nobody = [](const Wanted&) { return std::vector<Candidate>(); };
  const Values values(nobody, "", {});
  while (at < words.size()) {
    const GlobalOption* option = FindGlobal(words[at]);
    const std::size_t equals = words[at].find('=');
    const std::size_t left = words.size() - at;
    if (option == nullptr || (left == 1 && equals == std::string::npos)) return false;
    const bool attached = equals != std::string::npos;
    if (left == (attached ? 1 : 2)) {
      const std::string typed = attached ? words[at].substr(equals + 1) : words.back();
      *out = CompleteValue(values, std::string(option->value_name), typed,
                           attached ? words[at].substr(0, equals + 1) : "");
      return true;
    }
    const auto begin = words.begin() + static_cast<std::ptrdiff_t>(at);
    words.erase(begin, begin + (attached ? 1 : 2));
  }
  return false;
}

// Where a command is expected, or a verb.
std::vector<Candidate> LeadingOptions(std::vector<Candidate> own) {
  for (const GlobalOption& option : GlobalOptions())
    own.push_back({std::string(option.name), std::string(option.help)});
  return own;
}

}  // namespace

std::optional<OptionTable> TableOf(const Command& command) {
  const OptionProbe probe;
  // It fails, since it gets no options.
  (void)command.run({});
  return probe.table();
}

Completion Complete(const std::vector<std::string>& all, const Source& source) {
  if (all.empty()) return {};
  std::vector<std::string> words = all;
  Completion global;
  if (CompleteGlobals(words, 0, &global)) return global;
  const std::string typed = words.back();
  const std::string_view noun = NounOf(words[0]);
  if (words.size() == 1)
    return Fitting({typed.starts_with('-') ? LeadingOptions(Words({"--help", "--version"})) : Nouns()},
                   typed);
  if (words[0] == "help") {
    Completion out = words.size() == 2   ? Fitting({Nouns()}, typed)
                     : words.size() == 3 ? Fitting({Verbs(NounOf(words[1]))}, typed)
                                         : Completion{};
    std::erase_if(out.candidates, [](const Candidate& c) { return c.text == "help"; });
    return out;
  }
  if (!Verbs(noun).empty() && CompleteGlobals(words, 1, &global)) return global;
  if (words.size() == 2 && !Verbs(noun).empty())
    return Fitting({typed.starts_with('-') ? LeadingOptions(Words({"--help"})) : Verbs(noun)}, typed);
  // Without the word that is being typed, which may be nothing yet.
  const Result<Chosen> chosen = Choose(Args(all.begin(), all.end() - 1));
  if (!chosen.ok() || chosen->command == nullptr) return {};
  std::optional<OptionTable> table = TableOf(*chosen->command);
  if (!table) return {};
  Typing typing{chosen->command, *std::move(table), chosen->rest};
  typing.words.push_back(typed);
  return CompleteArguments(typing, source);
}

}  // namespace msa::cli
