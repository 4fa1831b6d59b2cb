#pragma once

#include <string>
#include <vector>

#include "msa/scheduler/scheduler.h"

namespace msa::scheduler_test {

inline const Instant kNow = Instant(Millis(1'700'000'000'000));

// cluster: cn0, cn1 of 4 cores; booster: bn0, bn1 of 8; dam: dn0 of 4; nam: nam0 of 1.
inline SystemTopology Small() {
  SystemTopology t;
  t.system_name = "small";
  t.modules = {{ModuleId(0), "cluster", "cluster"},
               {ModuleId(1), "booster", "booster"},
               {ModuleId(2), "dam", "dam"},
               {ModuleId(3), "nam", "nam"}};
  const auto add = [&](const char* name, std::uint32_t module, std::uint32_t cores) {
    NodeSpec node;
    node.name = name;
    node.module = ModuleId(module);
    node.cores = cores;
    node.memory = Bytes(std::uint64_t{4} << 30);
    node.synthetic = true;
    t.nodes.push_back(node);
  };
  add("cn0", 0, 4);
  add("cn1", 0, 4);
  add("bn0", 1, 8);
  add("bn1", 1, 8);
  add("dn0", 2, 4);
  add("nam0", 3, 1);
  return t;
}

inline ClusterView ViewOf(const SystemTopology& topology) {
  ClusterView view;
  view.topology = &topology;
  view.usable.assign(topology.nodes.size(), true);
  return view;
}

// A component "module, tasks" that FillDefaults completes.
inline ComponentRequest Ask(const std::string& module, std::uint32_t ntasks, std::uint32_t nodes = 0) {
  ComponentRequest c;
  c.module = module;
  c.ntasks = ntasks;
  c.min_nodes = nodes;
  return c;
}

}  // namespace msa::scheduler_test
