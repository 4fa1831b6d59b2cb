#include "commands/module_topology.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "commands/print.h"
#include "commands/slurm.h"
#include "output/job_texts.h"
#include "output/topology_picture.h"

namespace msa::cli {
namespace {

std::size_t TerminalWidth() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col
                                                                           : PictureOptions().width;
}

Document TopologyDocument(const SystemInfo& system, const std::vector<ModuleInfo>& modules,
                          const std::vector<NodeInfo>& nodes) {
  Document::Array list;
  for (const ModuleInfo& module : modules) {
    Document::Array mine;
    for (const NodeInfo& node : nodes)
      if (node.module == module.name) mine.push_back(NodeDocument(node));
    list.emplace_back(
        Document::Object{{"module", ModuleDocument(module)}, {"nodes", Document(std::move(mine))}});
  }
  // null: not limited.
  const auto limit = [](std::uint64_t bytes) { return bytes == 0 ? Document() : Document(bytes); };
  return Envelope("Topology",
                  {{"system", system.system_name},
                   {"nam", Document::Object{{"user_quota_bytes", limit(system.nam_user_quota)},
                                            {"job_quota_bytes", limit(system.nam_job_quota)},
                                            {"job_default_bytes", limit(system.nam_job_default)}}},
                   {"modules", Document(std::move(list))}});
}

}  // namespace

Status ShowTopology(const Invocation& call, const SystemInfo& system, const std::vector<ModuleInfo>& modules,
                    const std::vector<NodeInfo>& nodes) {
  if (call.people()) return Print(DrawTopology(system, modules, nodes, {.width = TerminalWidth()}));
  const Document document = TopologyDocument(system, modules, nodes);
  return Print(call.format().format == Format::kJson ? document.ToJson() : document.ToYaml());
}

Result<int> ModuleTopology(const Args& args) {
  Invocation call({"msactl module topology", "[OPTIONS]", "Draw modules, their nodes, and what is in use."});
  call.WithFormat(Shows::kPicture);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {}));
  if (!go) return 0;
  MSA_ASSIGN_OR_RETURN(const BackendChoice choice, call.Choice());
  if (choice.slurm()) return SlurmModuleTopology(call, choice);
  MSA_ASSIGN_OR_RETURN(const auto client, call.Connect());
  MSA_ASSIGN_OR_RETURN(const SystemInfo system, client->GetStatus());
  MSA_ASSIGN_OR_RETURN(const std::vector<ModuleInfo> modules, client->ListModules());
  MSA_ASSIGN_OR_RETURN(const std::vector<NodeInfo> nodes, client->ListNodes("", {}));
  MSA_RETURN_IF_ERROR(ShowTopology(call, system, modules, nodes));
  return 0;
}

}  // namespace msa::cli
