// Steps inside batch jobs and allocations, by the real msactl, controller and job daemons.
#include <signal.h>
#include <unistd.h>

#include "shared_cluster.h"

namespace msa::e2e {
namespace {

class Steps : public SharedCluster {
 protected:
  static std::string Path(const std::string& name) { return cluster_->scratch().path() + "/" + name; }
  static std::string Text(const std::string& name) { return support::ReadFile(Path(name)); }
  static void Go(const std::string& name = "go") { cluster_->scratch().Write(name, ""); }
  // `script` runs on the machine of the tests, beside an allocation of `options`.
  static Command Alloc(std::vector<std::string> options, const std::string& script) {
    options.insert(options.begin(), {"job", "alloc"});
    options.insert(options.end(), {"sh", "-c", "PATH=" + Bin() + ":$PATH; " + script});
    Command command = cluster_->Msactl(std::move(options));
    command.cwd = cluster_->scratch().path();
    return command;
  }
  static Outcome InAlloc(std::vector<std::string> options, const std::string& script) {
    return support::RunCommand(Alloc(std::move(options), script));
  }
  // The job's id.
  static std::string Submit(const std::string& name, const std::string& script,
                            std::vector<std::string> options = {}) {
    const std::string path =
        cluster_->scratch().Write(name, "#!/bin/sh\nPATH=" + Bin() + ":$PATH\n" + script, 0755);
    options.insert(options.begin(), {"submit", "--parsable", "-D", cluster_->scratch().path()});
    options.insert(options.end(), {"-o", name + ".out", path});
    const Outcome outcome = Run(std::move(options));
    EXPECT_EQ(outcome.code, 0) << outcome.Text();
    return outcome.out.substr(0, outcome.out.find('\n'));
  }
  static std::string Bin() {
    const std::string msactl = support::BinaryPath("msactl");
    return msactl.substr(0, msactl.rfind('/'));
  }
  void TearDown() override {
    if (cluster_ != nullptr)
      for (const char* name : {"go", "go2", "up"}) ::unlink(Path(name).c_str());
    SharedCluster::TearDown();
  }
};

TEST_F(Steps, AnAllocationRunsACommandAndGivesItsCode) {
  const Outcome outcome =
      InAlloc({"-m", "cluster", "-n", "2", ":", "-m", "booster", "-n", "3"},
              "echo $MSA_JOB_ID $MSA_NNODES $MSA_NTASKS $MSA_MODULES $MSA_HET_SIZE; msactl run sh -c 'echo "
              "$MSA_STEP_ID $MSA_MODULE' | sort; exit 7");
  EXPECT_EQ(outcome.code, 7) << outcome.Text();
  const auto lines = Lines(outcome.out);
  ASSERT_EQ(lines.size(), 3u) << outcome.Text();
  EXPECT_THAT(lines[0], testing::EndsWith(" 2 5 cluster,booster 2"));
  EXPECT_EQ(lines[1], "0 cluster");
  EXPECT_THAT(outcome.err, HasSubstr("granted job "));
  const std::string id = lines[0].substr(0, lines[0].find(' '));
  EXPECT_EQ(Job(id)["state"].text(), "FAILED");
}

TEST_F(Steps, ComponentsOfAStepAreOneMpiWorldOverTwoModules) {
  const Outcome outcome =
      InAlloc({"-m", "cluster", "-n", "2", ":", "-m", "booster", "-n", "3"},
              "msactl run -n 2 " + ProgramPath("mpi_hello") + " : -m booster -n 3 " +
                  ProgramPath("mpi_hello") + "; msactl run --het-group 0,1 " + ProgramPath("mpi_hello"));
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  const auto lines = Lines(outcome.out);
  ASSERT_EQ(lines.size(), 10u) << outcome.Text();
  for (const std::string& line : lines) EXPECT_THAT(line, HasSubstr("5"));
  EXPECT_THAT(outcome.out, HasSubstr("bn0"));
}

TEST_F(Steps, TwoStepsRunAtTheSameTimeAndAThirdWaits) {
  Process alloc(Alloc({"-m", "cluster", "-N", "1", "-n", "4"},
                      "msactl run -n 2 sh -c 'echo a; while [ ! -e go ]; do sleep 0.02; done' & "
                      "msactl run -n 2 sh -c 'echo b; while [ ! -e go ]; do sleep 0.02; done' & "
                      "while [ ! -e go2 ]; do sleep 0.02; done; msactl run -n 2 echo third; wait"));
  ASSERT_TRUE(alloc.ReadUntil([&] { return Lines(alloc.out()).size() == 4; })) << alloc.err();
  EXPECT_EQ(Sorted(Lines(alloc.out())), (std::vector<std::string>{"a", "a", "b", "b"}));
  Go("go2");
  ASSERT_TRUE(alloc.ReadUntilText("waits: 2 tasks wait for slots")) << alloc.err();
  EXPECT_THAT(alloc.out(), Not(HasSubstr("third")));
  Go();
  const Outcome outcome = alloc.Wait();
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.out, HasSubstr("third\nthird\n"));
  EXPECT_THAT(outcome.err, HasSubstr("has started"));
}

TEST_F(Steps, WhatNeverFitsIsRefusedAndNamesAreHelped) {
  const Outcome outcome =
      InAlloc({"-m", "cluster", "-n", "2"},
              "msactl run -n 9 true; echo $?; msactl run -m boster true; echo $?; msactl run "
              "--het-group 4 true; echo $?; msactl run --mem 1G true; echo $?");
  EXPECT_EQ(outcome.out, "5\n3\n3\n2\n") << outcome.Text();
  EXPECT_THAT(outcome.err, HasSubstr("9 tasks do not fit into component 0 of the job, which has 2 slots"));
}

TEST_F(Steps, AStepSpawnsWithArchAndSoft) {
  const Outcome outcome = InAlloc({"-m", "cluster", "-n", "2", ":", "-m", "booster", "-n", "4"},
                                  "msactl run -n 2 " + ProgramPath("mpi_spawn_plan") +
                                      " --maxprocs 4 --info arch=booster --info soft=1:3");
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.out, HasSubstr("parent 1: ok remote=3"));
}

