#include "backend/translate.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>

#include "msa/topology/suggest.h"

namespace msa::cli {
namespace {

using Words = std::vector<std::string>;

enum class Tool { kSrun, kSbatch, kSalloc };

struct Rule {
  std::string_view name;
  std::string_view slurm;   // what it becomes, with its value if it ends with '='; empty: it is refused
  std::string_view remedy;  // Slurm's way
};

// Others keep their name.
constexpr auto kRunRules = std::to_array<Rule>({
    {"job", "--jobid=", {}},
    {"no-bind", "--cpu-bind=none", {}},
    {"oversubscribe", "--overcommit", {}},
    {"detach",
     {},
     "srun stays with its tasks; queue them with 'msactl submit --wrap=COMMAND', which is sbatch's"},
    {"no-mpi-library", {}, "under Slurm --msa=no runs a step without msa, its MPI library and its spawn"},
    {"query", {}, "Slurm chooses nodes by --constraint, --nodelist and --exclude; use these"},
    {"spawn-max", {}, "Slurm's limits (QOS, association) bound what a job may get; leave it out"},
});
constexpr auto kSubmitRules = std::to_array<Rule>({
    {"oversubscribe", "--overcommit", {}},
    {"from", {}, "sbatch takes one job at a time; use --array for many alike, or a loop"},
});

constexpr auto kAllocRules = std::to_array<Rule>({
    {"oversubscribe", "--overcommit", {}},
    {"propagate", {}, "salloc has none; give it to the runs in the allocation, which are srun's"},
    {"query", {}, "Slurm chooses nodes by --constraint, --nodelist and --exclude; use these"},
    {"spawn-max", {}, "Slurm's limits (QOS, association) bound what a job may get; leave it out"},
});

std::span<const Rule> RulesOf(Tool tool) {
  if (tool == Tool::kSrun) return kRunRules;
  if (tool == Tool::kSbatch) return kSubmitRules;
  return kAllocRules;
}

// Slurm's lists have no entry for a thing that is only sbatch's.
constexpr std::array<std::string_view, 3> kFiles = {"output", "error", "input"};

std::string Shown(const TypedOption& option) {
  return option.where.empty() ? "--" + option.name : option.where + ": --" + option.name;
}

Status Refuse(const TypedOption& option, std::string_view why) {
  return Error(Code::kInvalidArgument, "{} has no counterpart in Slurm: {}", Shown(option), why);
}

const TypedOption* Find(const std::vector<TypedOption>& options, std::string_view name) {
  const auto it =
      std::find_if(options.rbegin(), options.rend(), [&](const auto& o) { return o.name == name; });
  return it == options.rend() ? nullptr : &*it;
}

// Of a step inside a job: the component in that partition.
Result<std::string> ModuleInJob(const TypedOption& option, const Words& partitions, bool group_given) {
  std::string groups;
  for (std::size_t i = 0; i < partitions.size(); ++i)
    if (partitions[i] == option.value) groups += fmt::format("{}{}", groups.empty() ? "" : ",", i);
  if (groups.empty())
    return Error(
        Code::kInvalidArgument,
        "{}: the job around this step has no nodes in '{}', it is in {}; name one of these, or ask for '{}' "
        "when the job is submitted",
        Shown(option), option.value, ListNames(partitions), option.value);
  if (partitions.size() == 1 || group_given) return std::string();
  return "--het-group=" + groups;
}

Result<std::string> ModuleWord(const TypedOption& option, const SlurmPlace& place) {
  const Words& partitions = place.partitions;
  const bool is_partition = std::find(partitions.begin(), partitions.end(), option.value) != partitions.end();
  if (is_partition || partitions.empty()) return "--partition=" + option.value;
  if (place.job_submit) return "--module=" + option.value;
  return Error(
      Code::kInvalidArgument,
      "{}: '{}' is no partition of Slurm; {}there are {}. Kinds, ids and features are understood where "
      "slurm.conf has JobSubmitPlugins=msa or lua",
      Shown(option), option.value, DidYouMean(option.value, partitions), ListNames(partitions));
}

class Translator {
 public:
  Translator(Tool tool, const SlurmPlace& place) : tool_(tool), place_(place) {}

