#pragma once
// What the tests of the shell share.

#include <string>

#include "msa/topology/topology.h"

namespace msa {

// A system "test" of one module with this node.
inline SystemTopology OneNode(const std::string& module, NodeSpec node) {
  SystemTopology out;
  out.system_name = "test";
  out.modules = {{ModuleId(0), module, module}};
  node.synthetic = true;
  out.nodes = {std::move(node)};
  return out;
}

}  // namespace msa
