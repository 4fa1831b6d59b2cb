#include "plugin_options.h"

#include <algorithm>
#include <utility>

#include "msa/job/nam_options.h"

namespace msa::spank {
namespace {

struct Named {
  Option option;
  const char* name;
  std::string wire::SlurmOptions::*field;
};
constexpr Named kFields[] = {
    {Option::kModule, "--module", &wire::SlurmOptions::module},
    {Option::kNam, "--nam", &wire::SlurmOptions::nam},
    {Option::kNamRegion, "--nam-region", &wire::SlurmOptions::nam_region},
    {Option::kGateways, "--gateways", &wire::SlurmOptions::gateways},
    {Option::kOnChildFailure, "--on-child-failure", &wire::SlurmOptions::on_child_failure},
};

Result<Use> ParseUse(std::string_view name, std::string_view value) {
  if (value == "auto") return Use::kAuto;
  if (value == "yes") return Use::kYes;
  if (value == "no") return Use::kNo;
  return Error(Code::kInvalidArgument,
               "{}={}: write auto (where msa runs), yes (refuse without it) or no (Slurm alone)", name,
               value);
}

}  // namespace

const std::vector<OptionSpec>& OptionSpecs() {
  static const std::vector<OptionSpec> specs = {
      {Option::kMsa, "msa", "auto|yes|no",
       "start the tasks as one MPI world that may spawn: where msa runs (auto), or else refuse (yes)"},
      {Option::kModule, "module", "NAME",
       "module of the system to run on, by name or kind; may be given by component, as 0:cluster,1:booster"},
      {Option::kNam, "nam", "SIZE",
       "network attached memory of the job, as 4G; may be given by component, as 0:1G,1:2G"},
      {Option::kNamRegion, "nam-region", "NAME[:ro|rw],...",
       "regions of network attached memory that the job uses"},
      {Option::kGateways, "gateways", "N",
       "gateway nodes for this job alone (MSA_GATEWAYS); may be given by component, as 0:1,1:1"},
      {Option::kOnChildFailure, "on-child-failure", "kill|event",
       "what becomes of a step when processes that it spawned fail (default: kill)"},
  };
  return specs;
}

Status SetOption(Options& options, Option option, std::string_view value) {
  if (option == Option::kMsa) {
    MSA_ASSIGN_OR_RETURN(options.use, ParseUse("--msa", value));
    options.use_given = true;
    return Status::Ok();
  }
  Status judged;
  if (value.empty()) judged = Error(Code::kInvalidArgument, "the value is missing");
  if (judged.ok() && option == Option::kNam)
    judged = ParseNamOfComponents(value).status().WithContext(fmt::format("--nam={}", value));
  if (judged.ok() && option == Option::kNamRegion)
    judged = ParseNamRegions(value).status().WithContext(fmt::format("--nam-region={}", value));
  if (judged.ok() && option == Option::kGateways)
    judged = ParseGatewaysOfComponents(value).status().WithContext(fmt::format("--gateways={}", value));
  if (judged.ok() && option == Option::kOnChildFailure && value != "kill" && value != "event")
    judged = Error(Code::kInvalidArgument,
                   "--on-child-failure={}: write kill (end the step) or event (go on without them)", value);
  const auto field = std::find_if(std::begin(kFields), std::end(kFields),
                                  [&](const Named& f) { return f.option == option; });
  if (!judged.ok()) return value.empty() ? judged.WithContext(field->name) : judged;
  options.step.*field->field = std::string(value);
  return Status::Ok();
}

Result<PluginArguments> ParseArguments(const std::vector<std::string>& words) {
  PluginArguments arguments;
  for (const std::string& word : words) {
    const std::size_t at = word.find('=');
    const std::string key = word.substr(0, at);
    const std::string value = at == std::string::npos ? "" : word.substr(at + 1);
    if (key == "socket" && value.starts_with('/')) {
      arguments.socket = value;
    } else if (key == "default") {
      MSA_ASSIGN_OR_RETURN(arguments.use, ParseUse("default", value));
    } else {
      return Error(Code::kInvalidArgument,
                   "plugstack.conf: '{}' is no argument of msa_spank.so; it takes socket=/PATH and "
                   "default=auto|yes|no",
                   word);
    }
  }
  return arguments;
}

Status ComponentCheck::Add(const Options& options) {
  if (!std::exchange(any_, true)) {
    first_ = options;
    return Status::Ok();
  }
  for (const Named& field : kFields) {
    const std::string& one = first_.step.*field.field;
    const std::string& other = options.step.*field.field;
    // Slurm hands an option of the first component to those that do not give it.
    if (one == other) continue;
    return Error(Code::kInvalidArgument,
                 "{}: the components differ ('{}' and '{}'), and Slurm hands a job one value only; write one "
                 "value with all of them, as in {}=0:{},1:{}",
                 field.name, one, other, field.name, one.empty() ? "..." : one,
                 other.empty() ? "..." : other);
  }
  if (first_.use != options.use)
    return Error(Code::kInvalidArgument,
                 "--msa differs between the components; a step is msa's as a whole or not at all");
  return Status::Ok();
}

}  // namespace msa::spank
