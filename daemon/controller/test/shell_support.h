#pragma once
// What the tests of the shell share.

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "msa/adapters/process/event_loop.h"
#include "msa/base/clock.h"
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

// Runs the loop until the condition holds; false: it did not within 5 s.
inline bool RunUntil(EventLoop& loop, const std::function<bool()>& condition) {
  const auto deadline = SteadyNow() + Millis(5000);
  while (!condition()) {
    if (SteadyNow() > deadline) return false;
    EXPECT_TRUE(loop.RunOnce(Millis(5)).ok());
  }
  return true;
}

}  // namespace msa
