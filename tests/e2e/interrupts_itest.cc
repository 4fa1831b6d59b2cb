// What does not answer, and what is interrupted half way: launches of thousands of tasks that are ended while
// they are under way, daemons that are stopped (SIGSTOP) instead of dead, an msactl killed before it
// attached.
#include <signal.h>
#include <unistd.h>

#include "shared_cluster.h"

namespace msa::e2e {
namespace {

class Interrupts : public SharedCluster {
 protected:
  static constexpr int kTasks = 2000;

  // On the two nodes of the cluster, until somebody ends it.
  static Command Thousands(std::vector<std::string> options = {}) {
    std::vector<std::string> arguments = {"run", "-n", std::to_string(kTasks), "--oversubscribe"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"sleep", "3599"});
    return cluster_->Msactl(std::move(arguments));
  }
  static int Sleepers() {
    int count = 0;
    for (const support::ProcessEntry& process : cluster_->Processes())
      count += process.command.starts_with("sleep 3599") ? 1 : 0;
    return count;
  }
  static std::string LastJob() {
    const auto jobs = cluster_->Query({"job", "list", "--all"})["items"].list();
    double last = 0;
    for (const Json& job : jobs) last = std::max(last, job["id"].number());
    return std::to_string(static_cast<long>(last));
  }
  // Some of the tasks run; how many is what the machine made of it.
  static bool UnderWay(Process& run) {
    return run.ReadUntil([] { return Sleepers() > 0; }, support::Millis(30'000));
  }
  static std::chrono::milliseconds Since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  }
  // The aim is 2 s on a machine that is otherwise still.
  static constexpr auto kSoon = 15s;
};

TEST_F(Interrupts, ATerminatedLaunchOfThousandsStopsStarting) {
  Process run(Thousands());
  ASSERT_TRUE(UnderWay(run)) << run.err();
  const auto asked = std::chrono::steady_clock::now();
  run.Signal(SIGTERM);
  const Outcome outcome = run.Wait();
  EXPECT_EQ(outcome.code, 128 + SIGTERM) << outcome.Text();
  EXPECT_LT(Since(asked), kSoon);
  RecordProperty("ended_after_ms", static_cast<int>(Since(asked).count()));
  const Json job = Job(LastJob());
  EXPECT_EQ(job["state"].text(), "CANCELLED");
  EXPECT_LT(job["tasks_failed"].number(), kTasks) << "all tasks were started";
}

TEST_F(Interrupts, OneCtrlCEndsALaunchThatIsUnderWay) {
  Process run(Thousands());
  ASSERT_TRUE(UnderWay(run)) << run.err();
  const auto asked = std::chrono::steady_clock::now();
  run.Signal(SIGINT);
  const Outcome outcome = run.Wait();
  EXPECT_EQ(outcome.code, 128 + SIGINT) << outcome.Text();
  EXPECT_LT(Since(asked), kSoon);
  EXPECT_LT(Job(LastJob())["tasks_failed"].number(), kTasks) << "all tasks were started";
}

TEST_F(Interrupts, JobCancelIsHeardByALaunchThatIsUnderWay) {
  Process run(Thousands());
  ASSERT_TRUE(UnderWay(run)) << run.err();
  const auto asked = std::chrono::steady_clock::now();
  const std::string id = LastJob();
  const Outcome cancel = Run({"job", "cancel", id});
  EXPECT_EQ(cancel.code, 0) << cancel.Text();
  const Outcome outcome = run.Wait();
  EXPECT_NE(outcome.code, 0) << outcome.Text();
  EXPECT_LT(Since(asked), kSoon);
  EXPECT_EQ(Job(id)["state"].text(), "CANCELLED");
  EXPECT_LT(Job(id)["tasks_failed"].number(), kTasks) << "all tasks were started";
}

TEST_F(Interrupts, ATimeLimitIsKeptByALaunchThatIsUnderWay) {
  const Outcome outcome = support::RunCommand(Thousands({"-t", "0:01"}));
  EXPECT_NE(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.err, HasSubstr("time limit"));
  EXPECT_LT(outcome.wall, kSoon);
  EXPECT_EQ(Job(LastJob())["state"].text(), "TIMEOUT");
}

TEST_F(Interrupts, AJobDaemonKilledWithinALaunchEndsItAndLeavesNothing) {
  Process run(Thousands());
  ASSERT_TRUE(UnderWay(run)) << run.err();
  // The one that has the job is the parent of tasks; the warm ones are replaced.
  for (const pid_t daemon : cluster_->JobDaemons("cn1")) ::kill(daemon, SIGKILL);
  const Outcome outcome = run.Wait();
  EXPECT_EQ(outcome.code, 125) << outcome.Text();
  EXPECT_THAT(outcome.err, HasSubstr("cn1"));
  EXPECT_EQ(Job(LastJob())["state"].text(), "NODE_FAIL");
}

TEST_F(Interrupts, AnMsactlKilledAtAnyMomentBeforeItsOutputIsReadLeavesNoJobDaemonSoon) {
  for (int delay = 4; delay <= 40; delay += 4) {
    Process run(cluster_->Msactl({"run", "-n", "2", "sleep", "3599"}));
    run.ReadUntil([] { return false; }, support::Millis(delay));
    run.Signal(SIGKILL);
    const auto killed = std::chrono::steady_clock::now();
    // A job daemon with a job has its peer socket or tasks; both are leftovers. An owner is waited for 10 s.
    std::vector<std::string> left;
    EXPECT_TRUE(Eventually(8s, "nothing is left",
                           [&] {
                             left = cluster_->Leftovers();
                             return left.empty() && cluster_->SlotsUsed() == 0;
                           }))
        << "killed after " << delay << " ms: " << testing::PrintToString(left);
    RecordProperty("gone_after_ms_" + std::to_string(delay), static_cast<int>(Since(killed).count()));
  }
}

// ------------------------------------------------------------------------------------------ stopped daemons

// Stops a daemon; goes on with it at the end.
class Stopped {
 public:
  explicit Stopped(pid_t pid) : pid_(pid) { ::kill(pid_, SIGSTOP); }
  ~Stopped() { Continue(); }
  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;
  void Continue() {
    if (pid_ != 0) ::kill(std::exchange(pid_, 0), SIGCONT);
  }

