#include <algorithm>

#include "output/job_texts.h"
#include "output/slurm_texts.h"
#include "output/text.h"

namespace msa::cli {
namespace {

Document::Object NodeFields(const NodeInfo& node) {
  Document::Object out = {
      {"name", node.name},
      {"module", node.module},
      {"module_id", node.module_id},
      {"state", node.state == NodeState::kUp     ? "UP"
                : node.state == NodeState::kDown ? "DOWN"
                                                 : "UNKNOWN"},
      {"drained", node.drained},
      {"reason", node.reason},
      {"cores", node.cores},
      {"cores_used", node.cores_used},
      {"memory_bytes", node.memory_bytes},
      {"nam_bytes", node.nam_bytes},
      {"gpus", node.gpus},
      {"packages", node.packages},
      {"numa_nodes", node.numa_nodes},
      {"cpu_model", node.cpu_model},
      {"synthetic", node.synthetic},
      {"load", node.load},
      {"jobs", Document::ListOf(node.jobs)},
      {"jobd_warm", node.jobd_warm},
      {"daemon_version", node.daemon_version},
      {"up_since", node.up_since_ms == 0 ? Document() : Document(UtcTime(node.up_since_ms))},
      {"last_heartbeat",
       node.last_heartbeat_ms == 0 ? Document() : Document(UtcTime(node.last_heartbeat_ms))},
      {"clock_offset_ms", node.clock_offset_ms},
      {"clock_off", node.clock_off}};
  if (node.slurm) out.emplace_back("slurm", SlurmDocument(*node.slurm));
  return out;
}

Document::Object ModuleFields(const ModuleInfo& module) {
  const bool known = !module.slurm || module.slurm->known_to_msa;
  Document::Object out = {{"id", known ? Document(module.id) : Document()},
                          {"name", module.name},
                          {"kind", known ? Document(module.kind) : Document()},
                          {"nodes", module.nodes},
                          {"nodes_up", module.nodes_up},
                          {"cores", module.cores},
                          {"cores_free", module.cores_free},
                          {"nam_bytes", module.nam_bytes}};
  if (module.slurm) out.emplace_back("slurm", SlurmDocument(*module.slurm));
  return out;
}

std::string JobIds(const NodeInfo& node) {
  std::string out;
  for (const std::uint64_t id : node.jobs) out += (out.empty() ? "" : ",") + std::to_string(id);
  return out;
}

Cell BytesCell(std::uint64_t bytes) { return {ShowBytes(bytes), fmt::format("{}", bytes)}; }

}  // namespace

Document NodeDocument(const NodeInfo& node) { return Document(NodeFields(node)); }
Document ModuleDocument(const ModuleInfo& module) { return Document(ModuleFields(module)); }

Listing NodeListing(const std::vector<NodeInfo>& nodes) {
  Listing out;
  out.kind = "NodeList";
  out.empty_text = "no nodes";
  out.columns = {{"NODE"},
                 {"MODULE"},
                 {"STATE"},
                 {"CORES", false, true},
                 {"USED", false, true},
                 {"MEMORY", false, true},
                 {"JOBS"},
                 {"LOAD", true, true},
                 {"GPUS", true, true},
                 {"NAM", true, true},
                 {"WARM", true, true},
                 {"UP SINCE", true},
                 {"VERSION", true},
                 {"REASON"}};
  const bool slurm = std::any_of(nodes.begin(), nodes.end(), [](const auto& node) { return node.slurm; });
  if (slurm) out.columns.insert(out.columns.begin() + 3, {{"SLURM"}, {"MSA"}});
  for (const NodeInfo& node : nodes) {
    out.rows.push_back(
        {node.name,
         {node.name, node.module, StateWord(node), fmt::format("{}", node.cores),
          fmt::format("{}", node.cores_used), BytesCell(node.memory_bytes), JobIds(node),
          fmt::format("{:.2f}", node.load), fmt::format("{}", node.gpus), BytesCell(node.nam_bytes),
          fmt::format("{}", node.jobd_warm), Cell(ShowTime(node.up_since_ms), UtcTime(node.up_since_ms)),
          node.daemon_version, node.reason},
         NodeDocument(node)});
    std::vector<Cell>& cells = out.rows.back().cells;
    if (slurm) cells.insert(cells.begin() + 3, {Cell(node.slurm->state), Cell(node.slurm->msa)});
  }
  return out;
}

Details NodeDetails(const NodeInfo& node, std::int64_t now_ms) {
  Details out{.kind = "Node", .name = node.name, .lines = {}, .fields = NodeFields(node)};
  const bool known = !node.slurm || !node.slurm->msa.empty();
  out.lines = {{"node", node.name},
               {"module", known ? fmt::format("{} (id {})", node.module, node.module_id) : node.module},
               {"state", StateWord(node)}};
  if (node.slurm) {
    out.lines.emplace_back("in Slurm", node.slurm->state.empty() ? "no such node" : node.slurm->state);
    if (!node.slurm->partitions.empty())
      out.lines.emplace_back("partitions", fmt::format("{}", fmt::join(node.slurm->partitions, ", ")));
    out.lines.emplace_back("node daemon", known ? node.slurm->msa : "not known");
  }
  if (!node.reason.empty()) out.lines.emplace_back("reason", node.reason);
  out.lines.emplace_back("cores", fmt::format("{}, {} used", node.cores, node.cores_used));
  out.lines.emplace_back("parts", fmt::format("{}, {}, {}", Count(node.packages, "socket"),
                                              Count(node.numa_nodes, "NUMA node"), Count(node.gpus, "GPU")));
  out.lines.emplace_back("memory", ShowBytes(node.memory_bytes));
  if (node.nam_bytes != 0) out.lines.emplace_back("NAM", ShowBytes(node.nam_bytes));
  if (!node.cpu_model.empty()) out.lines.emplace_back("processor", node.cpu_model);
  if (known) out.lines.emplace_back("described by", node.synthetic ? "the topology file" : "measurement");
  out.lines.emplace_back("jobs", node.jobs.empty() ? "none" : JobIds(node));
  out.lines.emplace_back("load", fmt::format("{:.2f} (1 minute, of the machine)", node.load));
  if (known) out.lines.emplace_back("warm job daemons", fmt::format("{}", node.jobd_warm));
  if (!node.daemon_version.empty()) out.lines.emplace_back("daemon version", node.daemon_version);
  if (known) out.lines.emplace_back("up since", ShowTime(node.up_since_ms));
  if (node.last_heartbeat_ms != 0)
    out.lines.emplace_back("last heartbeat", ShowDuration(Millis(now_ms - node.last_heartbeat_ms)) + " ago");
  if (node.slurm) AddSlurmShown(node.slurm->shown, &out.lines);
  return out;
}

Listing ModuleListing(const std::vector<ModuleInfo>& modules) {
  Listing out;
  out.kind = "ModuleList";
  out.empty_text = "no modules";
  out.columns = {{"ID", false, true},    {"MODULE"},          {"KIND"},
                 {"NODES", false, true}, {"UP", false, true}, {"CORES", false, true},
                 {"FREE", false, true},  {"NAM", false, true}};
  const bool slurm =
      std::any_of(modules.begin(), modules.end(), [](const auto& module) { return module.slurm; });
  if (slurm) out.columns.push_back({"SLURM"});
  for (const ModuleInfo& module : modules) {
    const bool known = !module.slurm || module.slurm->known_to_msa;
    out.rows.push_back({module.name,
                        {known ? fmt::format("{}", module.id) : "", module.name, module.kind,
                         fmt::format("{}", module.nodes), fmt::format("{}", module.nodes_up),
                         fmt::format("{}", module.cores), fmt::format("{}", module.cores_free),
                         Cell(module.nam_bytes == 0 ? "" : ShowBytes(module.nam_bytes),
                              fmt::format("{}", module.nam_bytes))},
                        ModuleDocument(module)});
    if (slurm) out.rows.back().cells.emplace_back(module.slurm->partition_state);
  }
  return out;
}

Details ModuleDetails(const ModuleInfo& module, const std::vector<NodeInfo>& nodes) {
  Details out{.kind = "Module", .name = module.name, .lines = {}, .fields = ModuleFields(module)};
  const bool known = !module.slurm || module.slurm->known_to_msa;
  out.lines = {{"module", module.name},
               {"id", known ? fmt::format("{}", module.id) : "not known to msa"},
               {"kind", known ? module.kind : "not known to msa"}};
  if (module.slurm)
    out.lines.emplace_back("partition", module.slurm->partition_state.empty()
                                            ? "none"
                                            : fmt::format("{}, time limit {}", module.slurm->partition_state,
                                                          ShowTimeLimit(module.slurm->time_limit_s)));
  out.lines.emplace_back("nodes", fmt::format("{}, {} up and not drained", module.nodes, module.nodes_up));
  out.lines.emplace_back("cores", fmt::format("{}, {} free", module.cores, module.cores_free));
  if (module.nam_bytes != 0) out.lines.emplace_back("NAM", ShowBytes(module.nam_bytes));
  Document::Array list;
  for (const NodeInfo& node : nodes) {
    out.lines.emplace_back(
        "", fmt::format("{}  {}  {} of {} used{}", node.name, StateWord(node), node.cores_used,
                        Count(node.cores, "core"), node.reason.empty() ? "" : "  " + node.reason));
    list.push_back(NodeDocument(node));
  }
  if (module.slurm) AddSlurmShown(module.slurm->shown, &out.lines);
  out.fields.emplace_back("node_list", Document(std::move(list)));
  return out;
}

}  // namespace msa::cli
