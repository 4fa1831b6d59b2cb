#include "backend/slurm_nodes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "backend/records.h"
#include "options/values.h"

namespace msa::cli {
namespace {

constexpr std::array<std::string_view, 14> kFields = {
    "NodeList", "PartitionName", "StateComplete", "CPUsState", "Memory",    "CPUsLoad", "Sockets",
    "Cores",    "Threads",       "Gres",          "Available", "Timestamp", "Time",     "Reason"};
enum Column {
  kName,
  kPartition,
  kState,
  kCpus,
  kMemory,
  kLoad,
  kSockets,
  kCores,
  kThreads,
  kGres,
  kAvailable,
  kSince,
  kTime,
  kReason
};

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;

std::uint32_t Small(std::string_view text) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(SlurmNumber(text), UINT32_MAX));
}

// "allocated/idle/other/total".
struct Cpus {
  std::uint32_t allocated = 0;
  std::uint32_t idle = 0;
  std::uint32_t total = 0;
};
Cpus ReadCpus(std::string_view text) {
  std::array<std::uint32_t, 4> out{};
  for (std::uint32_t& number : out) {
    const std::size_t slash = text.find('/');
    number = Small(text.substr(0, slash));
    if (slash == std::string_view::npos) break;
    text.remove_prefix(slash + 1);
  }
  return {out[0], out[1], out[3]};
}

// "gpu:2", "gpu:a100:4(S:0-1),shard:8".
std::uint32_t ReadGpus(std::string_view text) {
  std::uint32_t out = 0;
  while (!text.empty()) {
    std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    if (!item.starts_with("gpu:")) continue;
    item = item.substr(0, item.find('('));
    out += Small(item.substr(item.rfind(':') + 1));
  }
  return out;
}

double ReadLoad(std::string_view text) {
  double out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && out >= 0 && out < 1e9 ? out : 0;
}

bool Holds(std::string_view state, std::string_view word) {
  return state.find(word) != std::string_view::npos;
}

// "mixed+drain", "down*", "idle+not_responding".
NodeState UpOf(std::string_view state) {
  for (const std::string_view word : {"down", "fail", "no_respond", "not_responding", "future", "unknown",
                                      "powered_down", "powering_down", "*"})
    if (Holds(state, word)) return NodeState::kDown;
  return NodeState::kUp;
}

std::string_view StateName(NodeState state) {
  return state == NodeState::kUp ? "UP" : state == NodeState::kDown ? "DOWN" : "UNKNOWN";
}

NodeInfo Begin(const std::vector<std::string>& values) {
  NodeInfo out;
  out.name = values[kName];
  out.module = values[kPartition];
  out.state = UpOf(values[kState]);
  out.drained = Holds(values[kState], "drain");
  out.reason = Given(values[kReason]);
  const Cpus cpus = ReadCpus(values[kCpus]);
  out.cores = cpus.total;
  out.cores_used = cpus.allocated;
  out.memory_bytes = std::min<std::uint64_t>(SlurmNumber(values[kMemory]), UINT64_MAX >> 21) * kMebibyte;
  out.packages = Small(values[kSockets]);
  out.gpus = ReadGpus(Given(values[kGres]));
  out.load = ReadLoad(values[kLoad]);
  out.slurm = SlurmNodeFacts{.state = values[kState], .partitions = {}, .msa = ""};
  return out;
}

// What msa knows of a node, beside Slurm's word.
void AddMsa(NodeInfo& node, const NodeInfo& known) {
  node.slurm->msa = StateName(known.state);
  node.module_id = known.module_id;
  const std::vector<std::string>& in = node.slurm->partitions;
  if (std::find(in.begin(), in.end(), known.module) != in.end()) node.module = known.module;
  node.nam_bytes = known.nam_bytes;
  node.jobd_warm = known.jobd_warm;
  node.daemon_version = known.daemon_version;
  node.up_since_ms = known.up_since_ms;
  node.last_heartbeat_ms = known.last_heartbeat_ms;
  node.numa_nodes = known.numa_nodes;
  node.cpu_model = known.cpu_model;
  node.synthetic = known.synthetic;
  node.clock_offset_ms = known.clock_offset_ms;
  node.clock_off = known.clock_off;
}

