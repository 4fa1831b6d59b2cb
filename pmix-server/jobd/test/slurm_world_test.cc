#include "slurm_world.h"

#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace msa::jobd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

SlurmJoined Joined(std::uint32_t ntasks, std::vector<SlurmTask> tasks) {
  SlurmJoined joined;
  joined.step = StepId(3);
  joined.ntasks = ntasks;
  joined.commands = {{{"./ocean", "-x"}, "/home/ada"}, {{"./ice"}, "/scratch"}};
  joined.tasks = std::move(tasks);
  return joined;
}

SlurmTask Task(std::uint32_t rank, std::uint64_t component = 7, std::uint32_t command = 0) {
  return {Rank(rank), command, JobId(component), 1, static_cast<std::int32_t>(1000 + rank), 0};
}

TEST(SlurmWorld, IsTheSameInWhateverOrderItsTasksCome) {
  std::vector<std::uint32_t> order = {0, 1, 2, 3, 4, 5};
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    SlurmWorld world(StepId(3), 6);
    for (std::size_t i = 0; i < order.size(); ++i) {
      EXPECT_FALSE(world.complete());
      const std::uint32_t rank = order[i];
      // Cyclic over members 5 and 2; ranks 4 and 5 are another component, with another program.
      const SlurmTask task = Task(rank, rank < 4 ? 7 : 8, rank < 4 ? 0 : 1);
      ASSERT_TRUE(world.Add(rank % 2 == 0 ? 5 : 2, Joined(6, {task}), task).ok());
    }
    ASSERT_TRUE(world.complete());
    wire::StepSpec spec;
    spec.apps.resize(3);
    world.Describe(spec);
    EXPECT_THAT(spec.rank_member, ElementsAre(5, 2, 5, 2, 5, 2));
    ASSERT_EQ(spec.apps.size(), 2u);
    EXPECT_EQ(spec.apps[0].ntasks, 4u);
    EXPECT_THAT(spec.apps[0].argv, ElementsAre("./ocean", "-x"));
    EXPECT_EQ(spec.apps[1].ntasks, 2u);
    EXPECT_EQ(spec.apps[1].component, 1u);
    EXPECT_THAT(spec.apps[1].argv, ElementsAre("./ice"));
    EXPECT_EQ(spec.apps[1].cwd, "/scratch");
    EXPECT_EQ(spec.cwd, "/home/ada");
  }
}

TEST(SlurmWorld, WhatBecomesOfItWhenAChildFailsIsTheStepsOrElseTheJobs) {
  using wire::OnChildFailure;
  const auto described = [](const std::string& said, OnChildFailure jobs) {
    SlurmWorld world(StepId(3), 1);
    SlurmJoined joined = Joined(1, {Task(0)});
    joined.on_child_failure = said;
    EXPECT_TRUE(world.Add(0, joined, joined.tasks[0]).ok());
    wire::StepSpec spec;
    spec.on_child_failure = jobs;
    world.Describe(spec);
    return spec.on_child_failure;
  };
  for (const OnChildFailure jobs : {OnChildFailure::kKill, OnChildFailure::kEvent}) {
    EXPECT_EQ(described("kill", jobs), OnChildFailure::kKill);
    EXPECT_EQ(described("event", jobs), OnChildFailure::kEvent);
    EXPECT_EQ(described("", jobs), jobs);
  }
}

TEST(SlurmWorld, AnAppIsARunOfOneComponentsRanks) {
  SlurmWorld world(StepId(3), 3);
  for (const std::uint32_t rank : {0u, 1u, 2u}) {
    const SlurmTask task = Task(rank, rank == 1 ? 8 : 7);
    ASSERT_TRUE(world.Add(0, Joined(3, {task}), task).ok());
  }
  wire::StepSpec spec;
  world.Describe(spec);
  ASSERT_EQ(spec.apps.size(), 3u);
  EXPECT_EQ(spec.apps[0].component, 0u);
  EXPECT_EQ(spec.apps[1].component, 1u);
  EXPECT_EQ(spec.apps[2].component, 0u);
}

TEST(SlurmWorld, WhatIsSaidTwiceIsKnownOnceAndAnotherTaskOfTheRankIsRefused) {
  SlurmWorld world(StepId(3), 2);
  const SlurmTask task = Task(1);
  EXPECT_TRUE(world.Add(4, Joined(2, {task}), task).ok());
  EXPECT_TRUE(world.Add(4, Joined(2, {task}), task).ok());
  SlurmTask other = task;
  other.pid = 77;
  const Status refused = world.Add(4, Joined(2, {other}), other);
  EXPECT_EQ(refused.code(), Code::kAlreadyExists);
  EXPECT_THAT(refused.message(), HasSubstr("step 3 has a task 1 already (pid 1001); pid 77 is another"));
  EXPECT_EQ(world.Add(5, Joined(2, {task}), task).code(), Code::kAlreadyExists);
  EXPECT_FALSE(world.complete());
  EXPECT_THAT(world.Missing(), HasSubstr("1 of 2 tasks have come; missing: 0"));
  EXPECT_TRUE(world.Uses(4));
  EXPECT_FALSE(world.Uses(5));
}

TEST(SlurmWorld, RefusesAnotherCountARankOutsideAndATaskWithoutProgram) {
  SlurmWorld world(StepId(3), 2);
  SlurmTask task = Task(0);
  EXPECT_THAT(world.Add(0, Joined(3, {task}), task).message(), HasSubstr("counts 3 tasks; expected 2"));
  const SlurmTask outside = Task(2);
  EXPECT_EQ(world.Add(0, Joined(2, {outside}), outside).code(), Code::kOutOfRange);
  task.command = 9;
  EXPECT_EQ(world.Add(0, Joined(2, {task}), task).code(), Code::kInvalidArgument);
  SlurmWorld none(StepId(3), 0);
  const SlurmTask any = Task(0);
  EXPECT_EQ(none.Add(0, Joined(0, {any}), any).code(), Code::kInvalidArgument);
  EXPECT_FALSE(none.complete());
  EXPECT_TRUE(world.empty());
}

TEST(SlurmWorld, OfManyThatAreMissingTheFirstAreNamed) {
  SlurmWorld world(StepId(3), 1000);
  const SlurmTask task = Task(5);
  ASSERT_TRUE(world.Add(0, Joined(1000, {task}), task).ok());
  EXPECT_EQ(world.Missing(), "1 of 1000 tasks have come; missing: 0-4,6-64,...");
}

}  // namespace
}  // namespace msa::jobd
