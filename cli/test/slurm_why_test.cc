#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/why.h"

namespace msa::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

JobInfo Job(std::uint64_t id, JobState state, const std::string& reason) {
  JobInfo out;
  out.id = JobId(id);
  out.uid = 1000;
  out.state = state;
  out.reason = reason;
  out.modules = {"booster"};
  out.slurm =
      SlurmJobFacts{.label = fmt::format("{}", id), .state = "PENDING", .account = "physics", .qos = "fast"};
  out.slurm->components.push_back({.job = id, .partition = "booster", .state = "PENDING", .reason = reason});
  return out;
}
JobInfo Waiting(std::uint64_t id, const std::string& reason) { return Job(id, JobState::kPending, reason); }
JobInfo Running(std::uint64_t id, std::int64_t until_ms) {
  JobInfo out = Job(id, JobState::kRunning, "");
  out.slurm->state = "RUNNING";
  out.slurm->expected_end_ms = until_ms;
  return out;
}

auto Ids(std::initializer_list<std::uint64_t> ids) {
  std::vector<testing::Matcher<Blocker>> out;
  for (const std::uint64_t id : ids) out.push_back(Field(&Blocker::job, id));
  return testing::ElementsAreArray(out);
}

TEST(SlurmWhy, ResourcesAreHeldByJobsOfTheSamePartitionTheFirstToEndFirst) {
  JobInfo elsewhere = Running(3, 50);
  elsewhere.modules = {"cluster"};
  const JobInfo job = Waiting(9, "Resources");
  const Why why = ExplainSlurm(job, {Running(1, 0), Running(2, 100), elsewhere, Waiting(4, "Priority"), job});
  EXPECT_THAT(why.explanation, HasSubstr("'booster' are in use"));
  EXPECT_THAT(why.blocked_by, Ids({2, 1}));
  EXPECT_THAT(why.blocked_by[1].how, HasSubstr("without a limit"));
}

TEST(SlurmWhy, PriorityNamesTheJobsThatComeFirst) {
  JobInfo job = Waiting(9, "Priority");
  job.slurm->priority = 10;
  JobInfo first = Waiting(5, "Resources");
  first.slurm->priority = 30;
  JobInfo second = Waiting(4, "Priority");
  second.slurm->priority = 20;
  JobInfo later = Waiting(3, "Priority");
  later.slurm->priority = 5;
  const Why why = ExplainSlurm(job, {later, second, first, job, Running(1, 0)});
  EXPECT_THAT(why.blocked_by, Ids({5, 4}));
  EXPECT_THAT(why.remedy, HasSubstr("--time"));
}

TEST(SlurmWhy, ADependencyNamesItsJobs) {
  JobInfo job = Waiting(9, "Dependency");
  job.slurm->dependency = "afterok:3(unfulfilled),afterany:4_*(unfulfilled)";
  EXPECT_THAT(ExplainSlurm(job, {job}).blocked_by, Ids({3, 4}));
  EXPECT_THAT(BlockersOf("afterok:3:5?after:4+10(unfulfilled),singleton(unfulfilled)"), Ids({3, 5, 4}));
  EXPECT_THAT(BlockersOf(":,(,:x,afterok:"), IsEmpty());
  const Why never = ExplainSlurm(Waiting(9, "DependencyNeverSatisfied"), {});
  EXPECT_THAT(never.remedy, HasSubstr("msactl job cancel 9"));
}

TEST(SlurmWhy, LimitsSayWhoseAndWhat) {
  const Why user = ExplainSlurm(Waiting(9, "QOSMaxJobsPerUserLimit"), {Running(2, 0)});
  EXPECT_THAT(user.explanation, HasSubstr("of the quality of service 'fast' on jobs that run for one user"));
  EXPECT_THAT(user.blocked_by, Ids({2}));
  const Why group = ExplainSlurm(Waiting(9, "AssocGrpCpuLimit"), {});
  EXPECT_THAT(group.explanation, HasSubstr("of account 'physics' on cores for all of it together"));
  const Why never = ExplainSlurm(Waiting(9, "QOSMaxCpuPerJobLimit"), {Running(2, 0)});
  EXPECT_THAT(never.explanation, HasSubstr("more than one job may have (cores)"));
  EXPECT_THAT(never.remedy, HasSubstr("never start"));
  EXPECT_THAT(never.remedy, HasSubstr("'sacctmgr show qos where name=fast' tells the limit"));
  EXPECT_THAT(never.blocked_by, IsEmpty());
  const Why account = ExplainSlurm(Waiting(9, "MaxCpuPerAccount"), {Running(2, 0)});
  EXPECT_THAT(account.explanation, HasSubstr("of the quality of service 'fast' on cores for one account"));
  EXPECT_THAT(account.blocked_by, Ids({2}));
  const Why used_up = ExplainSlurm(Waiting(9, "AssocGrpCPUMinutesLimit"), {Running(2, 0)});
  EXPECT_THAT(used_up.explanation,
              HasSubstr("of account 'physics' on cores for all of it together is used up"));
  EXPECT_THAT(used_up.remedy, HasSubstr("ask the administrator for more"));
  EXPECT_THAT(used_up.blocked_by, IsEmpty());
}

TEST(SlurmWhy, ReasonsWithATextBehindThemKeepIt) {
  const Why why = ExplainSlurm(Waiting(9, "ReqNodeNotAvail, UnavailableNodes:bn1"), {});
  EXPECT_EQ(why.word, "ReqNodeNotAvail");
  EXPECT_THAT(why.explanation, HasSubstr("(UnavailableNodes:bn1)"));
  EXPECT_THAT(
      ExplainSlurm(Waiting(9, "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved"), {}).explanation,
      HasSubstr("down, drained"));
  EXPECT_THAT(ExplainSlurm(Waiting(9, "JobHeldUser"), {}).remedy, HasSubstr("scontrol release 9"));
  EXPECT_THAT(ExplainSlurm(Waiting(9, "SomethingNew"), {}).explanation, HasSubstr("'SomethingNew'"));
  EXPECT_THAT(ExplainSlurm(Waiting(9, ""), {}).remedy, HasSubstr("again"));
}

TEST(SlurmWhy, AJobThatRunsOrHasEndedSaysSo) {
  EXPECT_THAT(ExplainSlurm(Running(2, 0), {}).explanation, HasSubstr("it runs since"));
  JobInfo ended = Job(3, JobState::kFailed, "NonZeroExitCode");
  ended.slurm->state = "FAILED";
  ended.exit_code = 3;
  EXPECT_THAT(ExplainSlurm(ended, {}).explanation, HasSubstr("FAILED, exit code 3"));
}

TEST(SlurmWhy, MsasOwnJobsAreExplainedToo) {
  JobInfo job;
  job.id = JobId(9);
  job.reason = "waits for 2 nodes of module 'booster'";
  job.spec = JobSpec();
  job.spec->dependencies.push_back({.job = JobId(4)});
  const Why why = ExplainMsa(job);
  EXPECT_EQ(why.explanation, job.reason);
  EXPECT_THAT(why.blocked_by, Ids({4}));
  const auto text = Render(WhyDetails(job, why), {});
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("expected start: not known"));
  EXPECT_THAT(*Render(WhyDetails(job, why), {.format = Format::kJson}), HasSubstr("\"kind\": \"JobWhy\""));
}

}  // namespace
}  // namespace msa::cli
