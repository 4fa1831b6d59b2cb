#include <ctime>

#include <gtest/gtest.h>

#include "fixture.h"

namespace msa {
namespace {

using scheduler_test::Ask;
using scheduler_test::kNow;
using scheduler_test::Small;
using scheduler_test::ViewOf;

class SchedulerTest : public ::testing::Test {
 protected:
  PendingJob Job(std::uint64_t id, std::vector<ComponentRequest> components,
                 std::optional<Millis> limit = {}) {
    PendingJob job{JobId(id), {std::move(components), limit, false}};
    const Status status = FillDefaults(job.request, topology_);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return job;
  }
  void Running(std::uint64_t id, std::uint32_t node, std::vector<std::uint16_t> cores, Instant end) {
    view_.running.push_back({JobId(id), end, {{0, node, std::move(cores), 1, Bytes(), 0}}});
  }
  Plan Run(std::vector<PendingJob> pending, SchedulerOptions options = {}) {
    return Schedule(view_, pending, kNow, options);
  }
  static std::vector<std::uint64_t> Started(const Plan& plan) {
    std::vector<std::uint64_t> ids;
    for (const Start& start : plan.starts) ids.push_back(start.id.value);
    return ids;
  }

  SystemTopology topology_ = Small();
  ClusterView view_ = ViewOf(topology_);
};

using Ids = std::vector<std::uint64_t>;
using Cores = std::vector<std::uint16_t>;

TEST_F(SchedulerTest, StartsComponentsOnTheirModulesWithOneCoreATask) {
  const Plan plan = Run({Job(1, {Ask("cluster", 2), Ask("booster", 4, 2)})});
  ASSERT_EQ(plan.starts.size(), 1u);
  const Placement& p = plan.starts[0].placement;
  ASSERT_EQ(p.size(), 3u);
  EXPECT_EQ(std::tuple(p[0].component, p[0].node, p[0].tasks, p[0].cores),
            std::tuple(0u, 0u, 2u, Cores{0, 1}));
  EXPECT_EQ(std::tuple(p[1].component, p[1].node, p[1].tasks), std::tuple(1u, 2u, 2u));
  EXPECT_EQ(std::tuple(p[2].component, p[2].node, p[2].tasks), std::tuple(1u, 3u, 2u));
}

TEST_F(SchedulerTest, TellsWhatWasAskedInTheWordsOfTheUser) {
  Running(8, 0, {0, 1, 2, 3}, kNow + Millis(60000));
  Running(9, 1, {0, 1, 2, 3}, kNow + Millis(60000));
  PendingJob shared = Job(2, {Ask("cluster", 3000)});
  shared.request.oversubscribe = true;
  const Plan plan = Run({Job(1, {Ask("cluster", 8)}), shared, Job(3, {Ask("cluster", 1, 1)})});
  ASSERT_EQ(plan.waiting.size(), 3u);
  EXPECT_EQ(plan.waiting[0].reason, "resources: module 'cluster': 8 cores asked, 0 cores free on 0 nodes");
  EXPECT_EQ(plan.waiting[1].reason,
            "resources: module 'cluster': 3000 tasks that share cores asked, 0 cores free on 0 nodes");
  EXPECT_EQ(plan.waiting[2].reason,
            "resources: module 'cluster': 1 core on 1 node asked, 0 cores free on 0 nodes");
}

TEST_F(SchedulerTest, MemoryOfTheNetworkIsAResourceLikeCores) {
  view_.nam_capacity = Bytes(1000);
  Running(9, 0, {0}, kNow + Millis(60000));
  view_.running[0].nam = Bytes(600);
  PendingJob large = Job(1, {Ask("cluster", 1)}, Millis(5000));
  large.request.nam = Bytes(500);
  PendingJob small = Job(2, {Ask("cluster", 1)}, Millis(5000));
  small.request.nam = Bytes(400);
  const Plan plan = Run({large, small});
  EXPECT_EQ(Started(plan), Ids{2}) << "it ends before the first needs its memory";
  ASSERT_EQ(plan.waiting.size(), 1u);
  EXPECT_EQ(plan.waiting[0].reason, "resources: --nam 500 bytes: 400 bytes of 1000 bytes are free");
  EXPECT_EQ(plan.waiting[0].expected_start, kNow + Millis(60000));
}

TEST_F(SchedulerTest, BackfillTakesNoMemoryThatIsReserved) {
  view_.nam_capacity = Bytes(1000);
  Running(9, 0, {0}, kNow + Millis(60000));
  view_.running[0].nam = Bytes(600);
  PendingJob large = Job(1, {Ask("cluster", 1)}, Millis(5000));
  large.request.nam = Bytes(700);
  PendingJob late = Job(2, {Ask("cluster", 1)}, Millis(120000));
  late.request.nam = Bytes(400);
  PendingJob fits = Job(3, {Ask("cluster", 1)}, Millis(120000));
  fits.request.nam = Bytes(300);
  const Plan plan = Run({large, late, fits});
  EXPECT_EQ(Started(plan), Ids{3});
  EXPECT_EQ(plan.waiting[0].expected_start, kNow + Millis(60000));
  EXPECT_EQ(plan.waiting[1].reason, "priority: its start now would delay job 1");
}

TEST_F(SchedulerTest, GatewaysAreAResourceLikeCores) {
  view_.gateway_capacity = 2;
  Running(9, 0, {0}, kNow + Millis(60000));
  view_.running[0].gateways = 1;
  PendingJob both = Job(1, {Ask("cluster", 1)}, Millis(5000));
  both.request.gateways = 2;
  PendingJob late = Job(2, {Ask("cluster", 1)}, Millis(120000));
  late.request.gateways = 1;
  PendingJob fits = Job(3, {Ask("cluster", 1)}, Millis(5000));
  fits.request.gateways = 1;
  const Plan plan = Run({both, late, fits});
  EXPECT_EQ(Started(plan), Ids{3}) << "it ends before the first needs its gateway";
  ASSERT_EQ(plan.waiting.size(), 2u);
  EXPECT_EQ(plan.waiting[0].reason, "resources: --gateways 2: 1 of 2 are free");
  EXPECT_EQ(plan.waiting[0].expected_start, kNow + Millis(60000));
  EXPECT_EQ(plan.waiting[1].reason, "priority: its start now would delay job 1");
}

TEST_F(SchedulerTest, MemoryThatNoEndOfAJobBringsIsTold) {
  view_.nam_capacity = Bytes(1000);
  PendingJob job = Job(1, {Ask("cluster", 1)}, Millis(5000));
  job.request.nam = Bytes(1001);
  const Plan plan = Run({job});
  ASSERT_EQ(plan.waiting.size(), 1u);
  EXPECT_NE(plan.waiting[0].reason.find("--nam 1001 bytes: 1000 bytes of 1000 bytes are free, and no more"),
            std::string::npos)
      << plan.waiting[0].reason;
  EXPECT_EQ(plan.waiting[0].expected_start, kNever);
}

TEST_F(SchedulerTest, JobsThatHoldMoreThanIsThereWaitForItsReturn) {
  Running(9, 0, {0}, kNow + Millis(60000));
  view_.running[0].nam = Bytes(600);
  PendingJob job = Job(1, {Ask("cluster", 1)}, Millis(5000));
  job.request.nam = Bytes(1);
  const Plan plan = Run({job});
  EXPECT_TRUE(plan.starts.empty()) << "what the running job gives back is away, too";
  EXPECT_EQ(plan.waiting[0].expected_start, kNever);
}

TEST_F(SchedulerTest, NamesTheNodeOfItsListThatIsNotReady) {
  view_.usable[1] = false;
  ComponentRequest named = Ask("cluster", 1);
  named.nodelist = {"cn1"};
  const Plan plan = Run({Job(1, {named})});
  ASSERT_EQ(plan.waiting.size(), 1u);
  EXPECT_EQ(plan.waiting[0].reason,
            "nodes down or drained: cn1, which the job names; see 'msactl node show cn1'");
}

TEST_F(SchedulerTest, StartsNothingOfAJobWhenOneComponentDoesNotFit) {
  Running(9, 2, {0, 1, 2, 3, 4, 5, 6, 7}, kNow + Millis(60000));
  const Plan plan = Run({Job(1, {Ask("cluster", 1), Ask("booster", 2, 2)})});
  EXPECT_TRUE(plan.starts.empty());
  ASSERT_EQ(plan.waiting.size(), 1u);
  EXPECT_EQ(plan.waiting[0].expected_start, kNow + Millis(60000));
  EXPECT_EQ(plan.waiting[0].reason,
            "resources: module 'booster': 2 cores on 2 nodes asked, 8 cores free on 1 node");
}

TEST_F(SchedulerTest, ComponentsOfOneJobShareANodeWhenItsCoresSuffice) {
  const Plan plan = Run({Job(1, {Ask("dam", 2), Ask("dam", 2)})});
  ASSERT_EQ(plan.starts.size(), 1u);
  EXPECT_EQ(plan.starts[0].placement[0].cores, (Cores{0, 1}));
  EXPECT_EQ(plan.starts[0].placement[1].cores, (Cores{2, 3}));
}

TEST_F(SchedulerTest, TasksAreSpreadEvenlyOverTheNodesAsked) {
  const Plan plan = Run({Job(1, {Ask("cluster", 3, 2)})});
  ASSERT_EQ(plan.starts.size(), 1u);
  EXPECT_EQ(plan.starts[0].placement[0].tasks, 2u);
  EXPECT_EQ(plan.starts[0].placement[1].tasks, 1u);
}

TEST_F(SchedulerTest, ANodeRangeStartsWithWhatFits) {
  ComponentRequest c = Ask("cluster", 0, 1);
  c.max_nodes = 2;
  EXPECT_EQ(Run({Job(1, {c})}).starts[0].placement.size(), 2u);
  Running(9, 0, {0, 1, 2, 3}, kNever);
  EXPECT_EQ(Run({Job(1, {c})}).starts[0].placement.size(), 1u);
}

TEST_F(SchedulerTest, ARangeLeavesRoomForTheOtherComponents) {
  ComponentRequest wide = Ask("cluster", 0, 1);
  wide.max_nodes = 2;
  wide.exclusive = true;
  ComponentRequest narrow = Ask("cluster", 4, 1);
  const Plan plan = Run({Job(1, {wide, narrow})});
  ASSERT_EQ(plan.starts.size(), 1u);
  EXPECT_EQ(plan.starts[0].placement.size(), 2u);
}

TEST_F(SchedulerTest, FewTasksGoWhereTheyFitBestSoThatWholeNodesStayFree) {
  Running(9, 1, {0, 1}, kNever);
  const Plan plan = Run({Job(1, {Ask("cluster", 2)})});
  EXPECT_EQ(plan.starts[0].placement[0].node, 1u);
}

TEST_F(SchedulerTest, CpusPerTaskAreCountedForEachTask) {
  ComponentRequest c = Ask("booster", 3);
  c.cpus_per_task = 4;
  const Plan plan = Run({Job(1, {c})});
  ASSERT_EQ(plan.starts.size(), 1u);
  EXPECT_EQ(plan.starts[0].placement[0].cores.size() + plan.starts[0].placement[1].cores.size(), 12u);
}

TEST_F(SchedulerTest, AnExclusiveJobTakesWholeNodesOnly) {
  Running(9, 0, {3}, kNever);
  ComponentRequest c = Ask("cluster", 1);
  c.exclusive = true;
  const Plan plan = Run({Job(1, {c}), Job(2, {Ask("cluster", 4)})});
  ASSERT_EQ(Started(plan), Ids{1});
  EXPECT_EQ(plan.starts[0].placement[0].node, 1u);
  EXPECT_EQ(plan.starts[0].placement[0].cores.size(), 4u);
}

TEST_F(SchedulerTest, MemoryOfANodeIsSharedOut) {
  ComponentRequest c = Ask("dam", 1);
  c.memory = Bytes(std::uint64_t{3} << 30);
  const Plan plan = Run({Job(1, {c}), Job(2, {c})});
  EXPECT_EQ(Started(plan), Ids{1});
}

TEST_F(SchedulerTest, NodelistAndExcludeAreObeyed) {
  ComponentRequest listed;
  listed.nodelist = {"bn1"};
  ComponentRequest excluded = Ask("booster", 1);
  excluded.exclude = {"bn0"};
  const Plan plan = Run({Job(1, {listed}), Job(2, {excluded})});
  ASSERT_EQ(plan.starts.size(), 2u);
  EXPECT_EQ(plan.starts[0].placement[0].node, 3u);
  EXPECT_EQ(plan.starts[1].placement[0].node, 3u);
}

TEST_F(SchedulerTest, OversubscribedTasksShareWhatIsFree) {
  PendingJob job{JobId(1), {{Ask("dam", 16), Ask("dam", 8)}, std::nullopt, true}};
  ASSERT_TRUE(FillDefaults(job.request, topology_).ok());
  ASSERT_TRUE(CheckCanEver(job.request, topology_).ok());
  Running(9, 4, {0}, kNever);
  const Plan plan = Run({job});
  ASSERT_EQ(plan.starts.size(), 1u);
  EXPECT_EQ(plan.starts[0].placement[0].tasks, 16u);
  EXPECT_EQ(plan.starts[0].placement[0].cores, (Cores{1, 3}));
  EXPECT_EQ(plan.starts[0].placement[1].cores, Cores{2});
}

TEST_F(SchedulerTest, OversubscribedTasksUseAllNodesTheyWouldNeed) {
  PendingJob job{JobId(1), {{Ask("cluster", 16)}, std::nullopt, true}};
  ASSERT_TRUE(FillDefaults(job.request, topology_).ok());
  const Plan plan = Run({job});
  ASSERT_EQ(plan.starts.size(), 1u);
  ASSERT_EQ(plan.starts[0].placement.size(), 2u);
  EXPECT_EQ(plan.starts[0].placement[0].tasks, 8u);
}

TEST_F(SchedulerTest, NothingStartsOnNodesThatAreAwayAndTheReasonSaysSo) {
  view_.usable[2] = view_.usable[3] = false;
  const Plan plan = Run({Job(1, {Ask("booster", 1)}), Job(2, {Ask("cluster", 1)})});
  EXPECT_EQ(Started(plan), Ids{2});
  ASSERT_EQ(plan.waiting.size(), 1u);
  EXPECT_EQ(plan.waiting[0].expected_start, kNever);
  EXPECT_EQ(plan.waiting[0].reason.find("nodes down or drained: module 'booster'"), 0u)
      << plan.waiting[0].reason;
}

TEST_F(SchedulerTest, EasyStartsBehindWhatEndsBeforeTheReservation) {
  Running(9, 2, {0, 1, 2, 3, 4, 5, 6, 7}, kNow + Millis(60000));
  const PendingJob head = Job(1, {Ask("booster", 16, 2)}, Millis(600000));
  const PendingJob quick = Job(2, {Ask("booster", 8)}, Millis(60000));
  const PendingJob slow = Job(3, {Ask("booster", 8)}, Millis(60001));
  EXPECT_EQ(Started(Run({head, quick})), Ids{2});
  const Plan plan = Run({head, slow});
  EXPECT_EQ(Started(plan), Ids{});
  EXPECT_EQ(plan.waiting[1].reason, "priority: its start now would delay job 1");
  EXPECT_EQ(plan.waiting[1].expected_start, kNow + Millis(660000));
}

TEST_F(SchedulerTest, EasyProtectsOnlyTheHeadAndConservativeAll) {
  Running(9, 2, {0, 1, 2, 3, 4, 5, 6, 7}, kNow + Millis(60000));
  const PendingJob head = Job(1, {Ask("booster", 16, 2)}, Millis(600000));
  const PendingJob second = Job(2, {Ask("booster", 16, 2), Ask("dam", 4)}, Millis(600000));
  const PendingJob third = Job(3, {Ask("dam", 4)}, Millis(3600000));
  EXPECT_EQ(Started(Run({head, second, third})), Ids{3});
  EXPECT_EQ(Started(Run({head, second, third}, {.backfill = Backfill::kConservative})), Ids{});
}

TEST_F(SchedulerTest, JobsWithoutLimitDoNotStarveOneThatWaitsForOneOfThem) {
  Running(9, 4, {0, 1, 2, 3}, kNever);
  const PendingJob head = Job(1, {Ask("dam", 1), Ask("cluster", 8)});
  const Plan plan = Run({head, Job(2, {Ask("cluster", 1)}), Job(3, {Ask("cluster", 1)}, Millis(1000))});
  EXPECT_EQ(Started(plan), Ids{3});
  EXPECT_EQ(plan.waiting[0].expected_start, kNever);
}

TEST_F(SchedulerTest, AJobThatWaitsForADrainedNodeHoldsNothing) {
  view_.usable[4] = false;
  const Plan plan = Run({Job(1, {Ask("dam", 1), Ask("cluster", 8)}), Job(2, {Ask("cluster", 1)})});
  EXPECT_EQ(Started(plan), Ids{2});
}

TEST_F(SchedulerTest, TheSameSnapshotGivesTheSamePlan) {
  Running(9, 2, {1, 5}, kNow + Millis(1000));
  const std::vector<PendingJob> pending = {Job(1, {Ask("booster", 15)}),
                                           Job(2, {Ask("booster", 3)}, Millis(500))};
  const Plan a = Run(pending);
  const Plan b = Run(pending);
  ASSERT_EQ(Started(a), Started(b));
  for (std::size_t i = 0; i < a.starts.size(); ++i)
    for (std::size_t s = 0; s < a.starts[i].placement.size(); ++s)
      EXPECT_EQ(a.starts[i].placement[s].cores, b.starts[i].placement[s].cores);
}

TEST(SchedulerScale, TenThousandNodesAndAThousandDifferentJobsArePlannedInSeconds) {
  SystemTopology topology;
  topology.modules = {{ModuleId(0), "cluster", "cluster"}};
  for (int n = 0; n < 10000; ++n)
    topology.nodes.push_back({.name = fmt::format("n{}", n), .module = ModuleId(0), .cores = 64});
  ClusterView view = ViewOf(topology);
  for (std::uint32_t n = 0; n < 5000; ++n) {
    NodeShare share{0, n, {}, 64, Bytes(), 0};
    for (std::uint16_t c = 0; c < 64; ++c) share.cores.push_back(c);
    view.running.push_back({JobId(n + 1), kNow + Millis(1000 * (n % 997 + 1)), {share}});
  }
  std::vector<PendingJob> pending;
  for (std::uint64_t j = 0; j < 1000; ++j) {
    PendingJob job{JobId(100000 + j),
                   {{Ask("cluster", 0, static_cast<std::uint32_t>(100 + j * 5))}, Millis(3600000), false}};
    ASSERT_TRUE(FillDefaults(job.request, topology).ok());
    pending.push_back(std::move(job));
  }
  // Processor time: what else runs on the machine does not count.
  const std::clock_t before = std::clock();
  const Plan plan = Schedule(view, pending, kNow);
  const double seconds = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_EQ(plan.starts.size() + plan.waiting.size(), 1000u);
  RecordProperty("milliseconds", static_cast<int>(seconds * 1000));
  // Generous for the sanitizers; a release build takes well below a second.
  EXPECT_LT(seconds, 20);
}

}  // namespace
}  // namespace msa
