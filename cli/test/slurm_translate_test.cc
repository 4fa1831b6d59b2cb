#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/choice.h"
#include "backend/slurm_command.h"
#include "backend/slurm_nodes.h"
#include "backend/translate.h"

namespace msa::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Words = std::vector<std::string>;
const SlurmPlace kPlace = {.partitions = {"cluster", "booster"}, .job_partitions = {}, .job_submit = false};

Result<Words> Srun(const Words& args, const SlurmPlace& place = kPlace) {
  TypedCall call;
  MSA_RETURN_IF_ERROR(ReadTypedRun(args, &call));
  return SrunWords(call, place);
}

Result<Words> Sbatch(const Words& args, std::string_view script = "", const SlurmPlace& place = kPlace) {
  TypedCall call;
  MSA_RETURN_IF_ERROR(ReadTypedSubmit(args, &call));
  if (!script.empty()) MSA_RETURN_IF_ERROR(AddScriptLines("job.sh", script, &call));
  MSA_ASSIGN_OR_RETURN(const SbatchCall sbatch, SbatchWords(call, place));
  return sbatch.words;
}

TEST(SlurmTranslation, ARunOfSeveralModulesIsOneSrun) {
  const auto words = Srun({"-m", "cluster", "-n2", "-t", "10", "--nam", "1G", "./a", "-x", ":",
                           "--module=booster", "-N", "2-4", "./b"});
  ASSERT_TRUE(words.ok()) << words.status().message();
  EXPECT_THAT(*words, ElementsAre("srun", "--partition=cluster", "--ntasks=2", "--time=10", "--nam=1G", "./a",
                                  "-x", ":", "--partition=booster", "--nodes=2-4", "--time=10", "./b"));
}

Result<Words> Salloc(const Words& args) {
  TypedCall call;
  MSA_RETURN_IF_ERROR(ReadTypedAlloc(args, &call));
  return SallocWords(call, kPlace);
}

TEST(SlurmTranslation, AnAllocationIsSallocWithACommandThatKeepsItsColons) {
  EXPECT_THAT(
      *Salloc({"-m", "cluster", "-n2", "-t", "5", ":", "-p", "booster", "-A", "physics", "msactl", "run",
               "./a", ":", "-n", "1", "./b"}),
      ElementsAre("salloc", "--partition=cluster", "--ntasks=2", "--time=5", ":", "--partition=booster",
                  "--account=physics", "--time=5", "msactl", "run", "./a", ":", "-n", "1", "./b"));
  EXPECT_THAT(*Salloc({"--no-shell", "--oversubscribe", "-N2", "--nam", "1G"}),
              ElementsAre("salloc", "--no-shell", "--overcommit", "--nodes=2", "--nam=1G"));
  EXPECT_THAT(*Salloc({}), ElementsAre("salloc"));
  EXPECT_THAT(Salloc({"--no-shell", "-N2", "true"}).status().message(),
              HasSubstr("--no-shell runs no command"));
  EXPECT_THAT(Salloc({"--propagate=ALL"}).status().message(), HasSubstr("salloc has none"));
  EXPECT_THAT(Salloc({"-m", "x"}).status().message(), HasSubstr("'x' is no partition of Slurm"));
  EXPECT_THAT(Salloc({"-n2", ":", "--query=x"}).status().message(), HasSubstr("component 1: --query"));
}

TEST(SlurmTranslation, OptionsTakeTheNamesThatSrunHasForThem) {
  EXPECT_THAT(*Srun({"--no-bind", "--oversubscribe", "-l", "-vv", "-K1", "-K", "-I5", "--job", "7",
                     "--nam-region", "a:ro", "--nam-region=b", "--world", "joint", "true"}),
              ElementsAre("srun", "--cpu-bind=none", "--overcommit", "--label", "--verbose", "--verbose",
                          "--kill-on-bad-exit=1", "--kill-on-bad-exit", "--immediate=5", "--jobid=7",
                          "--nam-region=a:ro,b", "true"));
}

TEST(SlurmTranslation, SrunsOwnOptionsPass) {
  EXPECT_THAT(*Srun({"-A", "physics", "--qos=fast", "--mpi", "none", "--msa=yes", "--contiguous", "true"}),
              ElementsAre("srun", "--account=physics", "--qos=fast", "--mpi=none", "--msa=yes",
                          "--contiguous", "true"));
  EXPECT_THAT(Srun({"--acount=x", "true"}).status().message(), HasSubstr("'--account'"));
}