TEST_F(Steps, AScriptLivesOnWhenAStepFailsAndItsCodeIsTheJobs) {
  const std::string id =
      Submit("fails.sh",
             "msactl run -n 2 sh -c 'exit 3'; echo step $?\nmsactl run nosuchprogram; echo step $?\n"
             "msactl run sh -c 'kill -SEGV $$'; echo step $?; exit 9\n",
             {"-n", "2"});
  EXPECT_EQ(Run({"job", "wait", id}).code, 9);
  EXPECT_THAT(Text("fails.sh.out"),
              AllOf(HasSubstr("step 3\n"), HasSubstr("step 127\n"), HasSubstr("step 139\n")));
  EXPECT_EQ(Job(id)["state"].text(), "FAILED");
}

TEST_F(Steps, OutputOfAStepNestsInTheScriptsAndQuotingSurvives) {
  const std::string id =
      Submit("quotes.sh", "msactl run printf '%s|' \"a b\" 'c\"d' \"e'f\" '$HOME' | tr '|' '\\n'\n");
  EXPECT_EQ(Run({"job", "wait", id}).code, 0);
  EXPECT_EQ(Text("quotes.sh.out"), "a b\nc\"d\ne'f\n$HOME\n");
}

TEST_F(Steps, TheEndOfAScriptEndsItsSteps) {
  const std::string id = Submit(
      "leaves.sh", "msactl run sh -c 'echo > up; sleep 1000' &\nwhile [ ! -e up ]; do sleep 0.02; done\n");
  EXPECT_EQ(Run({"job", "wait", id}).code, 0);
  EXPECT_EQ(Job(id)["state"].text(), "COMPLETED");
}

TEST_F(Steps, AKilledNodeDaemonCostsAStepNothing) {
  Process alloc(
      Alloc({"-m", "cluster", "-w", "cn0", "-n", "1"},
            "msactl run sh -c 'echo up; while [ ! -e go ]; do sleep 0.02; done; echo end; exit 4'"));
  ASSERT_TRUE(alloc.ReadUntilText("up")) << alloc.err();
  ASSERT_TRUE(cluster_->KillDaemon("noded-cn0").ok());
  ASSERT_TRUE(cluster_->KillDaemon("controller").ok());
  Go();
  const Outcome outcome = alloc.Wait();
  EXPECT_EQ(outcome.code, 4) << outcome.Text();
  EXPECT_EQ(outcome.out, "up\nend\n");
}

