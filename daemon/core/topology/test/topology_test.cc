#include "msa/topology/topology.h"

#include <gtest/gtest.h>

namespace msa {
namespace {

SystemTopology Small() {
  SystemTopology t;
  t.system_name = "small";
  t.modules = {
      {ModuleId(0), "cluster", "cluster"}, {ModuleId(1), "booster", "gpu"}, {ModuleId(2), "booster2", "gpu"}};
  for (const char* name : {"cn0", "cn1"})
    t.nodes.push_back({.name = name, .module = ModuleId(0), .cores = 4});
  t.nodes.push_back({.name = "bn0", .module = ModuleId(1), .cores = 8});
  t.nodes.push_back({.name = "gn0", .module = ModuleId(2), .cores = 8});
  return t;
}

TEST(Topology, SelectsAModuleByNameIdAndKind) {
  const SystemTopology t = Small();
  EXPECT_EQ((*t.SelectModule("booster"))->id, ModuleId(1));
  EXPECT_EQ((*t.SelectModule("2"))->name, "booster2");
  EXPECT_EQ((*t.SelectModule(""))->name, "cluster");
  EXPECT_EQ(t.SelectModules("gpu")->size(), 2u);
}

TEST(Topology, NamesTheModulesOfAnAmbiguousKind) {
  const Status s = Small().SelectModule("gpu").status();
  EXPECT_EQ(s.code(), Code::kInvalidArgument);
  EXPECT_EQ(s.message(), "module 'gpu': 2 modules are of this kind; name one of booster, booster2");
}

TEST(Topology, SuggestsTheNearestModule) {
  const Status s = Small().SelectModules("boster").status();
  EXPECT_EQ(s.code(), Code::kNotFound);
  EXPECT_EQ(
      s.message(),
      "module 'boster': no such module; did you mean 'booster'? modules are cluster, booster, booster2");
}

TEST(Topology, SuggestsTheNearestNode) {
  EXPECT_EQ(*Small().SelectNode("cn1"), 1u);
  EXPECT_EQ(Small().SelectNode("cn9").status().message(),
            "node 'cn9': no such node; did you mean 'cn0'? see 'msactl node list'");
}

TEST(Topology, CheckNamesWhatIsWrong) {
  EXPECT_TRUE(Small().Check().ok());
  SystemTopology t = Small();
  t.nodes[1].name = "cn0";
  EXPECT_NE(t.Check().message().find("node 'cn0' is defined twice"), std::string::npos);
  t = Small();
  t.nodes[0].module = ModuleId(9);
  EXPECT_NE(t.Check().message().find("module id 9 is not defined"), std::string::npos);
  t = Small();
  t.nodes[0].cores = 70000;
  EXPECT_NE(t.Check().message().find("70000 cores"), std::string::npos);
  t = Small();
  t.nodes[0].name = "../x";
  EXPECT_FALSE(t.Check().ok());
  t = Small();
  t.modules[1].id = ModuleId(0);
  EXPECT_FALSE(t.Check().ok());
  EXPECT_FALSE(SystemTopology{}.Check().ok());
}

}  // namespace
}  // namespace msa
