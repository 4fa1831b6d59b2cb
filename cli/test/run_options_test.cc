#include "options/run_options.h"

#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "options/run_environment.h"

namespace msa::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

const RunSurroundings kHere{
    "/home/u", {"PATH=/bin", "HOME=/home/u", "A=1", "PMIX_RANK=3", "MSA_JOB_ID=9", "OMPI_MCA_btl=self"}};

Result<RunRequest> Parse(const std::vector<std::string>& args) { return ParseRun(args, kHere); }

std::string ErrorOf(const std::vector<std::string>& args) {
  const auto request = Parse(args);
  EXPECT_FALSE(request.ok());
  EXPECT_EQ(request.status().code(), Code::kInvalidArgument);
  return request.ok() ? "" : request.status().message();
}

TEST(RunOptions, ReadsTheComponentsOfTheTour) {
  const auto request = Parse(
      {"-m", "cluster", "-n", "2", "./a", ":", "-m", "booster", "-N", "2", "-n", "4", "./b", "-n", "x"});
  ASSERT_TRUE(request.ok()) << request.status().message();
  ASSERT_EQ(request->spec.components.size(), 2u);
  const Component& a = request->spec.components[0];
  const Component& b = request->spec.components[1];
  EXPECT_EQ(a.resources.module, "cluster");
  EXPECT_EQ(a.resources.ntasks, 2u);
  EXPECT_EQ(a.resources.min_nodes, 0u);
  EXPECT_THAT(a.argv, ElementsAre("./a"));
  EXPECT_EQ(b.resources.module, "booster");
  EXPECT_EQ(b.resources.min_nodes, 2u);
  EXPECT_EQ(b.resources.max_nodes, 2u);
  EXPECT_EQ(b.resources.ntasks, 4u);
  EXPECT_THAT(b.argv, ElementsAre("./b", "-n", "x"));
  EXPECT_EQ(request->spec.cwd, "/home/u");
}

TEST(RunOptions, ReadsEveryOptionOfAComponent) {
  const auto request = Parse({"-N2-8", "--ntasks-per-node=3", "-c4", "--mem=2G", "-w", "cn[0-1]", "-w", "cn3",
                              "-x", "bn0", "--exclusive", "--gpus-per-node", "1", "prog"});
  ASSERT_TRUE(request.ok()) << request.status().message();
  const ComponentRequest& ask = request->spec.components[0].resources;
  EXPECT_EQ(ask.min_nodes, 2u);
  EXPECT_EQ(ask.max_nodes, 8u);
  EXPECT_EQ(ask.ntasks_per_node, 3u);
  EXPECT_EQ(ask.cpus_per_task, 4u);
  EXPECT_EQ(ask.memory.value, 2ull << 30);
  EXPECT_THAT(ask.nodelist, ElementsAre("cn0", "cn1", "cn3"));
  EXPECT_THAT(ask.exclude, ElementsAre("bn0"));
  EXPECT_TRUE(ask.exclusive);
  EXPECT_EQ(ask.gpus_per_node, 1u);
}

TEST(RunOptions, ReadsEveryOptionOfTheJob) {
  const auto request = Parse({"-o",
                              "out.%t",
                              "-e",
                              "/tmp/err",
                              "-i",
                              "none",
                              "-l",
                              "-J",
                              "name",
                              "-D",
                              "sub",
                              "-t",
                              "1:00",
                              "-I3",
                              "-K",
                              "--no-bind",
                              "--oversubscribe",
                              "--open-mode=append",
                              "-vv",
                              "-q",
                              "--world",
                              "joint",
                              "--dir",
                              "/d",
                              "prog"});
  ASSERT_TRUE(request.ok()) << request.status().message();
  const JobSpec& spec = request->spec;
  EXPECT_EQ(spec.cwd, "/home/u/sub");
  EXPECT_EQ(spec.stdio.out, "/home/u/sub/out.%t");
  EXPECT_EQ(spec.stdio.err, "/tmp/err");
  EXPECT_EQ(spec.stdio.in, "none");
  EXPECT_TRUE(spec.stdio.label);
  EXPECT_TRUE(spec.stdio.append);
  EXPECT_EQ(spec.name, "name");
  EXPECT_EQ(spec.time_limit_s, 60u);
  EXPECT_EQ(spec.immediate_s, 3u);
  EXPECT_EQ(spec.kill_policy, wire::KillPolicy::kAlways);
  EXPECT_TRUE(spec.no_bind);
  EXPECT_TRUE(spec.oversubscribe);
  EXPECT_EQ(request->verbose, 2);
  EXPECT_TRUE(request->quiet);
  EXPECT_EQ(request->dir, "/d");
}