 private:
  pid_t pid_;
};

TEST_F(Interrupts, ARunThatAStoppedControllerDoesNotAnswerSaysSoWithCode8) {
  const Stopped controller(cluster_->Daemon("controller"));
  const Outcome outcome = Run({"run", "true"});
  EXPECT_EQ(outcome.code, 8) << outcome.Text();
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("has not answered within 10"), HasSubstr("cluster status")));
  EXPECT_LT(outcome.wall, 30s);
}

TEST_F(Interrupts, AFileOfSubmissionsThatAStoppedControllerDoesNotAnswerSaysSoWithCode8) {
  const Stopped controller(cluster_->Daemon("controller"));
  Command command = cluster_->Msactl({"submit", "--from", "-"});
  command.input = "-o none true\n";
  const Outcome outcome = support::RunCommand(command);
  EXPECT_EQ(outcome.code, 8) << outcome.Text();
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("does not answer"), HasSubstr("0 of 1 jobs were submitted")));
  EXPECT_LT(outcome.wall, 30s);
}

TEST_F(Interrupts, AnAttachThatAStoppedControllerDoesNotAnswerSaysSoWithCode8) {
  const Stopped controller(cluster_->Daemon("controller"));
  const Outcome outcome = Run({"job", "attach", "1"});
  EXPECT_EQ(outcome.code, 8) << outcome.Text();
  EXPECT_THAT(outcome.err, HasSubstr("has not answered within 10"));
}

