#pragma once
// The options that the plugin gives srun, sbatch and salloc, and what it makes of their values before
// anything is started. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msa/base/slurm_messages.h"
#include "msa/base/status.h"

namespace msa::spank {

enum class Option : std::uint8_t { kMsa, kModule, kNam, kNamRegion, kGateways, kOnChildFailure };

struct OptionSpec {
  Option option;
  const char* name;
  const char* argument;
  const char* usage;
};
const std::vector<OptionSpec>& OptionSpecs();

// kAuto: a step is msa's where the node has a node daemon; kYes: it is refused elsewhere; kNo: Slurm's alone.
enum class Use : std::uint8_t { kAuto, kYes, kNo };

struct Options {
  Use use = Use::kAuto;
  bool use_given = false;
  wire::SlurmOptions step;
};

// kInvalidArgument names option, value and what would do. What depends on the system (is there such a module,
// is there so much memory) is the controller's to judge.
Status SetOption(Options& options, Option option, std::string_view value);

// Whether a step is msa's, as far as is known before its nodes are looked at.
struct StepChoice {
  enum class From : std::uint8_t { kOption, kJob, kDefault };
  Use use = Use::kAuto;
  From from = From::kDefault;
  std::string mpi = "none";  // the step's --mpi

  // Another launcher of MPI was asked for.
  bool other_mpi() const { return mpi != "none" && mpi != "openmpi"; }
};

// --msa of this srun, else of its job, else plugstack.conf's. `jobs`: as it is written; none: not given.
StepChoice ChooseUse(const Options& given, const std::optional<std::string>& jobs, Use fallback);

// Whether srun was given an option whose value a step that is not msa's would lose. --module is none: it is
// for the job's submission.
bool AsksForMsa(const Options& given);
// kFailedPrecondition: such options were given, and by `choice` the step is not msa's.
Status CheckNothingLost(const Options& given, const StepChoice& choice);
// For the user of a step that cannot be msa's on `node`, for `reason`. `given` may be none.
std::string NoNodeDaemonText(const Options& given, const std::string& node, std::string_view reason);

// The arguments of the line in plugstack.conf: "socket=PATH", "default=auto|yes|no".
struct PluginArguments {
  std::string socket = wire::kSlurmPluginSocket;
  Use use = Use::kAuto;
};
Result<PluginArguments> ParseArguments(const std::vector<std::string>& words);

// Options of a job are set once: for all its components alike, or by component in one value ("0:1G,1:2G").
// Remembers what the components of one command gave and refuses what differs.
class ComponentCheck {
 public:
  Status Add(const Options& options);

 private:
  bool any_ = false;
  Options first_;
};

}  // namespace msa::spank
