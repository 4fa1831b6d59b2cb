#include "msa/adapters/config/topology_file.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <fmt/format.h>
#include <toml++/toml.h>

#include "msa/adapters/process/files.h"
#include "msa/topology/host_list.h"
#include "msa/topology/suggest.h"

namespace msa {
namespace {

constexpr std::int64_t kMaxCores = 65536;
constexpr std::int64_t kMaxParts = 65536;  // packages, NUMA nodes, GPUs of a node
constexpr std::size_t kMaxNodes = kMaxHostListNames;
constexpr std::size_t kMaxWord = 63;  // names of modules, kinds and nodes: a DNS label

constexpr std::string_view kDefaultTopology = R"([system]
name = "local"

[[module]]
name = "cluster"
id = 0
kind = "cluster"

  [[module.node]]
  names = "cn[0-1]"
  cores = 4

[[module]]
name = "booster"
id = 1
kind = "booster"

  [[module.node]]
  names = "bn[0-1]"
  cores = 8

[[module]]
name = "dam"
id = 2
kind = "dam"

  [[module.node]]
  names = "dn0"
  cores = 4

[[module]]
name = "nam"
id = 3
kind = "nam"

  [[module.node]]
  names = "nam0"
  cores = 1
  nam = "1G"
)";

// Values from outside stand in messages cut to a readable length.
std::string Shown(std::string_view value) {
  constexpr std::size_t kShown = 80;
  return value.size() <= kShown ? std::string(value) : fmt::format("{}...", value.substr(0, kShown));
}

std::string ShownValue(const toml::node& node) {
  if (const auto* s = node.as_string()) return fmt::format("\"{}\"", Shown(s->get()));
  if (const auto* i = node.as_integer()) return fmt::format("{}", i->get());
  if (const auto* f = node.as_floating_point()) return fmt::format("{}", f->get());
  if (const auto* b = node.as_boolean()) return b->get() ? "true" : "false";
  if (node.is_array()) return "a list";
  if (node.is_table()) return "a table";
  return "a date or time";
}

// "8G", "512M", "1024": bytes; nullopt if it is none or does not fit.
std::optional<std::uint64_t> ParseSize(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (unit.ends_with("iB") && unit.size() == 3) unit.remove_suffix(2);
  static constexpr std::string_view kUnits = "KMGTP";
  int shift = 0;
  if (unit.size() == 1 && kUnits.find(unit[0]) != std::string_view::npos)
    shift = 10 * (static_cast<int>(kUnits.find(unit[0])) + 1);
  else if (!unit.empty())
    return std::nullopt;
  if (value > (std::uint64_t{std::numeric_limits<std::int64_t>::max()} >> shift)) return std::nullopt;
  return value << shift;
}

class Reader {
 public:
  explicit Reader(const std::string& name) : name_(name) {}

  Result<SystemTopology> Read(const toml::table& root) {
    MSA_RETURN_IF_ERROR(CheckKeys(root, "the file", {"system", "module"}));
    MSA_RETURN_IF_ERROR(ReadSystem(root));
    const toml::node* modules = root.get("module");
    if (modules == nullptr || !modules->is_array_of_tables())
      return At(modules == nullptr ? 1 : Line(*modules),
                "there is no [[module]]; describe at least one module with its nodes");
    for (const toml::node& module : *modules->as_array()) MSA_RETURN_IF_ERROR(ReadModule(*module.as_table()));
    MSA_RETURN_IF_ERROR(system_.Check().WithContext("topology file " + name_));
    return std::move(system_);
  }

