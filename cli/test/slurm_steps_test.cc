#include "backend/slurm_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/accounting.h"
#include "backend/records.h"
#include "backend/shown_record.h"
#include "output/job_texts.h"

namespace msa::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

TEST(SlurmSteps, ThoseOfSrunAreToldFromScriptsAndWhatSlurmKeepsForItself) {
  const auto steps = ReadSlurmSteps({{"10.batch", "cn1", "batch"},
                                     {"10.extern", "cn1", "extern"},
                                     {"10.interactive", "cn1", "interactive"},
                                     {"10.0", "cn1", "two words"},
                                     {"14_1.12", "cn[0-1]", "io"}});
  ASSERT_TRUE(steps.ok()) << steps.status().message();
  const std::vector<SlurmStep> mine = StepsOfSrun(*steps);
  ASSERT_EQ(mine.size(), 2u);
  EXPECT_THAT(mine[1].node_list, ElementsAre("cn0", "cn1"));
  EXPECT_EQ(ListSteps(mine), "10.0 (two words, cn1); 14_1.12 (io, cn[0-1])");
  EXPECT_THAT(StepsOfSrun(*steps, "14_1"), SizeIs(1));
  EXPECT_THAT(StepsOfSrun(*steps, "14_2"), IsEmpty());
  EXPECT_THAT(StepsOfSrun(*steps, "10"), SizeIs(2)) << "no task of an array: Slurm has chosen";
  EXPECT_THAT(ListSteps(std::vector<SlurmStep>(12, mine[0])), HasSubstr("; and 2 more"));
  EXPECT_EQ(ReadSlurmSteps({{"10", "cn1", "x"}}).status().code(), Code::kDataLoss);
  EXPECT_EQ(ReadSlurmSteps({{"10.0"}}).status().code(), Code::kDataLoss);
}

// As sacct 22.05.8 has told of these jobs, by the names of its fields.
std::vector<std::string> Told(const std::vector<std::pair<std::string, std::string>>& given) {
  const std::vector<std::pair<std::string, std::string>> usual = {
      {"State", "COMPLETED"},   {"ExitCode", "0:0"},
      {"User", "ada"},          {"UID", "1000"},
      {"Partition", "cluster"}, {"Account", "a1"},
      {"QOS", "normal"},        {"Reason", "None"},
      {"Submit", "1795361329"}, {"Start", "1795361330"},
      {"End", "1795361333"},    {"TimelimitRaw", "525600"},
      {"NNodes", "1"},          {"AllocCPUS", "1"},
      {"NodeList", "cn1"},      {"Priority", "4294901758"},
      {"WorkDir", "/home/ada"}, {"SubmitLine", "sbatch --parsable het1.sh"},
      {"JobName", "het1.sh"}};
  std::vector<std::string> out;
  for (const std::string_view field : SacctFields()) {
    std::string value;
    for (const auto& [name, text] : usual)
      if (name == field) value = text;
    for (const auto& [name, text] : given)
      if (name == field) value = text;
    out.push_back(std::move(value));
  }
  return out;
}