  Result<Words> Component(const std::vector<TypedOption>& options) {
    Words out;
    std::string regions;
    for (const TypedOption& option : options) {
      if (option.name == "nam-region") {
        // Repeatable with msactl; the plugin takes one list.
        regions += (regions.empty() ? "" : ",") + option.value;
        continue;
      }
      MSA_ASSIGN_OR_RETURN(std::string word, Word(option, options));
      if (!word.empty()) out.push_back(std::move(word));
    }
    if (!regions.empty()) out.push_back("--nam-region=" + regions);
    return out;
  }

 private:
  Result<std::string> Word(const TypedOption& option, const std::vector<TypedOption>& all) const {
    if (option.name == "module" || (tool_ != Tool::kSrun && option.name == "partition"))
      return Module(option, all);
    if (option.name == "world") {
      if (option.value == "joint") return std::string();
      return Refuse(
          option,
          "components of one srun share MPI_COMM_WORLD; start separate worlds by several sruns with "
          "--het-group");
    }
    const bool file = std::find(kFiles.begin(), kFiles.end(), option.name) != kFiles.end();
    if (tool_ == Tool::kSbatch && file && option.value == "none")
      return fmt::format("--{}=/dev/null", option.name);
    const std::span<const Rule> rules = RulesOf(tool_);
    const auto rule =
        std::find_if(rules.begin(), rules.end(), [&](const Rule& r) { return r.name == option.name; });
    if (rule == rules.end()) return "--" + option.name + (option.has_value ? "=" + option.value : "");
    if (rule->slurm.empty()) return Refuse(option, rule->remedy);
    return std::string(rule->slurm) + (rule->slurm.ends_with('=') ? option.value : "");
  }

  Result<std::string> Module(const TypedOption& option, const std::vector<TypedOption>& all) const {
    if (tool_ != Tool::kSrun) return ModuleWord(option, place_);
    if (Find(all, "job") != nullptr)
      return Refuse(option, "with --job a step runs in that job's nodes; choose components by --het-group");
    if (place_.job_partitions.empty()) return ModuleWord(option, place_);
    return ModuleInJob(option, place_.job_partitions, Find(all, "het-group") != nullptr);
  }

  const Tool tool_;
  const SlurmPlace& place_;
};

// The limit is the whole job's; Slurm has one for each component.
void AddTime(const TypedCall& call, std::size_t component, Words* words) {
  const TypedOption* time = Find(call.components[0], "time");
  if (component > 0 && time != nullptr && Find(call.components[component], "time") == nullptr)
    words->push_back("--time=" + time->value);
}

std::string_view ValueOf(const Words& env, std::string_view name) {
  for (const std::string& line : env)
    if (line.size() > name.size() && line[name.size()] == '=' && line.starts_with(name))
      return std::string_view(line).substr(name.size() + 1);
  return {};
}

// Of "Key     = value", without blanks around it.
std::string_view ConfigValue(std::string_view config, std::string_view key) {
  const std::size_t at = config.find(fmt::format("\n{}", key));
  if (at == std::string_view::npos) return {};
  std::string_view line = config.substr(at + 1);
  line = line.substr(0, line.find('\n'));
  const std::size_t equals = line.find('=');
  std::string_view value = equals == std::string_view::npos ? "" : line.substr(equals + 1);
  while (value.starts_with(' ')) value.remove_prefix(1);
  while (value.ends_with(' ')) value.remove_suffix(1);
  return value;
}

// msactl's own: it prints and waits as ever.
bool TakeOwn(const TypedOption& option, SbatchCall* out) {
  if (option.name == "parsable") out->parsable = true;
  if (option.name == "quiet") out->quiet = true;
  if (option.name == "wait") out->wait = true;
  if (option.name == "wrap") out->wraps = true;
  return option.name == "parsable";
}

}  // namespace

Words PartitionsAround(const Words& env) {
  if (ValueOf(env, "SLURM_JOB_ID").empty()) return {};
  const std::string_view size = ValueOf(env, "SLURM_HET_SIZE");
  std::uint32_t components = 0;
  const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), components);
  Words out;
  // 128: as many components as Slurm allows by default.
  if (error == std::errc() && components > 0 && components <= 128) {
    for (std::uint32_t i = 0; i < components; ++i)
      out.emplace_back(ValueOf(env, fmt::format("SLURM_JOB_PARTITION_HET_GROUP_{}", i)));
    return out;
  }
  const std::string_view only = ValueOf(env, "SLURM_JOB_PARTITION");
  if (!only.empty()) out.emplace_back(only);
  return out;
}

