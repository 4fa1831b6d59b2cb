#include "backend/slurm_jobs.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/job_detail.h"
#include "backend/records.h"
#include "output/job_texts.h"

namespace msa::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// A record of squeue's with what a test does not name left as Slurm has it for a plain job.
std::vector<std::string> Record(const std::vector<std::pair<std::string, std::string>>& given) {
  const std::vector<std::pair<std::string, std::string>> usual = {
      {"HetJobID", "N/A"},        {"HetJobOffset", "N/A"},  {"ArrayTaskID", "N/A"},   {"State", "RUNNING"},
      {"UserName", "ada"},        {"UserID", "1000"},       {"Partition", "cluster"}, {"Account", "(null)"},
      {"Reason", "None"},         {"SubmitTime", "100"},    {"StartTime", "110"},     {"EndTime", "NONE"},
      {"TimeLimit", "UNLIMITED"}, {"NumNodes", "1"},        {"NumTasks", "1"},        {"BatchFlag", "1"},
      {"Comment", "(null)"},      {"Dependency", "(null)"}, {"exit_code", "0"}};
  std::vector<std::string> out;
  for (const std::string_view field : SlurmJobFields()) {
    std::string value;
    for (const auto& [name, text] : usual)
      if (name == field) value = text;
    for (const auto& [name, text] : given)
      if (name == field) value = text;
    out.push_back(std::move(value));
  }
  return out;
}

std::vector<SlurmRow> Rows(const std::vector<std::vector<std::string>>& records) {
  const auto rows = ReadSlurmRows(records);
  EXPECT_TRUE(rows.ok()) << rows.status().message();
  return rows.ok() ? *rows : std::vector<SlurmRow>();
}

TEST(SlurmRecords, KeepFieldsApartThatHoldBlanksAndNewlines) {
  const RecordFormat format("ab12");
  const std::string_view fields[] = {"JobID", "Name"};
  EXPECT_EQ(format.Ask(fields),
            "JobID:\x1f"
            "ab12\x1f,Name:\x1f"
            "ab12\x1e");
  const auto records = format.Read(
      "1\x1f"
      "ab12\x1fwe ird\n2|x\x1f\x1f"
      "ab12\x1e\n2\x1f"
      "ab12\x1f\x1f"
      "ab12\x1e\n",
      2);
  ASSERT_TRUE(records.ok()) << records.status().message();
  EXPECT_THAT(*records, ElementsAre(ElementsAre("1", "we ird\n2|x\x1f"), ElementsAre("2", "")));
  EXPECT_THAT(*format.Read("", 2), IsEmpty());
}

TEST(SlurmRecords, AreNotForgedByTheMarksOfAnotherCall) {
  const std::string forged =
      std::string("1\x1f") + "cd\x1fx\x1f" + "ab\x1e\n99\x1f" + "ab\x1f" + "me\x1f" + "cd\x1e\n";
  const auto records = RecordFormat("cd").Read(forged, 2);
  ASSERT_TRUE(records.ok());
  ASSERT_EQ(records->size(), 1u);
  EXPECT_EQ((*records)[0][0], "1");
}

TEST(SlurmRecords, RefuseATextThatIsCutOffOrNotSlurms) {
  const RecordFormat format("ab");
  for (const std::string& text : {std::string("hello\n"),
                                  std::string("1\x1f"
                                              "ab\x1fx"),
                                  std::string("1\x1f"
                                              "ab\x1e\n"),
                                  std::string("1\x1f"
                                              "ab\x1fx\x1f"
                                              "ab\x1e"
                                              "2")}) {
    const auto records = format.Read(text, 2);
    EXPECT_EQ(records.status().code(), Code::kDataLoss) << text;
    EXPECT_THAT(records.status().message(), HasSubstr("record 1 "));
  }
}