void AddModule(std::vector<ModuleInfo>& modules, const std::vector<std::string>& values,
               const NodeInfo& node) {
  const std::string& name = values[kPartition];
  auto it = std::find_if(modules.begin(), modules.end(), [&](const ModuleInfo& m) { return m.name == name; });
  if (it == modules.end()) {
    ModuleInfo module;
    module.name = name;
    const Result<std::uint32_t> limit = ParseTimeLimit(values[kTime]);
    module.slurm =
        SlurmModuleFacts{.partition_state = values[kAvailable], .time_limit_s = limit.ok() ? *limit : 0};
    it = modules.insert(it, std::move(module));
  }
  const Cpus cpus = ReadCpus(values[kCpus]);
  it->nodes += 1;
  it->nodes_up += node.state == NodeState::kUp && !node.drained ? 1 : 0;
  it->cores += cpus.total;
  it->cores_free += cpus.idle;
}

void AddJobs(std::vector<NodeInfo>& nodes, const std::vector<SlurmRow>& rows) {
  std::map<std::string_view, NodeInfo*> by_name;
  for (NodeInfo& node : nodes) by_name.emplace(node.name, &node);
  for (const SlurmRow& row : rows) {
    const JobState state = StateOf(row.state);
    if (state == JobState::kPending || wire::IsFinal(state)) continue;
    for (const std::string& name : row.node_list) {
      const auto it = by_name.find(name);
      if (it == by_name.end()) continue;
      std::vector<std::uint64_t>& jobs = it->second->jobs;
      if (std::find(jobs.begin(), jobs.end(), row.leader) == jobs.end()) jobs.push_back(row.leader);
    }
  }
  for (NodeInfo& node : nodes) std::sort(node.jobs.begin(), node.jobs.end());
}

void JoinMsa(SlurmNodes& out, const MsaNodes& msa) {
  std::map<std::string_view, std::size_t> by_name;
  for (std::size_t i = 0; i < out.nodes.size(); ++i) by_name.emplace(out.nodes[i].name, i);
  std::vector<NodeInfo> alone;
  for (const NodeInfo& known : msa.nodes) {
    const auto it = by_name.find(known.name);
    if (it != by_name.end()) {
      AddMsa(out.nodes[it->second], known);
      continue;
    }
    alone.push_back(known);
    alone.back().slurm =
        SlurmNodeFacts{.state = "", .partitions = {}, .msa = std::string(StateName(known.state))};
  }
  out.nodes.insert(out.nodes.end(), alone.begin(), alone.end());
  for (const ModuleInfo& known : msa.modules) {
    const auto it = std::find_if(out.modules.begin(), out.modules.end(),
                                 [&](const ModuleInfo& module) { return module.name == known.name; });
    if (it == out.modules.end()) {
      out.modules.push_back(known);
      out.modules.back().slurm =
          SlurmModuleFacts{.partition_state = "", .time_limit_s = 0, .known_to_msa = true};
      continue;
    }
    it->id = known.id;
    it->kind = known.kind;
    it->nam_bytes = known.nam_bytes;
    it->slurm->known_to_msa = true;
  }
}

}  // namespace

std::span<const std::string_view> SlurmNodeFields() { return kFields; }

Result<SlurmNodes> ReadSlurmNodes(const std::vector<std::vector<std::string>>& records,
                                  const std::vector<SlurmRow>& rows, const MsaNodes& msa) {
  SlurmNodes out;
  std::map<std::string, std::size_t> by_name;
  for (const std::vector<std::string>& values : records) {
    if (values.size() != kFields.size() || values[kName].empty())
      return Error(Code::kDataLoss, "a record of sinfo has {} fields and names '{}', expected {} and a node",
                   values.size(), values.empty() ? "" : values[kName], kFields.size());
    const auto [it, first] = by_name.emplace(values[kName], out.nodes.size());
    if (first) out.nodes.push_back(Begin(values));
    NodeInfo& node = out.nodes[it->second];
    node.slurm->partitions.push_back(values[kPartition]);
    AddModule(out.modules, values, node);
  }
  AddJobs(out.nodes, rows);
  JoinMsa(out, msa);
  return out;
}

}  // namespace msa::cli