TEST(SlurmAccounting, ItsJobsFoldAsThoseOfTheQueue) {
  const auto rows =
      ReadSacct({Told({{"JobID", "1"},
                       {"JobIDRaw", "1"},
                       {"State", "FAILED"},
                       {"ExitCode", "3:0"},
                       {"JobName", "a|b\nc"}}),
                 Told({{"JobID", "2+0"}, {"JobIDRaw", "2"}, {"State", "CANCELLED by 65534"}}),
                 Told({{"JobID", "2+1"},
                       {"JobIDRaw", "3"},
                       {"State", "CANCELLED by 65534"},
                       {"Partition", "booster"},
                       {"ExitCode", "0:15"},
                       {"NodeList", "bn0"}}),
                 Told({{"JobID", "4_2"}, {"JobIDRaw", "4"}, {"SubmitLine", "/usr/bin/sbatch --array=1-2"}}),
                 Told({{"JobID", "6"}, {"JobIDRaw", "6"}, {"SubmitLine", "srun -n2 true"}}),
                 Told({{"JobID", "9"},
                       {"JobIDRaw", "9"},
                       {"State", "CANCELLED by 0"},
                       {"Start", "Unknown"},
                       {"NodeList", "None assigned"},
                       {"TimelimitRaw", "Partition_Limit"}})});
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  const auto jobs = FoldJobs(*rows, Companions::kRows);
  ASSERT_EQ(jobs.size(), 5u);
  EXPECT_EQ(jobs[0].name, "a|b\nc");
  EXPECT_EQ(jobs[0].exit_code, 3);
  EXPECT_EQ(jobs[0].state, JobState::kFailed);
  EXPECT_EQ(jobs[0].ended_at_ms, 1795361333000);
  EXPECT_EQ(jobs[0].mode, wire::JobMode::kBatch);
  EXPECT_EQ(jobs[1].state, JobState::kCancelled);
  EXPECT_EQ(jobs[1].exit_code, 143);
  EXPECT_THAT(jobs[1].modules, ElementsAre("cluster", "booster"));
  EXPECT_EQ(jobs[1].time_limit_s, 525600u * 60);
  EXPECT_EQ(jobs[2].slurm->label, "4_2");
  EXPECT_EQ(jobs[2].mode, wire::JobMode::kBatch);
  EXPECT_EQ(jobs[3].mode, wire::JobMode::kAlloc);
  EXPECT_EQ(jobs[4].started_at_ms, 0);
  EXPECT_THAT(jobs[4].allocations, IsEmpty());
  EXPECT_EQ(jobs[4].time_limit_s, 0u);
  const std::string table = Render(HistoryListing(jobs), {});
  EXPECT_THAT(table, AllOf(HasSubstr("\n4_2  "), HasSubstr("cluster,booster")));
  EXPECT_EQ(ReadSacct({Told({{"JobID", "x"}})}).status().code(), Code::kDataLoss);
  EXPECT_EQ(ReadSacct({{"1", "2"}}).status().code(), Code::kDataLoss);
}

TEST(SlurmAccounting, ItsRecordsAreReadWithTheMarkOfTheCall) {
  const RecordFormat format("ab");
  const std::string mark = format.delimiter();
  EXPECT_EQ(mark,
            "\x1f"
            "ab\x1f");
  const auto records = format.ReadParsable("1" + mark + "a|b\nc" + mark + "\n2" + mark + mark + "\n", 2);
  ASSERT_TRUE(records.ok()) << records.status().message();
  EXPECT_THAT(*records, ElementsAre(ElementsAre("1", "a|b\nc"), ElementsAre("2", "")));
  EXPECT_THAT(*format.ReadParsable("", 2), IsEmpty());
  for (const std::string& text : {std::string("hello\n"), "1" + mark + "x", "1" + mark + "x" + mark,
                                  "1" + mark + "x" + mark + "y" + mark + "\n"}) {
    const auto broken = format.ReadParsable(text, 2);
    EXPECT_EQ(broken.status().code(), Code::kDataLoss) << text;
    EXPECT_THAT(broken.status().message(), HasSubstr("record 1 "));
  }
}

TEST(SlurmAccounting, IsMissedByItsOwnWordsAndAskedFromATimeThatItTakes) {
  EXPECT_TRUE(SaysNoAccounting("Slurm accounting storage is disabled\n"));
  EXPECT_FALSE(SaysNoAccounting("sacct: error: slurm_persist_conn_open_without_init: failed to open"));
  EXPECT_THAT(SacctTime(0), HasSubstr("1970-01-0"));
  EXPECT_NE(SacctTime(0), "1970-01-01T00:00:00");
  EXPECT_THAT(SacctTime(1795361329000), testing::MatchesRegex("2026-11-2[123]T[0-9][0-9]:[0-9][0-9]:49"));
}

