#include "msa/topology/topology.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "msa/topology/suggest.h"

namespace msa {
namespace {

constexpr std::size_t kMaxNameChars = 63;   // a DNS label
constexpr std::uint32_t kMaxCores = 65536;  // wire::Member numbers them with 16 bits

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::vector<std::string> ModuleNames(const SystemTopology& topology) {
  std::vector<std::string> names;
  for (const Module& module : topology.modules) names.push_back(module.name);
  return names;
}

Status CheckModules(const SystemTopology& topology) {
  if (topology.modules.empty()) return Error(Code::kInvalidArgument, "no module; expected at least one");
  std::set<std::string> names;
  std::set<ModuleId> ids;
  for (const Module& module : topology.modules) {
    if (!IsValidModuleName(module.name))
      return Error(Code::kInvalidArgument,
                   "module name '{}' is not valid; expected [a-z][a-z0-9_-] and at most {} characters",
                   module.name, kMaxNameChars);
    if (!IsValidModuleName(module.kind))
      return Error(Code::kInvalidArgument,
                   "module '{}': kind '{}' is not valid; expected a word like 'booster'", module.name,
                   module.kind);
    if (!names.insert(module.name).second)
      return Error(Code::kInvalidArgument, "module '{}' is defined twice; give each its own name",
                   module.name);
    if (!ids.insert(module.id).second)
      return Error(Code::kInvalidArgument,
                   "module '{}': id {} is taken by another module; give each its own id", module.name,
                   module.id);
  }
  return Status::Ok();
}

}  // namespace

bool IsValidModuleName(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameChars || !IsLower(name[0])) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return IsLower(c) || IsDigit(c) || c == '_' || c == '-'; });
}

bool IsValidNodeName(std::string_view name) {
  const auto letter = [](char c) { return IsLower(c) || IsDigit(c) || (c >= 'A' && c <= 'Z'); };
  if (name.empty() || name.size() > kMaxNameChars || !letter(name[0])) return false;
  return std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || c == '.' || c == '_' || c == '-'; });
}

const Module* SystemTopology::FindModule(ModuleId id) const {
  const auto it = std::find_if(modules.begin(), modules.end(), [&](const Module& m) { return m.id == id; });
  return it == modules.end() ? nullptr : &*it;
}

const Module* SystemTopology::FindModule(std::string_view name) const {
  const auto it =
      std::find_if(modules.begin(), modules.end(), [&](const Module& m) { return m.name == name; });
  return it == modules.end() ? nullptr : &*it;
}

std::optional<std::size_t> SystemTopology::NodeIndex(std::string_view name) const {
  const auto it = std::find_if(nodes.begin(), nodes.end(), [&](const NodeSpec& n) { return n.name == name; });
  if (it == nodes.end()) return std::nullopt;
  return static_cast<std::size_t>(it - nodes.begin());
}

bool SystemTopology::IsGateway(const NodeSpec& node) const {
  const Module* module = FindModule(node.module);
  return module != nullptr && module->kind == kGatewayKind;
}

std::vector<std::size_t> SystemTopology::NodesOf(ModuleId id) const {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].module == id) indices.push_back(i);
  return indices;
}

Result<std::vector<const Module*>> SystemTopology::SelectModules(std::string_view selector) const {
  if (const Module* module = FindModule(selector)) return std::vector<const Module*>{module};
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(selector.data(), selector.data() + selector.size(), number);
  if (error == std::errc() && end == selector.data() + selector.size())
    if (const Module* module = FindModule(ModuleId(number))) return std::vector<const Module*>{module};
  std::vector<const Module*> of_kind;
  for (const Module& module : modules)
    if (module.kind == selector) of_kind.push_back(&module);
  if (!of_kind.empty()) return of_kind;
  std::vector<std::string> names = ModuleNames(*this);
  std::vector<std::string> known = names;
  for (const Module& module : modules) known.push_back(module.kind);
  return Error(Code::kNotFound, "module '{}': no such module; {}modules are {}", selector.substr(0, 80),
               DidYouMean(selector, known), ListNames(names));
}

Result<const Module*> SystemTopology::SelectModule(std::string_view selector) const {
  if (selector.empty() && !modules.empty()) return &modules.front();
  MSA_ASSIGN_OR_RETURN(const std::vector<const Module*> found, SelectModules(selector));
  if (found.size() == 1) return found.front();
  std::vector<std::string> names;
  for (const Module* module : found) names.push_back(module->name);
  return Error(Code::kInvalidArgument, "module '{}': {} modules are of this kind; name one of {}", selector,
               found.size(), ListNames(names));
}

Result<std::size_t> SystemTopology::SelectNode(std::string_view name) const {
  if (const auto index = NodeIndex(name)) return *index;
  std::vector<std::string> names;
  for (const NodeSpec& node : nodes) names.push_back(node.name);
  return Error(Code::kNotFound, "node '{}': no such node; {}see 'msactl node list'", name.substr(0, 80),
               DidYouMean(name, names));
}

Status SystemTopology::Check() const {
  MSA_RETURN_IF_ERROR(CheckModules(*this));
  if (nodes.empty()) return Error(Code::kInvalidArgument, "no node; expected at least one");
  std::set<std::string> names;
  for (const NodeSpec& node : nodes) {
    if (!IsValidNodeName(node.name))
      return Error(Code::kInvalidArgument,
                   "node name '{}' is not valid; expected letters, digits, '.', '_' or '-', a letter or "
                   "digit first, at most {}",
                   node.name, kMaxNameChars);
    if (!names.insert(node.name).second)
      return Error(Code::kInvalidArgument, "node '{}' is defined twice; give each its own name", node.name);
    if (FindModule(node.module) == nullptr)
      return Error(Code::kInvalidArgument, "node '{}': module id {} is not defined; modules are {}",
                   node.name, node.module, ListNames(ModuleNames(*this)));
    if (node.cores > kMaxCores || (node.synthetic && node.cores == 0))
      return Error(Code::kInvalidArgument, "node '{}': {} cores; expected 1 to {}", node.name, node.cores,
                   kMaxCores);
  }
  return Status::Ok();
}

}  // namespace msa
