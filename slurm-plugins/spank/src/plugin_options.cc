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

// "--nam=1G, --gateways=1", or without the values.
std::string AskedOfMsa(const Options& given, std::string_view between) {
  std::string out;
  for (const Named& field : kFields) {
    const std::string& value = given.step.*field.field;
    if (field.option == Option::kModule || value.empty()) continue;
    if (!out.empty()) out += ", ";
    out += field.name;
    if (!between.empty()) out += fmt::format("{}{}", between, value);
  }
  return out;
}

std::string LostText(const Options& given, std::string_view why, std::string_view remedy) {
  return fmt::format("{} would be lost: {}; {}, or leave out {}", AskedOfMsa(given, "="), why, remedy,
                     AskedOfMsa(given, ""));
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

StepChoice ChooseUse(const Options& given, const std::optional<std::string>& jobs, Use fallback) {
  using From = StepChoice::From;
  if (given.use_given) return {given.use, From::kOption};
  if (jobs)
    if (const auto use = ParseUse("--msa", *jobs); use.ok()) return {*use, From::kJob};
  return {fallback, From::kDefault};
}

bool AsksForMsa(const Options& given) { return !AskedOfMsa(given, "").empty(); }

Status CheckNothingLost(const Options& given, const StepChoice& choice) {
  if (!AsksForMsa(given)) return Status::Ok();
  const auto lost = [&](std::string_view why, std::string_view remedy) {
    return Status(Code::kFailedPrecondition, LostText(given, why, remedy));
  };
  if (choice.use == Use::kNo) {
    switch (choice.from) {
      case StepChoice::From::kOption:
        return lost("--msa=no leaves the step to Slurm", "leave out --msa=no");
      case StepChoice::From::kJob:
        return lost("the job's --msa=no leaves the step to Slurm", "give srun --msa=yes");
      case StepChoice::From::kDefault:
        return lost("default=no in plugstack.conf leaves the step to Slurm", "give srun --msa=yes");
    }
  }
  if (choice.other_mpi())
    return lost(fmt::format("--mpi={} leaves the step to Slurm", choice.mpi), "give srun --mpi=none");
  return Status::Ok();
}

std::string NoNodeDaemonText(const Options& given, const std::string& node, std::string_view reason) {
  const std::string why = fmt::format("node {} has no node daemon of msa ({})", node, reason);
  constexpr std::string_view kRemedy = "start msa-noded there, choose other nodes";
  if (AsksForMsa(given)) return LostText(given, why, kRemedy);
  return fmt::format("{}; {}, or give --msa=no to leave the step to Slurm", why, kRemedy);
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
