#include "output/grant_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "output/job_texts.h"

namespace msa::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

GrantInfo Held() {
  GrantInfo grant;
  grant.id = 3;
  grant.job = JobId(7);
  grant.request = 1;
  grant.user = "ada";
  grant.state = GrantState::kHeld;
  grant.allocations = {{.node = "bn0", .module = "booster", .cores = {0, 1, 2}, .grant = 3, .held = true},
                       {.node = "bn1", .module = "booster", .cores = {0}, .grant = 3, .held = true}};
  grant.slots = 4;
  grant.module = "booster";
  grant.asked_at_ms = 1'000'000;
  grant.since_ms = 1'002'000;
  grant.namespaces = {"msa.7.1.0.1", "msa.7.1.0.2"};
  return grant;
}

GrantInfo Waiting() {
  GrantInfo grant;
  grant.job = JobId(8);
  grant.user = "bob";
  grant.slots = 16;
  grant.module = "booster";
  grant.asked_at_ms = 1'000'000;
  grant.until_ms = 1'060'000;
  grant.reason = "16 slots asked in module 'booster', 4 free";
  return grant;
}

TEST(GrantTexts, ListWhatIsHeldAndWhatWaits) {
  const Listing listing = GrantListing({Held(), Waiting()});
  const std::string table = Render(listing, {});
  EXPECT_THAT(table, HasSubstr("GRANT  JOB  USER  STATE    SLOTS  MODULE   NODELIST  NAMESPACES"));
  EXPECT_THAT(table,
              HasSubstr("    3    7  ada   HELD         4  booster  bn[0-1]   msa.7.1.0.1,msa.7.1.0.2"));
  EXPECT_THAT(table, HasSubstr("    -    8  bob   WAITING     16  booster  -         -"));
  EXPECT_THAT(table, HasSubstr("16 slots asked in module 'booster', 4 free"));
  EXPECT_EQ(Render(listing, {.format = Format::kName}), "3\n") << "one that waits has no id";
  EXPECT_EQ(Render(GrantListing({}), {}), "no grants\n");
}

TEST(GrantTexts, AreStableAsJson) {
  const std::string json = Render(GrantListing({Held(), Waiting()}), {.format = Format::kJson});
  EXPECT_THAT(
      json, AllOf(HasSubstr("\"kind\": \"GrantList\""), HasSubstr("\"apiVersion\""), HasSubstr("\"id\": 3,"),
                  HasSubstr("\"id\": null,"), HasSubstr("\"state\": \"WAITING\""),
                  HasSubstr("\"until\": null"), HasSubstr("\"since\": \"1970-01-01T00:16:42.000Z\"")));
}

TEST(GrantTexts, ShowAllOfOne) {
  const auto text = Render(GrantDetails(Held()), {});
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, AllOf(HasSubstr("grant:      3\n"), HasSubstr("job:        7 of ada\n"),
                           HasSubstr("slots:      4, asked in module booster\n"),
                           HasSubstr("nodes:      bn0 (booster)  cores 0-2\n"),
                           HasSubstr("            bn1 (booster)  cores 0\n"),
                           HasSubstr("until:      its last namespace or the job ends\n"),
                           HasSubstr("namespaces: msa.7.1.0.1\n")));
}

TEST(GrantTexts, TellOneThatIsBeingReleasedFromOneThatIsHeld) {
  GrantInfo grant = Held();
  grant.reason = "released by ada";
  EXPECT_EQ(GrantWord(grant), "RELEASING");
  grant.state = GrantState::kReleased;
  EXPECT_EQ(GrantWord(grant), "RELEASED");
}

JobInfo Family() {
  JobInfo job;
  job.id = JobId(7);
  job.state = JobState::kRunning;
  job.allocations = {{.node = "cn0", .module = "cluster", .cores = {0}, .held = true},
                     {.node = "bn0", .module = "booster", .cores = {0}, .grant = 3, .held = true}};
  job.namespaces = {{.name = "msa.7.1.0", .parent = "", .size = 2, .nodes = {"cn0"}, .command = "./a"},
                    {.name = "msa.7.1.0.1",
                     .parent = "msa.7.1.0",
                     .size = 3,
                     .nodes = {"cn0", "bn0"},
                     .command = "./c",
                     .grants = {3, 4}},
                    {.name = "msa.7.1.0.2",
                     .parent = "msa.7.1.0.1",
                     .size = 1,
                     .nodes = {"bn0"},
                     .command = "./d",
                     .ended = true,
                     .exit_code = 3}};
  return job;
}

TEST(SpawnTexts, ListSpawnedNamespacesWithTheirParents) {
  const std::string running = Render(SpawnListing({Family()}, SpawnsShown::kRunning), {});
  EXPECT_THAT(running,
              HasSubstr("7  msa.7.1.0.1  msa.7.1.0      3  cn0,bn0   cluster,booster  3,4    RUNNING"));
  EXPECT_THAT(running, Not(HasSubstr("./d")));
  EXPECT_THAT(running, Not(HasSubstr("./a"))) << "a step was not spawned";
  const std::string all = Render(SpawnListing({Family()}, SpawnsShown::kAll), {.format = Format::kCsv});
  EXPECT_THAT(all, HasSubstr("7,msa.7.1.0.2,msa.7.1.0.1,1,bn0,booster,,ENDED,3,./d\n"));
  EXPECT_EQ(Render(SpawnListing({}, SpawnsShown::kAll), {}), "no spawned processes\n");
}

TEST(SpawnTexts, TheTreeOfAJobNamesTheGrantsOfEach) {
  const auto text = Render(JobDetails(Family(), 0), {});
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("namespaces: msa.7.1.0  ./a  2 tasks on cn0  running\n"
                               "              msa.7.1.0.1  ./c  3 tasks on cn0,bn0  running, grants 3,4\n"
                               "                msa.7.1.0.2  ./d  1 task on bn0  ended with code 3\n"));
}

TEST(NodeTexts, StatesTellADrainUnderWayAndAClockThatIsOff) {
  NodeInfo node;
  node.name = "bn0";
  node.state = NodeState::kUp;
  EXPECT_EQ(StateWord(node), "UP");
  node.drained = true;
  EXPECT_EQ(StateWord(node), "UP+DRAINED");
  node.jobs = {7};
  EXPECT_EQ(StateWord(node), "UP+DRAINING");
  node.drained = false;
  node.clock_off = true;
  node.clock_offset_ms = -7200;
  node.reason = "its clock is 7.2 s behind the controller's";
  EXPECT_EQ(StateWord(node), "UP+CLOCK");
  const std::string json = Render(NodeListing({node}), {.format = Format::kJson});
  EXPECT_THAT(json, AllOf(HasSubstr("\"clock_offset_ms\": -7200"), HasSubstr("\"clock_off\": true")));
  EXPECT_THAT(Render(NodeListing({node}), {}), HasSubstr("7.2 s behind"));
}

}  // namespace
}  // namespace msa::cli
