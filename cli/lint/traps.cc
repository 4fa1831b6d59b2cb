#include "lint/traps.h"

#include <algorithm>
#include <charconv>
#include <span>

#include "msa/job/nam_options.h"
#include "msa/topology/size_text.h"
#include "msa/topology/suggest.h"

#include "lint/batch_script.h"
#include "output/text.h"

namespace msa::cli {
namespace {

// Options that Slurm hands over from the first component alone, since they are a plugin's.
constexpr std::string_view kPluginOptions[] = {"module",   "nam", "nam-region",
                                               "gateways", "msa", "on-child-failure"};
// Options of the batch script, which runs in the first component.
constexpr std::string_view kScriptOptions[] = {"output", "error",  "input",      "open-mode",
                                               "chdir",  "export", "export-file"};

bool Holds(std::span<const std::string_view> list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::optional<std::uint32_t> Number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "0,2-3" as numbers; nullopt: it is a variable, or nonsense that srun itself refuses.
std::optional<std::vector<std::uint32_t>> GroupList(std::string_view text) {
  std::vector<std::uint32_t> out;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const std::size_t dash = part.find('-');
    const auto first = Number(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : Number(part.substr(dash + 1));
    if (!first || !last || *last < *first || *last > 1024) return std::nullopt;
    for (std::uint32_t i = *first; i <= *last; ++i) out.push_back(i);
  }
  return out;
}

// The part of "0:A,1:B" that is a component's, or all of a value without ':'.
std::string PartOf(const std::string& value, std::size_t component) {
  if (value.find(':') == std::string::npos) return value;
  const std::string prefix = fmt::format("{}:", component);
  for (std::string_view rest = value; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(','));
    if (part.starts_with(prefix)) return std::string(part.substr(prefix.size()));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  }
  return "";
}

// One part of an srun command, between ':'.
struct StepPart {
  std::vector<LintOption> options;
  std::string program;
  const LintOption* Find(std::string_view name) const {
    const auto it =
        std::find_if(options.begin(), options.end(), [&](const LintOption& o) { return o.name == name; });
    return it == options.end() ? nullptr : &*it;
  }
};

std::vector<StepPart> StepParts(const LintCommand& command) {
  std::vector<StepPart> out;
  std::vector<std::string> words;
  const auto finish = [&] {
    StepPart part;
    std::size_t rest = 0;
    part.options = ReadLintOptions(words, command.line, LintTool::kSrun, &rest);
    if (rest < words.size()) part.program = words[rest];
    out.push_back(std::move(part));
    words.clear();
  };
  for (std::size_t i = 1; i < command.words.size(); ++i) {
    if (command.words[i] == ":")
      finish();
    else
      words.push_back(command.words[i]);
  }
  finish();
  return out;
}

class Linter {
 public:
  Linter(const LintScript& script, const SystemTopology* topology) : script_(script), topology_(topology) {}

  std::vector<LintFinding> Run() {
    for (const LintFault& fault : script_.faults) Fault(fault);
    Array();
    Time();
    PluginOptions();
    ScriptOptions();
    InheritedTasks();
    for (std::size_t i = 0; i < script_.components.size(); ++i) Component(i);
    Nam();
    for (const LintNam& nam : script_.nam) Directive(nam);
    for (const LintCommand& command : script_.commands) Command(command);
    Background();
    for (const LintScript::Line& line : script_.body) Variables(line);
    std::stable_sort(findings_.begin(), findings_.end(),
                     [](const LintFinding& a, const LintFinding& b) { return a.line < b.line; });
    return std::move(findings_);
  }

 private:
  void Add(std::size_t line, std::string_view trap, std::string what, std::string why, std::string instead) {
    findings_.push_back({line, std::string(trap), std::move(what), std::move(why), std::move(instead)});
  }