TEST_F(Interrupts, CtrlCTwiceEndsARunThatWaitsForAStoppedController) {
  const Stopped controller(cluster_->Daemon("controller"));
  Process run(cluster_->Msactl({"run", "true"}));
  run.ReadUntil([] { return false; }, support::Millis(500));
  run.Signal(SIGINT);
  run.ReadUntil([] { return false; }, support::Millis(200));
  run.Signal(SIGINT);
  const Outcome outcome = run.Wait();
  EXPECT_EQ(outcome.code, 128 + SIGINT) << outcome.Text();
  EXPECT_LT(outcome.wall, 8s);
}

TEST_F(Interrupts, AStoppedControllerDoesNotDisturbTheOutputOfARunningJob) {
  Process run(cluster_->Msactl(
      {"run", "sh", "-c",
       "echo up; i=0; while [ $i -lt 40 ]; do sleep 0.1; i=$((i+1)); echo $i; done; exit 3"}));
  ASSERT_TRUE(run.ReadUntilText("up")) << run.err();
  Stopped controller(cluster_->Daemon("controller"));
  ASSERT_TRUE(run.ReadUntilText("40")) << run.out();
  const Outcome outcome = run.Wait();
  EXPECT_EQ(outcome.code, 3) << outcome.Text();
  EXPECT_EQ(outcome.err.find("does not answer"), std::string::npos) << outcome.err;
}

TEST_F(Interrupts, CtrlCTwiceEndsARunningJobThoughItsControllerIsStopped) {
  Process run(cluster_->Msactl({"run", ProgramPath("task"), "stubborn"}));
  ASSERT_TRUE(run.ReadUntilText("up")) << run.err();
  ASSERT_TRUE(Eventually(30s, "it is known to run", [] { return JobIsIn(LastJob(), "RUNNING"); }));
  Stopped controller(cluster_->Daemon("controller"));
  run.Signal(SIGINT);
  ASSERT_TRUE(run.ReadUntilText("again")) << run.err();
  run.Signal(SIGINT);
  const Outcome outcome = run.Wait();
  EXPECT_EQ(outcome.code, 128 + SIGINT) << outcome.Text();
  EXPECT_LT(outcome.wall, 25s);
}

TEST_F(Interrupts, AStoppedNodeDaemonIsNamedAndWaitedFor) {
  Process run(cluster_->Msactl({"run", "-m", "dam", "sh", "-c", "echo up; sleep 7; echo end; exit 3"}));
  ASSERT_TRUE(run.ReadUntilText("up")) << run.err();
  Stopped noded(cluster_->Daemon("noded-dn0"));
  ASSERT_TRUE(run.ReadUntilText("node dn0 does not answer")) << run.err();
  noded.Continue();
  const Outcome outcome = run.Wait();
  EXPECT_EQ(outcome.code, 3) << outcome.Text();
  EXPECT_EQ(outcome.out, "up\nend\n");
  EXPECT_THAT(outcome.err, HasSubstr("node dn0 answers again"));
  ASSERT_TRUE(Eventually(30s, "dn0 is up", [] {
    return cluster_->Query({"node", "show", "dn0"})["state"].text() == "UP";
  }));
}

TEST_F(Interrupts, AStoppedNodeDaemonThatStaysAwayEndsTheRunWithTheNodesDeath) {
  Process run(cluster_->Msactl({"run", "-m", "dam", "sleep", "3599"}));
  ASSERT_TRUE(run.ReadUntil([] { return Sleepers() > 0; })) << run.err();
  Stopped noded(cluster_->Daemon("noded-dn0"));
  const Outcome outcome = run.Wait();
  EXPECT_EQ(outcome.code, 125) << outcome.Text();
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("dn0 does not answer"), HasSubstr("heartbeat")));
  noded.Continue();
  ASSERT_TRUE(Eventually(30s, "dn0 is up", [] {
    return cluster_->Query({"node", "show", "dn0"})["state"].text() == "UP";
  }));
}

}  // namespace
}  // namespace msa::e2e
