// Deaths: of job daemons, of node daemons, of the owner.
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jobd_harness.h"

namespace msa::jobd {
namespace {

using ::testing::HasSubstr;

wire::App Sh(const std::string& script, std::uint32_t ntasks = 1) {
  wire::App app;
  app.argv = {"/bin/sh", "-c", script};
  app.ntasks = ntasks;
  return app;
}

// Whoever is its parent now has seen its end.
bool Gone(JobdHarness& job, pid_t pid) {
  return job.Until([&] { return ::kill(pid, 0) != 0; });
}

TEST(JobdFaults, AMembersDeathEndsTheStepThatUsesIt) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}});
  job.WarmUp();
  job.Launch({.apps = {Sh("echo ready; exec sleep 600", 2)}, .rank_node = {"cn0", "bn0"}});
  ASSERT_TRUE(job.Until([&] { return job.Out(0) == "ready\n" && job.Out(1) == "ready\n"; }));
  job.KillJobd("bn0", SIGKILL);
  ASSERT_TRUE(job.UntilOver());
  EXPECT_EQ(job.exit->state, wire::JobState::kNodeFail);
  EXPECT_EQ(job.exit->exit_code, 125);
  EXPECT_THAT(job.exit->message, HasSubstr("bn0"));
}

TEST(JobdFaults, TheHeadsDeathMakesTheMembersLeaveWithTheirTasks) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}});
  job.WarmUp();
  job.Launch({.apps = {Sh("echo $$; exec sleep 600", 2)}, .rank_node = {"cn0", "bn0"}});
  ASSERT_TRUE(job.Until([&] { return !job.Out(0).empty() && !job.Out(1).empty(); }));
  const int task = std::stoi(job.Out(1));
  job.KillJobd("cn0", SIGKILL);
  ASSERT_TRUE(job.Until([&] { return !job.JobdAlive("bn0"); }));
  EXPECT_TRUE(Gone(job, task));
  ASSERT_EQ(job.failures.size(), 1u);
  EXPECT_THAT(job.failures[0].reason, HasSubstr("head"));
  EXPECT_FALSE(std::filesystem::exists(job.RunDirectory("bn0")));
}

TEST(JobdFaults, ANodeThatWentDownEndsTheJobAsNodeFail) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}});
  job.WarmUp();
  job.Launch({.apps = {Sh("echo ready; exec sleep 600", 2)}, .rank_node = {"cn0", "bn0"}});
  ASSERT_TRUE(job.Until([&] { return job.Out(0) == "ready\n" && job.Out(1) == "ready\n"; }));
  job.DropNode("bn0", "node bn0 is down: no heartbeat for 10 s");
  ASSERT_TRUE(job.UntilOver());
  EXPECT_EQ(job.exit->state, wire::JobState::kNodeFail);
  EXPECT_THAT(job.exit->message, HasSubstr("no heartbeat"));
}

TEST(JobdFaults, ARestartOfNodedLosesNoByteOfOutput) {
  JobdHarness job({{"cn0"}});
  job.ack_output = false;
  job.WarmUp();
  job.Launch({.apps = {Sh("echo one; read x; echo two; read y; echo three $x $y")}, .wants_stdin = true});
  ASSERT_TRUE(job.Until([&] { return job.Out(0) == "one\n"; }));
  const std::uint64_t seen = job.last_seq;
  job.KillNoded("cn0");
  job.ReviveNoded("cn0");
  ASSERT_TRUE(job.Until([&] { return job.Adopted("cn0"); }));
  job.Attach({true, seen, true});
  job.ToSession(2, wire::Input{0, "a\nb\n", true});
  job.ack_output = true;
  ASSERT_TRUE(job.Until([&] { return job.Out(0).find("three") != std::string::npos; }));
  job.ToSession(2, wire::OutputAck{job.last_seq});
  ASSERT_TRUE(job.UntilOver());
  EXPECT_EQ(job.Out(0), "one\ntwo\nthree a b\n");
  EXPECT_EQ(job.exit->exit_code, 0);
}

TEST(JobdFaults, AJobThatEndsWhileNodedIsAwayIsReportedLater) {
  JobdHarness job({{"cn0"}});
  job.WarmUp();
  const std::string go = job.RunDirectory("cn0") + ".go";
  job.Launch({.apps = {Sh("echo here; while [ ! -e " + go + " ]; do sleep 0.01; done; exit 3")}});
  ASSERT_TRUE(job.Until([&] { return job.started; }));
  job.KillNoded("cn0");
  std::ofstream(go).put('\n');
  const std::string record = job.RunDirectory("cn0") + "/exit";
  ASSERT_TRUE(job.Until([&] { return std::filesystem::exists(record); }));
  job.exit.reset();
  job.ReviveNoded("cn0");
  ASSERT_TRUE(job.Until([&] { return job.exit.has_value(); }));
  EXPECT_EQ(job.exit->exit_code, 3);
  job.Attach({true, job.last_seq, false});
  ASSERT_TRUE(job.UntilOver());
  EXPECT_EQ(job.Out(0), "here\n");
  ASSERT_TRUE(job.end.has_value());
  EXPECT_EQ(job.end->exit_code, 3);
}

TEST(JobdFaults, AWarmJobDaemonLeavesWhenItsNodedStaysAway) {
  JobdHarness job({{"cn0"}});
  job.WarmUp();
  job.KillNoded("cn0");
  EXPECT_TRUE(job.Until([&] { return !job.JobdAlive("cn0"); }));
  EXPECT_FALSE(std::filesystem::exists(job.RunDirectory("cn0")));
}

