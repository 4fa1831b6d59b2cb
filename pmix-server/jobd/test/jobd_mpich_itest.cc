// Debian's MPICH, unmodified, under real job daemons, and the PMI-1 that it speaks.
#include <signal.h>

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jobd_harness.h"

namespace msa::jobd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

wire::App Program(std::vector<std::string> argv, std::uint32_t ntasks) {
  wire::App app;
  app.argv = std::move(argv);
  app.ntasks = ntasks;
  return app;
}

wire::App Mpich(std::vector<std::string> arguments, std::uint32_t ntasks) {
  arguments.insert(arguments.begin(), MSA_TEST_MPICH_JOB);
  return Program(std::move(arguments), ntasks);
}

wire::App Sh(const std::string& script, std::uint32_t ntasks) {
  return Program({"/bin/sh", "-c", script}, ntasks);
}

// A client of PMI-1 by hand: `ask LINE` sends a line and prints the answer.
wire::App Pmi(const std::string& script, std::uint32_t ntasks) {
  return Program({"/bin/bash", "-c",
                  "say() { printf '%s\\n' \"$@\" >&$PMI_FD; }\n"
                  "ask() { say \"$@\"; read -r line <&$PMI_FD; echo \"$line\"; }\n"
                  "init() { ask 'cmd=init pmi_version=1 pmi_subversion=1' >/dev/null; }\n" +
                      script},
                 ntasks);
}

std::vector<NodeSpec> TwoModules() { return {{"cn0"}, {"bn0", "booster", 1}}; }

TEST(JobdMpich, AnMpichProgramIsOneWorldOverTwoNodes) {
  JobdHarness job(TwoModules());
  job.Run({.apps = {Mpich({"hello"}, 2), Mpich({"hello"}, 2)}, .rank_node = {"cn0", "cn0", "bn0", "bn0"}});
  EXPECT_EQ(job.exit->exit_code, 0) << job.Notices() << job.AllOut();
  EXPECT_EQ(job.Out(0), "rank 0 of 4 on cn0\n");
  EXPECT_EQ(job.Out(3), "rank 3 of 4 on bn0\n");
  EXPECT_EQ(job.Notices(), "");
}

TEST(JobdMpich, MessagesCrossNodes) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1}, {"bn1", "booster", 1}});
  job.Run({.apps = {Mpich({"ring", "1000000"}, 6)}, .rank_node = {"cn0", "cn0", "bn0", "bn1", "bn0", "bn1"}});
  EXPECT_EQ(job.exit->exit_code, 0) << job.Notices();
  EXPECT_EQ(job.Out(0), "ring done\n");
}

TEST(JobdMpich, RanksShareANodeAsTheyArePlacedWhateverTheDistribution) {
  const std::vector<std::vector<std::string>> placements = {
      {"cn0", "cn0", "bn0", "bn0"}, {"cn0", "bn0", "cn0", "bn0"}, {"cn0", "bn0", "bn0", "cn0", "bn0"}};
  for (const auto& placement : placements) {
    JobdHarness job(TwoModules());
    job.Run(
        {.apps = {Mpich({"shared"}, static_cast<std::uint32_t>(placement.size()))}, .rank_node = placement});
    EXPECT_EQ(job.exit->exit_code, 0) << job.Notices();
    std::map<std::string, int> first;
    std::map<std::string, int> seen;
    for (std::size_t rank = 0; rank < placement.size(); ++rank) {
      const std::string& node = placement[rank];
      first.emplace(node, static_cast<int>(rank));
      EXPECT_EQ(job.Out(static_cast<std::uint32_t>(rank)),
                fmt::format("{} of {} with rank {}\n", seen[node]++,
                            std::count(placement.begin(), placement.end(), node), first[node]))
          << testing::PrintToString(placement);
    }
  }
}

TEST(JobdMpich, AProgramBelowAShellJoinsItsWorld) {
  JobdHarness job(TwoModules());
  job.Run({.apps = {Sh(std::string("exec 5</dev/null; sh -c '") + MSA_TEST_MPICH_JOB + " hello'; true", 2)},
           .rank_node = {"cn0", "bn0"}});
  EXPECT_EQ(job.exit->exit_code, 0) << job.Notices();
  EXPECT_EQ(job.Out(1), "rank 1 of 2 on bn0\n");
}