TEST(SlurmShown, ANodesLinesArePairsInSlurmsOrder) {
  const ShownPairs pairs = ReadShownRecord(
      "NodeName=bn1 Arch=x86_64 CoresPerSocket=8 \n"
      "   CPUAlloc=0 CPUEfctv=8 CPUTot=8 CPULoad=2.64\n"
      "   Gres=(null)\n"
      "   OS=Linux 6.1.0-18-amd64 #1 SMP PREEMPT_DYNAMIC Debian=6 \n"
      "   State=IDLE+DRAIN ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A\n"
      "   AllocTRES=\n"
      "   CfgTRES=cpu=8,mem=24105M,billing=8\n"
      "   ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s\n"
      "   Reason=new disk State=UP [root@2026-11-22T11:59:18]\n\n");
  EXPECT_THAT(pairs, ElementsAre(Pair("NodeName", "bn1"), Pair("Arch", "x86_64"), Pair("CoresPerSocket", "8"),
                                 Pair("CPUAlloc", "0"), Pair("CPUEfctv", "8"), Pair("CPUTot", "8"),
                                 Pair("CPULoad", "2.64"),
                                 Pair("OS", "Linux 6.1.0-18-amd64 #1 SMP PREEMPT_DYNAMIC Debian=6"),
                                 Pair("State", "IDLE+DRAIN"), Pair("ThreadsPerCore", "1"),
                                 Pair("TmpDisk", "0"), Pair("Weight", "1"),
                                 Pair("CfgTRES", "cpu=8,mem=24105M,billing=8"), Pair("ExtSensorsWatts", "0"),
                                 Pair("Reason", "new disk State=UP [root@2026-11-22T11:59:18]")));
}

TEST(SlurmShown, APartitionsToo) {
  const ShownPairs pairs = ReadShownRecord(
      "PartitionName=booster\n   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL\n"
      "   AllocNodes=ALL Default=NO QoS=N/A\n   DefaultTime=NONE DisableRootJobs=NO\n   Nodes=bn[0-1]\n");
  EXPECT_THAT(pairs,
              ElementsAre(Pair("PartitionName", "booster"), Pair("AllowGroups", "ALL"),
                          Pair("AllowAccounts", "ALL"), Pair("AllowQos", "ALL"), Pair("AllocNodes", "ALL"),
                          Pair("Default", "NO"), Pair("DisableRootJobs", "NO"), Pair("Nodes", "bn[0-1]")));
  EXPECT_THAT(ReadShownRecord("Partition nix not found"), IsEmpty());
  EXPECT_THAT(ReadShownRecord(""), IsEmpty());
}

TEST(SlurmShown, DetailsTellWhatSlurmAndMsaSayAndNothingOfANodeThatOneOfThemHasNot) {
  NodeInfo node;
  node.name = "bn1";
  node.module = "booster";
  node.state = NodeState::kUp;
  node.slurm = SlurmNodeFacts{
      .state = "idle", .partitions = {"booster", "all"}, .msa = "", .shown = {{"Weight", "1"}}};
  const std::string slurm_alone = *Render(NodeDetails(node, 0), {});
  EXPECT_THAT(slurm_alone, AllOf(HasSubstr("booster, all"), HasSubstr("not known"), HasSubstr("Weight = 1"),
                                 Not(HasSubstr("(id 0)")), Not(HasSubstr("warm job daemons"))));
  node.slurm = SlurmNodeFacts{.state = "", .partitions = {}, .msa = "UP"};
  node.module_id = 3;
  EXPECT_THAT(*Render(NodeDetails(node, 0), {}),
              AllOf(HasSubstr("no such node"), HasSubstr("(id 3)"), HasSubstr("warm job daemons")));
  ModuleInfo module;
  module.name = "booster";
  module.slurm =
      SlurmModuleFacts{.partition_state = "up", .time_limit_s = 600, .shown = {{"Nodes", "bn[0-1]"}}};
  EXPECT_THAT(
      *Render(ModuleDetails(module, {node}), {}),
      AllOf(HasSubstr("not known to msa"), HasSubstr("up, time limit 10:00"), HasSubstr("Nodes = bn[0-1]")));
  const std::string json = *Render(ModuleDetails(module, {}), {.format = Format::kJson});
  EXPECT_THAT(json, HasSubstr("\"shown\""));
}

}  // namespace
}  // namespace msa::cli
