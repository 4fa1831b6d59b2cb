#include "msa/scheduler/request.h"

#include <algorithm>
#include <set>

#include "msa/topology/size_text.h"
#include "msa/topology/suggest.h"

#include "placer.h"

namespace msa {
namespace {

constexpr std::uint32_t kUnmeasuredCores = 65536;  // the most that a node can have

std::uint32_t CeilDiv(std::uint32_t a, std::uint32_t b) { return (a + b - 1) / b; }

const char* Plural(std::uint64_t n) { return n == 1 ? "" : "s"; }

Status ResolveNames(ComponentRequest& c, const SystemTopology& topology) {
  std::set<std::string> listed;
  for (const std::string& name : c.nodelist) {
    MSA_ASSIGN_OR_RETURN(const std::size_t index, topology.SelectNode(name));
    if (!listed.insert(name).second)
      return Error(Code::kInvalidArgument, "node '{}' is listed twice in --nodelist; name each node once",
                   name);
    if (c.module.empty()) c.module = topology.FindModule(topology.nodes[index].module)->name;
  }
  MSA_ASSIGN_OR_RETURN(const Module* module, topology.SelectModule(c.module));
  c.module = module->name;
  for (const std::string& name : c.nodelist) {
    const NodeSpec& node = topology.nodes[*topology.NodeIndex(name)];
    if (node.module != module->id)
      return Error(Code::kInvalidArgument,
                   "node '{}' is in module '{}', the component asks for module '{}'; use one component a "
                   "module, separated by ':'",
                   name, topology.FindModule(node.module)->name, module->name);
  }
  for (const std::string& name : c.exclude) {
    MSA_RETURN_IF_ERROR(topology.SelectNode(name).status());
    if (listed.contains(name))
      return Error(Code::kInvalidArgument,
                   "node '{}' stands in --nodelist and in --exclude; remove it from one", name);
  }
  return Status::Ok();
}

Status FillNodes(ComponentRequest& c, const SystemTopology& topology) {
  const bool no_nodes = c.min_nodes == 0 && c.max_nodes == 0;
  if (c.min_nodes == 0 && c.max_nodes != 0) c.min_nodes = 1;
  if (c.max_nodes == 0) c.max_nodes = c.min_nodes;
  if (c.max_nodes < c.min_nodes)
    return Error(Code::kInvalidArgument,
                 "--nodes {}-{}: the range runs backwards; write the smaller number first", c.min_nodes,
                 c.max_nodes);
  if (!c.nodelist.empty()) {
    const auto listed = static_cast<std::uint32_t>(c.nodelist.size());
    // A list that was filled in before has its own length.
    if (!no_nodes && (listed < c.min_nodes || listed > c.max_nodes))
      return Error(Code::kInvalidArgument,
                   "--nodelist names {} node{}, --nodes asks for {}; make them agree or leave --nodes out",
                   listed, Plural(listed), c.min_nodes);
    c.min_nodes = c.max_nodes = listed;
    return Status::Ok();
  }
  if (!no_nodes) return Status::Ok();
  if (c.ntasks == 0) {
    c.min_nodes = c.max_nodes = 1;
    return Status::Ok();
  }
  const auto exist = static_cast<std::uint32_t>(topology.NodesOf(topology.FindModule(c.module)->id).size());
  c.fewest_nodes = true;
  c.min_nodes = c.ntasks_per_node == 0 ? 1 : CeilDiv(c.ntasks, c.ntasks_per_node);
  c.max_nodes = std::max(c.min_nodes, std::min(c.ntasks, exist));
  return Status::Ok();
}

Status FillTasks(ComponentRequest& c) {
  const std::uint32_t per_node = std::max(1u, c.ntasks_per_node);
  if (c.ntasks == 0) {
    if (std::uint64_t{c.max_nodes} * per_node > kMaxTasksPerJob)
      return Error(Code::kInvalidArgument,
                   "{} tasks on each of {} nodes are more than {} tasks; reduce --nodes or --ntasks-per-node",
                   per_node, c.max_nodes, kMaxTasksPerJob);
    if (c.min_nodes == c.max_nodes) c.ntasks = c.min_nodes * per_node;
    return Status::Ok();
  }
  if (c.ntasks > kMaxTasksPerJob)
    return Error(Code::kInvalidArgument, "{} tasks; at most {} are possible, reduce --ntasks", c.ntasks,
                 kMaxTasksPerJob);
  if (c.nodelist.empty()) c.min_nodes = std::min(c.min_nodes, c.ntasks);
  if (c.nodelist.empty()) c.max_nodes = std::min(c.max_nodes, c.ntasks);
  if (c.ntasks < c.min_nodes)
    return Error(Code::kInvalidArgument,
                 "{} task{} cannot use the {} nodes of --nodelist; raise --ntasks or shorten the list",
                 c.ntasks, Plural(c.ntasks), c.min_nodes);
  if (c.ntasks_per_node == 0) return Status::Ok();
  const std::uint32_t needed = CeilDiv(c.ntasks, c.ntasks_per_node);
  if (needed > c.max_nodes)
    return Error(Code::kInvalidArgument,
                 "{} tasks with at most {} a node need {} nodes, --nodes allows {}; raise --nodes or "
                 "--ntasks-per-node",
                 c.ntasks, c.ntasks_per_node, needed, c.max_nodes);
  c.min_nodes = std::max(c.min_nodes, needed);
  return Status::Ok();
}

std::string Prefix(const ComponentRequest& c) { return fmt::format("module '{}'", c.module); }

// Nodes of the component that have what each of its nodes must have.
Status CheckNodes(const ComponentRequest& c, const SystemTopology& topology,
                  const std::vector<std::uint32_t>& nodes) {
  if (c.min_nodes > nodes.size())
    return Error(Code::kOutOfRange,
                 "{}: {} node{} requested, {} exist{}; reduce --nodes or see 'msactl module list'", Prefix(c),
                 c.min_nodes, Plural(c.min_nodes), nodes.size(),
                 c.exclude.empty() ? "" : " outside --exclude");
  std::uint32_t most_cores = 0;
  std::uint64_t most_memory = 0;
  std::uint32_t most_gpus = 0;
  std::uint32_t fitting = 0;
  for (const std::uint32_t n : nodes) {
    const NodeSpec& node = topology.nodes[n];
    most_cores = std::max(most_cores, node.cores);
    most_memory = std::max(most_memory, node.memory.value);
    most_gpus = std::max(most_gpus, node.gpus);
    const bool memory_fits = node.memory.value == 0 || node.memory >= c.memory;
    fitting += memory_fits && node.gpus >= c.gpus_per_node && node.cores >= c.cpus_per_task ? 1 : 0;
  }
  if (c.cpus_per_task > most_cores)
    return Error(Code::kOutOfRange,
                 "{}: {} cores a task requested, the largest node has {}; reduce --cpus-per-task", Prefix(c),
                 c.cpus_per_task, most_cores);
  if (c.gpus_per_node > most_gpus)
    return Error(Code::kOutOfRange,
                 "{}: {} GPU{} a node requested, the best node has {}; reduce --gpus-per-node", Prefix(c),
                 c.gpus_per_node, Plural(c.gpus_per_node), most_gpus);
  if (fitting < c.min_nodes && c.memory.value > most_memory)
    return Error(Code::kOutOfRange,
                 "{}: {} MiB of memory a node requested, the largest node has {} MiB; reduce --mem",
                 Prefix(c), c.memory.value >> 20, most_memory >> 20);
  if (fitting < c.min_nodes)
    return Error(Code::kOutOfRange,
                 "{}: {} nodes with the memory, GPUs and cores asked requested, {} exist; reduce --nodes, "
                 "--mem, --gpus-per-node or --cpus-per-task",
                 Prefix(c), c.min_nodes, fitting);
  return Status::Ok();
}

Status CheckTasks(const ComponentRequest& c, const SystemTopology& topology,
                  const std::vector<std::uint32_t>& nodes) {
  std::vector<std::uint32_t> room;
  for (const std::uint32_t n : nodes) {
    std::uint32_t tasks = topology.nodes[n].cores / c.cpus_per_task;
    if (c.ntasks_per_node != 0) tasks = std::min(tasks, c.ntasks_per_node);
    room.push_back(tasks);
  }
  std::sort(room.rbegin(), room.rend());
  room.resize(std::min<std::size_t>(room.size(), c.max_nodes));
  std::uint64_t holds = 0;
  for (const std::uint32_t tasks : room) holds += tasks;
  const std::uint64_t asked =
      c.ntasks != 0 ? c.ntasks : std::uint64_t{c.min_nodes} * std::max(1u, c.ntasks_per_node);
  if (asked > holds)
    return Error(Code::kOutOfRange,
                 "{}: {} tasks of {} core{} requested on at most {} node{}, {} fit there; reduce --ntasks, "
                 "raise --nodes or allow more tasks than cores with --oversubscribe",
                 Prefix(c), asked, c.cpus_per_task, Plural(c.cpus_per_task), room.size(), Plural(room.size()),
                 holds);
  return Status::Ok();
}

// Tasks that share cores.
Status CheckSharedTasks(const ComponentRequest& c, std::size_t candidates, std::uint32_t most) {
  const auto nodes = std::min<std::uint64_t>(candidates, c.max_nodes);
  const std::uint64_t asked = c.ntasks != 0 ? c.ntasks : nodes * c.ntasks_per_node;
  if (asked <= nodes * most) return Status::Ok();
  return Error(
      Code::kOutOfRange,
      "{}: {} tasks requested with --oversubscribe on at most {} node{}, {} are possible there, {} a "
      "node; reduce --ntasks or raise --nodes",
      Prefix(c), asked, nodes, Plural(nodes), nodes * most, most);
}

}  // namespace

Status FillDefaults(JobRequest& request, const SystemTopology& topology) {
  if (request.components.empty())
    return Error(Code::kInvalidArgument, "the job has no component; name at least one program");
  if (request.components.size() > kMaxComponents)
    return Error(Code::kInvalidArgument, "{} components; at most {} are possible", request.components.size(),
                 kMaxComponents);
  std::uint64_t tasks = 0;
  for (std::size_t i = 0; i < request.components.size(); ++i) {
    ComponentRequest& c = request.components[i];
    const auto fill = [&]() -> Status {
      MSA_RETURN_IF_ERROR(ResolveNames(c, topology));
      c.cpus_per_task = std::max(1u, c.cpus_per_task);
      MSA_RETURN_IF_ERROR(FillNodes(c, topology));
      return FillTasks(c);
    };
    Status status = fill();
    if (!status.ok())
      return request.components.size() == 1 ? status : status.WithContext(fmt::format("component {}", i));
    tasks += c.ntasks != 0 ? c.ntasks : std::uint64_t{c.max_nodes} * std::max(1u, c.ntasks_per_node);
  }
  if (tasks > kMaxTasksPerJob)
    return Error(Code::kInvalidArgument,
                 "the components have {} tasks together; at most {} are possible, reduce --ntasks", tasks,
                 kMaxTasksPerJob);
  return Status::Ok();
}

Status CheckCanEver(const JobRequest& request, const SystemTopology& configured) {
  std::uint64_t nam = 0;
  for (const NodeSpec& node : configured.nodes) nam += std::min(node.nam.value, ~std::uint64_t{0} - nam);
  if (request.nam.value > nam)
    return Error(
        Code::kOutOfRange,
        "--nam {}: the system has {} of network attached memory; reduce --nam or see 'msactl region df'",
        SizeText(request.nam), SizeText(Bytes(nam)));
  const auto gateways = static_cast<std::size_t>(
      std::count_if(configured.nodes.begin(), configured.nodes.end(),
                    [&](const NodeSpec& node) { return configured.IsGateway(node); }));
  if (request.gateways > gateways)
    return Error(Code::kOutOfRange,
                 "--gateways {}: the system has {}; reduce --gateways or see 'msactl module list'",
                 request.gateways, gateways);
  // A node that has not been measured yet may turn out to have any number of cores.
  SystemTopology topology = configured;
  for (NodeSpec& node : topology.nodes)
    if (node.cores == 0) node.cores = kUnmeasuredCores;
  const CoreLayout layout(topology, std::vector<bool>(topology.nodes.size(), true));
  const Placer placer(topology, layout);
  const FreeSet everything(layout, topology);
  for (const ComponentRequest& c : request.components) {
    const std::vector<std::uint32_t> nodes = placer.Candidates(c);
    MSA_RETURN_IF_ERROR(CheckNodes(c, topology, nodes));
    MSA_RETURN_IF_ERROR(request.oversubscribe ? CheckSharedTasks(c, nodes.size(), placer.most_shared())
                                              : CheckTasks(c, topology, nodes));
    if (!placer.Fits({{c}, request.time_limit, request.oversubscribe}, everything))
      return Error(Code::kOutOfRange,
                   "{}: {} tasks on {} nodes with the memory, GPUs and cores asked do not fit on its {} "
                   "nodes; reduce --ntasks or --nodes",
                   Prefix(c), c.ntasks, c.min_nodes, nodes.size());
  }
  if (placer.Fits(request, everything)) return Status::Ok();
  std::vector<std::string> modules;
  for (const ComponentRequest& c : request.components)
    if (std::find(modules.begin(), modules.end(), c.module) == modules.end()) modules.push_back(c.module);
  return Error(Code::kOutOfRange,
               "the {} components fit one by one but not together on module{} {}; reduce --ntasks or --nodes",
               request.components.size(), Plural(modules.size()), ListNames(modules));
}

std::uint32_t NodesAlone(const JobRequest& request, const SystemTopology& configured) {
  SystemTopology topology = configured;
  for (NodeSpec& node : topology.nodes)
    if (node.cores == 0) node.cores = kUnmeasuredCores;
  const CoreLayout layout(topology, std::vector<bool>(topology.nodes.size(), true));
  const auto placement = Placer(topology, layout).Place(request, FreeSet(layout, topology));
  return placement ? CountNodes(*placement) : 0;
}

}  // namespace msa