TEST(JobdMpich, ATaskHoldsNoOtherTasksSocket) {
  JobdHarness job({{"cn0"}});
  job.Run({.apps = {Sh("for f in /proc/$$/fd/*; do readlink $f; done | grep -c socket", 3)}});
  EXPECT_EQ(job.exit->exit_code, 0) << job.Notices();
  for (const std::uint32_t rank : {0u, 1u, 2u}) EXPECT_EQ(job.Out(rank), "1\n");
}

TEST(JobdMpich, AbortGivesItsCode) {
  JobdHarness job(TwoModules());
  job.Run({.apps = {Mpich({"abort", "1", "3"}, 2)}, .rank_node = {"cn0", "bn0"}});
  EXPECT_EQ(job.exit->exit_code, 3);
  EXPECT_THAT(job.Notices(), HasSubstr("aborted by task 1 with code 3"));
}

TEST(JobdMpich, ATaskThatLeavesWithoutFinalizeEndsTheStep) {
  JobdHarness job(TwoModules());
  job.Run({.apps = {Mpich({"leave", "1", "6"}, 2)}, .rank_node = {"cn0", "bn0"}});
  EXPECT_EQ(job.exit->exit_code, 6);
  EXPECT_THAT(job.Notices(), HasSubstr("bn0: task 1 of step 0 ended without MPI_Finalize"));
}

TEST(JobdMpich, ACrashOfOneRankEndsTheStep) {
  JobdHarness job(TwoModules());
  job.Run({.apps = {Mpich({"crash", "0"}, 2)}, .rank_node = {"cn0", "bn0"}});
  EXPECT_EQ(job.exit->exit_code, 139);
  EXPECT_THAT(job.Notices(), HasSubstr("cn0: task 0: Segmentation fault"));
}

TEST(JobdMpich, ATaskThatFailsBeforeItsInitEndsThoseWhoWaitForIt) {
  JobdHarness job(TwoModules());
  job.Run({.apps = {Pmi("init; touch up; say cmd=barrier_in; read -r line <&$PMI_FD", 1),
                    Sh("while ! test -e up; do :; done; exit 5", 1)},
           .rank_node = {"cn0", "bn0"}});
  EXPECT_EQ(job.exit->exit_code, 5);
  EXPECT_THAT(job.Notices(), HasSubstr("bn0: task 1 of step 0 ended before MPI_Init"));
}

TEST(JobdMpich, ALostNodeEndsABarrierOnTheOthers) {
  JobdHarness job(TwoModules());
  job.WarmUp();
  job.Launch(
      {.apps = {Pmi("trap '' TERM; init; echo in; say cmd=barrier_in; read -r line <&$PMI_FD; echo out", 1),
                Sh("exec sleep 600", 1)},
       .rank_node = {"cn0", "bn0"}});
  ASSERT_TRUE(job.Until([&] { return job.Out(0) == "in\n"; }));
  job.KillJobd("bn0", SIGKILL);
  ASSERT_TRUE(job.UntilOver());
  EXPECT_EQ(job.Out(0), "in\nout\n");
  EXPECT_NE(job.exit->exit_code, 0);
}

TEST(JobdMpich, MpiCommSpawnFailsAtOnce) {
  // Debian's MPICH refuses by itself, before it asks anybody.
  JobdHarness job(TwoModules());
  job.Run({.apps = {Mpich({"spawn", "2", "1"}, 2)}, .rank_node = {"cn0", "bn0"}});
  // The program's own 7, or the last byte of the code with which the other rank's MPICH aborts at that
  // moment.
  EXPECT_THAT(job.exit->exit_code, ::testing::AnyOf(7, 15)) << job.Notices();
  EXPECT_THAT(job.AllOut(), HasSubstr("spawn failed"));
}

TEST(JobdMpich, ASpawnByPmiIsRefusedWithItsReasonAndTheProgramGoesOn) {
  JobdHarness job(TwoModules());
  job.Run({.apps = {Pmi("init; say mcmd=spawn nprocs=2 execname=./child totspawns=1 spawnssofar=1; "
                        "ask endcmd; ask cmd=get_appnum; ask cmd=finalize",
                        1)}});
  EXPECT_EQ(job.exit->exit_code, 0) << job.Notices();
  EXPECT_EQ(job.Out(0),
            "cmd=spawn_result rc=-1 msg=spawn_is_not_supported_for_MPICH\ncmd=appnum appnum=0\n"
            "cmd=finalize_ack\n");
  EXPECT_THAT(job.Notices(), AllOf(HasSubstr("cn0: task 0 of step 0: spawn of './child' refused"),
                                   HasSubstr("get_local_upids")));
}

