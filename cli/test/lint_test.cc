#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lint/traps.h"
#include "output/site_file.h"

namespace msa::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

SystemTopology Small() {
  SystemTopology out;
  out.modules = {{ModuleId(0), "cluster", "cluster"},
                 {ModuleId(1), "booster", "booster"},
                 {ModuleId(3), "nam", "nam"},
                 {ModuleId(4), "gw", "gateway"}};
  const std::pair<const char*, int> nodes[] = {{"cn0", 0}, {"cn1", 0}, {"bn0", 1}, {"nam0", 3}, {"gw0", 4}};
  for (const auto& [name, module] : nodes) {
    NodeSpec node;
    node.name = name;
    node.module = ModuleId(static_cast<std::uint32_t>(module));
    node.cores = 4;
    if (module == 3) node.nam = Bytes(std::uint64_t{3} << 29);
    out.nodes.push_back(node);
  }
  return out;
}

// "LINE:TRAP" of each finding.
std::vector<std::string> Traps(std::string_view script, bool with_topology = false) {
  const SystemTopology topology = Small();
  std::vector<std::string> out;
  for (const LintFinding& f : FindTraps(script, with_topology ? &topology : nullptr)) {
    EXPECT_FALSE(f.what.empty() || f.why.empty() || f.instead.empty()) << f.trap;
    out.push_back(fmt::format("{}:{}", f.line, f.trap));
  }
  return out;
}

// A script of two components: options of the first, of the second, and commands.
std::string Het(std::string_view first, std::string_view second, std::string_view body) {
  return fmt::format("#!/bin/bash\n#SBATCH -t 10 {}\n#SBATCH hetjob\n#SBATCH {}\n{}\n", first, second, body);
}
std::string Plain(std::string_view options, std::string_view body) {
  return fmt::format("#!/bin/bash\n#SBATCH -t 10 {}\n{}\n", options, body);
}
constexpr char kStep[] = "srun --het-group=0,1 ./a";

TEST(Lint, FindsNothingInAGoodScript) {
  EXPECT_THAT(Traps(Het("-N2 -p cluster --nam=0:512M,1:1G", "-N1 -p booster", kStep), true), IsEmpty());
  EXPECT_THAT(Traps(Het("-N2 -p cluster", "-N1 -p booster", "srun ./a : ./b"), true), IsEmpty());
  EXPECT_THAT(Traps(Plain("-N1 --array=0-9", "srun ./a"), true), IsEmpty());
  EXPECT_THAT(
      Traps("#!/bin/bash\n#SBATCH -t 1\n#SBATCH packjob\n#SBATCH -p booster\nsrun --pack-group=0,1 ./a\n"),
      IsEmpty());
}

TEST(Lint, AnArrayOfHetJobs) {
  EXPECT_THAT(Traps(Het("-a 0-3", "-N1", kStep)), ElementsAre("2:array"));
  EXPECT_THAT(Traps(Het("", "--array=0-3", kStep)), ElementsAre("4:array"));
  EXPECT_THAT(Traps(Plain("-a 0-3", "srun ./a")), IsEmpty());
}

TEST(Lint, NoTimeLimit) {
  EXPECT_THAT(Traps("#!/bin/bash\nsrun ./a\n"), ElementsAre("1:no-time-limit"));
  EXPECT_THAT(Traps("#!/bin/bash\n#SBATCH --time 1:00\nsrun ./a\n"), IsEmpty());
  // The first component's holds for all that give none.
  EXPECT_THAT(Traps("#!/bin/bash\n#SBATCH -N1\n#SBATCH hetjob\n#SBATCH -t1\nsrun --het-group=0 a\n"),
              ElementsAre("1:no-time-limit"));
}

TEST(Lint, OptionsBehindTheFirstCommand) {
  EXPECT_THAT(Traps("#!/bin/bash\n#SBATCH -t 1\necho\n#SBATCH -N4\n"), ElementsAre("4:late-option"));
  EXPECT_THAT(Traps("#!/bin/bash\n\n# text\n#SBATCH -t 1\necho\n"), IsEmpty());
  EXPECT_THAT(Traps("#!/bin/bash\n#SBATCH -t 1\ncat <<EOF\n#SBATCH -N4\nEOF\n"), IsEmpty());
}