  template <class... Args>
  Status Fault(std::size_t line, fmt::format_string<Args...> format, Args&&... args) const {
    return At(line, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  // One [[module]] or [[module.node]] for messages: "node 'bn0'".
  struct Place {
    const toml::table& table;
    std::string what;
  };

  Status At(std::size_t line, const std::string& text) const {
    return Error(Code::kInvalidArgument, "topology file {}:{}: {}", name_, line, text);
  }
  static std::size_t Line(const toml::node& node) {
    return std::max<std::size_t>(node.source().begin.line, 1);
  }

  Status CheckKeys(const toml::table& table, const std::string& what,
                   const std::vector<std::string>& known) const {
    for (const auto& [key, value] : table) {
      if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
      return Fault(Line(value), "unknown key '{}' in {}; {}known keys: {}", Shown(key.str()), what,
                   DidYouMean(key.str(), known), ListNames(known));
    }
    return Status::Ok();
  }

  Status ReadSystem(const toml::table& root) {
    const toml::node* system = root.get("system");
    if (system == nullptr) {
      system_.system_name = "local";
      return Status::Ok();
    }
    if (!system->is_table())
      return Fault(Line(*system), "'system' is {}; expected the table [system]", ShownValue(*system));
    MSA_RETURN_IF_ERROR(CheckKeys(*system->as_table(), "[system]", {"name"}));
    MSA_ASSIGN_OR_RETURN(system_.system_name, Word({*system->as_table(), "[system]"}, "name", "local"));
    return Status::Ok();
  }

  // A string of 1 to kMaxWord characters; without `otherwise` the key is required.
  Result<std::string> Word(const Place& place, std::string_view key,
                           std::optional<std::string> otherwise) const {
    const toml::node* node = place.table.get(key);
    if (node == nullptr) {
      if (otherwise) return *otherwise;
      return Fault(Line(place.table), "{} has no key '{}'; add it", place.what, key);
    }
    const auto* text = node->as_string();
    if (text == nullptr)
      return Fault(Line(*node), "key '{}' of {} is {}; expected a text", key, place.what, ShownValue(*node));
    if (text->get().empty() || text->get().size() > kMaxWord)
      return Fault(Line(*node), "key '{}' of {} is \"{}\" with {} characters; expected 1 to {}", key,
                   place.what, Shown(text->get()), text->get().size(), kMaxWord);
    for (const char c : text->get())
      if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f)
        return Fault(Line(*node),
                     "key '{}' of {} holds a space or control character; expected visible characters", key,
                     place.what);
    return text->get();
  }

  struct Range {
    std::int64_t low = 0;
    std::int64_t high = 0;
  };
  Result<std::int64_t> Number(const Place& place, std::string_view key, Range range,
                              std::optional<std::int64_t> otherwise) const {
    const toml::node* node = place.table.get(key);
    if (node == nullptr) {
      if (otherwise) return *otherwise;
      return Fault(Line(place.table), "{} has no key '{}'; add it ({} to {})", place.what, key, range.low,
                   range.high);
    }
    const auto* number = node->as_integer();
    if (number == nullptr || number->get() < range.low || number->get() > range.high)
      return Fault(Line(*node), "key '{}' of {} is {}; expected {} to {}", key, place.what, ShownValue(*node),
                   range.low, range.high);
    return number->get();
  }

  Result<Bytes> Size(const Place& place, std::string_view key) const {
    const toml::node* node = place.table.get(key);
    if (node == nullptr) return Bytes();
    std::optional<std::uint64_t> bytes;
    if (const auto* text = node->as_string()) bytes = ParseSize(text->get());
    if (const auto* number = node->as_integer(); number != nullptr && number->get() >= 0)
      bytes = static_cast<std::uint64_t>(number->get());
    if (!bytes || *bytes == 0)
      return Fault(Line(*node),
                   "key '{}' of {} is {}; expected bytes above 0, as \"8G\", \"512M\" or 1048576", key,
                   place.what, ShownValue(*node));
    return Bytes(*bytes);
  }

  Result<bool> Flag(const Place& place, std::string_view key) const {
    const toml::node* node = place.table.get(key);
    if (node == nullptr) return false;
    const auto* flag = node->as_boolean();
    if (flag == nullptr)
      return Fault(Line(*node), "key '{}' of {} is {}; expected true or false", key, place.what,
                   ShownValue(*node));
    return flag->get();
  }

  Status ReadModule(const toml::table& table) {
    MSA_ASSIGN_OR_RETURN(const std::string name, Word({table, "the module"}, "name", std::nullopt));
    const Place place{table, "module '" + name + "'"};
    MSA_RETURN_IF_ERROR(CheckKeys(table, place.what, {"name", "id", "kind", "node"}));
    const std::size_t name_line = Line(*table.get("name"));
    if (!IsValidModuleName(name))
      return Fault(
          name_line,
          "module name '{}' is malformed; expected lower-case letters, digits, '_' and '-', a letter first",
          name);
    if (const auto [it, fresh] = module_lines_.emplace(name, name_line); !fresh)
      return Fault(name_line, "module '{}' is described twice, first in line {}; choose another name", name,
                   it->second);
    MSA_ASSIGN_OR_RETURN(const std::int64_t id, Number(place, "id", {0, 0x7fffffff}, std::nullopt));
    for (const Module& other : system_.modules)
      if (other.id.value == id)
        return Fault(Line(*table.get("id")),
                     "key 'id' of {} is {}, which module '{}' has already; choose another", place.what, id,
                     other.name);
    MSA_ASSIGN_OR_RETURN(std::string kind, Word(place, "kind", name));
    system_.modules.push_back({ModuleId(static_cast<std::uint32_t>(id)), name, std::move(kind)});
    const toml::node* nodes = table.get("node");
    if (nodes == nullptr || !nodes->is_array_of_tables())
      return Fault(Line(table), "{} has no nodes; describe at least one in [[module.node]]", place.what);
    for (const toml::node& node : *nodes->as_array())
      MSA_RETURN_IF_ERROR(ReadNodes(*node.as_table(), place.what));
    return Status::Ok();
  }

  Status ReadNodes(const toml::table& table, const std::string& module) {
    const toml::node* names_node = table.get("names");
    if (names_node == nullptr) {
      MSA_RETURN_IF_ERROR(CheckKeys(table, "a node of " + module, node_keys_));
      return Fault(Line(table), "a node of {} has no key 'names'; add it, as names = \"cn[0-1]\"", module);
    }
    const auto* names_text = names_node->as_string();
    if (names_text == nullptr)
      return Fault(Line(*names_node), "key 'names' of a node of {} is {}; expected a text, as \"cn[0-1]\"",
                   module, ShownValue(*names_node));
    const Place place{table, "node '" + Shown(names_text->get()) + "'"};
    MSA_RETURN_IF_ERROR(CheckKeys(table, place.what, node_keys_));
    auto names = ExpandHostList(names_text->get());
    if (!names.ok())
      return Fault(Line(*names_node), "key 'names' of {}: {}", place.what, names.status().message());
    if (names->empty())
      return Fault(Line(*names_node), "key 'names' of a node of {} is empty; expected a name, as \"cn[0-1]\"",
                   module);
    MSA_ASSIGN_OR_RETURN(NodeSpec spec, ReadSpec(place));
    return AddNodes(std::move(*names), spec, Line(*names_node));
  }

  Result<NodeSpec> ReadSpec(const Place& place) const {
    NodeSpec spec;
    spec.module = system_.modules.back().id;
    MSA_ASSIGN_OR_RETURN(const bool real, Flag(place, "real"));
    spec.synthetic = !real;
    for (const std::string_view key : {"cores", "memory", "packages", "numa"})
      if (const toml::node* node = place.table.get(key); real && node != nullptr)
        return Fault(Line(*node),
                     "key '{}' of {} is given, but real = true takes it from the machine; remove one of them",
                     key, place.what);
    MSA_ASSIGN_OR_RETURN(
        const std::int64_t cores,
        Number(place, "cores", {1, kMaxCores}, real ? std::optional<std::int64_t>(0) : std::nullopt));
    MSA_ASSIGN_OR_RETURN(const std::int64_t packages, Number(place, "packages", {1, kMaxParts}, 1));
    MSA_ASSIGN_OR_RETURN(const std::int64_t numa, Number(place, "numa", {1, kMaxParts}, 1));
    MSA_ASSIGN_OR_RETURN(const std::int64_t gpus, Number(place, "gpus", {0, kMaxParts}, 0));
    MSA_ASSIGN_OR_RETURN(spec.memory, Size(place, "memory"));
    MSA_ASSIGN_OR_RETURN(spec.nam, Size(place, "nam"));
    spec.cores = static_cast<std::uint32_t>(cores);
    spec.packages = static_cast<std::uint32_t>(packages);
    spec.numa_nodes = static_cast<std::uint32_t>(numa);
    spec.gpus = static_cast<std::uint32_t>(gpus);
    return spec;
  }

  Status AddNodes(std::vector<std::string> names, NodeSpec spec, std::size_t line) {
    for (std::string& name : names) {
      if (name.size() > kMaxWord)
        return Fault(line, "node name '{}' has {} characters; expected at most {}", Shown(name), name.size(),
                     kMaxWord);
      if (!IsValidNodeName(name))
        return Fault(line,
                     "node name '{}' is malformed; expected letters, digits, '.', '_' and '-', a letter or "
                     "digit first",
                     Shown(name));
      if (const auto [it, fresh] = node_lines_.emplace(name, line); !fresh)
        return Fault(line, "node '{}' is described twice, first in line {}; names are unique in the system",
                     name, it->second);
      if (system_.nodes.size() == kMaxNodes)
        return Fault(line, "more than {} nodes; split the system", kMaxNodes);
      spec.name = std::move(name);
      system_.nodes.push_back(spec);
    }
    return Status::Ok();
  }

  const std::vector<std::string> node_keys_{"names", "cores", "memory", "packages",
                                            "numa",  "gpus",  "nam",    "real"};
  const std::string& name_;
  SystemTopology system_;
  std::map<std::string, std::size_t, std::less<>> module_lines_;
  std::map<std::string, std::size_t, std::less<>> node_lines_;
};

}  // namespace

Result<SystemTopology> ParseTopology(std::string_view text, const std::string& name) {
  if (text.size() > kMaxTopologyFileBytes)
    return Error(Code::kInvalidArgument,
                 "topology file {} has {} bytes, the limit is {}; write nodes as ranges, \"cn[0-99]\"", name,
                 text.size(), kMaxTopologyFileBytes);
  Reader reader(name);
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed)
    return reader.Fault(parsed.error().source().begin.line, "syntax error in column {}: {}",
                        parsed.error().source().begin.column, Shown(parsed.error().description()));
  return reader.Read(parsed.table());
}

Result<SystemTopology> LoadTopologyFile(const std::string& path) {
  auto text = ReadFile(path, kMaxTopologyFileBytes);
  if (!text.ok()) {
    const Code code =
        text.status().code() == Code::kResourceExhausted ? Code::kInvalidArgument : text.status().code();
    return Error(code, "topology file {}: {}", path, text.status().message());
  }
  return ParseTopology(*text, path);
}

std::string_view DefaultTopologyText() { return kDefaultTopology; }

}  // namespace msa
