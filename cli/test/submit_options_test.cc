#include "batch/submit_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/base/clock.h"

#include "batch/foreign_options.h"

namespace msa::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const SubmitSurroundings kHere{
    "/home/u", {"PATH=/bin", "A=1", "MSA_JOB_ID=9"}, {{7, 1024, 4096}}, FromUnixMillis(1'700'000'000'000)};
using Words = std::vector<std::string>;

Result<SubmitRequest> Read(const Words& args, const std::string& script) {
  const auto call = ReadSubmitCall(args);
  if (!call.ok()) return call.status();
  return ReadSubmission(*call, "dir/job.sh", "#!/bin/sh\n" + script, kHere);
}
SubmitRequest MustRead(const Words& args, const std::string& script) {
  auto request = Read(args, script);
  EXPECT_TRUE(request.ok()) << request.status().message();
  return request.ok() ? *std::move(request) : SubmitRequest{};
}
std::string ErrorOf(const Words& args, const std::string& script) {
  const auto request = Read(args, script);
  EXPECT_EQ(request.status().code(), Code::kInvalidArgument);
  return request.status().message();
}

TEST(SubmitCall, FindsTheScriptItsArgumentsAndTheComponents) {
  const auto call = ReadSubmitCall({"-m", "cluster", "-n2", ":", "-N", "2", "job.sh", "-n", ":", "x"});
  ASSERT_TRUE(call.ok()) << call.status().message();
  EXPECT_THAT(call->components, ElementsAre(Words{"-m", "cluster", "-n2"}, Words{"-N", "2"}));
  EXPECT_EQ(call->script, "job.sh");
  EXPECT_THAT(call->script_args, ElementsAre("-n", ":", "x"));
  EXPECT_EQ(ReadSubmitCall({})->script, "");
  EXPECT_EQ(ReadSubmitCall({"-"})->script, "-");
  EXPECT_TRUE(ReadSubmitCall({"--help"})->help_asked);
}

TEST(SubmitCall, AScriptAndAWrappedCommandExcludeEachOther) {
  EXPECT_EQ(ReadSubmitCall({"--wrap", "hostname"})->wrap, "hostname");
  EXPECT_THAT(ReadSubmitCall({"--wrap", "hostname", "job.sh"}).status().message(), HasSubstr("job.sh"));
  for (const char* empty : {"", " "})
    EXPECT_THAT(ReadSubmitCall({"--wrap", empty}).status().message(), HasSubstr("holds no command"));
  EXPECT_THAT(WrapScript("hostname"), AllOf(testing::StartsWith("#!/bin/sh\n"), HasSubstr("hostname\n")));
}