TEST(Lint, DirectivesThatAreComments) {
  EXPECT_THAT(Traps("#!/bin/bash\n#SBATCH -t 1\n# SBATCH -N4\n#sbatch --nodes=2\n #SBATCH -N4\n"),
              ElementsAre("3:misspelled", "4:misspelled", "5:misspelled"));
  EXPECT_THAT(Traps("#!/bin/bash\n#SBATCH -t 1\n# SBATCH lines follow\n##SBATCH -N4\n#SBATCHES -N3\n"),
              IsEmpty());
}

TEST(Lint, WhatSbatchRefusesAtOnce) {
  EXPECT_THAT(Traps("#SBATCH -t 1\necho\n"), ElementsAre("1:no-interpreter"));
  EXPECT_THAT(Traps("#!/bin/bash\r\n#SBATCH -t 1\r\necho\r\n"), ElementsAre("1:dos-lines"));
  EXPECT_THAT(Traps("#!/bin/bash\n#SBATCH -t 1\n#SBATCH -J 'a\necho\n"), ElementsAre("3:quote"));
  EXPECT_THAT(Traps("#!/bin/bash\n#SBATCH -t 1\n#SBATCH -J \"a b\" # it's\necho\n"), IsEmpty());
}

TEST(Lint, PluginOptionsOfALaterComponent) {
  const auto findings =
      FindTraps(Het("--module=cluster --nam=1G", "--module=booster --nam=2G", kStep), nullptr);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].trap, "first-component-only");
  EXPECT_THAT(findings[0].instead, HasSubstr("--module=0:cluster,1:booster"));
  EXPECT_THAT(findings[1].instead, HasSubstr("--nam=0:1G,1:2G"));
  EXPECT_THAT(Traps(Het("", "--gateways 1", kStep)), ElementsAre("4:first-component-only"));
  EXPECT_THAT(Traps(Het("--module=cluster", "--module=cluster", kStep)), IsEmpty());
  EXPECT_THAT(Traps(Het("--module=0:cluster,1:booster", "-N1", kStep)), IsEmpty());
}

TEST(Lint, OptionsOfTheScriptInALaterComponent) {
  EXPECT_THAT(Traps(Het("", "-o b.out -D dir", kStep)), ElementsAre("4:script-option", "4:script-option"));
  EXPECT_THAT(Traps(Het("-o a.out -D dir", "-J b --dependency=afterok:1", kStep)), IsEmpty());
}

TEST(Lint, TasksPerNodeOfTheFirstComponentAlone) {
  EXPECT_THAT(Traps(Het("--ntasks-per-node=2", "-N1", kStep)), ElementsAre("3:inherited-tasks"));
  EXPECT_THAT(Traps(Het("--ntasks-per-node=2", "--ntasks-per-node=1", kStep)), IsEmpty());
  EXPECT_THAT(Traps(Het("-n4", "-N1", kStep)), IsEmpty());
}

TEST(Lint, MoreNodesThanAModuleHas) {
  EXPECT_THAT(Traps(Het("-p cluster -N3", "-p booster -N2-4", kStep), true),
              ElementsAre("2:too-many-nodes", "4:too-many-nodes"));
  EXPECT_THAT(Traps(Het("-N1 --module=0:cluster,1:booster", "-N 2", kStep), true),
              ElementsAre("4:too-many-nodes"));
  EXPECT_THAT(Traps(Het("-p cluster -N3", "-p booster -N2", kStep)), IsEmpty()) << "no topology";
  EXPECT_THAT(Traps(Het("-p elsewhere -N3", "-p booster -N1-4", kStep), true), IsEmpty());
}

TEST(Lint, AModuleThatDoesNotExist) {
  EXPECT_THAT(Traps(Plain("--module=boster", "srun ./a"), true), ElementsAre("2:no-such-module"));
  EXPECT_THAT(Traps(Plain("--module=1", "srun ./a"), true), IsEmpty());
}

