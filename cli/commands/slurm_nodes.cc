#include "backend/slurm_nodes.h"

#include <algorithm>

#include "msa/base/clock.h"
#include "msa/topology/host_list.h"
#include "msa/topology/suggest.h"

#include "commands/module_topology.h"
#include "commands/node_names.h"
#include "commands/print.h"
#include "commands/slurm.h"
#include "commands/slurm_queries.h"
#include "output/job_texts.h"

namespace msa::cli {
namespace {

Result<MsaNodes> AskMsa(const std::string& dir) {
  MSA_ASSIGN_OR_RETURN(const auto client, ControllerBeside(dir));
  MsaNodes out;
  out.answers = true;
  MSA_ASSIGN_OR_RETURN(out.nodes, client->ListNodes("", {}));
  MSA_ASSIGN_OR_RETURN(out.modules, client->ListModules());
  return out;
}

Result<SlurmSays<SlurmNodes>> AskBoth(const Invocation& call, const BackendChoice& choice) {
  SlurmSays<SlurmNodes> out;
  MSA_ASSIGN_OR_RETURN(const auto nodes, AskForNodes(choice));
  out.exit_code = nodes.exit_code;
  if (out.exit_code != 0) return out;
  MSA_ASSIGN_OR_RETURN(const auto jobs, AskForJobs(choice, {}));
  out.exit_code = jobs.exit_code;
  if (out.exit_code != 0) return out;
  Result<MsaNodes> msa = AskMsa(call.dir());
  if (!msa.ok() && msa.status().code() != Code::kFailedPrecondition && call.people())
    PrintNote(fmt::format("shown without what msa itself knows: {}", msa.status().message()));
  MSA_ASSIGN_OR_RETURN(out.value, ReadSlurmNodes(nodes.value, jobs.value, msa.ok() ? *msa : MsaNodes{}));
  return out;
}

bool IsIn(const NodeInfo& node, const ModuleInfo& module) {
  const std::vector<std::string>& in = node.slurm->partitions;
  return node.module == module.name || std::find(in.begin(), in.end(), module.name) != in.end();
}

// Modules that a name, a kind or an id means.
Result<std::vector<ModuleInfo>> Chosen(const std::vector<ModuleInfo>& modules, const std::string& selector) {
  std::vector<ModuleInfo> out;
  std::vector<std::string> names;
  for (const ModuleInfo& module : modules) {
    names.push_back(module.name);
    if (module.name == selector) return std::vector<ModuleInfo>{module};
    const bool known = module.slurm->known_to_msa;
    if (known && (module.kind == selector || fmt::format("{}", module.id) == selector)) out.push_back(module);
  }
  if (out.empty())
    return Error(Code::kNotFound, "no module '{}'; {}there are {}", selector, DidYouMean(selector, names),
                 ListNames(names));
  return out;
}

// `msactl module show` is about one.
Result<ModuleInfo> OneModule(const std::vector<ModuleInfo>& modules, const std::string& selector) {
  MSA_ASSIGN_OR_RETURN(const std::vector<ModuleInfo> found, Chosen(modules, selector));
  if (found.size() == 1) return found[0];
  std::vector<std::string> names;
  for (const ModuleInfo& module : found) names.push_back(module.name);
  return Error(Code::kInvalidArgument, "'{}' is the kind of several modules: {}; name one", selector,
               ListNames(names));
}

// Of the nodes that are drawn in its own box.
SystemInfo Summary(const std::string& cluster, const std::vector<NodeInfo>& nodes) {
  SystemInfo out;
  out.system_name = cluster;
  out.nodes = static_cast<std::uint32_t>(nodes.size());
  for (const NodeInfo& node : nodes) {
    out.nodes_up += node.state == NodeState::kUp ? 1 : 0;
    out.cores += node.cores;
    out.cores_used += node.cores_used;
  }
  return out;
}

Status KeepNamed(std::vector<NodeInfo>& nodes, const std::vector<std::string>& names) {
  std::vector<NodeInfo> out;
  for (const std::string& name : names) {
    const auto it =
        std::find_if(nodes.begin(), nodes.end(), [&](const NodeInfo& node) { return node.name == name; });
    if (it == nodes.end()) return Error(Code::kNotFound, "no node '{}'; see 'msactl node list'", name);
    out.push_back(*it);
  }
  if (!names.empty()) nodes = std::move(out);
  return Status::Ok();
}

}  // namespace

Result<int> SlurmModuleList(const Invocation& call, const BackendChoice& choice) {
  MSA_ASSIGN_OR_RETURN(const auto says, AskBoth(call, choice));
  if (says.exit_code != 0) return says.exit_code;
  MSA_RETURN_IF_ERROR(call.Show(ModuleListing(says.value.modules)));
  return 0;
}

Result<int> SlurmNodeList(const Invocation& call, const BackendChoice& choice, const std::string& module) {
  MSA_ASSIGN_OR_RETURN(const std::vector<std::string> names, ExpandNodeNames(call.operands()));
  MSA_ASSIGN_OR_RETURN(const auto says, AskBoth(call, choice));
  if (says.exit_code != 0) return says.exit_code;
  std::vector<NodeInfo> nodes = says.value.nodes;
  if (!module.empty()) {
    MSA_ASSIGN_OR_RETURN(const std::vector<ModuleInfo> chosen, Chosen(says.value.modules, module));
    std::erase_if(nodes, [&](const NodeInfo& node) {
      return std::none_of(chosen.begin(), chosen.end(),
                          [&](const ModuleInfo& one) { return IsIn(node, one); });
    });
  }
  MSA_RETURN_IF_ERROR(KeepNamed(nodes, names));
  MSA_RETURN_IF_ERROR(call.Show(NodeListing(nodes)));
  return 0;
}

Result<int> SlurmModuleShow(const Invocation& call, const BackendChoice& choice) {
  MSA_ASSIGN_OR_RETURN(const auto says, AskBoth(call, choice));
  if (says.exit_code != 0) return says.exit_code;
  MSA_ASSIGN_OR_RETURN(ModuleInfo module, OneModule(says.value.modules, call.operands()[0]));
  if (!module.slurm->partition_state.empty()) {
    MSA_ASSIGN_OR_RETURN(module.slurm->shown, AskForRecord(choice, "partition", module.name));
  }
  std::vector<NodeInfo> nodes = says.value.nodes;
  std::erase_if(nodes, [&](const NodeInfo& node) { return !IsIn(node, module); });
  MSA_RETURN_IF_ERROR(call.Show(ModuleDetails(module, nodes)));
  return 0;
}

Result<int> SlurmNodeShow(const Invocation& call, const BackendChoice& choice) {
  MSA_ASSIGN_OR_RETURN(const auto says, AskBoth(call, choice));
  if (says.exit_code != 0) return says.exit_code;
  std::vector<NodeInfo> nodes = says.value.nodes;
  MSA_RETURN_IF_ERROR(KeepNamed(nodes, {call.operands()[0]}));
  if (!nodes[0].slurm->state.empty()) {
    MSA_ASSIGN_OR_RETURN(nodes[0].slurm->shown, AskForRecord(choice, "node", nodes[0].name));
  }
  MSA_RETURN_IF_ERROR(call.Show(NodeDetails(nodes[0], ToUnixMillis(Now()))));
  return 0;
}

Result<int> SlurmModuleTopology(const Invocation& call, const BackendChoice& choice) {
  MSA_ASSIGN_OR_RETURN(const auto says, AskBoth(call, choice));
  if (says.exit_code != 0) return says.exit_code;
  SlurmCall config;
  config.words = {"scontrol", "show", "config"};
  MSA_ASSIGN_OR_RETURN(const SlurmAnswer answer, RunSlurm(choice, config));
  if (answer.exit_code != 0) return answer.exit_code;
  const std::vector<NodeInfo>& nodes = says.value.nodes;
  std::vector<ModuleInfo> modules = says.value.modules;
  // A partition all of whose nodes are drawn with others, as one over the whole machine, has no box.
  std::erase_if(modules, [&](const ModuleInfo& module) {
    return std::none_of(nodes.begin(), nodes.end(),
                        [&](const NodeInfo& node) { return node.module == module.name; });
  });
  MSA_RETURN_IF_ERROR(ShowTopology(call, Summary(ClusterName(answer.out), nodes), modules, nodes));
  return 0;
}

namespace {

// Slurm's own text and code where it refuses.
Result<int> Update(const Invocation& call, const BackendChoice& choice, std::vector<std::string> changes) {
  MSA_ASSIGN_OR_RETURN(const std::vector<std::string> names, ExpandNodeNames(call.operands()));
  MSA_ASSIGN_OR_RETURN(const auto says, AskForNodes(choice));
  if (says.exit_code != 0) return says.exit_code;
  MSA_ASSIGN_OR_RETURN(const SlurmNodes slurm, ReadSlurmNodes(says.value, {}, {}));
  // Of several nodes scontrol would change some and then meet one that it does not know.
  for (const std::string& name : names)
    if (std::none_of(slurm.nodes.begin(), slurm.nodes.end(),
                     [&](const NodeInfo& node) { return node.name == name; }))
      return Error(Code::kNotFound,
                   "'{}' is no node of Slurm's; see 'msactl node list'. One that msa alone has is drained by "
                   "'--backend "
                   "msa'",
                   name);
  SlurmCall update;
  update.words = {"scontrol", "update", "NodeName=" + CompressHostList(names)};
  update.words.insert(update.words.end(), changes.begin(), changes.end());
  MSA_ASSIGN_OR_RETURN(const SlurmAnswer answer, RunSlurm(choice, update));
  if (answer.exit_code != 0) return answer.exit_code;
  return SlurmNodeList(call, choice, "");
}

}  // namespace

Result<int> SlurmNodeDrain(const Invocation& call, const BackendChoice& choice, const std::string& reason) {
  return Update(call, choice, {"State=DRAIN", "Reason=" + reason});
}

Result<int> SlurmNodeResume(const Invocation& call, const BackendChoice& choice) {
  return Update(call, choice, {"State=RESUME"});
}

}  // namespace msa::cli
