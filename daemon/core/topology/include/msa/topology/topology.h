#pragma once
// What the system is made of, as configured: the controller's and the node daemons' common picture. Plain
// values, read by any thread while nobody writes.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msa/base/ids.h"
#include "msa/base/status.h"

namespace msa {

// Nodes that connect modules; a job may have some for itself (--gateways).
inline constexpr std::string_view kGatewayKind = "gateway";

struct Module {
  ModuleId id;
  std::string name;  // unique, [a-z][a-z0-9_-]{0,62}
  std::string kind;  // "cluster", "booster", "dam", "nam", or the site's own word
};

struct NodeSpec {
  std::string name;  // unique in the system
  ModuleId module;
  std::uint32_t cores = 0;     // 1 to 65536; 0: as the node daemon measures
  Bytes memory;                // 0: as measured
  std::uint32_t packages = 1;  // sockets
  std::uint32_t numa_nodes = 1;
  std::uint32_t gpus = 0;
  Bytes nam;               // capacity of network attached memory, 0: none
  bool synthetic = false;  // described here, not measured: one machine poses as many nodes
  std::string cpu_model;   // for people
};

struct SystemTopology {
  std::string system_name;
  std::vector<Module> modules;  // in file order; the first is the default module
  std::vector<NodeSpec> nodes;  // in file order, nodes of a module in a row or not
  // Table [nam] of the topology file; 0: not given. See NamPolicy (msa/nam/nam_book.h).
  Bytes nam_user_quota;
  Bytes nam_job_quota;
  Bytes nam_job_default;

  // Indices are valid as long as the vectors are not changed. nullopt/nullptr: no such thing.
  const Module* FindModule(ModuleId id) const;
  const Module* FindModule(std::string_view name) const;
  std::optional<std::size_t> NodeIndex(std::string_view name) const;
  std::vector<std::size_t> NodesOf(ModuleId id) const;
  bool IsGateway(const NodeSpec& node) const;

  // What a user means by `selector`: a module's name, else a decimal id, else a kind (then all modules of
  // that kind, in file order). kNotFound names the nearest name and the modules that exist.
  Result<std::vector<const Module*>> SelectModules(std::string_view selector) const;
  // As SelectModules for a selector that must mean one module; "" is the default module. kInvalidArgument:
  // the kind of several modules, named.
  Result<const Module*> SelectModule(std::string_view selector) const;
  // Index of a node. kNotFound names the nearest name.
  Result<std::size_t> SelectNode(std::string_view name) const;

  // kInvalidArgument: no module or node, a name that is used twice or malformed, an unknown module, counts
  // out of range. The message names the value; it knows no file.
  Status Check() const;
};

// [a-z][a-z0-9_-]{0,62}
bool IsValidModuleName(std::string_view name);
// A host name label: [A-Za-z0-9][A-Za-z0-9._-]{0,62}; it becomes a directory name.
bool IsValidNodeName(std::string_view name);

}  // namespace msa