  void Fault(const LintFault& fault);
  void Array();
  void Time();
  void PluginOptions();
  void ScriptOptions();
  void InheritedTasks();
  void Component(std::size_t index);
  void Nam();
  void Directive(const LintNam& nam);
  void Command(const LintCommand& command);
  void Step(const LintCommand& command);
  void Groups(const LintCommand& command, const std::vector<StepPart>& parts);
  void Background();
  void Variables(const LintScript::Line& line);

  std::string ModuleOf(std::size_t component) const {
    const LintOption* module = script_.components.front().Find("module");
    return module == nullptr ? "" : PartOf(module->value, component);
  }
  bool AsksMsa() const {
    const LintComponent& first = script_.components.front();
    return std::any_of(first.options.begin(), first.options.end(),
                       [](const LintOption& o) { return Holds(kPluginOptions, o.name); });
  }

  const LintScript& script_;
  const SystemTopology* const topology_;
  std::vector<LintFinding> findings_;
};

void Linter::Fault(const LintFault& fault) {
  using Kind = LintFault::Kind;
  switch (fault.kind) {
    case Kind::kNoInterpreter:
      return Add(fault.line, "no-interpreter", "the first line does not begin with '#!'",
                 "sbatch refuses the script", "#!/bin/bash");
    case Kind::kDosLines:
      return Add(fault.line, "dos-lines", "lines end as on Windows", "sbatch refuses the script",
                 "the same text with Unix line ends (dos2unix)");
    case Kind::kLate:
      return Add(fault.line, "late-option", fmt::format("'{}' stands behind the first command", fault.text),
                 "sbatch ignores it without a word", "it above the first command");
    case Kind::kMisspelled:
      return Add(fault.line, "misspelled", fmt::format("'{}' is taken for a comment", fault.text),
                 "its options have no effect",
                 "'#SBATCH' at the start of the line, in capitals, without a blank");
    case Kind::kQuote:
      return Add(fault.line, "quote", fmt::format("'{}' does not end as it begins", fault.text),
                 "a quote is not closed, and what sbatch makes of it is chance", "the closing quote");
  }
}

void Linter::Array() {
  if (!script_.het()) return;
  for (const LintComponent& component : script_.components)
    if (const LintOption* array = component.Find("array"))
      Add(array->line, "array", fmt::format("--array={} in a heterogeneous job", array->value),
          "Slurm refuses the two together",
          "a loop that submits the job for each index, or an array of plain jobs");
}

void Linter::Time() {
  const LintComponent& first = script_.components.front();
  if (first.Find("time") != nullptr) return;
  Add(1, "no-time-limit", "no time limit (--time)",
      script_.het()
          ? "het jobs start by backfill alone, which plans by time limits: without one the job takes the "
            "partition's longest and starts late"
          : "the job takes the partition's longest, which backfill fits into no gap",
      "#SBATCH --time=HH:MM:SS in the first component");
}

void Linter::PluginOptions() {
  const LintComponent& first = script_.components.front();
  for (std::size_t i = 1; i < script_.components.size(); ++i)
    for (const LintOption& option : script_.components[i].options) {
      if (!Holds(kPluginOptions, option.name)) continue;
      const LintOption* given = first.Find(option.name);
      if (given != nullptr && given->value == option.value) continue;
      const bool divisible = option.name == "module" || option.name == "nam" || option.name == "gateways";
      const std::string of_first = given == nullptr ? "" : PartOf(given->value, 0);
      Add(option.line, "first-component-only",
          fmt::format("--{}={} of component {}", option.name, option.value, i),
          fmt::format(
              "of a plugin's option Slurm hands the first component's value over, {}, to all components",
              given == nullptr ? "here none" : fmt::format("here '{}'", given->value)),
          divisible ? fmt::format("in the first component: #SBATCH --{}={}{}:{}", option.name,
                                  of_first.empty() ? "" : fmt::format("0:{},", of_first), i, option.value)
                    : fmt::format("in the first component, once for the job: #SBATCH --{}={}", option.name,
                                  option.value));
    }
}

void Linter::ScriptOptions() {
  for (std::size_t i = 1; i < script_.components.size(); ++i)
    for (const LintOption& option : script_.components[i].options)
      if (Holds(kScriptOptions, option.name))
        Add(option.line, "script-option",
            fmt::format("--{}={} of component {}", option.name, option.value, i),
            "the script runs in the first component, and this option of another one has no effect on it",
            fmt::format("it in the first component, or --{} with srun", option.name));
}

// Measured with Slurm 22.05: "More processors requested than permitted" where the other nodes are smaller.
void Linter::InheritedTasks() {
  const LintOption* given = script_.components.front().Find("ntasks-per-node");
  if (given == nullptr) return;
  for (std::size_t i = 1; i < script_.components.size(); ++i) {
    const LintComponent& component = script_.components[i];
    if (component.Find("ntasks-per-node") != nullptr || component.Find("ntasks") != nullptr) continue;
    Add(component.line, "inherited-tasks",
        fmt::format("component {} gives no --ntasks-per-node, the first one gives {}", i, given->value),
        "srun takes the first component's for it as well, and fails where there are fewer cores",
        "--ntasks-per-node=N in each component");
  }
}

void Linter::Component(std::size_t index) {
  if (topology_ == nullptr) return;
  const LintComponent& component = script_.components[index];
  const LintOption* partition = component.Find("partition");
  const std::string asked = ModuleOf(index);
  std::string selector = asked;
  if (selector.empty() && partition != nullptr && topology_->FindModule(partition->value) != nullptr)
    selector = partition->value;
  if (selector.empty()) return;
  const auto modules = topology_->SelectModules(selector);
  if (!modules.ok()) {
    const LintOption* option = script_.components.front().Find("module");
    return Add(option->line, "no-such-module",
               fmt::format("--module={}: {}", option->value, modules.status().message()),
               "the job is refused", "the name of a module, see 'msactl module list'");
  }
  std::size_t exist = 0;
  for (const Module* module : *modules) exist += topology_->NodesOf(module->id).size();
  const LintOption* nodes = component.Find("nodes");
  if (nodes == nullptr) return;
  const auto least = Number(std::string_view(nodes->value).substr(0, nodes->value.find('-')));
  if (least && *least > exist)
    Add(nodes->line, "too-many-nodes",
        fmt::format("--nodes={} of module '{}', which has {}", nodes->value, selector, exist),
        script_.het() ? "Slurm takes the job, which then waits for ever" : "the job can never start",
        fmt::format("--nodes={} or fewer", exist));
}

void Linter::Nam() {
  const LintOption* nam = script_.components.front().Find("nam");
  if (nam == nullptr) return;
  const Result<Bytes> size = ParseNamOfComponents(nam->value);
  if (!size.ok())
    return Add(nam->line, "nam-size", fmt::format("--nam={}: {}", nam->value, size.status().message()),
               "sbatch refuses it",
               "one size for the job, as --nam=4G, or one for each component, as --nam=0:1G,1:2G");
  for (std::size_t i = script_.components.size(); i < 128; ++i)
    if (nam->value.find(':') != std::string::npos && !PartOf(nam->value, i).empty())
      return Add(nam->line, "no-such-component", fmt::format("--nam={} names component {}", nam->value, i),
                 fmt::format("the job has {}, counted from 0", Count(script_.components.size(), "component")),
                 "numbers of components that exist");
  if (topology_ == nullptr) return;
  std::uint64_t exist = 0;
  for (const NodeSpec& node : topology_->nodes) exist += node.nam.value;
  if (size->value > exist)
    Add(nam->line, "too-much-nam",
        fmt::format("--nam={}: {} of network attached memory exist", nam->value, SizeText(Bytes(exist))),
        "the job can never start", fmt::format("--nam={} or less", SizeText(Bytes(exist))));
}

void Linter::Directive(const LintNam& nam) {
  const std::string text = fmt::format("#NAM {}", fmt::join(nam.words, " "));
  if (nam.late)
    return Add(nam.line, "late-option", fmt::format("'{}' stands behind the first command", text),
               "Slurm reads such lines, people take it for a step of the script",
               "it above the first command");
  const auto wants = [&](std::size_t words) { return nam.words.size() == words; };
  const std::string verb = nam.words.empty() ? "" : nam.words[0];
  const bool good = (verb == "create" && (wants(3) || (wants(4) && nam.words[3] == "persistent"))) ||
                    ((verb == "stage_in" || verb == "stage_out") && wants(3)) || (verb == "use" && wants(2));
  if (!good)
    return Add(nam.line, "nam-directive", fmt::format("'{}' is no directive", text),
               "the job is refused or held",
               "#NAM create NAME SIZE [persistent], #NAM stage_in FILE NAME, #NAM use NAME[:ro], or #NAM "
               "stage_out NAME FILE");
  Status judged;
  if (verb == "create") judged = ParseMemory(nam.words[2]).status();
  std::string region = verb == "stage_in" ? nam.words[2] : nam.words[1];
  // The job's id takes its place.
  for (std::size_t at = 0; (at = region.find("%j", at)) != std::string::npos;) region.replace(at, 2, "1");
  if (judged.ok()) judged = ParseNamRegion(region).status();
  if (judged.ok() && verb != "use" && region.find(':') != std::string::npos)
    judged = Error(Code::kInvalidArgument, "'{}': rights stand with 'use' alone", region);
  const std::string file = verb == "stage_in" ? nam.words[1] : verb == "stage_out" ? nam.words[2] : "/";
  if (judged.ok() && !file.starts_with('/'))
    judged = Error(Code::kInvalidArgument, "'{}' is no absolute path", file);
  if (!judged.ok())
    Add(nam.line, "nam-directive", fmt::format("'{}': {}", text, judged.message()),
        "the job is refused or held", "a name of letters and digits, a size as 4G, the whole path of a file");
}

void Linter::Command(const LintCommand& command) {
  const std::string_view program = BaseName(command.words.front());
  if (program == "srun") return Step(command);
  if (program == "mpirun" || program == "mpiexec" || program == "orterun")
    Add(command.line, "mpirun", fmt::format("'{}' starts the program", program),
        script_.het()
            ? "it sees the first component's nodes alone, and what it starts cannot spawn onto modules"
            : "it starts daemons of its own, and what they start cannot spawn onto modules or reach NAM",
        script_.het() ? "srun --het-group=0,1 PROGRAM" : "srun PROGRAM");
}

void Linter::Step(const LintCommand& command) {
  const std::vector<StepPart> parts = StepParts(command);
  for (const StepPart& part : parts)
    if (const LintOption* mpi = part.Find("mpi");
        mpi != nullptr && mpi->value != "none" && mpi->value != "openmpi") {
      if (!script_.het() && !AsksMsa() && parts.size() == 1) continue;
      Add(command.line, "other-mpi", fmt::format("srun --mpi={}", mpi->value),
          "msa leaves such a step alone: no world across modules, no spawn, no NAM", "srun without --mpi");
      break;
    }
  if (script_.het()) Groups(command, parts);
}

void Linter::Groups(const LintCommand& command, const std::vector<StepPart>& parts) {
  const std::size_t components = script_.components.size();
  // Behind "srun $OPTIONS" an option is not read as one, but it is there.
  bool any = std::any_of(command.words.begin(), command.words.end(), [](const std::string& word) {
    return word.starts_with("--het-group") || word.starts_with("--pack-group");
  });
  for (const StepPart& part : parts) {
    const LintOption* group = part.Find("het-group");
    if (group == nullptr) continue;
    const auto list = GroupList(group->value);
    if (!list) continue;
    for (const std::uint32_t number : *list)
      if (number >= components)
        return Add(command.line, "no-such-component",
                   fmt::format("srun --het-group={} names component {}", group->value, number),
                   fmt::format("the job has {}, counted from 0", Count(components, "component")),
                   "numbers of components that exist");
  }
  const bool other_job =
      std::any_of(parts.begin(), parts.end(), [](const StepPart& p) { return p.Find("jobid") != nullptr; });
  if (any || parts.size() > 1 || other_job) return;
  std::string all = "0";
  for (std::size_t i = 1; i < components; ++i) all += fmt::format(",{}", i);
  Add(command.line, "missing-het-group", "srun without --het-group in a heterogeneous job",
      "the step runs on the first component alone",
      fmt::format("srun --het-group={} for all components, or --het-group=0 where the first is meant", all));
}

void Linter::Background() {
  const LintCommand* last = nullptr;
  for (const LintCommand& command : script_.commands) {
    const std::string_view program = BaseName(command.words.front());
    if (program == "srun" && command.background) last = &command;
    if (program == "wait") last = nullptr;
  }
  if (last != nullptr)
    Add(last->line, "no-wait", "srun in the background, and no 'wait' behind it",
        "the job ends with the script, and the step is killed", "wait as the last command");
}

void Linter::Variables(const LintScript::Line& line) {
  if (!script_.het()) return;
  constexpr std::string_view kNames[] = {"SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_JOB_NUM_NODES",
                                         "SLURM_NNODES", "SLURM_TASKS_PER_NODE"};
  for (const std::string_view name : kNames) {
    for (std::size_t at = 0; (at = line.text.find(name, at)) != std::string::npos; at += name.size()) {
      const char before = at == 0 ? ' ' : line.text[at - 1];
      const std::size_t end = at + name.size();
      const char after = end < line.text.size() ? line.text[end] : ' ';
      const bool longer = after == '_' || (after >= 'A' && after <= 'Z') || (after >= '0' && after <= '9');
      if ((before != '$' && before != '{') || longer) continue;
      const std::string_view group = name == "SLURM_NODELIST" ? "SLURM_JOB_NODELIST"
                                     : name == "SLURM_NNODES" ? "SLURM_JOB_NUM_NODES"
                                                              : name;
      Add(line.number, "first-component-variable", fmt::format("${} in a heterogeneous job", name),
          "it speaks of the first component alone", fmt::format("${}_HET_GROUP_0, ..._1 and so on", group));
      return;
    }
  }
}

}  // namespace

std::vector<LintFinding> FindTraps(std::string_view script, const SystemTopology* topology) {
  const LintScript read = ReadLintScript(script);
  return Linter(read, topology).Run();
}

std::string ShowLint(const std::string& file, const std::vector<LintFinding>& findings) {
  std::string out;
  for (const LintFinding& f : findings)
    out += Printable(fmt::format("{}:{}: {}: {}; write {}", file, f.line, f.what, f.why, f.instead)) + "\n";
  return out +
         fmt::format("{}: {}\n", file, findings.empty() ? "no findings" : Count(findings.size(), "finding"));
}

Listing LintListing(const std::string& file, const std::vector<LintFinding>& findings) {
  Listing out;
  out.kind = "LintFindingList";
  out.columns = {{"LINE", false, true}, {"TRAP"}, {"WHAT"}, {"WHY"}, {"INSTEAD"}};
  for (const LintFinding& f : findings)
    out.rows.push_back({fmt::format("{}:{}", file, f.line),
                        {fmt::format("{}", f.line), f.trap, f.what, f.why, f.instead},
                        Document::Object{{"file", file},
                                         {"line", std::uint64_t{f.line}},
                                         {"trap", f.trap},
                                         {"what", f.what},
                                         {"why", f.why},
                                         {"instead", f.instead}}});
  out.empty_text = fmt::format("{}: no findings", file);
  return out;
}

}  // namespace msa::cli