TEST(SlurmTranslation, WhatSlurmHasNotIsRefusedWithItsWay) {
  for (const auto& [word, way] :
       {std::pair{"--detach", "msactl submit --wrap"}, std::pair{"--no-mpi-library", "--msa=no"},
        std::pair{"--world=separate", "--het-group"}, std::pair{"--query=x", "--constraint"},
        std::pair{"--spawn-max=2", "QOS"}}) {
    const auto words = Srun({word, "true"});
    EXPECT_EQ(words.status().code(), Code::kInvalidArgument) << word;
    EXPECT_THAT(words.status().message(), AllOf(HasSubstr("has no counterpart in Slurm"), HasSubstr(way)));
  }
  EXPECT_THAT(Srun({"a", "\\:"}).status().message(), HasSubstr("argument ':'"));
  EXPECT_THAT(Srun({"-n1"}).status().message(), HasSubstr("no program"));
  EXPECT_THAT(Srun({"a", ":", "-n2"}).status().message(), HasSubstr("component 1"));
}

TEST(SlurmTranslation, AModuleThatIsNoPartitionNeedsJobSubmit) {
  const auto refused = Srun({"-m", "boster", "true"});
  EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.status().message(),
              AllOf(HasSubstr("did you mean 'booster'?"), HasSubstr("JobSubmitPlugins")));
  SlurmPlace place = kPlace;
  place.job_submit = true;
  EXPECT_THAT(*Srun({"-m", "gpu", "true"}, place), ElementsAre("srun", "--module=gpu", "true"));
  EXPECT_TRUE(HasJobSubmit("x\nJobSubmitPlugins        = require_timelimit, msa\nY = 1\n"));
  EXPECT_TRUE(HasJobSubmit("\nJobSubmitPlugins=lua"));
  EXPECT_FALSE(HasJobSubmit("\nJobSubmitPlugins        = (null)\n"));
  EXPECT_FALSE(HasJobSubmit("\nJobSubmitPlugins        = msax\nJobSubmit = msa"));
}

TEST(SlurmTranslation, AStepFindsItsComponentByTheModule) {
  SlurmPlace place = kPlace;
  place.job_partitions =
      PartitionsAround({"SLURM_JOB_ID=7", "SLURM_HET_SIZE=2", "SLURM_JOB_PARTITION_HET_GROUP_0=cluster",
                        "SLURM_JOB_PARTITION_HET_GROUP_1=booster"});
  EXPECT_THAT(place.job_partitions, ElementsAre("cluster", "booster"));
  EXPECT_THAT(*Srun({"-m", "cluster", "a", ":", "-m", "booster", "b"}, place),
              ElementsAre("srun", "--het-group=0", "a", ":", "--het-group=1", "b"));
  EXPECT_THAT(*Srun({"-m", "booster", "--het-group=1", "b"}, place),
              ElementsAre("srun", "--het-group=1", "b"));
  EXPECT_THAT(Srun({"-m", "dam", "b"}, place).status().message(),
              AllOf(HasSubstr("'dam'"), HasSubstr("cluster, booster")));
  place.job_partitions = PartitionsAround({"SLURM_JOB_ID=7", "SLURM_JOB_PARTITION=cluster"});
  EXPECT_THAT(*Srun({"-m", "cluster", "a"}, place), ElementsAre("srun", "a"));
  EXPECT_THAT(PartitionsAround({"SLURM_JOB_PARTITION=cluster"}), IsEmpty());
  EXPECT_THAT(PartitionsAround({"SLURM_JOB_ID=7", "SLURM_HET_SIZE=100000"}), IsEmpty());
}

TEST(SlurmTranslation, ASubmissionIsSbatchsWithTheLinesOfMsa) {
  const std::string script =
      "#!/bin/sh\n#SBATCH --output=x\n#MSA -m cluster -n 2 --oversubscribe\n#SBATCH hetjob\n#MSA -m "
      "booster\nsrun a\n#MSA -n 9\n";
  const auto words = Sbatch({"-n", "4", "--output", "none", "-A", "physics", "job.sh", "arg"}, script);
  ASSERT_TRUE(words.ok()) << words.status().message();
  EXPECT_THAT(*words, ElementsAre("sbatch", "--parsable", "--partition=cluster", "--ntasks=2", "--overcommit",
                                  "--ntasks=4", "--output=/dev/null", "--account=physics", ":",
                                  "--partition=booster"));
  const auto wrapped =
      Sbatch({"--wrap", "echo hi", "-d", "afterok:3", "-W", "--parsable", "-Q", "-a", "1-3"});
  EXPECT_THAT(*wrapped, ElementsAre("sbatch", "--parsable", "--wrap=echo hi", "--dependency=afterok:3",
                                    "--wait", "--quiet", "--array=1-3"));
}