TEST(RunOptions, DefaultsTheOptionalValues) {
  const auto request = Parse({"-I", "-K0", "prog"});
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->spec.immediate_s, 1u);
  EXPECT_EQ(request->spec.kill_policy, wire::KillPolicy::kNever);
}

TEST(RunOptions, SendsTheOutputOfADetachedJobToAFile) {
  const auto request = Parse({"-d", "prog"});
  ASSERT_TRUE(request.ok());
  EXPECT_TRUE(request->detach);
  EXPECT_EQ(request->spec.stdio.out, "/home/u/msa-%j.out");
  EXPECT_EQ(request->spec.stdio.in, "none");
  EXPECT_THAT(ErrorOf({"-d", "-l", "prog"}), HasSubstr("--label"));
  EXPECT_THAT(ErrorOf({"-d", "-I", "prog"}), HasSubstr("--immediate"));
}

TEST(RunOptions, RefusesOptionsOfTheJobBehindTheFirstComponent) {
  EXPECT_THAT(ErrorOf({"a", ":", "--label", "b"}), HasSubstr("--label belongs to the whole job"));
}

TEST(RunOptions, NamesTheComponentThatIsWrong) {
  EXPECT_THAT(ErrorOf({"a", ":", "-n", "x", "b"}),
              HasSubstr("component 1: --ntasks: 'x' is not a number from 1"));
  EXPECT_THAT(ErrorOf({"a", ":"}), HasSubstr("component 1: no program"));
  EXPECT_THAT(ErrorOf({}), HasSubstr("no program was given; expected: msactl run"));
  EXPECT_THAT(ErrorOf({"-n", "2"}), HasSubstr("no program"));
  EXPECT_THAT(ErrorOf({""}), HasSubstr("no program"));
}

TEST(RunOptions, RefusesWhatThisVersionHasNot) {
  EXPECT_THAT(ErrorOf({"--query", "gpu.free>=1", "a"}), HasSubstr("--module"));
  EXPECT_THAT(ErrorOf({"--spawn-max=3", "a"}), HasSubstr("spawned"));
  EXPECT_THAT(ErrorOf({"--world", "separate", "a"}), HasSubstr("jobs of their own"));
}

TEST(RunOptions, AskForGatewaysOfTheJob) {
  const auto request = Parse({"--gateways=2", "a", ":", "b"});
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request->spec.gateways, 2u);
  EXPECT_EQ(request->job_only, "--gateways");
  EXPECT_THAT(ErrorOf({"--gateways", "two", "a"}), HasSubstr("--gateways"));
  EXPECT_THAT(ErrorOf({"--gateways", "70000", "a"}), HasSubstr("65536"));
}

TEST(RunOptions, AskForMemoryAndBindRegions) {
  const auto request = Parse(
      {"--nam", "64M", "--nam-region=field", "--nam-region", "mesh.v2:ro", "--nam-region", "x:rw", "a"});
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request->spec.nam, Bytes(64u << 20));
  ASSERT_EQ(request->spec.nam_regions.size(), 3u);
  EXPECT_EQ(request->spec.nam_regions[0].region, "field");
  EXPECT_EQ(request->spec.nam_regions[0].rights, NamRights::kRead | NamRights::kWrite);
  EXPECT_EQ(request->spec.nam_regions[1].region, "mesh.v2");
  EXPECT_EQ(request->spec.nam_regions[1].rights, NamRights::kRead);
  EXPECT_EQ(request->spec.nam_regions[2].rights, NamRights::kRead | NamRights::kWrite);
  EXPECT_EQ(request->job_only, "--nam-region") << "a step inside a job has none of its own";
  EXPECT_THAT(ErrorOf({"--nam", "much", "a"}), HasSubstr("--nam: 'much' is not a size"));
  EXPECT_THAT(ErrorOf({"--nam-region", "field:wo", "a"}), HasSubstr("expected NAME, NAME:ro or NAME:rw"));
  EXPECT_THAT(ErrorOf({"--nam-region", "a,b", "a"}), HasSubstr("'a,b' is no name of a region"));
  EXPECT_THAT(ErrorOf({"--nam-region", ":ro", "a"}), HasSubstr("'' is no name"));
  EXPECT_THAT(ErrorOf({"--nam-region", std::string(128, 'a'), "a"}), HasSubstr("1 to 127"));
  EXPECT_THAT(ErrorOf({"--nam-region", "f", "--nam-region", "f:ro", "a"}), HasSubstr("named twice"));
  EXPECT_THAT(ErrorOf({"a", ":", "--nam", "1", "b"}), HasSubstr("--nam belongs to the whole job"));
}

TEST(RunOptions, LimitTheNumberOfRegions) {
  std::vector<std::string> args;
  for (int i = 0; i < 257; ++i) args.push_back(fmt::format("--nam-region=r{}", i));
  args.push_back("a");
  EXPECT_THAT(ErrorOf(args), HasSubstr("more than 256 regions"));
}

