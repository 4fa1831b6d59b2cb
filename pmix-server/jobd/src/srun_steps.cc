#include "srun_steps.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace msa::jobd {
namespace {

// What a failed srun has to say stands at its end.
constexpr std::size_t kMostText = 2048;

// Said of --cpu-bind, whatever its value and --quiet are, where no TaskPlugin binds.
constexpr std::string_view kNoBinding = "srun: cluster configuration lacks support for cpu binding\n";

// Where srun is installed, besides what PATH says.
constexpr std::string_view kSlurmsPath =
    "/usr/local/bin:/usr/bin:/bin:/opt/slurm/bin:/usr/local/slurm/bin:/usr/slurm/bin";

// Of slurmstepd, or of a task: srun would take them for its own step's.
bool IsOfAnotherStep(std::string_view line) {
  return (line.starts_with("SLURM_") && !line.starts_with("SLURM_CONF=")) || line.starts_with("MSA_SLURM_");
}

}  // namespace

std::string SrunSteps::NameOf(const std::string& nspace, std::uint32_t part) {
  return fmt::format("srun.{}.{}", nspace, part);
}

launch::TaskSpec SrunSteps::SpecOf(const SrunStart& order) const {
  launch::TaskSpec spec;
  spec.nspace = NameOf(order.nspace, order.part);
  // Hosts once for each task: with --distribution=arbitrary that is who runs which.
  spec.argv = {options_.srun, fmt::format("--jobid={}", order.job),
               // Slurm knows a component by its leader alone, and refuses the option for other jobs.
               order.het_group < 0 ? std::string() : fmt::format("--het-group={}", order.het_group),
               "--quiet",  // that it waits for a node is no error
               "--overlap", "--mpi=none", "--distribution=arbitrary",
               fmt::format("--nodelist={}", fmt::join(order.hosts, ",")),
               fmt::format("--ntasks={}", order.hosts.size()), "--cpu-bind=none", "--kill-on-bad-exit=0",
               options_.msa_exec, "--ticket", order.nspace};
  std::erase(spec.argv, std::string());
  // The environment of a service may have no PATH, or one without Slurm.
  std::string path;
  for (char** line = ::environ; *line != nullptr; ++line) {
    const std::string_view entry = *line;
    if (entry.starts_with("PATH="))
      path = std::string(entry.substr(5)) + ":";
    else if (!IsOfAnotherStep(entry))
      spec.env.emplace_back(entry);
  }
  spec.env.push_back(fmt::format("PATH={}{}", path, kSlurmsPath));
  // As --msa=yes, whatever plugstack.conf and the parent's srun say; an srun without the plugin would refuse
  // the option.
  spec.env.push_back("MSA_SLURM_USE=yes");
  spec.env.push_back("MSA_SPAWN_TICKET=" + order.nspace);
  spec.env.push_back(fmt::format("MSA_SPAWN_PART={}", order.part));
  spec.cwd = std::string("/");  // not "/": gcc 12 warns of an overlap (bug 105651)
  spec.out = handlers_.output(order.streams);
  return spec;
}

void SrunSteps::Start(const SrunStart& order) {
  const std::string name = NameOf(order.nspace, order.part);
  if (order.hosts.empty() || !runs_.try_emplace(name, Run{order, {}}).second) return;
  std::vector<launch::TaskSpec> specs;
  specs.push_back(SpecOf(order));
  launcher_.Start(std::move(specs),
                  [this, name](const std::vector<pid_t>&, const std::vector<launch::StartFailure>& failures) {
                    launcher_.MarkConnected(name, Rank(0));  // srun is no MPI program
                    const auto it = runs_.find(name);
                    if (failures.empty() || it == runs_.end()) return;
                    const SrunEnded ended{it->second.order.nspace, it->second.order.part,
                                          failures[0].exit_code, failures[0].message};
                    runs_.erase(it);
                    handlers_.ended(ended);
                  });
}

void SrunSteps::OnOutput(const std::string& run, const std::string& data) {
  const auto it = runs_.find(run);
  if (it == runs_.end()) return;
  Run& one = it->second;
  std::string_view text = data;
  // Of an option that the user has not given.
  if (!std::exchange(one.spoke, true) && text.starts_with(kNoBinding)) text.remove_prefix(kNoBinding.size());
  one.last += text;
  if (one.last.size() > kMostText) one.last.erase(0, one.last.size() - kMostText);
  if (!handlers_.error(one.order.streams, std::string(text))) launcher_.PauseOutput(run);
}

void SrunSteps::Resume(const std::string& streams) {
  for (const auto& [name, run] : runs_)
    if (run.order.streams == streams) launcher_.ResumeOutput(name);
}

void SrunSteps::OnExit(const launch::TaskExit& exit) {
  const auto it = runs_.find(exit.nspace);
  if (it == runs_.end()) return;
  SrunEnded ended{it->second.order.nspace, it->second.order.part,
                  exit.end.signal != 0 ? 128 + exit.end.signal : exit.end.exit_code,
                  std::move(it->second.last)};
  while (!ended.text.empty() && ended.text.back() == '\n') ended.text.pop_back();
  runs_.erase(it);
  handlers_.ended(ended);
}

void SrunSteps::End(const std::string& nspace, std::uint32_t part) {
  if (const std::string name = NameOf(nspace, part); runs_.contains(name)) launcher_.Signal(name, SIGTERM);
}

}  // namespace msa::jobd