TEST(SlurmRecords, ReadSlurmsNumbersTimesAndNodes) {
  EXPECT_EQ(SlurmNumber("4K"), 4096u);
  EXPECT_EQ(SlurmNumber("2-4"), 2u);
  EXPECT_EQ(SlurmNumber("N/A"), 0u);
  EXPECT_EQ(SlurmNumber("18446744073709551615T"), 0u);
  EXPECT_EQ(SlurmTime("1795346343"), 1795346343000);
  EXPECT_EQ(SlurmTime("Unknown"), 0);
  EXPECT_EQ(SlurmTime("99999999999999"), 0);
  EXPECT_THAT(NodesOfList("cn[0-1],dn0"), ElementsAre("cn0", "cn1", "dn0"));
  EXPECT_THAT(NodesOfList("(null)"), IsEmpty());
  EXPECT_THAT(NodesOfList("cn[0-"), ElementsAre("cn[0-"));
}

TEST(SlurmJobs, AHeterogeneousJobIsOneJobWithComponents) {
  const auto rows = Rows({Record({{"JobID", "8"},
                                  {"HetJobID", "7"},
                                  {"HetJobOffset", "1"},
                                  {"Partition", "booster"},
                                  {"NodeList", "bn[0-1]"},
                                  {"NumNodes", "2"},
                                  {"NumTasks", "4"},
                                  {"StartTime", "120"}}),
                          Record({{"JobID", "7"},
                                  {"HetJobID", "7"},
                                  {"HetJobOffset", "0"},
                                  {"NodeList", "cn0"},
                                  {"NumTasks", "3"},
                                  {"BatchHost", "cn0"}})});
  const auto jobs = FoldJobs(rows, Companions::kFolded);
  ASSERT_EQ(jobs.size(), 1u);
  const JobInfo& job = jobs[0];
  EXPECT_EQ(job.id, JobId(7));
  EXPECT_THAT(job.modules, ElementsAre("cluster", "booster"));
  EXPECT_EQ(job.nodes, 3u);
  EXPECT_EQ(job.tasks, 7u);
  EXPECT_EQ(job.head_node, "cn0");
  EXPECT_EQ(job.started_at_ms, 120'000);
  ASSERT_EQ(job.slurm->components.size(), 2u);
  EXPECT_EQ(job.slurm->components[1].job, 8u);
  ASSERT_EQ(job.allocations.size(), 3u);
  EXPECT_EQ(job.allocations[1].node, "bn0");
  EXPECT_EQ(job.allocations[1].component, 1u);
  // Its components are found by their own numbers too.
  EXPECT_EQ(JobsNamed(jobs, *ParseSlurmJob("8")).size(), 1u);
  EXPECT_EQ(JobsNamed(jobs, *ParseSlurmJob("7+1")).size(), 1u);
}

const std::vector<std::pair<std::string, std::string>> kParent = {{"JobID", "7"}, {"Name", "coupled"}};
std::vector<std::pair<std::string, std::string>> Companion(const std::string& id,
                                                           const std::string& request) {
  return {{"JobID", id},
          {"Name", "msa:7." + request},
          {"Partition", "booster"},
          {"NodeList", "bn0"},
          {"Comment", "msa parent=7 restart=0 request=" + request}};
}

TEST(SlurmJobs, ACompanionIsShownWithItsParent) {
  const auto rows = Rows(
      {Record(Companion("9", "2")), Record(kParent), Record(Companion("10", "1")), Record({{"JobID", "8"}})});
  const auto folded = FoldJobs(rows, Companions::kFolded);
  ASSERT_EQ(folded.size(), 2u);
  ASSERT_EQ(folded[0].slurm->companions.size(), 2u);
  EXPECT_EQ(folded[0].slurm->companions[0].job, 10u);
  EXPECT_EQ(folded[0].slurm->companions[1].request, 2u);
  const auto all = FoldJobs(rows, Companions::kRows);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[1].slurm->companion_of, 7u);
  EXPECT_EQ(all[3].id, JobId(8));
  const std::string table = Render(JobListing(folded, 0), {});
  EXPECT_THAT(table, HasSubstr("companion 10: booster bn0; companion 9: booster bn0"));
}