TEST(SlurmTranslation, ASubmissionsErrorsNameTheLine) {
  EXPECT_THAT(Sbatch({"job.sh"}, "#!/bin/sh\n#MSA --ntsks=2\n").status().message(),
              AllOf(HasSubstr("job.sh:2"), HasSubstr("'--ntasks'")));
  EXPECT_THAT(Sbatch({"job.sh"}, "#!/bin/sh\n\n#MSA -m nope\n").status().message(),
              HasSubstr("job.sh:3: --module: 'nope'"));
  EXPECT_THAT(Sbatch({"--from", "f"}).status().message(), HasSubstr("no counterpart"));
  EXPECT_THAT(Sbatch({"--wrap=a", "job.sh"}).status().message(), HasSubstr("leave one of them out"));
}

TEST(SlurmTranslation, MsactlsOwnOptionsAreTakenOut) {
  TypedCall call;
  ASSERT_TRUE(ReadTypedRun({"--backend", "slurm", "--dir=/d", "-n2", "a", "--backend", "x"}, &call).ok());
  EXPECT_EQ(call.backend, "slurm");
  EXPECT_EQ(call.dir, "/d");
  EXPECT_EQ(call.components[0].size(), 1u);
  // What came before an error is known: the backend decides who words it.
  TypedCall broken;
  EXPECT_FALSE(ReadTypedSubmit({"--backend=slurm", "--nonsense"}, &broken).ok());
  EXPECT_EQ(broken.backend, "slurm");
}

TEST(SlurmTranslation, TheNumberOfAJobIsReadFromSbatch) {
  EXPECT_EQ(*SubmittedJob("4711"), 4711u);
  EXPECT_EQ(*SubmittedJob("4711;virtual\n"), 4711u);
  for (const char* text : {"", "Submitted batch job 4", "0", "4x"})
    EXPECT_EQ(SubmittedJob(text).status().code(), Code::kDataLoss) << text;
}

TEST(SlurmBackend, TheOptionGoesBeforeTheEnvironmentAndThatBeforeTheFile) {
  EXPECT_FALSE(ChooseBackend({})->slurm());
  EXPECT_TRUE(ChooseBackend({"", "", "slurm"})->slurm());
  EXPECT_FALSE(ChooseBackend({"", "msa", "slurm"})->slurm());
  EXPECT_TRUE(ChooseBackend({"slurm", "msa", "msa"})->slurm());
  EXPECT_TRUE(ChooseBackend({"auto", "auto", "slurm"})->slurm());
  EXPECT_FALSE(ChooseBackend({"auto", "", "auto"})->slurm());
  EXPECT_THAT(ChooseBackend({"", "slrum", ""}).status().message(), HasSubstr("MSA_BACKEND=slrum"));
}

TEST(SlurmBackend, AMissingCommandIsNamedWithTheRemedy) {
  const auto found = FindSlurmCommand({Backend::kSlurm, "--backend slurm"}, "no-such-squeue");
  EXPECT_EQ(found.status().code(), Code::kNotFound);
  EXPECT_THAT(
      found.status().message(),
      AllOf(HasSubstr("--backend slurm: 'no-such-squeue' was not found in PATH"), HasSubstr("slurm-client")));
}

TEST(SlurmBackend, ACommandsAnswerAndCodeArePassedOn) {
  const BackendChoice choice{Backend::kSlurm, "--backend slurm"};
  SlurmCall call;
  call.words = {"sh", "-c", "echo one; echo two; echo bad >&2; exit 5"};
  call.errors = Errors::kKept;
  std::string first;
  call.on_first_line = [&first](std::string_view line) {
    first = line;
    return Status::Ok();
  };
  const auto answer = RunSlurm(choice, call);
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_EQ(answer->exit_code, 5);
  EXPECT_EQ(answer->out, "one\ntwo\n");
  EXPECT_EQ(answer->err, "bad\n");
  EXPECT_EQ(first, "one");
  call.words = {"sh", "-c", "kill -TERM $$"};
  EXPECT_EQ(RunSlurm(choice, call)->exit_code, 143);
}

TEST(SlurmBackend, ListsAreAskedForWithoutTheUsersOwnFormats) {
  const Words env = {"PATH=/bin",      "SQUEUE_FORMAT=%i",   "SINFO_SORT=x", "SLURM_TIME_FORMAT=relative",
                     "SACCT_FORMAT=x", "SLURM_BITSTR_LEN=8", "SLURM_CONF=/c"};
  EXPECT_THAT(ListingEnvironment(env),
              ElementsAre("PATH=/bin", "SLURM_CONF=/c", "SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0"));
  EXPECT_THAT(ListingEnvironment(env, Times::kLocal),
              ElementsAre("PATH=/bin", "SLURM_CONF=/c", "SLURM_BITSTR_LEN=0"));
}