TEST_F(Steps, AStoppedNodeDaemonIsNamedToAStepAndWaitedFor) {
  Process alloc(
      Alloc({"-m", "dam", "-n", "1"},
            "msactl run sh -c 'echo up; while [ ! -e go ]; do sleep 0.02; done; echo end; exit 3'"));
  ASSERT_TRUE(alloc.ReadUntilText("up")) << alloc.err();
  const pid_t noded = cluster_->Daemon("noded-dn0");
  ::kill(noded, SIGSTOP);
  const bool named = alloc.ReadUntilText("node dn0 does not answer");
  ::kill(noded, SIGCONT);
  EXPECT_TRUE(named) << alloc.err();
  Go();
  const Outcome outcome = alloc.Wait();
  EXPECT_EQ(outcome.code, 3) << outcome.Text();
  EXPECT_THAT(outcome.out, HasSubstr("end"));
}

TEST_F(Steps, AKilledMsactlEndsItsStepAloneAndTheNextRuns) {
  const Outcome outcome =
      InAlloc({"-m", "dam", "-n", "4"},
              "msactl run -n 4 sh -c 'echo > up; sleep 1000' & pid=$!; while [ ! -e up ]; do sleep "
              "0.02; done; kill -9 $pid; wait; msactl run -n 4 echo next");
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(outcome.out, "next\nnext\nnext\nnext\n");
}

TEST_F(Steps, ARunFromOutsideJoinsAJobByItsNumber) {
  const Outcome kept = Run({"job", "alloc", "--no-shell", "-m", "dam", "-n", "1"});
  ASSERT_EQ(kept.code, 0) << kept.Text();
  const std::string id = Lines(kept.out).at(0).substr(14);
  EXPECT_EQ(Run({"run", "--job", id, "sh", "-c", "echo $MSA_JOB_ID.$MSA_STEP_ID"}).out, id + ".0\n");
  EXPECT_EQ(Run({"job", "cancel", id}).code, 0);
  ASSERT_TRUE(Eventually(30s, "it ends", [&] { return JobIsIn(id, "CANCELLED"); }));
  const Outcome late = Run({"run", "--job", id, "true"});
  EXPECT_EQ(late.code, 7) << late.Text();
  Command stale = cluster_->Msactl({"run", "true"});
  stale.env["MSA_JOB_ID"] = id;
  const Outcome outcome = support::RunCommand(std::move(stale));
  EXPECT_EQ(outcome.code, 7) << outcome.Text();
  EXPECT_THAT(outcome.err, HasSubstr("env -u MSA_JOB_ID"));
}

TEST_F(Steps, ARunInsideAnOrdinaryRunIsAJobOfItsOwn) {
  const Outcome outcome =
      Run({"run", "-m", "dam", "sh", "-c",
           "echo $MSA_JOB_ID; " + support::BinaryPath("msactl") + " run sh -c 'echo $MSA_JOB_ID'"});
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  const auto lines = Lines(outcome.out);
  ASSERT_EQ(lines.size(), 2u) << outcome.Text();
  EXPECT_NE(lines[0], lines[1]);
}

TEST_F(Steps, CtrlCWhileAnAllocationWaitsCancelsIt) {
  const std::string holder = Detach({"-m", "dam", "-c", "4", "-o", "none", "sleep", "1000"});
  ASSERT_TRUE(Eventually(30s, "it runs", [&] { return JobIsIn(holder, "RUNNING"); }));
  Process alloc(Alloc({"-m", "dam", "-n", "1"}, "echo never"));
  ASSERT_TRUE(alloc.ReadUntilText("queued")) << alloc.err();
  alloc.Signal(SIGINT);
  const Outcome outcome = alloc.Wait();
  EXPECT_EQ(outcome.code, 128 + SIGINT) << outcome.Text();
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(Run({"job", "cancel", holder}).code, 0);
}

TEST_F(Steps, ACancelledAllocationTellsItsCommand) {
  Process alloc(Alloc({"-m", "dam", "-n", "1"},
                      "echo $MSA_JOB_ID; while [ ! -e go ]; do sleep 0.02; done; msactl run true"));
  ASSERT_TRUE(alloc.ReadUntil([&] { return !Lines(alloc.out()).empty(); })) << alloc.err();
  const std::string id = Lines(alloc.out())[0];
  EXPECT_EQ(Run({"job", "cancel", id}).code, 0);
  ASSERT_TRUE(alloc.ReadUntilText("has ended (CANCELLED")) << alloc.err();
  Go();
  const Outcome outcome = alloc.Wait();
  EXPECT_EQ(outcome.code, 7) << outcome.Text();
}

}  // namespace
}  // namespace msa::e2e