TEST(SlurmJobs, AJobIsNoCompanionByItsNameAloneOrOfAnothersJob) {
  auto name_alone = Companion("9", "1");
  name_alone.back().second = "mine";
  auto other_request = Companion("10", "1");
  other_request.back().second = "msa parent=7 restart=0 request=2";
  auto other_user = Companion("11", "3");
  other_user.push_back({"UserID", "1001"});
  const auto jobs =
      FoldJobs(Rows({Record(kParent), Record(name_alone), Record(other_request), Record(other_user)}),
               Companions::kFolded);
  EXPECT_EQ(jobs.size(), 4u);
  EXPECT_THAT(jobs[0].slurm->companions, IsEmpty());
  // One that is left over when its parent is gone is a job like any other.
  EXPECT_EQ(FoldJobs(Rows({Record(Companion("9", "1"))}), Companions::kFolded).size(), 1u);
}

TEST(SlurmJobs, TasksOfAnArrayAreJobsWithSlurmsName) {
  const auto rows = Rows({Record({{"JobID", "6"}, {"ArrayJobID", "4"}, {"ArrayTaskID", "1"}}),
                          Record({{"JobID", "4"},
                                  {"ArrayJobID", "4"},
                                  {"ArrayTaskID", "2-9%2"},
                                  {"State", "PENDING"},
                                  {"Reason", "Priority"}})});
  const auto jobs = FoldJobs(rows, Companions::kFolded);
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].slurm->label, "4_[2-9%2]");
  EXPECT_EQ(jobs[1].slurm->label, "4_1");
  EXPECT_EQ(JobsNamed(jobs, *ParseSlurmJob("4")).size(), 2u);
  ASSERT_EQ(JobsNamed(jobs, *ParseSlurmJob("4_1")).size(), 1u);
  EXPECT_EQ(JobsNamed(jobs, *ParseSlurmJob("4_1"))[0].id, JobId(6));
  ASSERT_EQ(JobsNamed(jobs, *ParseSlurmJob("4_9")).size(), 1u);
  EXPECT_EQ(JobsNamed(jobs, *ParseSlurmJob("4_9"))[0].id, JobId(4));
  EXPECT_THAT(JobsNamed(jobs, *ParseSlurmJob("4_10")), IsEmpty());
  // As the listing has it.
  ASSERT_EQ(JobsNamed(jobs, *ParseSlurmJob("4_[2-9%2]")).size(), 1u);
  EXPECT_EQ(JobsNamed(jobs, *ParseSlurmJob("4_[2-9%2]"))[0].id, JobId(4));
  EXPECT_EQ(ScancelName(jobs[0]), "4_[2-9]");
  EXPECT_EQ(ScancelName(jobs[1]), "4_1");
  EXPECT_THAT(JobsNamed(jobs, *ParseSlurmJob("4_[2-3]")), IsEmpty()) << "others would be meant, too";
  EXPECT_THAT(JobsNamed(jobs, *ParseSlurmJob("5")), IsEmpty());
}

TEST(SlurmJobs, ATaskIsFoundInALongListAndByItsStep) {
  std::string list = "1-9:4";
  for (int task = 20; task < 200; task += 3) list += fmt::format(",{}", task);
  const auto jobs = FoldJobs(Rows({Record({{"JobID", "4"},
                                           {"ArrayJobID", "4"},
                                           {"ArrayTaskID", list + "%2"},
                                           {"State", "PENDING"},
                                           {"Reason", "Priority"}})}),
                             Companions::kFolded);
  ASSERT_EQ(jobs.size(), 1u);
  for (const char* task : {"4_1", "4_5", "4_9", "4_20", "4_197"})
    EXPECT_EQ(JobsNamed(jobs, *ParseSlurmJob(task)).size(), 1u) << task;
  for (const char* task : {"4_0", "4_2", "4_4", "4_13", "4_21", "4_199"})
    EXPECT_THAT(JobsNamed(jobs, *ParseSlurmJob(task)), IsEmpty()) << task;
  // In a line it is as short as squeue's.
  EXPECT_THAT(jobs[0].slurm->label, AllOf(StartsWith("4_[1-9:4,20,"), EndsWith(",...%2]")));
  EXPECT_LE(jobs[0].slurm->label.size(), 72u);
  EXPECT_EQ(JobsNamed(jobs, *ParseSlurmJob(jobs[0].slurm->label)).size(), 1u);
  EXPECT_EQ(ScancelName(jobs[0]), fmt::format("4_[1,5,9{}]", list.substr(list.find(','))));
}