TEST(Lint, SizesOfNam) {
  EXPECT_THAT(Traps(Plain("--nam=lots", "srun ./a")), ElementsAre("2:nam-size"));
  EXPECT_THAT(Traps(Plain("--nam=0:1G,1:1G", "srun ./a")), ElementsAre("2:no-such-component"));
  EXPECT_THAT(Traps(Plain("--nam=2G", "srun ./a"), true), ElementsAre("2:too-much-nam"));
  EXPECT_THAT(Traps(Plain("--nam=1536M", "srun ./a"), true), IsEmpty());
}

TEST(Lint, DirectivesOfNam) {
  EXPECT_THAT(Traps("#!/bin/bash\n#SBATCH -t1\n#NAM create a-%j 1G\n#NAM create p 1G persistent\n#NAM "
                    "stage_in /f a\n#NAM use b:ro\n#NAM "
                    "stage_out a /g\necho\n"),
              IsEmpty());
  EXPECT_THAT(Traps("#!/bin/bash\n#SBATCH -t1\n#NAM make a 1G\n#NAM create a\n#NAM create a much\n#NAM use "
                    "b:rx\n#NAM stage_in /f a:ro\n#NAM stage_out a f\n#NAM\necho\n"),
              ElementsAre("3:nam-directive", "4:nam-directive", "5:nam-directive", "6:nam-directive",
                          "7:nam-directive", "8:nam-directive", "9:nam-directive"));
  EXPECT_THAT(Traps("#!/bin/bash\n#SBATCH -t1\necho\n#NAM use a\n"), ElementsAre("4:late-option"));
}

TEST(Lint, AStepWithoutHetGroup) {
  EXPECT_THAT(Traps(Het("", "-N1", "srun -n 2 ./a")), ElementsAre("5:missing-het-group"));
  EXPECT_THAT(Traps(Het("", "-N1", "if true; then FOO=1 srun \\\n  ./a; fi")),
              ElementsAre("5:missing-het-group"));
  EXPECT_THAT(
      Traps(Het("", "-N1",
                "srun --het-group=0 ./a\nsrun --jobid=7 ./a\necho srun ./a\nsrun $o --het-group=1 ./a")),
      IsEmpty());
  EXPECT_THAT(Traps(Plain("", "srun ./a")), IsEmpty());
}

TEST(Lint, AGroupThatDoesNotExist) {
  EXPECT_THAT(Traps(Het("", "-N1", "srun --het-group=0-2 ./a")), ElementsAre("5:no-such-component"));
  EXPECT_THAT(Traps(Het("", "-N1", "srun --het-group=$i ./a : --het-group=1 ./b")), IsEmpty());
}

TEST(Lint, AnotherLauncherOfMpi) {
  EXPECT_THAT(Traps(Het("", "-N1", "srun --mpi=pmix --het-group=0,1 ./a")), ElementsAre("5:other-mpi"));
  EXPECT_THAT(Traps(Plain("--nam=1G", "srun --mpi pmi2 ./a")), ElementsAre("3:other-mpi"));
  EXPECT_THAT(Traps(Plain("", "srun --mpi=pmix ./a")), IsEmpty()) << "a plain job may";
  EXPECT_THAT(Traps(Het("", "-N1", "srun --mpi=none --het-group=0,1 ./a")), IsEmpty());
  EXPECT_THAT(Traps(Het("", "-N1", "srun --het-group=0,1 ./a --mpi=pmix")), IsEmpty())
      << "the program's own option";
}

TEST(Lint, Mpirun) {
  EXPECT_THAT(Traps(Plain("", "mpirun -np 4 ./a")), ElementsAre("3:mpirun"));
  EXPECT_THAT(Traps(Plain("", "time /opt/mpi/bin/mpiexec ./a && echo done")), ElementsAre("3:mpirun"));
  EXPECT_THAT(Traps(Plain("", "echo mpirun ./a # mpirun\n# mpirun\nwhich mpirun")), IsEmpty());
}

TEST(Lint, AStepInTheBackgroundThatNobodyAwaits) {
  EXPECT_THAT(Traps(Plain("", "srun ./server &\nsrun ./client")), ElementsAre("3:no-wait"));
  EXPECT_THAT(Traps(Plain("", "srun ./server 2>&1 >log &\nsrun ./client &\nwait")), IsEmpty());
  EXPECT_THAT(Traps(Plain("", "srun ./a >&2\nsrun ./b &> log")), IsEmpty());
}

