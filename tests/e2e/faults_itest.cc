// Kill and adopt: every daemon and the launcher killed, at any moment; nothing lost, nothing left over.
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "shared_cluster.h"

namespace msa::e2e {
namespace {

class Faults : public SharedCluster {
 protected:
  // A job that says "up RANK", waits for the file `go`, says "end RANK" and returns rank 1's code 5.
  static Command Waiting() {
    return cluster_->Msactl({"run", "-m", "cluster", "-N", "2", "-n", "2", "sh", "-c",
                             "echo up $MSA_RANK; while [ ! -e go ]; do sleep 0.02; done; echo end $MSA_RANK; "
                             "exit $((MSA_RANK * 5))"});
  }
  static bool BothUp(Process& run) { return run.ReadUntilText("up 0") && run.ReadUntilText("up 1"); }
  static void Go() { cluster_->scratch().Write("go", ""); }
  void TearDown() override {
    if (cluster_ != nullptr) ::unlink((cluster_->scratch().path() + "/go").c_str());
    SharedCluster::TearDown();
  }
  static void ExpectWholeResult(const Outcome& outcome) {
    EXPECT_EQ(outcome.code, 5) << outcome.Text();
    EXPECT_THAT(Sorted(Lines(outcome.out)), testing::ElementsAre("end 0", "end 1", "up 0", "up 1"));
  }
  // Job daemons that are parents of the job's tasks, of one node ("" of all).
  static std::vector<pid_t> DaemonsOfJob(const std::string& id, const std::string& node = "") {
    const auto daemons = cluster_->JobDaemons(node);
    std::vector<pid_t> result;
    for (const support::ProcessEntry& process : cluster_->Processes()) {
      const std::string environ = support::ReadFile("/proc/" + std::to_string(process.pid) + "/environ");
      if (environ.find(std::string("MSA_JOB_ID=") + id + '\0') == std::string::npos) continue;
      const std::string stat = support::ReadFile("/proc/" + std::to_string(process.pid) + "/stat");
      const pid_t parent = std::atoi(stat.c_str() + stat.rfind(')') + 4);
      if (std::find(daemons.begin(), daemons.end(), parent) == daemons.end() ||
          std::find(result.begin(), result.end(), parent) != result.end())
        continue;
      result.push_back(parent);
    }
    return result;
  }
  static std::string OnlyRunningJob() {
    const auto jobs = cluster_->Query({"job", "list"})["items"].list();
    return jobs.size() == 1 ? jobs[0]["id"].text() : "";
  }
};

TEST_F(Faults, AKilledControllerCostsARunningJobNothing) {
  Process run(Waiting());
  ASSERT_TRUE(BothUp(run));
  ASSERT_TRUE(cluster_->KillDaemon("controller").ok());
  Go();
  ExpectWholeResult(run.Wait());
}

TEST_F(Faults, AKilledNodeDaemonOfTheHeadCostsARunningJobNothing) {
  Process run(Waiting());
  ASSERT_TRUE(BothUp(run));
  ASSERT_TRUE(cluster_->KillDaemon("noded-cn0").ok());
  Go();
  ExpectWholeResult(run.Wait());
}

TEST_F(Faults, AKilledNodeDaemonOfAMemberCostsARunningJobNothing) {
  Process run(Waiting());
  ASSERT_TRUE(BothUp(run));
  ASSERT_TRUE(cluster_->KillDaemon("noded-cn1").ok());
  Go();
  ExpectWholeResult(run.Wait());
}

TEST_F(Faults, AJobThatEndsWhileControllerAndNodeDaemonsAreDeadKeepsItsResult) {
  const std::string id = Detach({"-m", "cluster", "-N", "2", "-n", "2", "-o", "late.out", "sh", "-c",
                                 "while [ ! -e go ]; do sleep 0.02; done; echo $MSA_RANK; exit 5"});
  ASSERT_TRUE(Eventually(30s, "it runs", [&] { return JobIsIn(id, "RUNNING"); }));
  for (const char* name : {"noded-cn0", "noded-cn1", "controller"}) ::kill(cluster_->Daemon(name), SIGKILL);
  Go();
  ASSERT_TRUE(Eventually(30s, "its end is known", [&] { return JobIsIn(id, "FAILED"); }));
  EXPECT_EQ(Job(id)["exit_code"].number(), 5);
  const std::string output = support::ReadFile(cluster_->scratch().path() + "/late.out");
  EXPECT_THAT(Lines(output), testing::IsSupersetOf({"0", "1"}));
}

TEST_F(Faults, AKilledSupervisorLeavesTheSystemRunningAndUpTakesItOver) {
  Process run(Waiting());
  ASSERT_TRUE(BothUp(run));
  const pid_t controller = cluster_->Daemon("controller");
  ::kill(cluster_->Daemon("supervisor"), SIGKILL);
  const Outcome up = Run({"cluster", "up"});
  EXPECT_EQ(up.code, 0) << up.Text();
  EXPECT_EQ(cluster_->Daemon("controller"), controller);
  Go();
  ExpectWholeResult(run.Wait());
}

TEST_F(Faults, TheDeathOfAJobDaemonEndsItsJobAndNothingElse) {
  // Two jobs on the same nodes.
  Process victim(
      cluster_->Msactl({"run", "-m", "cluster", "-N", "2", "-n", "2", ProgramPath("task"), "family"}));
  ASSERT_TRUE(victim.ReadUntil([&] { return Lines(victim.out()).size() == 2; })) << victim.err();
  const std::string id = OnlyRunningJob();
  ASSERT_NE(id, "");
  Process other(Waiting());
  ASSERT_TRUE(BothUp(other));
  const std::vector<pid_t> daemons = DaemonsOfJob(id, "cn1");
  ASSERT_EQ(daemons.size(), 1U) << "of job " << id << " on cn1";
  ::kill(daemons[0], SIGKILL);
  const Outcome outcome = victim.Wait();
  EXPECT_NE(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("cn1"), HasSubstr("job daemon")));
  EXPECT_FALSE(JobIsIn(id, "COMPLETED"));
  Go();
  ExpectWholeResult(other.Wait());
}

TEST_F(Faults, TheDeathOfTheHeadsJobDaemonEndsItsJobWithAText) {
  Process run(cluster_->Msactl({"run", "-m", "booster", "-n", "2", ProgramPath("mpi_fault"), "hang", "0"}));
  ASSERT_TRUE(run.ReadUntilText("up 1")) << run.err();
  const std::string id = OnlyRunningJob();
  const auto job = Job(id);
  const std::string head = job["head_node"].text();
  for (const support::ProcessEntry& process : cluster_->Processes()) {
    if (process.command.find("mpi_fault") == std::string::npos ||
        process.command.find("msactl") != std::string::npos)
      continue;
    const std::string stat = support::ReadFile("/proc/" + std::to_string(process.pid) + "/stat");
    ::kill(std::atoi(stat.c_str() + stat.rfind(')') + 4), SIGKILL);
    break;
  }
  const Outcome outcome = run.Wait();
  EXPECT_NE(outcome.code, 0) << outcome.Text();
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_THAT(outcome.err, HasSubstr(head));
  EXPECT_THAT(outcome.err, HasSubstr("the last of the output of job " + id + " may be missing: job " + id +
                                     " is over on node " + head));
}

// The launcher is killed: soon the slots are free and nothing of the job is left, its daemons included. That
// takes less than 2 s on a machine that is otherwise still; an owner that may come back is waited for 10 s.
void ExpectAllGoneSoon(const MiniCluster& cluster, const std::vector<pid_t>& daemons) {
  std::vector<std::string> left;
  const bool gone = Eventually(8s, "slots, job daemons and directories are free", [&] {
    left = cluster.Leftovers();
    for (const pid_t daemon : daemons)
      if (::kill(daemon, 0) == 0) left.push_back("job daemon " + std::to_string(daemon));
    return left.empty() && cluster.SlotsUsed() == 0;
  });
  EXPECT_TRUE(gone) << testing::PrintToString(left) << " slots used: " << cluster.SlotsUsed();
}

TEST_F(Faults, AKilledLauncherEndsItsJobAndLeavesNothingSoon) {
  Process run(
      cluster_->Msactl({"run", "-m", "booster", "-N", "2", "-n", "4", ProgramPath("task"), "stubborn"}));
  ASSERT_TRUE(run.ReadUntil([&] { return Lines(run.out()).size() == 4; })) << run.err();
  EXPECT_EQ(cluster_->SlotsUsed(), 4);
  const std::vector<pid_t> daemons = DaemonsOfJob(OnlyRunningJob());
  EXPECT_EQ(daemons.size(), 2U);
  run.Signal(SIGKILL);
  ExpectAllGoneSoon(*cluster_, daemons);
}

TEST_F(Faults, ALauncherThatIsKilledAfterItsJobHasEndedIsNotWaitedFor) {
  // Stopped, it reads nothing: the job ends with output that nobody has acknowledged.
  Process run(cluster_->Msactl({"run", ProgramPath("task"), "signals"}));
  ASSERT_TRUE(run.ReadUntilText("up")) << run.err();
  const std::string id = OnlyRunningJob();
  const std::vector<pid_t> daemons = DaemonsOfJob(id);
  EXPECT_EQ(daemons.size(), 1U);
  run.Signal(SIGSTOP);
  EXPECT_EQ(Run({"job", "cancel", id}).code, 0);
  ASSERT_TRUE(Eventually(30s, "it has ended", [&] { return JobIsIn(id, "CANCELLED"); }));
  run.Signal(SIGKILL);
  ExpectAllGoneSoon(*cluster_, daemons);
}

TEST_F(Faults, CtrlCOnceReachesTheTasksAndTwiceEndsTheJob) {
  Process run(cluster_->Msactl({"run", "-n", "2", ProgramPath("task"), "signals"}));
  ASSERT_TRUE(run.ReadUntil([&] { return Lines(run.out()).size() == 2; })) << run.err();
  run.Signal(SIGINT);
  ASSERT_TRUE(run.ReadUntil([&] { return Lines(run.out()).size() == 4; })) << run.out() << run.err();
  EXPECT_EQ(run.out(), "up\nup\nsignal 2\nsignal 2\n");
  EXPECT_THAT(run.err(), HasSubstr("again"));
  run.Signal(SIGINT);
  const Outcome outcome = run.Wait();
  EXPECT_EQ(outcome.code, 128 + SIGINT) << outcome.Text();
  EXPECT_LT(outcome.wall, 20s);
}

TEST_F(Faults, SigtermEndsTheJobEvenIfItsTasksIgnoreIt) {
  Process run(cluster_->Msactl({"run", ProgramPath("task"), "stubborn"}));
  ASSERT_TRUE(run.ReadUntilText("up"));
  run.Signal(SIGTERM);
  const Outcome outcome = run.Wait();
  EXPECT_EQ(outcome.code, 128 + SIGTERM) << outcome.Text();
}

TEST_F(Faults, AReaderThatLeavesEndsTheJob) {
  Command command = cluster_->Msactl({});
  command.argv = {"sh", "-c", command.argv[0] + " run yes | head -n 1; echo done"};
  const Outcome outcome = support::RunCommand(command);
  EXPECT_EQ(outcome.out, "y\ndone\n");
  EXPECT_LT(outcome.wall, 20s);
}

TEST_F(Faults, KillingTheControllerAtAnyMomentOfALaunchLosesNothing) {
  for (int delay = 0; delay <= 60; delay += 10) {
    Process run(cluster_->Msactl(
        {"run", "-m", "cluster", "-N", "2", "-n", "2", "sh", "-c", "echo $MSA_RANK; exit 7"}));
    run.ReadUntil([] { return false; }, support::Millis(delay));
    ASSERT_TRUE(cluster_->KillDaemon("controller").ok());
    const Outcome outcome = run.Wait();
    EXPECT_EQ(outcome.code, 7) << "killed after " << delay << " ms\n" << outcome.Text();
    EXPECT_THAT(Sorted(Lines(outcome.out)), testing::ElementsAre("0", "1"));
  }
}

TEST_F(Faults, KillingANodeDaemonAtAnyMomentOfALaunchLosesNothing) {
  for (int delay = 0; delay <= 60; delay += 10) {
    Process run(cluster_->Msactl(
        {"run", "-m", "cluster", "-N", "2", "-n", "2", "sh", "-c", "echo $MSA_RANK; exit 7"}));
    run.ReadUntil([] { return false; }, support::Millis(delay));
    ASSERT_TRUE(cluster_->KillDaemon(delay % 20 == 0 ? "noded-cn0" : "noded-cn1").ok());
    const Outcome outcome = run.Wait();
    EXPECT_EQ(outcome.code, 7) << "killed after " << delay << " ms\n" << outcome.Text();
    EXPECT_THAT(Sorted(Lines(outcome.out)), testing::ElementsAre("0", "1"));
  }
}

TEST_F(Faults, OutputThatIsUnreadWhenTheNodeDaemonDiesComesWhenItIsBack) {
  constexpr std::size_t kBytes = 3'000'000;  // more than lies in sockets
  Process run(cluster_->Msactl({"run", "-m", "cluster", "sh", "-c",
                                "echo up; while [ ! -e go ]; do sleep 0.02; done; "
                                "head -c " +
                                    std::to_string(kBytes) + " /dev/zero | tr '\\0' x; exit 7"}));
  ASSERT_TRUE(run.ReadUntilText("up")) << run.err();
  const std::string id = OnlyRunningJob();
  const std::string head = Job(id)["head_node"].text();
  run.Signal(SIGSTOP);
  Go();
  const bool ended = Eventually(10s, "it has ended", [&] { return JobIsIn(id, "FAILED"); });
  // No node daemon for a while.
  const pid_t supervisor = cluster_->Daemon("supervisor");
  ::kill(supervisor, SIGSTOP);
  ::kill(cluster_->Daemon("noded-" + head), SIGKILL);
  run.Signal(SIGCONT);
  run.ReadUntil([] { return false; }, support::Millis(1500));
  ::kill(supervisor, SIGCONT);
  ASSERT_TRUE(ended);
  const Outcome outcome = run.Wait();
  EXPECT_EQ(outcome.code, 7) << outcome.err;
  EXPECT_EQ(outcome.out.size(), 3 + kBytes) << outcome.err;
  EXPECT_THAT(outcome.err, testing::Not(HasSubstr("may be missing")));
}

// Each node daemon dies at its second launch, and so again at every second one after that.
class LostLaunch : public testing::TestWithParam<const char*> {};

TEST_P(LostLaunch, ANodeDaemonThatDiesWithALaunchInItsHandsCostsTheJobNothing) {
  auto cluster = MiniCluster::Start({.env = {{"MSA_FAULT", std::string(GetParam()) + "=kill@2"}}});
  ASSERT_TRUE(cluster.ok()) << cluster.status().message();
  const pid_t before = (*cluster)->Daemon("noded-cn0");
  for (int run = 0; run < 3; ++run) {
    const Outcome outcome = (*cluster)->Run(
        {"run", "-m", "cluster", "-N", "2", "-n", "2", "sh", "-c", "echo $MSA_RANK; exit 7"}, 30s);
    EXPECT_EQ(outcome.code, 7) << "run " << run << "\n" << outcome.Text();
    EXPECT_THAT(Sorted(Lines(outcome.out)), testing::ElementsAre("0", "1"));
  }
  EXPECT_NE((*cluster)->Daemon("noded-cn0"), before) << "the fault point was not reached";
}

// Before anything of the launch is on disk, and when its record is but the job daemon has not got it.
INSTANTIATE_TEST_SUITE_P(Points, LostLaunch, testing::Values("noded.start_job", "noded.launch.recorded"),
                         [](const auto& point) { return point.index == 0 ? "Received" : "Recorded"; });

TEST_F(Faults, ANodeThatStaysAwayIsDownWithAReasonAndComesBackByItself) {
  const std::string id = Detach({"-m", "dam", "-o", "none", ProgramPath("task"), "stubborn"});
  ASSERT_TRUE(Eventually(30s, "it runs", [&] { return JobIsIn(id, "RUNNING"); }));
  const pid_t noded = cluster_->Daemon("noded-dn0");
  ASSERT_NE(noded, 0);
  ::kill(noded, SIGSTOP);
  const auto node = [] { return cluster_->Query({"node", "show", "dn0"}); };
  EXPECT_TRUE(Eventually(30s, "dn0 is down", [&] { return node()["state"].text() == "DOWN"; }));
  EXPECT_THAT(node()["reason"].text(), HasSubstr("heartbeat"));
  EXPECT_TRUE(Eventually(30s, "its job failed with it", [&] { return JobIsIn(id, "NODE_FAIL"); }));
  const Outcome outcome = Run({"run", "-m", "dam", "-I", "true"});
  EXPECT_EQ(outcome.code, 6) << outcome.Text();
  ::kill(noded, SIGCONT);
  EXPECT_TRUE(Eventually(30s, "dn0 is up", [&] { return node()["state"].text() == "UP"; }));
  EXPECT_EQ(Run({"run", "-m", "dam", "true"}).code, 0);
}

TEST_F(Faults, TwentyQueuedJobsRunExactlyOnceThoughTheControllerIsKilledThreeTimes) {
  // Each wants a whole dam node (4 cores), so they run one after the other.
  constexpr int kJobs = 20;
  std::vector<std::string> ids;
  for (int i = 0; i < kJobs; ++i)
    ids.push_back(
        Detach({"-m", "dam", "-c", "4", "-o", "none", "sh", "-c", "echo $MSA_JOB_ID >> ran; sleep 0.05"}));
  const std::string ran = cluster_->scratch().path() + "/ran";
  for (const int done : {3, 8, 14}) {
    ASSERT_TRUE(Eventually(60s, "some have run",
                           [&] { return static_cast<int>(Lines(support::ReadFile(ran)).size()) >= done; }));
    ASSERT_TRUE(cluster_->KillDaemon("controller").ok());
  }
  for (const std::string& id : ids) EXPECT_EQ(Run({"job", "wait", id}, 60s).code, 0) << "job " << id;
  EXPECT_EQ(Sorted(Lines(support::ReadFile(ran))), Sorted(ids));
}

}  // namespace
}  // namespace msa::e2e