std::string ClusterName(std::string_view config) { return std::string(ConfigValue(config, "ClusterName")); }

bool HasJobSubmit(std::string_view config) {
  std::string_view list = ConfigValue(config, "JobSubmitPlugins");
  while (!list.empty()) {
    std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), item.size() + 1));
    while (item.starts_with(' ')) item.remove_prefix(1);
    if (item == "msa" || item == "lua" || item == "job_submit/msa" || item == "job_submit/lua") return true;
  }
  return false;
}

bool NeedsJobSubmit(const TypedCall& call, const Words& partitions) {
  for (const std::vector<TypedOption>& options : call.components)
    for (const TypedOption& option : options)
      if (option.name == "module" &&
          std::find(partitions.begin(), partitions.end(), option.value) == partitions.end())
        return true;
  return false;
}

Result<Words> SrunWords(const TypedCall& call, const SlurmPlace& place) {
  Words out = {"srun"};
  Translator translator(Tool::kSrun, place);
  for (std::size_t i = 0; i < call.components.size(); ++i) {
    Result<Words> words = translator.Component(call.components[i]);
    if (!words.ok() && call.components.size() > 1)
      return words.status().WithContext(fmt::format("component {}", i));
    if (!words.ok()) return words.status();
    if (i > 0) out.emplace_back(":");
    out.insert(out.end(), words->begin(), words->end());
    AddTime(call, i, &out);
    const Words& program = call.programs[i];
    if (std::find(program.begin(), program.end(), ":") != program.end())
      return Error(Code::kInvalidArgument,
                   "component {}: srun takes the argument ':' for the end of a component; put the command "
                   "into a script",
                   i);
    out.insert(out.end(), program.begin(), program.end());
  }
  return out;
}

Result<Words> SallocWords(const TypedCall& call, const SlurmPlace& place) {
  Words out = {"salloc"};
  Translator translator(Tool::kSalloc, place);
  for (std::size_t i = 0; i < call.components.size(); ++i) {
    Result<Words> words = translator.Component(call.components[i]);
    if (!words.ok() && call.components.size() > 1)
      return words.status().WithContext(fmt::format("component {}", i));
    if (!words.ok()) return words.status();
    if (i > 0) out.emplace_back(":");
    out.insert(out.end(), words->begin(), words->end());
    AddTime(call, i, &out);
  }
  if (call.script.empty()) return out;
  if (Find(call.components[0], "no-shell") != nullptr)
    return Error(Code::kInvalidArgument, "--no-shell runs no command; leave one of them out");
  out.push_back(call.script);
  out.insert(out.end(), call.script_args.begin(), call.script_args.end());
  return out;
}

Result<SbatchCall> SbatchWords(const TypedCall& call, const SlurmPlace& place) {
  SbatchCall out;
  out.words = {"sbatch", "--parsable"};
  Translator translator(Tool::kSbatch, place);
  for (std::size_t i = 0; i < call.components.size(); ++i) {
    std::vector<TypedOption> options = call.components[i];
    std::erase_if(options, [&](const TypedOption& option) { return TakeOwn(option, &out); });
    Result<Words> words = translator.Component(options);
    if (!words.ok() && call.components.size() > 1)
      return words.status().WithContext(fmt::format("component {}", i));
    if (!words.ok()) return words.status();
    if (i > 0) out.words.emplace_back(":");
    out.words.insert(out.words.end(), words->begin(), words->end());
    AddTime(call, i, &out.words);
  }
  if (out.wraps && !call.script.empty())
    return Error(Code::kInvalidArgument, "--wrap makes the script, '{}' is one too; leave one of them out",
                 call.script);
  return out;
}

Result<std::uint64_t> SubmittedJob(std::string_view text) {
  std::uint64_t id = 0;
  const std::string_view first = text.substr(0, text.find_first_of(";\n"));
  const auto [end, error] = std::from_chars(first.data(), first.data() + first.size(), id);
  if (error == std::errc() && end == first.data() + first.size() && id > 0) return id;
  return Error(Code::kDataLoss, "sbatch printed '{}', expected the number of a job; see 'msactl job list'",
               first.substr(0, 80));
}

}  // namespace msa::cli
