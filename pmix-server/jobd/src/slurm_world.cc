#include "slurm_world.h"

#include <algorithm>

#include "msa/base/wire.h"

#include "step_result.h"

namespace msa::jobd {
namespace {

// What a text names of ranks that are missing.
constexpr std::size_t kMostNamed = 64;

}  // namespace

Status SlurmWorld::Add(std::uint32_t member, const SlurmJoined& joined, const SlurmTask& task) {
  if (joined.ntasks != ntasks_ || ntasks_ == 0 || ntasks_ > wire::kMaxListItems)
    return Error(Code::kInvalidArgument, "task {} of step {} counts {} tasks; expected {}", task.rank, step_,
                 joined.ntasks,
                 ntasks_ == 0 || ntasks_ > wire::kMaxListItems ? fmt::format("1 to {}", wire::kMaxListItems)
                                                               : fmt::format("{}", ntasks_));
  if (task.rank.value >= ntasks_)
    return Error(Code::kOutOfRange, "step {} has no task {}; expected 0 to {}", step_, task.rank,
                 ntasks_ - 1);
  if (task.command >= joined.commands.size() || joined.commands[task.command].argv.empty())
    return Error(Code::kInvalidArgument, "task {} of step {} names no program", task.rank, step_);
  const auto known = ranks_.find(task.rank.value);
  if (known != ranks_.end() && (known->second.member != member || known->second.pid != task.pid))
    return Error(Code::kAlreadyExists, "step {} has a task {} already (pid {}); pid {} is another", step_,
                 task.rank, known->second.pid, task.pid);
  if (known != ranks_.end()) return Status::Ok();
  if (ranks_.empty()) on_child_failure_ = joined.on_child_failure;
  ranks_[task.rank.value] = {member, task.pid, task.component_job, std::max(task.cpus_per_task, 1u),
                             Remember(joined.commands[task.command])};
  return Status::Ok();
}

// Two components have two programs, hardly more: the last ones are the likely ones.
std::size_t SlurmWorld::Remember(const SlurmCommand& command) {
  constexpr std::size_t kMostCompared = 8;
  for (std::size_t back = 1; back <= std::min(kMostCompared, commands_.size()); ++back)
    if (commands_[commands_.size() - back] == command) return commands_.size() - back;
  commands_.push_back(command);
  return commands_.size() - 1;
}

bool SlurmWorld::Uses(std::uint32_t member) const {
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [&](const auto& rank) { return rank.second.member == member; });
}

std::string SlurmWorld::Missing() const {
  std::vector<std::uint32_t> missing;
  for (std::uint32_t rank = 0; rank < ntasks_ && missing.size() < kMostNamed; ++rank)
    if (!ranks_.contains(rank)) missing.push_back(rank);
  return fmt::format("{} of {} tasks have come; missing: {}{}", ranks_.size(), ntasks_, RankList(missing),
                     missing.size() == kMostNamed ? ",..." : "");
}

void SlurmWorld::Describe(wire::StepSpec& spec) const {
  spec.apps.clear();
  spec.rank_member.clear();
  std::vector<JobId> components;
  for (const auto& [rank, known] : ranks_) {
    const auto found = std::find(components.begin(), components.end(), known.component_job);
    const auto component = static_cast<std::uint32_t>(found - components.begin());
    if (found == components.end()) components.push_back(known.component_job);
    spec.rank_member.push_back(known.member);
    if (!spec.apps.empty() && spec.apps.back().component == component) {
      ++spec.apps.back().ntasks;
      continue;
    }
    const SlurmCommand& command = commands_[known.command];
    spec.apps.push_back({component, command.argv, {}, command.cwd, 1, known.cpus_per_task});
  }
  if (on_child_failure_ == "event") spec.on_child_failure = wire::OnChildFailure::kEvent;
  if (on_child_failure_ == "kill") spec.on_child_failure = wire::OnChildFailure::kKill;
  spec.cwd = spec.apps.empty() ? std::string() : spec.apps.front().cwd;
}

}  // namespace msa::jobd
