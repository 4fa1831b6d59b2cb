#include "commands/registry.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "msa/base/exit_code.h"
#include "msa/topology/suggest.h"

#include "backend/choice.h"
#include "commands/print.h"
#include "commands/submit_file.h"

namespace msa::cli {
namespace {

constexpr Command kCommands[] = {
    {"cluster", "up", "start a local system and supervise it", &ClusterUp},
    {"cluster", "down", "stop it and clean up", &ClusterDown},
    {"cluster", "status", "its daemons: pid, up since, restarts, memory", &ClusterStatus},
    {"cluster", "logs", "what its daemons logged", &ClusterLogs},
    {"job", "run", "run programs on one or more modules and wait", &JobRun},
    {"job", "alloc", "wait for nodes and run a command, or a shell, beside them", &JobAlloc},
    {"job", "submit", "queue a batch script, or the jobs that a file holds", &JobSubmit},
    {"job", "list", "jobs that wait or run", &JobList},
    {"job", "history", "jobs that have ended", &JobHistory},
    {"job", "show", "all of one job", &JobShow},
    {"job", "why", "why a job waits, what is before it, and what to do", &JobWhy},
    {"job", "cancel", "end jobs", &JobCancel},
    {"job", "signal", "send a signal to the tasks of a job", &JobSignal},
    {"job", "wait", "wait for the end of a job, return its exit code", &JobWait},
    {"job", "logs", "print the output file of a job", &JobLogs},
    {"job", "lint", "look through a script for Slurm for what would go wrong", &JobLint},
    {"job", "attach", "watch the output of a running job", &JobAttach},
    {"alloc", "list", "nodes that running jobs have borrowed, and what they wait for", &AllocList},
    {"alloc", "show", "all of one grant", &AllocShow},
    {"alloc", "release", "give borrowed nodes back", &AllocRelease},
    {"spawn", "list", "namespaces that jobs have spawned", &SpawnList},
    {"module", "list", "modules", &ModuleList},
    {"module", "show", "all of one module", &ModuleShow},
    {"module", "topology", "a picture of modules, nodes and what is in use", &ModuleTopology},
    {"node", "list", "nodes", &NodeList},
    {"node", "show", "all of one node", &NodeShow},
    {"node", "drain", "start no new jobs on nodes", &NodeDrain},
    {"node", "resume", "end a drain", &NodeResume},
    {"region", "create", "create a persistent region of network attached memory", &RegionCreate},
    {"region", "list", "regions", &RegionList},
    {"region", "show", "all of one region, and who is attached", &RegionShow},
    {"region", "put", "write a file into a region", &RegionPut},
    {"region", "get", "write what a region holds to a file", &RegionGet},
    {"region", "copy", "copy a region", &RegionCopy},
    {"region", "resize", "change the sizes of a region's segments", &RegionResize},
    {"region", "acl", "show or change who may use a region", &RegionAcl},
    {"region", "rm", "remove regions", &RegionRm},
    {"region", "df", "memory of NAM nodes, and what users and jobs take of it", &RegionDf},
    {"region", "fsck", "compare regions with what NAM nodes hold", &RegionFsck},
    {"region", "snapshot", "save a region in a directory, only what has changed", &RegionSnapshot},
    {"region", "restore", "make a region of a snapshot", &RegionRestore},
    {"admin", "job-submit", "what Slurm's job_submit has to know of a system", &AdminJobSubmit},
    {"status", "", "the system at a glance", &SystemStatus},
    {"doctor", "", "look for what could go wrong here, and say what to do", &Doctor},
    {"completion", "bash", "script that completes commands in bash", &CompletionBash},
    {"completion", "zsh", "the same for zsh", &CompletionZsh},
    {"completion", "fish", "the same for fish", &CompletionFish},
    {"version", "", "version of msactl", &Version},
    {"run", "", "alias of 'job run'", &JobRun},
    {"submit", "", "alias of 'job submit'", &JobSubmit},
    {"ps", "", "alias of 'job list'", &JobList},
};
// Other names of nouns.
constexpr std::pair<std::string_view, std::string_view> kNounAliases[] = {{"nam", "region"}};
// Run by `cluster up` and by shells, not by people.
constexpr Command kHidden[] = {{"cluster", "supervise", "", &ClusterSupervise},
                               {"completion", "words", "", &CompletionWords}};

std::vector<std::string> Nouns() {
  std::vector<std::string> out;
  for (const Command& command : kCommands)
    if (std::find(out.begin(), out.end(), command.noun) == out.end()) out.emplace_back(command.noun);
  for (const auto& [alias, noun] : kNounAliases) out.emplace_back(alias);
  out.emplace_back("help");
  return out;
}

std::vector<std::string> VerbsOf(std::string_view noun) {
  std::vector<std::string> out;
  for (const Command& command : kCommands)
    if (command.noun == noun && !command.verb.empty()) out.emplace_back(command.verb);
  return out;
}

const Command* Find(std::string_view noun, std::string_view verb) {
  const auto is_it = [&](const Command& c) { return c.noun == noun && c.verb == verb; };
  const auto it = std::find_if(std::begin(kCommands), std::end(kCommands), is_it);
  if (it != std::end(kCommands)) return it;
  const auto hidden = std::find_if(std::begin(kHidden), std::end(kHidden), is_it);
  return hidden != std::end(kHidden) ? hidden : nullptr;
}

constexpr GlobalOption kGlobals[] = {
    {"--dir", "DIR", "directory of the local system (default: MSA_DIR, else the user's own)"},
    {"--server", "tls:HOST:PORT", "controller on another host, instead of --dir"},
    {"--backend", "msa|slurm|auto", kBackendHelp},
};

// Takes `--dir DIR`, `--server ADDRESS` and `--backend WHO` at `at` out of `args`, as often as it stands
// there, into `global`: the command gets it before its own arguments.
Status TakeGlobal(Args& args, std::size_t at, Args& global) {
  while (at < args.size() && FindGlobal(args[at]) != nullptr) {
    const std::size_t words = args[at].find('=') == std::string::npos ? 2 : 1;
    if (at + words > args.size())
      return Error(Code::kInvalidArgument,
                   "{} needs a value: --dir DIR, --server tls:HOST:PORT, --backend msa|slurm|auto", args[at]);
    const auto begin = args.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = begin + static_cast<std::ptrdiff_t>(words);
    global.insert(global.end(), begin, end);
    args.erase(begin, end);
  }
  return Status::Ok();
}

bool IsHelp(std::string_view word) { return word == "help" || word == "--help" || word == "-h"; }

Status UnknownNoun(const std::string& noun) {
  return Error(Code::kInvalidArgument, "unknown command '{}'; {}expected {}; see 'msactl help'", noun,
               DidYouMean(noun, Nouns()), ListNames(Nouns(), 20));
}

}  // namespace

std::span<const Command> Commands() { return kCommands; }

std::span<const GlobalOption> GlobalOptions() { return kGlobals; }

const GlobalOption* FindGlobal(std::string_view word) {
  for (const GlobalOption& option : kGlobals)
    if (word.substr(0, word.find('=')) == option.name) return &option;
  return nullptr;
}

std::string_view NounOf(std::string_view word) {
  for (const auto& [alias, noun] : kNounAliases)
    if (word == alias) return noun;
  return word;
}

int ExitCodeOf(Code code) noexcept { return msa::ExitCode(code); }

namespace {

Result<Chosen> ChooseCommand(const Args& args) {
  if (args.empty() || (IsHelp(args[0]) && args.size() == 1)) return Chosen{};
  if (args[0] == "--version" || args[0] == "-V") return Chosen{Find("version", ""), "version", {}};
  if (IsHelp(args[0])) {
    // help NOUN [VERB]: as NOUN [VERB] --help
    Args turned(args.begin() + 1,
                args.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(args.size(), 3)));
    turned.emplace_back("--help");
    return ChooseCommand(turned);
  }
  const std::string noun(NounOf(args[0]));
  if (const Command* command = Find(noun, ""))
    return Chosen{command, noun, Args(args.begin() + 1, args.end())};
  const std::vector<std::string> verbs = VerbsOf(noun);
  if (verbs.empty()) return UnknownNoun(noun);
  if (args.size() > 1 && IsHelp(args[1])) return Chosen{nullptr, noun, {}};
  if (args.size() == 1)
    return Error(Code::kInvalidArgument, "'msactl {}' needs a verb: {}; see 'msactl {} --help'", noun,
                 ListNames(verbs), noun);
  const Command* command = Find(noun, args[1]);
  if (command == nullptr)
    return Error(Code::kInvalidArgument, "unknown command '{} {}'; {}expected {}", noun, args[1],
                 DidYouMean(args[1], verbs), ListNames(verbs));
  return Chosen{command, noun, Args(args.begin() + 2, args.end())};
}

}  // namespace