TEST(SlurmBackend, ACommandThatDoesNotAnswerIsEndedAfterTheGivenPatience) {
  const BackendChoice choice{.backend = Backend::kSlurm, .because = "test"};
  SlurmCall call;
  call.words = {"sh", "-c", "echo one; exec tail -f /dev/null"};
  call.patience = Millis(100);
  const auto answer = RunSlurm(choice, call);
  EXPECT_EQ(answer.status().code(), Code::kDeadlineExceeded);
  EXPECT_THAT(answer.status().message(), HasSubstr("'sh' has not answered within 100 ms"));
  call.patience = Millis(60'000);
  call.words = {"sh", "-c", "echo one"};
  EXPECT_EQ(RunSlurm(choice, call)->out, "one\n");
}

TEST(SlurmBackend, TheClustersNameIsThatOfItsConfiguration) {
  EXPECT_EQ(
      ClusterName(
          "Configuration data as of x\nBatchStartTimeout = 10 sec\nClusterName             = vc \nCore"),
      "vc");
  EXPECT_EQ(ClusterName("nothing"), "");
}

// Of a node in two partitions, one that is drained, and one that only msa knows.
TEST(SlurmNodes, AreCountedByPartitionAndJoinedWithMsas) {
  const Words cn0 = {"cn0", "cluster", "mixed",           "1/3/0/4", "24105",   "0.50",     "1",
                     "4",   "1",       "gpu:a100:2(S:0)", "up",      "Unknown", "infinite", "none"};
  Words also = cn0;
  also[1] = "all";
  Words bn0 = {"bn0", "booster", "idle+drain", "0/8/0/8", "1000",    "N/A",        "1",
               "8",   "1",       "(null)",     "up",      "Unknown", "1-00:00:00", "disk, bad"};
  Words bn1 = bn0;
  bn1[0] = "bn1";
  bn1[2] = "down*";
  SlurmRow row;
  row.leader = 7;
  row.state = "RUNNING";
  row.node_list = {"cn0", "elsewhere"};
  SlurmRow waits = row;
  waits.leader = 8;
  waits.state = "PENDING";
  MsaNodes msa{.answers = true};
  msa.nodes.resize(2);
  msa.nodes[0].name = "cn0";
  msa.nodes[0].module = "cluster";
  msa.nodes[0].state = NodeState::kDown;
  msa.nodes[1].name = "nam0";
  msa.modules.resize(2);
  msa.modules[0].name = "cluster";
  msa.modules[0].kind = "cluster";
  msa.modules[0].id = 3;
  msa.modules[1].name = "nam";
  const auto says = ReadSlurmNodes({also, cn0, bn0, bn1}, {row, waits, row}, msa);
  ASSERT_TRUE(says.ok()) << says.status().message();
  ASSERT_EQ(says->nodes.size(), 4u);
  const NodeInfo& node = says->nodes[0];
  EXPECT_EQ(node.module, "cluster");
  EXPECT_THAT(node.slurm->partitions, ElementsAre("all", "cluster"));
  EXPECT_EQ(node.slurm->msa, "DOWN");
  EXPECT_EQ(node.state, NodeState::kUp);
  EXPECT_EQ(node.cores, 4u);
  EXPECT_EQ(node.cores_used, 1u);
  EXPECT_EQ(node.gpus, 2u);
  EXPECT_EQ(node.memory_bytes, std::uint64_t{24105} << 20);
  EXPECT_THAT(node.jobs, ElementsAre(7));
  EXPECT_TRUE(says->nodes[1].drained);
  EXPECT_EQ(says->nodes[1].reason, "disk, bad");
  EXPECT_EQ(says->nodes[2].state, NodeState::kDown);
  EXPECT_EQ(says->nodes[3].slurm->state, "");
  ASSERT_EQ(says->modules.size(), 4u);
  EXPECT_EQ(says->modules[1].id, 3u);
  EXPECT_EQ(says->modules[2].nodes, 2u);
  EXPECT_EQ(says->modules[2].nodes_up, 0u);
  EXPECT_EQ(says->modules[2].slurm->time_limit_s, 86400u);
  EXPECT_FALSE(says->modules[2].slurm->known_to_msa);
  EXPECT_EQ(says->modules[3].name, "nam");
  EXPECT_EQ(ReadSlurmNodes({{"cn0"}}, {}, {}).status().code(), Code::kDataLoss);
}

}  // namespace
}  // namespace msa::cli