TEST(Submission, ReadsEveryOptionOfSbatchThatHasAMeaning) {
  const SubmitRequest request = MustRead(
      {"job.sh", "a", "b"},
      "#SBATCH --job-name=coupled --time=1-02:30 -N2-4 --ntasks-per-node=2 --cpus-per-task 3\n"
      "#SBATCH -p booster --mem=2G --gres=gpu:a100:2 -x bn0 --exclusive -o out.%j -e /tmp/err -i in\n"
      "#SBATCH -D run --export=A --open-mode=append -d afterok:1:2 --kill-on-invalid-dep=yes\n"
      "#SBATCH --begin=now+1hour --propagate=NOFILE --parsable -O --wait\n"
      "msactl run ./a\n");
  const JobSpec& spec = request.spec;
  EXPECT_EQ(spec.mode, wire::JobMode::kBatch);
  EXPECT_EQ(spec.name, "coupled");
  EXPECT_EQ(spec.time_limit_s, 95'400u);
  ASSERT_EQ(spec.components.size(), 1u);
  const ComponentRequest& ask = spec.components[0].resources;
  EXPECT_EQ(ask.module, "booster");
  EXPECT_EQ(ask.min_nodes, 2u);
  EXPECT_EQ(ask.max_nodes, 4u);
  EXPECT_EQ(ask.ntasks_per_node, 2u);
  EXPECT_EQ(ask.cpus_per_task, 3u);
  EXPECT_EQ(ask.memory.value, 2ull << 30);
  EXPECT_EQ(ask.gpus_per_node, 2u);
  EXPECT_THAT(ask.exclude, ElementsAre("bn0"));
  EXPECT_TRUE(ask.exclusive);
  EXPECT_EQ(spec.cwd, "/home/u/run");
  EXPECT_EQ(spec.stdio.out, "/home/u/run/out.%j");
  EXPECT_EQ(spec.stdio.err, "/tmp/err");
  EXPECT_EQ(spec.stdio.in, "/home/u/run/in");
  EXPECT_TRUE(spec.stdio.append);
  EXPECT_EQ(spec.dependencies.size(), 2u);
  EXPECT_TRUE(spec.kill_on_invalid_dep);
  EXPECT_EQ(spec.begin_at_ms, 1'700'003'600'000);
  ASSERT_EQ(spec.limits.size(), 1u);
  EXPECT_TRUE(spec.oversubscribe);
  EXPECT_TRUE(request.parsable);
  EXPECT_TRUE(request.wait);
  EXPECT_THAT(spec.script_args, ElementsAre("a", "b"));
  EXPECT_THAT(spec.script, testing::EndsWith("msactl run ./a\n"));
  EXPECT_THAT(request.warnings, IsEmpty());
}

TEST(Submission, HasDefaults) {
  const SubmitRequest request = MustRead({"job.sh"}, "");
  EXPECT_EQ(request.spec.name, "job.sh");
  EXPECT_EQ(request.spec.cwd, "/home/u");
  EXPECT_EQ(request.spec.stdio.out, "/home/u/msa-%j.out");
  EXPECT_EQ(request.spec.stdio.in, "none");
  EXPECT_EQ(request.spec.components.size(), 1u);
  EXPECT_THAT(std::vector<std::string>(request.spec.env.begin(), request.spec.env.end()),
              ElementsAre("A=1", "PATH=/bin"));
  EXPECT_EQ(request.spec.limits.size(), 1u) << "all of the submission's";
}

TEST(Submission, SeparatesComponentsInEverySpelling) {
  for (const char* script : {"#SBATCH -p cluster -n 2\n#SBATCH hetjob\n#SBATCH -p booster -N 2\n",
                             "#SBATCH -p cluster -n 2\n#SBATCH packjob\n#SBATCH -p booster -N 2\n",
                             "#MSA -m cluster\n#MSA -n 2\n#MSA hetjob\n#MSA -m booster -N 2\n",
                             "#MSA -m cluster -n 2 : -m booster -N 2\n",
                             "#SBATCH -p cluster -n 2 # front\n#MSA : -m booster -N 2\n"}) {
    const SubmitRequest request = MustRead({"job.sh"}, script);
    ASSERT_EQ(request.spec.components.size(), 2u) << script;
    EXPECT_EQ(request.spec.components[0].resources.module, "cluster");
    EXPECT_EQ(request.spec.components[0].resources.ntasks, 2u);
    EXPECT_EQ(request.spec.components[1].resources.module, "booster");
    EXPECT_EQ(request.spec.components[1].resources.min_nodes, 2u);
  }
}

TEST(Submission, TheCommandLineGoesBeforeTheScript) {
  const SubmitRequest request =
      MustRead({"-n", "8", "-w", "cn1", "-t", "5", ":", "-N", "1", ":", "-m", "dam", "job.sh"},
               "#SBATCH -n 2 -c 2 -w cn0 -t 60 -J name\n#SBATCH hetjob\n#SBATCH -p booster -N 2\n");
  ASSERT_EQ(request.spec.components.size(), 3u);
  const ComponentRequest& first = request.spec.components[0].resources;
  EXPECT_EQ(first.ntasks, 8u);
  EXPECT_EQ(first.cpus_per_task, 2u);
  EXPECT_THAT(first.nodelist, ElementsAre("cn1"));
  EXPECT_EQ(request.spec.components[1].resources.module, "booster");
  EXPECT_EQ(request.spec.components[1].resources.max_nodes, 1u);
  EXPECT_EQ(request.spec.components[2].resources.module, "dam");
  EXPECT_EQ(request.spec.time_limit_s, 300u);
  EXPECT_EQ(request.spec.name, "name");
}

TEST(Submission, WhatIsNotUnderstoodIsNamedWithItsLine) {
  EXPECT_THAT(
      ErrorOf({"job.sh"}, "\n#SBATCH --ntaks=2\n"),
      AllOf(HasSubstr("dir/job.sh:3: "), HasSubstr("'--ntaks'"), HasSubstr("did you mean '--ntasks'?")));
  EXPECT_THAT(ErrorOf({"job.sh"}, "#MSA -n two\n"),
              AllOf(HasSubstr("dir/job.sh:2: --ntasks"), HasSubstr("two")));
  EXPECT_THAT(ErrorOf({"job.sh"}, "#SBATCH -J my job\n"), AllOf(HasSubstr(":2: "), HasSubstr("'job'")));
  EXPECT_THAT(ErrorOf({"job.sh"}, "#SBATCH --help\n"), HasSubstr("no option of a script"));
  EXPECT_THAT(ErrorOf({"job.sh"}, "#SBATCH --wrap=x\n"), HasSubstr("command line only"));
  EXPECT_THAT(ErrorOf({"job.sh"}, "#MSA --dir=/x\n"), HasSubstr("command line only"));
  EXPECT_THAT(ErrorOf({"--ntaks=2", "job.sh"}, ""), HasSubstr("did you mean"));
}

TEST(Submission, SbatchsOptionsWithoutMeaningAreNamedAndDoNotFail) {
  const SubmitRequest request = MustRead({"--qos=high", "job.sh"},
                                         "#SBATCH --account=deep --mail-type END,FAIL --mail-user=a@b -A "
                                         "deep\n#SBATCH -m block:cyclic -s --nice\n");
  EXPECT_THAT(
      request.warnings,
      ElementsAre(HasSubstr("dir/job.sh:2: --account is ignored"), HasSubstr("dir/job.sh:2: --mail-type"),
                  HasSubstr("dir/job.sh:2: --mail-user"), HasSubstr("dir/job.sh:2: --account"),
                  HasSubstr("dir/job.sh:3: --distribution"), HasSubstr("dir/job.sh:3: --oversubscribe"),
                  HasSubstr("dir/job.sh:3: --nice"), HasSubstr("--qos is ignored")));
  EXPECT_FALSE(request.spec.oversubscribe);
}

TEST(Submission, SbatchsOptionsThatWouldChangeTheJobAreRefusedWithTheRemedy) {
  EXPECT_THAT(ErrorOf({"job.sh"}, "#SBATCH --array=0-9\n"),
              AllOf(HasSubstr("dir/job.sh:2: --array"), HasSubstr("submit a job for each index")));
  EXPECT_THAT(ErrorOf({"job.sh"}, "#SBATCH --mem-per-cpu=1G\n"), HasSubstr("--mem"));
  EXPECT_THAT(ErrorOf({"job.sh"}, "#SBATCH -C haswell\n"), HasSubstr("--module"));
  EXPECT_THAT(ErrorOf({"job.sh"}, "#SBATCH --gres=fpga:1\n"), HasSubstr("gpu:N"));
}

TEST(Submission, ALaterComponentMayRepeatWhatBelongsToTheJob) {
  const SubmitRequest same =
      MustRead({"job.sh"}, "#SBATCH -t 60 -J x\n#SBATCH hetjob\n#SBATCH -t 60 -o late.out\n");
  EXPECT_THAT(same.warnings, IsEmpty());
  EXPECT_EQ(same.spec.stdio.out, "/home/u/late.out");
  const SubmitRequest other = MustRead({"job.sh"}, "#SBATCH -t 60\n#SBATCH hetjob\n#SBATCH -t 30\n");
  EXPECT_EQ(other.spec.time_limit_s, 3600u);
  EXPECT_THAT(other.warnings, ElementsAre(AllOf(HasSubstr("dir/job.sh:4"), HasSubstr("--time=30"),
                                                HasSubstr("dir/job.sh:2"))));
  EXPECT_THAT(ErrorOf({"job.sh"}, "#MSA -n 1 : -t 30\n"), HasSubstr("whole job"));
  EXPECT_THAT(ErrorOf({"-n", "1", ":", "-t", "5", "job.sh"}, ""), HasSubstr("whole job"));
}

TEST(Submission, AskForMemoryAndBindRegionsInTheScriptOrInTheCall) {
  const std::string script =
      "#MSA --nam 64M --nam-region=field --nam-region mesh:ro\n#SBATCH --nam-region=x\n";
  const SubmitRequest there = MustRead({"job.sh"}, script);
  EXPECT_EQ(there.spec.nam, Bytes(64u << 20));
  ASSERT_EQ(there.spec.nam_regions.size(), 3u);
  EXPECT_EQ(there.spec.nam_regions[0].rights, NamRights::kRead | NamRights::kWrite);
  EXPECT_EQ(there.spec.nam_regions[1].region, "mesh");
  EXPECT_EQ(there.spec.nam_regions[1].rights, NamRights::kRead);
  EXPECT_EQ(there.spec.nam_regions[2].region, "x");
  const SubmitRequest here = MustRead({"--nam=1G", "--nam-region", "other", "job.sh"}, script);
  EXPECT_EQ(here.spec.nam, Bytes(1u << 30));
  ASSERT_EQ(here.spec.nam_regions.size(), 1u) << "the call goes before the script";
  EXPECT_EQ(here.spec.nam_regions[0].region, "other");
  EXPECT_THAT(ErrorOf({"job.sh"}, "#MSA --nam-region a:b\n"), HasSubstr("job.sh:2: --nam-region: 'a:b'"));
}

TEST(Submission, NoForeignOptionHidesOneOfOurs) {
  const std::string help = SubmitHelp();
  for (const ForeignOption& foreign : ForeignOptions()) {
    EXPECT_EQ(help.find("--" + std::string(foreign.name) + " "), std::string::npos) << foreign.name;
    EXPECT_NE(foreign.meaningless.empty(), foreign.remedy.empty()) << foreign.name;
    if (foreign.letter != 0) {
      EXPECT_EQ(help.find(fmt::format("\n  -{}, ", foreign.letter)), std::string::npos) << foreign.name;
    }
  }
}

}  // namespace
}  // namespace msa::cli