TEST(RunOptions, KeepsAnEscapedColonAsAnArgument) {
  const auto request = Parse({"prog", "\\:", "x:y"});
  ASSERT_TRUE(request.ok());
  EXPECT_THAT(request->spec.components[0].argv, ElementsAre("prog", ":", "x:y"));
}

TEST(RunOptions, LimitsTheNumberOfComponents) {
  std::vector<std::string> args{"a"};
  for (int i = 0; i < 1024; ++i) args.insert(args.end(), {":", "a"});
  EXPECT_THAT(ErrorOf(args), HasSubstr("1025 components; at most 1024"));
}

TEST(RunOptions, PropagatesTheLimitsThatAreNamed) {
  RunSurroundings here = kHere;
  here.limits = {{RLIMIT_CORE, 0, 10}, {RLIMIT_NOFILE, 512, 1024}, {RLIMIT_STACK, 8, RLIM_INFINITY}};
  const auto resources = [&](std::vector<std::string> args) {
    args.emplace_back("prog");
    const auto request = ParseRun(args, here);
    EXPECT_TRUE(request.ok()) << request.status().message();
    std::vector<int> out;
    if (request.ok())
      for (const wire::ResourceLimit& limit : request->spec.limits) out.push_back(limit.resource);
    return out;
  };
  EXPECT_THAT(resources({}), ElementsAre(RLIMIT_CORE, RLIMIT_NOFILE, RLIMIT_STACK));
  EXPECT_THAT(resources({"--propagate"}), ElementsAre(RLIMIT_CORE, RLIMIT_NOFILE, RLIMIT_STACK));
  EXPECT_THAT(resources({"--propagate=ALL"}), ElementsAre(RLIMIT_CORE, RLIMIT_NOFILE, RLIMIT_STACK));
  EXPECT_THAT(resources({"--propagate=none"}), ElementsAre());
  EXPECT_THAT(resources({"--propagate=NOFILE,rlimit_core,NOFILE"}), ElementsAre(RLIMIT_NOFILE, RLIMIT_CORE));
  EXPECT_EQ(ParseRun({"prog"}, here)->spec.limits[1].soft, 512u);
  for (const char* bad : {"--propagate=NOFILES", "--propagate=NOFILE,,CORE", "--propagate=NONE,CORE"})
    EXPECT_THAT(ErrorOf({bad, "prog"}), AllOf(HasSubstr("--propagate"), HasSubstr("is no resource limit"),
                                              HasSubstr("MEMLOCK, NOFILE")));
  EXPECT_THAT(ErrorOf({"--propagate=NOFILES", "prog"}), HasSubstr("did you mean 'NOFILE'?"));
}

TEST(RunOptions, ExplainsEveryOptionInTheHelp) {
  const std::string help = RunHelp();
  for (const char* option : {"--module", "--nodes", "--ntasks", "--output", "--label",
                             "--immediate[=SECONDS]", "--detach", "--export"})
    EXPECT_THAT(help, HasSubstr(option));
  EXPECT_TRUE(Parse({"--help"})->help_asked);
}

TEST(RunEnvironment, PassesEverythingOnButAnotherLaunchsVariables) {
  const auto env = ExportEnvironment("ALL", kHere.env);
  ASSERT_TRUE(env.ok());
  EXPECT_THAT(*env, UnorderedElementsAre("PATH=/bin", "HOME=/home/u", "A=1", "OMPI_MCA_btl=self"));
}

TEST(RunEnvironment, KeepsWhatALoginNeedsForNone) {
  EXPECT_THAT(*ExportEnvironment("NONE", kHere.env), UnorderedElementsAre("PATH=/bin", "HOME=/home/u"));
}

TEST(RunEnvironment, AddsAndReplacesNamedVariables) {
  EXPECT_THAT(*ExportEnvironment("A,B=x=y,C=", kHere.env),
              UnorderedElementsAre("A=1", "B=x=y", "C=", "PATH=/bin", "HOME=/home/u"));
  const auto all = ExportEnvironment("ALL,A=2", kHere.env);
  EXPECT_THAT(*all, Contains("A=2"));
  EXPECT_THAT(*all, Not(Contains("A=1")));
}

TEST(RunEnvironment, RefusesWhatIsNoName) {
  for (const char* text : {"", "A,,B", "1A=x", "A B=x", "=x"}) {
    const auto env = ExportEnvironment(text, kHere.env);
    ASSERT_FALSE(env.ok()) << text;
    EXPECT_THAT(env.status().message(), HasSubstr("is not a variable"));
  }
}

}  // namespace
}  // namespace msa::cli
