#include "msa/scheduler/request.h"

#include <gtest/gtest.h>

#include "fixture.h"

namespace msa {
namespace {

using scheduler_test::Ask;
using scheduler_test::Small;

ComponentRequest Filled(ComponentRequest c) {
  JobRequest request{{std::move(c)}, std::nullopt, false};
  const Status status = FillDefaults(request, Small());
  EXPECT_TRUE(status.ok()) << status.ToString();
  return request.components[0];
}

Status FillError(ComponentRequest c) {
  JobRequest request{{std::move(c)}, std::nullopt, false};
  return FillDefaults(request, Small());
}

Status CanEver(ComponentRequest c, bool oversubscribe = false) {
  JobRequest request{{std::move(c)}, std::nullopt, oversubscribe};
  const Status status = FillDefaults(request, Small());
  return status.ok() ? CheckCanEver(request, Small()) : status;
}

TEST(Defaults, NothingAskedIsOneTaskOnOneNodeOfTheFirstModule) {
  const ComponentRequest c = Filled({});
  EXPECT_EQ(c.module, "cluster");
  EXPECT_EQ(std::tuple(c.min_nodes, c.max_nodes, c.ntasks, c.cpus_per_task), std::tuple(1u, 1u, 1u, 1u));
}

TEST(Defaults, NodesWithoutTasksMeanOneTaskANode) {
  EXPECT_EQ(Filled(Ask("booster", 0, 2)).ntasks, 2u);
  ComponentRequest c = Ask("booster", 0, 2);
  c.ntasks_per_node = 3;
  EXPECT_EQ(Filled(c).ntasks, 6u);
}

TEST(Defaults, TasksWithoutNodesMeanAsFewNodesAsHoldThem) {
  const ComponentRequest c = Filled(Ask("booster", 12));
  EXPECT_TRUE(c.fewest_nodes);
  EXPECT_EQ(std::pair(c.min_nodes, c.max_nodes), std::pair(1u, 2u));
}

TEST(Defaults, MoreNodesThanTasksAreReducedAsSrunDoes) {
  EXPECT_EQ(Filled(Ask("booster", 1, 2)).min_nodes, 1u);
}

TEST(Defaults, ANodeRangeLeavesTheTasksToTheStart) {
  ComponentRequest c = Ask("cluster", 0, 1);
  c.max_nodes = 2;
  EXPECT_EQ(Filled(c).ntasks, 0u);
}

TEST(Defaults, ANodelistTellsModuleAndNodes) {
  ComponentRequest c;
  c.nodelist = {"bn1", "bn0"};
  const ComponentRequest filled = Filled(c);
  EXPECT_EQ(filled.module, "booster");
  EXPECT_EQ(std::pair(filled.min_nodes, filled.ntasks), std::pair(2u, 2u));
}

TEST(Defaults, FillingTwiceChangesNothing) {
  for (ComponentRequest c : {Ask("booster", 12), Ask("booster", 0, 2), Ask("", 3, 1)}) {
    const ComponentRequest once = Filled(c);
    const ComponentRequest twice = Filled(once);
    EXPECT_EQ(std::tuple(once.module, once.min_nodes, once.max_nodes, once.ntasks, once.fewest_nodes),
              std::tuple(twice.module, twice.min_nodes, twice.max_nodes, twice.ntasks, twice.fewest_nodes));
  }
}

TEST(Defaults, ContradictionsAreNamed) {
  ComponentRequest backwards = Ask("cluster", 0, 4);
  backwards.max_nodes = 2;
  EXPECT_EQ(FillError(backwards).code(), Code::kInvalidArgument);
  EXPECT_NE(FillError(backwards).message().find("--nodes 4-2"), std::string::npos);

  ComponentRequest elsewhere = Ask("cluster", 1);
  elsewhere.nodelist = {"bn0"};
  EXPECT_NE(FillError(elsewhere).message().find("node 'bn0' is in module 'booster'"), std::string::npos);

  ComponentRequest twice;
  twice.nodelist = {"bn0", "bn0"};
  EXPECT_EQ(FillError(twice).code(), Code::kInvalidArgument);

  ComponentRequest both;
  both.nodelist = {"bn0"};
  both.exclude = {"bn0"};
  EXPECT_EQ(FillError(both).code(), Code::kInvalidArgument);

  ComponentRequest crowded = Ask("cluster", 9, 2);
  crowded.ntasks_per_node = 4;
  EXPECT_NE(FillError(crowded).message().find("9 tasks with at most 4 a node need 3 nodes"),
            std::string::npos);

  EXPECT_EQ(FillError(Ask("cluster", kMaxTasksPerJob + 1)).code(), Code::kInvalidArgument);
  JobRequest empty;
  EXPECT_EQ(FillDefaults(empty, Small()).code(), Code::kInvalidArgument);
}

TEST(Defaults, UnknownNamesGetTheNearest) {
  EXPECT_EQ(FillError(Ask("boster", 1)).code(), Code::kNotFound);
  EXPECT_NE(FillError(Ask("boster", 1)).message().find("did you mean 'booster'?"), std::string::npos);
  ComponentRequest c;
  c.nodelist = {"bn7"};
  EXPECT_EQ(FillError(c).code(), Code::kNotFound);
}

TEST(CanEver, NamesBothNumbersOfTooManyNodes) {
  const Status status = CanEver(Ask("booster", 12, 12));
  EXPECT_EQ(status.code(), Code::kOutOfRange);
  EXPECT_EQ(status.message(),
            "module 'booster': 12 nodes requested, 2 exist; reduce --nodes or see 'msactl module list'");
}

TEST(CanEver, NamesTooManyTasksUnlessOversubscribed) {
  const Status status = CanEver(Ask("cluster", 9));
  EXPECT_EQ(status.code(), Code::kOutOfRange);
  EXPECT_NE(status.message().find("9 tasks"), std::string::npos);
  EXPECT_NE(status.message().find("8 fit"), std::string::npos);
  EXPECT_TRUE(CanEver(Ask("cluster", 9), true).ok());
  EXPECT_TRUE(CanEver(Ask("cluster", 8)).ok());
}

TEST(CanEver, TasksThatShareCoresHaveALimitForEachNode) {
  EXPECT_TRUE(CanEver(Ask("cluster", 8192), true).ok());
  const Status status = CanEver(Ask("cluster", 1'000'000), true);
  EXPECT_EQ(status.code(), Code::kOutOfRange);
  EXPECT_EQ(status.message(),
            "module 'cluster': 1000000 tasks requested with --oversubscribe on at most 2 nodes, 8192 are "
            "possible there, 4096 a node; reduce --ntasks or raise --nodes");
  EXPECT_EQ(CanEver(Ask("cluster", 4097, 1), true).code(), Code::kOutOfRange);
  ComponentRequest crowded = Ask("cluster", 0, 1);
  crowded.ntasks_per_node = 5000;
  EXPECT_NE(CanEver(crowded, true).message().find("5000 tasks"), std::string::npos);
}

TEST(CanEver, NamesMemoryGpusAndCoresThatNoNodeHas) {
  ComponentRequest c = Ask("cluster", 1);
  c.memory = Bytes(std::uint64_t{8} << 30);
  EXPECT_NE(CanEver(c).message().find("8192 MiB"), std::string::npos);
  c = Ask("cluster", 1);
  c.gpus_per_node = 1;
  EXPECT_NE(CanEver(c).message().find("GPU"), std::string::npos);
  c = Ask("cluster", 1);
  c.cpus_per_task = 5;
  EXPECT_NE(CanEver(c).message().find("5 cores a task"), std::string::npos);
}

TEST(CanEver, ExcludedNodesDoNotCount) {
  ComponentRequest c = Ask("booster", 2, 2);
  c.exclude = {"bn0"};
  EXPECT_EQ(CanEver(c).code(), Code::kOutOfRange);
}

TEST(CanEver, ComponentsThatOnlyFitAloneAreRefused) {
  JobRequest request{{Ask("dam", 3), Ask("dam", 3)}, std::nullopt, false};
  ASSERT_TRUE(FillDefaults(request, Small()).ok());
  const Status status = CheckCanEver(request, Small());
  EXPECT_EQ(status.code(), Code::kOutOfRange);
  EXPECT_NE(status.message().find("not together"), std::string::npos);
}

TEST(CanEver, ANodeWhoseCoresAreNotMeasuredYetRefusesNothing) {
  SystemTopology t = Small();
  for (NodeSpec& node : t.nodes) node.cores = 0;
  JobRequest request{{Ask("booster", 200, 2)}, std::nullopt, false};
  ASSERT_TRUE(FillDefaults(request, t).ok());
  EXPECT_TRUE(CheckCanEver(request, t).ok());
}

TEST(CheckCanEver, MoreNetworkAttachedMemoryThanTheSystemHasIsRefusedWithNumbers) {
  SystemTopology topology = scheduler_test::Small();
  topology.nodes.back().nam = Bytes(std::uint64_t{1} << 30);
  JobRequest request{{scheduler_test::Ask("cluster", 1)}, std::nullopt, false, Bytes(std::uint64_t{1} << 30)};
  ASSERT_TRUE(FillDefaults(request, topology).ok());
  EXPECT_TRUE(CheckCanEver(request, topology).ok());
  request.nam = Bytes(std::uint64_t{2} << 30);
  const Status status = CheckCanEver(request, topology);
  EXPECT_EQ(status.code(), Code::kOutOfRange);
  EXPECT_EQ(status.message(),
            "--nam 2G: the system has 1G of network attached memory; reduce --nam or see 'msactl region df'");
}

}  // namespace
}  // namespace msa
