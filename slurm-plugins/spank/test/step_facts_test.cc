#include "step_facts.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace msa::spank {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Lookup In(Variables variables) {
  return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto it = variables.find(name);
    if (it == variables.end()) return std::nullopt;
    return it->second;
  };
}

// As a slurmstepd of a heterogeneous step saw them on the second component's node (Slurm 22.05.8).
Variables HetStep() {
  return {{"SLURM_JOB_ID", "17"},
          {"SLURM_NTASKS", "5"},
          {"SLURM_STEP_NODELIST", "bn0,cn[0-1]"},
          {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
          {"SLURM_JOB_PARTITION", "booster"},
          {"SLURM_TOPOLOGY_ADDR", "bn0"},
          {"SLURM_TOPOLOGY_ADDR_PATTERN", "node"}};
}

TEST(SpankStep, AHeterogeneousStepIsReadAsAWhole) {
  StepItems items;
  items.component_job = 18;
  items.step = 2;
  items.local_tasks = 2;
  items.alloc_cores = "0-1";
  const auto begin = ReadStep(items, In(HetStep()), "bn0");
  ASSERT_TRUE(begin.ok()) << begin.status().message();
  EXPECT_EQ(begin->job, JobId(17));
  EXPECT_EQ(begin->component_job, JobId(18));
  EXPECT_EQ(begin->ntasks, 5u);
  ASSERT_EQ(begin->nodes.size(), 3u);
  EXPECT_EQ(begin->nodes[0].node, "bn0");
  EXPECT_EQ(begin->nodes[0].tasks, 2u);
  EXPECT_EQ(begin->nodes[2].node, "cn1");
  EXPECT_EQ(begin->nodes[2].tasks, 1u);
  EXPECT_THAT(begin->cores, ElementsAre(0, 1));
}

TEST(SpankStep, ABatchScriptIsAStepOfOneTaskHere) {
  StepItems items;
  items.component_job = 17;
  items.step = kBatchScript;
  items.local_tasks = 1;
  const auto begin = ReadStep(items, In({{"SLURM_JOB_ID", "17"}, {"SLURM_NTASKS", "3"}}), "cn0");
  ASSERT_TRUE(begin.ok()) << begin.status().message();
  EXPECT_EQ(begin->ntasks, 1u);
  ASSERT_EQ(begin->nodes.size(), 1u);
  EXPECT_EQ(begin->nodes[0].node, "cn0");
}

TEST(SpankStep, WhatDoesNotAddUpIsRefusedByName) {
  StepItems items;
  auto variables = HetStep();
  variables["SLURM_NTASKS"] = "6";
  EXPECT_THAT(ReadStep(items, In(variables), "bn0").status().message(), HasSubstr("SLURM_NTASKS=6"));
  variables = HetStep();
  variables["SLURM_STEP_TASKS_PER_NODE"] = "2,1";
  EXPECT_THAT(ReadStep(items, In(variables), "bn0").status().message(), HasSubstr("names 3 nodes"));
  variables.erase("SLURM_JOB_ID");
  EXPECT_THAT(ReadStep(items, In(variables), "bn0").status().message(), HasSubstr("SLURM_JOB_ID"));
}

TEST(SpankStep, TaskCountsAreExpandedAndNonsenseIsNot) {
  EXPECT_THAT(*ExpandTaskCounts("2(x3),1,16"), ElementsAre(2, 2, 2, 1, 16));
  for (const char* text : {"", "x", "2(x", "2(x0)", "2,", "2;3", "2(x99999999)", "-1", "4294967296"})
    EXPECT_FALSE(ExpandTaskCounts(text).ok()) << text;
}

TEST(SpankStep, CoreListsAreExpandedAndNonsenseIsNot) {
  EXPECT_THAT(*ExpandCores("0-2,7"), ElementsAre(0, 1, 2, 7));
  EXPECT_THAT(*ExpandCores(""), ElementsAre());
  for (const char* text : {"a", "3-1", "1-", "1;2", "70000", "0-70000"})
    EXPECT_FALSE(ExpandCores(text).ok()) << text;
}

TEST(SpankStep, TheNodesNameStandsBehindTheSwitches) {
  EXPECT_EQ(NodeName(In({{"SLURM_TOPOLOGY_ADDR", "cn1"}, {"SLURM_TOPOLOGY_ADDR_PATTERN", "node"}})), "cn1");
  EXPECT_EQ(NodeName(In({{"SLURM_TOPOLOGY_ADDR", "s0.s4.cn1.site"},
                         {"SLURM_TOPOLOGY_ADDR_PATTERN", "switch.switch.node"}})),
            "cn1.site");
  EXPECT_EQ(NodeName(In({})), "");
}

}  // namespace
}  // namespace msa::spank