Result<Chosen> Choose(const Args& args) {
  Args words = args;
  Args global;
  MSA_RETURN_IF_ERROR(TakeGlobal(words, 0, global));
  // Also between noun and verb; what follows a command that has no verb is its own.
  if (!words.empty() && Find(words[0], "") == nullptr) MSA_RETURN_IF_ERROR(TakeGlobal(words, 1, global));
  MSA_ASSIGN_OR_RETURN(Chosen chosen, ChooseCommand(words));
  chosen.rest.insert(chosen.rest.begin(), global.begin(), global.end());
  return chosen;
}

std::string Overview(std::string_view noun) {
  std::string out = noun.empty() ? "usage: msactl [--dir DIR | --server tls:HOST:PORT] [--backend "
                                   "msa|slurm|auto] NOUN VERB [OPTIONS] [ARGS...]\n\nRuns jobs on a modular "
                                   "supercomputer and shows what it does.\n\n"
                                 : fmt::format("usage: msactl {} VERB [OPTIONS] [ARGS...]\n\n", noun);
  for (const Command& command : kCommands) {
    if (!noun.empty() && command.noun != noun) continue;
    const std::string name =
        command.verb.empty() ? std::string(command.noun) : fmt::format("{} {}", command.noun, command.verb);
    out += fmt::format("  {:<18}{}\n", name, command.summary);
  }
  for (const auto& [alias, of] : kNounAliases)
    if (noun.empty()) out += fmt::format("  {:<18}alias of '{}'\n", alias, of);
  out += "\n'msactl NOUN VERB --help' explains one command.\n";
  if (noun.empty()) {
    out +=
        "A system is found by --dir or --server, else MSA_DIR, else the user's own ($XDG_RUNTIME_DIR/msa or "
        "/tmp/msa-$UID), else the machine's, else by 'server = tls:HOST:PORT' in /etc/msa/client.conf.\n"
        "Where Slurm schedules (--backend slurm, MSA_BACKEND, or 'backend = slurm' in that file), the "
        "commands "
        "on jobs, modules and nodes speak of Slurm's; alloc, spawn, region and status of msa's.\n"
        "Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 denied, 5 more than there is or than is "
        "allowed, 6 wait\n"
        "timed out, 7 conflict, 8 daemon unreachable, 9 partial; run, attach and wait: the program's, "
        "125-127 for a launch that "
        "failed.\n"
        "\nfirst steps: msactl cluster up; msactl run -n 2 hostname; msactl module topology; msactl cluster "
        "down\n";
  }
  return out;
}

int Dispatch(const Args& args) {
  Result<Chosen> chosen = Choose(args);
  Result<int> result = chosen.status();
  if (chosen.ok() && chosen->command == nullptr) {
    const Status printed = Print(Overview(chosen->noun));
    result = printed.ok() ? Result<int>(0) : Result<int>(printed);
  } else if (chosen.ok()) {
    result = chosen->command->run(chosen->rest);
  }
  if (result.ok()) return *result;
  PrintError(result.status());
  return ExitCodeOf(result.status().code());
}

}  // namespace msa::cli
