// Batch scripts, allocations and the steps inside them under real job daemons.
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/base/wire.h"

#include "jobd_harness.h"

namespace msa::jobd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string ReadAll(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

RunSpec Batch(std::string script, std::vector<std::string> args = {}) {
  RunSpec spec;
  spec.mode = wire::JobMode::kBatch;
  spec.script = std::move(script);
  wire::App app;
  app.argv = {"job.sh"};
  app.argv.insert(app.argv.end(), args.begin(), args.end());
  spec.apps = {app};
  spec.stdio.out = "out";
  spec.stdio.in = "none";
  spec.interactive = false;
  spec.attach = false;
  return spec;
}

TEST(JobdBatch, AScriptRunsWithItsArgumentsAndItsCodeIsTheJobs) {
  JobdHarness job({{"cn0"}, {"bn0", "booster", 1, 8}});
  job.Run(Batch("#!/bin/sh\necho \"$# $1|$2\"; pwd; stat -c %a \"$0\"; exit 7\n", {"a b", "c"}));
  ASSERT_TRUE(job.exit.has_value());
  EXPECT_EQ(job.exit->exit_code, 7) << job.exit->message;
  EXPECT_EQ(job.exit->state, wire::JobState::kFailed);
  EXPECT_TRUE(job.started);
  EXPECT_EQ(ReadAll(job.directory() + "/out"), "2 a b|c\n" + job.directory() + "\n700\n");
  EXPECT_THAT(job.exit->message, HasSubstr("the batch script exited with exit code 7"));
  EXPECT_FALSE(std::filesystem::exists(job.RunDirectory("cn0")));
}

TEST(JobdBatch, TheScriptKnowsItsJobAndNothingOfALauncher) {
  JobdHarness job({{"cn0"}, {"cn1"}, {"bn0", "booster", 1, 8}});
  RunSpec spec = Batch("#!/bin/sh\nenv\n");
  spec.env = {"MSA_JOB_NAME=outer", "MSA_NODELIST_HET_GROUP_9=outer", "JSM_JSRUN_PORT=1",
              "PMIX_RANK=3",        "OMPI_COMM_WORLD_SIZE=4",         "MSA_RANK=2",
              "PWD=/submitted/here"};
  job.Run(spec);
  const std::string env = ReadAll(job.directory() + "/out");
  for (const char* line :
       {"MSA_JOB_ID=7\n", "MSA_JOB_NAME=test\n", "MSA_NODELIST=cn0,cn1,bn0\n", "MSA_NNODES=3\n",
        "MSA_NTASKS=16\n", "MSA_MODULES=cluster,booster\n", "MSA_HET_SIZE=2\n",
        "MSA_NODELIST_HET_GROUP_0=cn0,cn1\n", "MSA_NTASKS_HET_GROUP_0=8\n", "MSA_NODELIST_HET_GROUP_1=bn0\n",
        "MSA_NTASKS_HET_GROUP_1=8\n", "MSA_NODE=cn0\n", "MSA_SUBMIT_DIR=/submitted/here\n"})
    EXPECT_THAT(env, HasSubstr(line));
  EXPECT_THAT(env, HasSubstr("MSA_DIR=" + job.directory() + "\n"));
  for (const char* name :
       {"PMIX_", "PMI_", "JSM_", "OMPI_", "MSA_RANK", "MSA_STEP_ID", "LD_PRELOAD", "outer"})
    EXPECT_THAT(env, Not(HasSubstr(name)));
}

TEST(JobdBatch, AnMpiProgramThatTheScriptRunsByItselfIsAWorldOfOne) {
  JobdHarness job({{"cn0"}});
  job.Run(Batch("#!/bin/sh\nexec " MSA_TEST_MPI_JOB " hello\n"));
  EXPECT_EQ(job.exit->exit_code, 0) << job.exit->message << ReadAll(job.directory() + "/out");
  EXPECT_THAT(ReadAll(job.directory() + "/out"), HasSubstr("rank 0 of 1"));
}

TEST(JobdBatch, ACancelTermsTheScriptAndKillsItAfterTheGrace) {
  JobdHarness job({{"cn0"}});
  job.WarmUp();
  job.Launch(Batch("#!/bin/sh\ntrap 'echo term' TERM\necho up\nwhile :; do sleep 0.05; done\n"));
  ASSERT_TRUE(job.Until([&] { return ReadAll(job.directory() + "/out") == "up\n"; }));
  job.ToHead(wire::CancelJob{wire::JobState::kTimeout, 300, "time limit of 1 s reached"});
  ASSERT_TRUE(job.UntilOver());
  EXPECT_EQ(job.exit->state, wire::JobState::kTimeout);
  EXPECT_EQ(job.exit->message, "time limit of 1 s reached");
  EXPECT_THAT(ReadAll(job.directory() + "/out"), HasSubstr("term"));
}

// ------------------------------------------------------------------------------------------ steps

wire::StepOpen Step(const std::string& token, const std::string& script, std::uint32_t ntasks = 1) {
  wire::StepOpen open;
  open.token = token;
  open.cwd = "/";
  open.stdio.in = "none";
  open.mpi_library = false;
  for (const char* name : {"PATH", "HOME", "LD_LIBRARY_PATH", "ASAN_OPTIONS"})
    if (const char* value = ::getenv(name)) open.env.push_back(std::string(name) + "=" + value);
  wire::StepComponent part;
  part.ntasks = ntasks;
  part.argv = {"/bin/sh", "-c", script};
  open.components = {part};
  return open;
}

wire::StepComponent MpiPart(const std::string& module, std::uint32_t ntasks, std::vector<std::string> args) {
  wire::StepComponent part;
  part.module = module;
  part.ntasks = ntasks;
  part.argv = {MSA_TEST_MPI_JOB};
  part.argv.insert(part.argv.end(), args.begin(), args.end());
  return part;
}

RunSpec Alloc() {
  RunSpec spec;
  spec.mode = wire::JobMode::kAlloc;
  spec.interactive = false;
  spec.attach = false;
  return spec;
}

struct Allocation {
  explicit Allocation(std::vector<NodeSpec> nodes) : job(std::move(nodes)) {
    job.WarmUp();
    job.Launch(Alloc());
    EXPECT_TRUE(job.Until([&] { return job.started; }));
  }
  std::uint64_t Open(const wire::StepOpen& open) { return job.OpenStep(open); }
  wire::SessionEnd EndOf(std::uint64_t session) {
    EXPECT_TRUE(job.Until([&] { return job.ends.contains(session); })) << job.AllOut() << job.Notices();
    return job.ends[session];
  }
  void GiveBack(std::int32_t code = 0) {
    job.ToHead(wire::CancelJob{code == 0 ? wire::JobState::kCompleted : wire::JobState::kFailed, 1'000, "",
                               false, code});
    EXPECT_TRUE(job.UntilOver());
  }
  JobdHarness job;
};

TEST(JobdSteps, AnAllocationRunsStepsAndEndsWithItsOwnersCode) {
  Allocation a({{"cn0"}, {"bn0", "booster", 1, 8}});
  const auto first = a.Open(Step("a", "echo $MSA_JOB_ID.$MSA_STEP_ID $MSA_NODE $MSA_HET_SIZE; exit 3"));
  EXPECT_EQ(a.EndOf(first).exit_code, 3);
  EXPECT_EQ(a.job.AllOut(), "7.0 cn0 2\n");
  const auto second = a.Open(Step("b", "echo $MSA_STEP_ID $MSA_RANK", 2));
  EXPECT_EQ(a.EndOf(second).exit_code, 0);
  EXPECT_THAT(a.job.Out(1), HasSubstr("1 1\n"));
  a.GiveBack(5);
  EXPECT_EQ(a.job.exit->exit_code, 5);
  EXPECT_EQ(a.job.exit->state, wire::JobState::kFailed);
  EXPECT_FALSE(std::filesystem::exists(a.job.RunDirectory("cn0")));
}

TEST(JobdSteps, TwoModulesAreOneMpiWorldWhileAnotherStepRuns) {
  Allocation a({{"cn0"}, {"bn0", "booster", 1, 8}});
  const auto other = a.Open(Step("long", "echo up; sleep 60"));
  ASSERT_TRUE(a.job.Until([&] { return a.job.AllOut() == "up\n"; }));
  wire::StepOpen open = Step("mpi", "");
  open.components = {MpiPart("cluster", 2, {"hello"}), MpiPart("booster", 3, {"hello"})};
  EXPECT_EQ(a.EndOf(a.Open(open)).exit_code, 0) << a.job.Notices();
  EXPECT_THAT(a.job.Out(4), HasSubstr("rank 4 of 5 on bn0"));
  EXPECT_FALSE(a.job.ends.contains(other));
  a.job.ToSession(other, wire::ClientSignal{SIGKILL});
  EXPECT_EQ(a.EndOf(other).state, wire::JobState::kCancelled);
  a.GiveBack();
  EXPECT_EQ(a.job.exit->state, wire::JobState::kCompleted);
}

TEST(JobdSteps, AStepSpawns) {
  Allocation a({{"cn0"}, {"cn1"}});
  wire::StepOpen open = Step("mpi", "");
  open.components = {MpiPart("cluster", 2, {"spawn", "2", "2"})};
  EXPECT_EQ(a.EndOf(a.Open(open)).exit_code, 0) << a.job.Notices();
  a.GiveBack();
}

TEST(JobdSteps, AWaitingStepStartsWhenTheSlotsAreFree) {
  Allocation a({{"cn0"}});
  const auto first = a.Open(Step("a", "sleep 300", 4));
  const auto second = a.Open(Step("b", "echo second"));
  ASSERT_TRUE(a.job.Until([&] { return a.job.waits.contains(second); }));
  EXPECT_THAT(a.job.waits[second], HasSubstr("0 of 4 are free"));
  a.job.ToSession(first, wire::ClientSignal{SIGKILL});
  EXPECT_EQ(a.EndOf(second).exit_code, 0);
  EXPECT_EQ(a.job.AllOut(), "second\n");
  a.GiveBack();
}

TEST(JobdSteps, AReaderThatStopsBlocksItsOwnStepAlone) {
  Allocation a({{"cn0"}});
  a.job.ack_output = false;
  const auto flood = a.Open(Step("flood", "head -c 20000000 /dev/zero"));
  ASSERT_TRUE(a.job.Until([&] { return a.job.AllOut().size() >= wire::kStdioWindowBytes; }));
  const auto other = a.Open(Step("other", "head -c 300000 /dev/zero | tr '\\0' x"));
  EXPECT_EQ(a.EndOf(other).exit_code, 0);
  EXPECT_FALSE(a.job.ends.contains(flood));
  a.job.ToSession(flood, wire::ClientSignal{SIGKILL});
  EXPECT_EQ(a.EndOf(flood).state, wire::JobState::kCancelled);
  a.job.CloseSession(flood);
  a.job.CloseSession(other);
  a.GiveBack();
}

TEST(JobdSteps, AStepLivesThroughARestartOfItsNodeDaemonAndEndsWithItsClient) {
  Allocation a({{"cn0"}});
  const auto open = Step("a", "echo up; sleep 300");
  a.Open(open);
  ASSERT_TRUE(a.job.Until([&] { return a.job.AllOut() == "up\n"; }));
  a.job.KillNoded("cn0");
  a.job.ReviveNoded("cn0");
  ASSERT_TRUE(a.job.Until([&] { return a.job.Adopted("cn0"); }));
  wire::StepOpen again = open;
  again.acked = a.job.last_seq;
  const auto back = a.Open(again);
  ASSERT_TRUE(a.job.Until([&] { return a.job.running.contains(back); }));
  EXPECT_EQ(a.job.AllOut(), "up\n");  // not said twice
  a.job.CloseSession(back);
  ASSERT_TRUE(a.job.Until([&] { return !a.job.reports.empty() && a.job.reports.back().ended; }));
  a.GiveBack();
}

TEST(JobdSteps, TheEndOfAScriptEndsItsSteps) {
  JobdHarness job({{"cn0"}});
  const std::string gate = job.directory() + "/gate";
  ASSERT_EQ(::mkfifo(gate.c_str(), 0600), 0);
  job.WarmUp();
  job.Launch(Batch("#!/bin/sh\nread line < gate\nexit 6\n"));
  ASSERT_TRUE(job.Until([&] { return job.started; }));
  const auto step = job.OpenStep(Step("a", "echo up; sleep 300"));
  ASSERT_TRUE(job.Until([&] { return job.AllOut() == "up\n"; }));
  std::ofstream(gate) << "go\n";
  ASSERT_TRUE(job.UntilOver());
  EXPECT_EQ(job.exit->exit_code, 6);
  ASSERT_TRUE(job.ends.contains(step));
  EXPECT_THAT(job.ends[step].message, HasSubstr("the batch script has ended"));
}

}  // namespace
}  // namespace msa::jobd
