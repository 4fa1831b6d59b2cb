#include "step_facts.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "msa/base/codec.h"
#include "msa/topology/host_list.h"

namespace msa::spank {
namespace {

// Of a number that begins `text`, which loses it.
std::optional<std::uint32_t> TakeNumber(std::string_view& text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool Take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

Result<std::uint64_t> Number(const Lookup& environment, const char* name) {
  const auto text = environment(name);
  std::uint64_t value = 0;
  if (!text) return Error(Code::kInvalidArgument, "Slurm has not set {}", name);
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (text->empty() || error != std::errc() || end != text->data() + text->size())
    return Error(Code::kInvalidArgument, "{}={} is not a number", name, *text);
  return value;
}

Result<std::vector<wire::SlurmNodeTasks>> ReadNodes(const Lookup& environment) {
  const std::string list = environment("SLURM_STEP_NODELIST").value_or("");
  const std::string counts = environment("SLURM_STEP_TASKS_PER_NODE").value_or("");
  MSA_ASSIGN_OR_RETURN(const std::vector<std::string> names, ExpandHostList(list));
  MSA_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> tasks, ExpandTaskCounts(counts));
  if (names.empty() || names.size() != tasks.size())
    return Error(Code::kInvalidArgument,
                 "SLURM_STEP_NODELIST={} names {} nodes, SLURM_STEP_TASKS_PER_NODE={} counts {}", list,
                 names.size(), counts, tasks.size());
  std::vector<wire::SlurmNodeTasks> nodes;
  for (std::size_t i = 0; i < names.size(); ++i) nodes.push_back({names[i], tasks[i]});
  return nodes;
}

}  // namespace

Result<std::vector<std::uint32_t>> ExpandTaskCounts(std::string_view text) {
  std::vector<std::uint32_t> counts;
  std::string_view rest = text;
  for (;;) {
    const auto tasks = TakeNumber(rest);
    std::uint32_t times = 1;
    bool good = tasks.has_value();
    if (good && Take(rest, "(x")) {
      const auto number = TakeNumber(rest);
      good = number && *number > 0 && Take(rest, ")");
      times = number.value_or(1);
    }
    if (!good || times > kMaxHostListNames - counts.size())
      return Error(Code::kInvalidArgument, "SLURM_STEP_TASKS_PER_NODE={} is not understood", text);
    counts.insert(counts.end(), times, *tasks);
    if (rest.empty()) return counts;
    if (!Take(rest, ","))
      return Error(Code::kInvalidArgument, "SLURM_STEP_TASKS_PER_NODE={} is not understood", text);
  }
}

Result<std::vector<std::uint16_t>> ExpandCores(std::string_view text) {
  std::vector<std::uint16_t> cores;
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto first = TakeNumber(rest);
    auto last = first;
    if (first && Take(rest, "-")) last = TakeNumber(rest);
    if (!first || !last || *last < *first || *last > 0xffff || (!rest.empty() && !Take(rest, ",")))
      return Error(Code::kInvalidArgument, "cores '{}' of the job are not understood", text);
    for (std::uint32_t core = *first; core <= *last; ++core)
      cores.push_back(static_cast<std::uint16_t>(core));
  }
  return cores;
}

std::string NodeName(const Lookup& environment) {
  std::string address = environment("SLURM_TOPOLOGY_ADDR").value_or("");
  const std::string pattern = environment("SLURM_TOPOLOGY_ADDR_PATTERN").value_or("node");
  for (auto switches = std::count(pattern.begin(), pattern.end(), '.'); switches > 0; --switches) {
    const std::size_t dot = address.find('.');
    if (dot == std::string::npos) break;
    address.erase(0, dot + 1);
  }
  return address;
}

Result<wire::SlurmStepBegin> ReadStep(const StepItems& items, const Lookup& environment,
                                      const std::string& node) {
  wire::SlurmStepBegin begin;
  begin.slurm_version = items.slurm_version;
  begin.component_job = JobId(items.component_job);
  begin.step = StepId(items.step);
  begin.restart_count = items.restart_count;
  begin.node = node;
  begin.job_name = environment("SLURM_JOB_NAME").value_or("");
  begin.partition = environment("SLURM_JOB_PARTITION").value_or("");
  MSA_ASSIGN_OR_RETURN(const std::uint64_t job, Number(environment, "SLURM_JOB_ID"));
  begin.job = JobId(job);
  MSA_ASSIGN_OR_RETURN(begin.cores, ExpandCores(items.alloc_cores));
  begin.ntasks_here = items.local_tasks;
  if (IsScript(items.step)) {
    begin.ntasks = 1;
    begin.ntasks_here = 1;
    begin.nodes = {{node, 1}};
    return begin;
  }
  MSA_ASSIGN_OR_RETURN(const std::uint64_t ntasks, Number(environment, "SLURM_NTASKS"));
  MSA_ASSIGN_OR_RETURN(begin.nodes, ReadNodes(environment));
  const auto sum =
      std::accumulate(begin.nodes.begin(), begin.nodes.end(), std::uint64_t{0},
                      [](std::uint64_t all, const wire::SlurmNodeTasks& one) { return all + one.tasks; });
  if (sum != ntasks || ntasks == 0 || ntasks > wire::kMaxListItems)
    return Error(Code::kInvalidArgument, "SLURM_NTASKS={}, but its nodes have {} tasks", ntasks, sum);
  begin.ntasks = static_cast<std::uint32_t>(ntasks);
  return begin;
}

}  // namespace msa::spank