TEST(JobdMpich, NamesArePublishedForTheWholeJob) {
  JobdHarness job(TwoModules());
  job.Run({.apps = {Pmi("init; ask 'cmd=publish_name service=s port=tag#0$x'; ask cmd=barrier_in; "
                        "ask cmd=barrier_in; ask 'cmd=unpublish_name service=s'; ask cmd=finalize",
                        1),
                    Pmi("init; ask cmd=barrier_in; ask 'cmd=lookup_name service=s'; "
                        "ask 'cmd=lookup_name service=t'; ask cmd=barrier_in; ask cmd=finalize",
                        1)},
           .rank_node = {"cn0", "bn0"}});
  EXPECT_EQ(job.exit->exit_code, 0) << job.Notices();
  EXPECT_THAT(job.Out(0), HasSubstr("cmd=publish_result info=ok rc=0 msg=success\n"));
  EXPECT_THAT(job.Out(1), HasSubstr("cmd=lookup_result info=ok rc=0 msg=success port=tag#0$x\n"));
  EXPECT_THAT(job.Out(1), HasSubstr("cmd=lookup_result info=error rc=-1"));
  EXPECT_THAT(job.Out(0), HasSubstr("cmd=unpublish_result info=ok rc=0 msg=success\n"));
}

TEST(JobdMpich, ATaskOutOfStepIsTold) {
  JobdHarness job({{"cn0"}});
  job.Run({.apps = {Pmi("init; say rubbish; read -r line <&$PMI_FD || exit 4", 1)}});
  EXPECT_EQ(job.exit->exit_code, 4);
  EXPECT_THAT(job.Notices(), HasSubstr("cannot be served: it is out of step: expected words of the form "
                                       "key=value, found 'rubbish'"));
}

TEST(JobdMpich, TwoMpisInOneWorldEndTheStep) {
  JobdHarness job(TwoModules());
  job.Run(
      {.apps = {Program({MSA_TEST_MPI_JOB, "hello"}, 1), Mpich({"hello"}, 1)}, .rank_node = {"cn0", "bn0"}});
  EXPECT_NE(job.exit->exit_code, 0);
  EXPECT_THAT(job.Notices(),
              HasSubstr("step 0 is ended: it mixes two MPIs in one MPI_COMM_WORLD: tasks on cn0 use "
                        "PMIx (Open MPI), tasks on bn0 PMI-1 (MPICH)"));
}

TEST(JobdMpich, OneMpiAfterTheOtherIsNoMixture) {
  JobdHarness job(TwoModules());
  job.Run({.apps = {Sh(fmt::format("{} hello && {} hello", MSA_TEST_MPI_JOB, MSA_TEST_MPICH_JOB), 2)},
           .rank_node = {"cn0", "bn0"}});
  EXPECT_EQ(job.exit->exit_code, 0) << job.Notices();
  EXPECT_EQ(job.Out(1), "rank 1 of 2 on bn0\nrank 1 of 2 on bn0\n");
}

TEST(JobdMpich, AProgramThatIsHiddenFromItsServerFailsLoudly) {
  JobdHarness job({{"cn0"}});
  job.Run({.apps = {Program({"/usr/bin/env", "-u", "PMI_FD", MSA_TEST_MPICH_JOB, "linger", "2"}, 2)}});
  EXPECT_EQ(job.Out(1), "rank 0 of 1\n");
  EXPECT_EQ(job.exit->exit_code, 125) << job.Notices() << job.AllOut();
  EXPECT_THAT(job.Notices(), AllOf(HasSubstr("2 tasks of step 0 ran"), HasSubstr("alone")));
}

TEST(JobdMpich, ItsOwnMpiexecInATaskWorksAsEver) {
  JobdHarness job({{"cn0"}});
  job.Run({.apps = {Program({"/usr/bin/mpiexec.hydra", "-n", "2", MSA_TEST_MPICH_JOB, "linger", "1"}, 1)}});
  EXPECT_EQ(job.exit->exit_code, 0) << job.Notices();
  EXPECT_THAT(job.Out(0), AllOf(HasSubstr("rank 0 of 2\n"), HasSubstr("rank 1 of 2\n")));
}

}  // namespace
}  // namespace msa::jobd