TEST(JobdFaults, QuitKillsTheTasksAndLeaves) {
  JobdHarness job({{"cn0"}});
  job.WarmUp();
  job.Launch({.apps = {Sh("echo $$; exec sleep 600")}});
  ASSERT_TRUE(job.Until([&] { return !job.Out(0).empty(); }));
  job.ToNode("cn0", wire::JobdQuit{"unknown to the controller"});
  ASSERT_TRUE(job.Until([&] { return !job.JobdAlive("cn0"); }));
  EXPECT_TRUE(Gone(job, std::stoi(job.Out(0))));
}

// Eight times what the slices need, and a tenth of what a start of all takes on a busy machine.
constexpr std::uint32_t kMany = 1000;

TEST(JobdFaults, ACancelWhileTasksAreStartedStopsTheStart) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}});
  job.WarmUp();
  std::vector<std::string> nodes(kMany, "cn0");
  std::fill(nodes.begin() + kMany / 2, nodes.end(), "bn0");
  job.Launch({.apps = {Sh("echo up; exec sleep 600", kMany)}, .rank_node = nodes});
  ASSERT_TRUE(job.Until([&] { return !job.records.empty(); }));
  EXPECT_FALSE(job.started);
  job.ToHead(wire::CancelJob{wire::JobState::kCancelled, 5'000, "enough"});
  ASSERT_TRUE(job.UntilOver());
  EXPECT_EQ(job.exit->state, wire::JobState::kCancelled);
  EXPECT_EQ(job.exit->exit_code, 128 + SIGTERM);
  EXPECT_FALSE(job.started);
  EXPECT_LT(job.exit->tasks_failed, kMany / 2) << "tasks were started after the cancel";
}

TEST(JobdFaults, AQuitWhileTasksAreStartedLeavesNone) {
  JobdHarness job({{"cn0"}});
  job.WarmUp();
  job.Launch({.apps = {Sh("echo $$; exec sleep 600", kMany)}});
  ASSERT_TRUE(job.Until([&] { return !job.records.empty(); }));
  const auto asked = std::chrono::steady_clock::now();
  job.ToNode("cn0", wire::JobdQuit{"unknown to the controller"});
  ASSERT_TRUE(job.Until([&] { return !job.JobdAlive("cn0"); }));
  EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::seconds(20));
  for (const auto& record : job.records) EXPECT_TRUE(Gone(job, std::stoi(record.data)));
  EXPECT_LT(job.records.size(), kMany);
}

TEST(JobdFaults, AProgramThatIsNotThereStopsTheStartOfTheOthers) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}});
  job.WarmUp();
  wire::App missing;
  missing.argv = {"/no/such"};
  std::vector<std::string> nodes(kMany + 1, "bn0");
  nodes[0] = "cn0";
  job.Launch({.apps = {missing, Sh("echo up; exec sleep 600", kMany)}, .rank_node = nodes});
  ASSERT_TRUE(job.UntilOver());
  EXPECT_EQ(job.exit->exit_code, 127);
  EXPECT_LT(job.records.size(), kMany / 2);
}

TEST(JobdFaults, AJobWhoseOwnerIsGoneBeforeItAttachedIsNotLingeredFor) {
  JobdHarness job({{"cn0"}});
  job.WarmUp();
  job.Launch({.apps = {Sh("exec sleep 600")}, .interactive = true, .attach = false});
  ASSERT_TRUE(job.Until([&] { return job.started; }));
  job.ToHead(wire::CancelJob{wire::JobState::kCancelled, 1'000, "msactl went away", true});
  ASSERT_TRUE(job.UntilOver(std::chrono::seconds(8))) << "10 s are what an owner is waited for";
}

TEST(JobdFaults, SigtermCancelsTheJob) {
  JobdHarness job({{"cn0"}});
  job.WarmUp();
  job.Launch({.apps = {Sh("echo ready; exec sleep 600")}});
  ASSERT_TRUE(job.Until([&] { return !job.Out(0).empty(); }));
  job.KillJobd("cn0", SIGTERM);
  ASSERT_TRUE(job.UntilOver());
  EXPECT_EQ(job.exit->state, wire::JobState::kCancelled);
  EXPECT_EQ(job.exit->exit_code, 128 + SIGTERM);
}

TEST(JobdFaults, ALaunchThatIsRepeatedRunsOnce) {
  JobdHarness job({{"cn0"}});
  job.WarmUp();
  job.Launch({.apps = {Sh("echo once; read x")}, .wants_stdin = true});
  job.LaunchAgain();
  job.ToSession(1, wire::Input{0, "", true});
  ASSERT_TRUE(job.UntilOver());
  EXPECT_EQ(job.Out(0), "once\n");
}

TEST(JobdFaults, AMemberThatCannotBeReachedFailsTheLaunchNamingTheNode) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}});
  job.WarmUp();
  job.KillJobd("bn0", SIGKILL);
  ASSERT_TRUE(job.Until([&] { return !job.JobdAlive("bn0"); }));
  job.Launch({.apps = {Sh("echo never", 2)}, .rank_node = {"cn0", "bn0"}});
  job.DropNode("bn0", "job daemon of job 7 on bn0 was killed by signal 9 (Killed)");
  ASSERT_TRUE(job.UntilOver());
  EXPECT_NE(job.exit->exit_code, 0);
  EXPECT_THAT(job.exit->message, HasSubstr("bn0"));
  EXPECT_EQ(job.Out(0), "");
}

}  // namespace
}  // namespace msa::jobd