TEST(Lint, ABackgroundStepBehindAQuoteOfSeveralLines) {
  EXPECT_THAT(Traps(Plain("", "srun bash -c '\n  ./server\n' &\nsrun ./client")), ElementsAre("3:no-wait"));
  EXPECT_THAT(Traps(Plain("", "srun bash -c \"\n  echo \\\"a\\\"\n  # it's\n\" &\nsrun ./client")),
              ElementsAre("3:no-wait"));
  EXPECT_THAT(Traps(Plain("", "srun bash -c $'\n  echo it\\'s\n' &\nsrun ./client")),
              ElementsAre("3:no-wait"));
  EXPECT_THAT(Traps(Plain("", "srun awk '\n  { print }\n' file &\nwait")), IsEmpty());
  // What stands behind it is read.
  EXPECT_THAT(Traps(Plain("", "awk '\n  # mpirun a\n' file # it's\nmpirun ./a\necho \"a\nb\"\nmpirun ./b")),
              ElementsAre("6:mpirun", "9:mpirun"));
  EXPECT_THAT(Traps(Het("", "-N1", "bash -c \"\n  echo $SLURM_NNODES\n\"")),
              ElementsAre("6:first-component-variable"));
}

TEST(Lint, AShiftBeginsNoHereDocument) {
  EXPECT_THAT(Traps(Plain("", "N=$((1<<k))\nmpirun ./a")), ElementsAre("4:mpirun"));
  EXPECT_THAT(Traps(Plain("", "((x = (1 << k) << j))\nmpirun ./a")), ElementsAre("4:mpirun"));
  EXPECT_THAT(Traps(Plain("", "echo $((1<<k)); cat <<EOF\nmpirun ./a\nEOF\nmpirun ./b")),
              ElementsAre("6:mpirun"));
  EXPECT_THAT(Traps(Plain("", "(cat <<EOF)\nmpirun ./a\nEOF\nmpirun ./b")), ElementsAre("6:mpirun"));
}

TEST(Lint, VariablesOfTheFirstComponent) {
  EXPECT_THAT(Traps(Het("", "-N1", "echo $SLURM_JOB_NODELIST")), ElementsAre("5:first-component-variable"));
  EXPECT_THAT(Traps(Het("", "-N1", "echo ${SLURM_NNODES}")), ElementsAre("5:first-component-variable"));
  EXPECT_THAT(Traps(Het("", "-N1", "echo $SLURM_JOB_NODELIST_HET_GROUP_1 SLURM_NNODES")), IsEmpty());
  EXPECT_THAT(Traps(Plain("", "echo $SLURM_JOB_NODELIST")), IsEmpty());
}

TEST(Lint, TextsNameFileLineAndRemedy) {
  const auto findings = FindTraps(Plain("", "mpirun ./a"), nullptr);
  EXPECT_EQ(ShowLint("job.sh", findings),
            "job.sh:3: 'mpirun' starts the program: it starts daemons of its own, and what they start cannot "
            "spawn onto "
            "modules or reach NAM; write srun PROGRAM\njob.sh: 1 finding\n");
  EXPECT_EQ(ShowLint("job.sh", {}), "job.sh: no findings\n");
  EXPECT_THAT(Render(LintListing("job.sh", findings), {.format = Format::kJson}),
              HasSubstr("\"trap\": \"mpirun\""));
}

TEST(SiteFile, SaysWhatJobSubmitHasToKnow) {
  const std::string text = SiteFileText(Small(), Bytes(std::uint64_t{1} << 30));
  for (const char* line :
       {"\nmodule cluster id=0 kind=cluster nodes=2\n", "\nmodule booster id=1 kind=booster nodes=1\n",
        "\nmodule gw id=4 kind=gateway nodes=1\n", "\nnam bytes=1536M granule=1G\n", "\ngateways nodes=1\n",
        "\n#   Licenses=nam:1,gateway:1\n"})
    EXPECT_THAT(text, HasSubstr(line));
  SystemTopology large = Small();
  large.nodes[3].nam = Bytes(std::uint64_t{1} << 50);
  EXPECT_THAT(SiteFileText(large, Bytes(std::uint64_t{1} << 40)), HasSubstr("nam bytes=1024T granule=1T"));
}

}  // namespace
}  // namespace msa::cli