TEST(SlurmJobs, EndsAndCodesAreThoseOfMsa) {
  const auto jobs = FoldJobs(
      Rows({Record({{"JobID", "1"},
                    {"State", "FAILED"},
                    {"NodeList", "cn0"},
                    {"exit_code", "768"},
                    {"EndTime", "200"},
                    {"Reason", "NonZeroExitCode"}}),
            Record({{"JobID", "2"}, {"State", "CANCELLED"}, {"exit_code", "15"}}),
            Record({{"JobID", "3"}, {"State", "PENDING"}, {"StartTime", "300"}, {"Reason", "Resources"}}),
            Record({{"JobID", "4"}, {"State", "RUNNING"}, {"EndTime", "400"}, {"TimeLimit", "1-00:00:10"}})}),
      Companions::kFolded);
  ASSERT_EQ(jobs.size(), 4u);
  EXPECT_EQ(jobs[0].exit_code, 3);
  EXPECT_EQ(jobs[0].ended_at_ms, 200'000);
  EXPECT_EQ(jobs[0].exit_message, "NonZeroExitCode");
  EXPECT_EQ(jobs[1].exit_code, 143);
  EXPECT_EQ(jobs[2].expected_start_ms, 300'000);
  EXPECT_EQ(jobs[2].started_at_ms, 0);
  EXPECT_EQ(jobs[2].reason, "Resources");
  EXPECT_EQ(jobs[3].ended_at_ms, 0);
  EXPECT_EQ(jobs[3].slurm->expected_end_ms, 400'000);
  EXPECT_EQ(jobs[3].time_limit_s, 86410u);
}

TEST(SlurmJobs, OfThoseThatHaveEndedExactlySoManyAreLeft) {
  std::vector<std::vector<std::string>> records = {Record({{"JobID", "1"}})};
  for (const char* job : {"2", "3", "4", "5"})
    records.push_back(
        Record({{"JobID", job}, {"State", "COMPLETED"}, {"NodeList", "cn0"}, {"EndTime", "200"}}));
  records.push_back(
      Record({{"JobID", "6"}, {"State", "COMPLETED"}, {"NodeList", "cn0"}, {"EndTime", "100"}}));
  const auto left = [&](std::size_t most) {
    auto jobs = FoldJobs(Rows(records), Companions::kFolded);
    LimitEnded(jobs, most);
    std::vector<std::uint64_t> out;
    for (const JobInfo& job : jobs) out.push_back(job.id.value);
    return out;
  };
  EXPECT_THAT(left(2), ElementsAre(1, 4, 5)) << "ended in one second";
  EXPECT_THAT(left(4), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(left(5), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(left(0), ElementsAre(1));
}

TEST(SlurmJobs, OneThatWasCancelledInTheQueueHasNoReasonAndNoStart) {
  const auto jobs = FoldJobs(Rows({Record({{"JobID", "1"},
                                           {"State", "CANCELLED"},
                                           {"Reason", "Priority"},
                                           {"NumTasks", "4294967294"},
                                           {"EndTime", "110"}})}),
                             Companions::kFolded);
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].reason + jobs[0].exit_message, "");
  EXPECT_EQ(jobs[0].started_at_ms, 0);
  EXPECT_EQ(jobs[0].tasks, 0u);
}

TEST(SlurmJobs, ANameMeansAllOfAJobOrTheOneComponentThatItNames) {
  const auto jobs = FoldJobs(
      Rows({Record({{"JobID", "7"}, {"HetJobID", "7"}, {"HetJobOffset", "0"}}),
            Record({{"JobID", "8"}, {"HetJobID", "7"}, {"HetJobOffset", "1"}, {"Partition", "booster"}}),
            Record({{"JobID", "12"}, {"ArrayJobID", "11"}, {"ArrayTaskID", "3"}})}),
      Companions::kRows);
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_THAT(PartsNamed(jobs[0], *ParseSlurmJob("7")), ElementsAre(7, 8));
  EXPECT_THAT(PartsNamed(jobs[0], *ParseSlurmJob("8")), ElementsAre(8));
  EXPECT_THAT(PartsNamed(jobs[0], *ParseSlurmJob("7+0")), ElementsAre(7));
  EXPECT_THAT(PartsNamed(jobs[0], *ParseSlurmJob("7+1")), ElementsAre(8));
  EXPECT_THAT(PartsNamed(jobs[0], *ParseSlurmJob("7+2")), IsEmpty());
  EXPECT_THAT(PartsNamed(jobs[1], *ParseSlurmJob("11_3")), ElementsAre(12));
  EXPECT_THAT(PartsNamed(jobs[1], *ParseSlurmJob("12")), ElementsAre(12));
}

TEST(SlurmJobs, RefusesWordsThatAreNoJob) {
  for (const char* word : {"", "x", "0", "7_", "7+x", "7_1_2", "7_[]", "7+[1]", "7_[x]", "7_[1-2", "7_[1]2",
                           "7_99999999999999999999", "-7", "99999999999999999999"})
    EXPECT_EQ(ParseSlurmJob(word).status().code(), Code::kInvalidArgument) << word;
  EXPECT_EQ(ReadSlurmRows({Record({{"JobID", "x"}})}).status().code(), Code::kDataLoss);
  EXPECT_EQ(ReadSlurmRows({{"1", "2"}}).status().code(), Code::kDataLoss);
}

TEST(SlurmJobDetail, NamesOfFilesAreThoseThatABatchScriptWrites) {
  JobInfo job;
  job.id = JobId(26);
  job.head_node = "cn0";
  EXPECT_EQ(BatchFile("/d/a b%N-%t-%s-%J-wrap-%n.o", job), "/d/a bcn0-0-batch-26-wrap-0.o");
  EXPECT_EQ(BatchFile("/d/100%", job), "/d/100%");
  EXPECT_EQ(BatchFile("/d/%x%q", job), "/d/%x%q");
}

TEST(SlurmJobDetail, TellsCoresByNodeAndFiles) {
  auto rows = Rows({Record({{"JobID", "7"}, {"Name", "a JobName=b\nCPU_IDs=9"}})});
  const std::string text =
      "JobId=7 HetJobId=7 JobName=a JobName=b\nCPU_IDs=9 HetJobIdSet=7-8 UserId=ada(1000) JOB_GRES=(null)   "
      "Nodes=cn[0-1] "
      "CPU_IDs=0-1,3 "
      "Mem=0 GRES=   Nodes=bn0 CPU_IDs=2 Mem=0 GRES= MinCPUsNode=1 Command=/x WorkDir=/a  StdErr=/my dir/e "
      "StdIn=/dev/null "
      "StdOut=/o Power= \n";
  const JobDetail detail = ReadJobDetail(text, rows[0]);
  EXPECT_EQ(detail.cores.size(), 3u);
  EXPECT_THAT(detail.cores.at("cn1"), ElementsAre(0, 1, 3));
  EXPECT_THAT(detail.cores.at("bn0"), ElementsAre(2));
  EXPECT_EQ(detail.err, "/my dir/e");
  EXPECT_EQ(detail.out, "/o");
  rows[0].name = "other";
  EXPECT_THAT(ReadJobDetail(text, rows[0]).cores, IsEmpty());
  EXPECT_THAT(ReadCoreList("4-2,x,70000,0-99999999"), IsEmpty());
}

}  // namespace
}  // namespace msa::cli
