#include "msa/job/slurm_reasons.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace msa {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Of = SlurmLimit::Of;

const SlurmJobNames kNames{
    .job = "42", .partition = "booster", .qos = "fast", .account = "physics", .licenses = "nam:1"};

std::string OfCompanion(std::string_view reason) { return RemedyText(reason, RemedyFor::kCompanion, kNames); }
std::string OfJob(std::string_view reason) { return RemedyText(reason, RemedyFor::kJob, kNames); }

TEST(SlurmRemedy, ALongerWaitIsNamedOnlyWhereItMayHelp) {
  for (const char* waits :
       {"Resources", "Priority", "None", "", "Licenses", "Reservation", "BeginTime", "Dependency", "Cleaning",
        "Prolog", "NodeDown", "ReqNodeNotAvail, UnavailableNodes:bn1",
        "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions",
        "QOSMaxJobsPerUserLimit", "AssocGrpCpuLimit", "MaxCpuPerAccount", "AssocGrpCPURunMinutesLimit"})
    EXPECT_THAT(OfCompanion(waits), HasSubstr("wait longer (msa_wait)")) << waits;
  for (const char* does_not :
       {"PartitionDown", "PartitionInactive", "PartitionNodeLimit", "PartitionTimeLimit", "PartitionConfig",
        "BadConstraints", "JobHeldUser", "JobHeldAdmin", "AccountNotAllowed", "QOSNotAllowed",
        "DependencyNeverSatisfied", "ReservationDeleted", "AccountingPolicy", "QOSMaxCpuPerJobLimit",
        "AssocMaxWallDurationPerJobLimit", "QOSMinCpuNotSatisfied", "AssocGrpCPUMinutesLimit",
        "QOSGrpWallLimit"})
    EXPECT_THAT(OfCompanion(does_not), AllOf(Not(IsEmpty()), Not(HasSubstr("msa_wait")))) << does_not;
}

TEST(SlurmRemedy, NamesWhoCanActAndByWhichCommand) {
  EXPECT_THAT(OfCompanion("PartitionDown"), HasSubstr("'scontrol show partition booster'"));
  EXPECT_THAT(OfCompanion("PartitionNodeLimit"), HasSubstr("another number of nodes"));
  EXPECT_THAT(OfCompanion("PartitionTimeLimit"), HasSubstr("msa_time"));
  EXPECT_THAT(OfCompanion("JobHeldUser"), HasSubstr("'scontrol release 42'"));
  EXPECT_THAT(OfCompanion("JobHeldAdmin"), HasSubstr("administrator"));
  EXPECT_THAT(OfCompanion("Licenses"), HasSubstr("'scontrol show licenses'"));
  EXPECT_THAT(OfCompanion("Reservation"), HasSubstr("'scontrol show reservation'"));
  EXPECT_THAT(OfCompanion("Dependency"), HasSubstr("'scontrol show job 42'"));
  EXPECT_THAT(OfCompanion("ReqNodeNotAvail, UnavailableNodes:bn1"), HasSubstr("'sinfo -R'"));
  EXPECT_THAT(OfCompanion("AccountNotAllowed"), HasSubstr("partition 'booster'"));
  EXPECT_EQ(OfJob("JobHeldUser"), "release it: 'scontrol release 42'");
  EXPECT_THAT(OfJob("PartitionTimeLimit"), HasSubstr("'scontrol update job=42 timelimit=T'"));
  EXPECT_THAT(OfJob("Resources"), IsEmpty()) << "it has to wait";
}

TEST(SlurmRemedy, OfALimitSaysWhatToAskForAndWhereItStands) {
  EXPECT_EQ(OfCompanion("QOSMaxCpuPerJobLimit"),
            "ask for less (cores), or run the asking job with another --qos or --account; 'sacctmgr show qos "
            "where name=fast' tells the limit");
  EXPECT_THAT(OfCompanion("AssocMaxWallDurationPerJobLimit"),
              AllOf(HasSubstr("ask for a shorter time (msa_time)"),
                    HasSubstr("'sacctmgr show assoc where account=physics'")));
  EXPECT_THAT(OfCompanion("QOSMinCpuNotSatisfied"), HasSubstr("ask for more (cores)"));
  EXPECT_THAT(OfCompanion("AssocGrpCPUMinutesLimit"), HasSubstr("ask the administrator for more"));
  EXPECT_THAT(OfJob("QOSMaxWallDurationPerJobLimit"), HasSubstr("it can never start"));
  EXPECT_THAT(OfJob("AssocMaxJobsLimit"), HasSubstr("it starts when one of them ends"));
}

TEST(SlurmRemedy, OfAReasonThatIsNotKnownPointsToSlurm) {
  EXPECT_THAT(OfCompanion("SomethingNew"), HasSubstr("squeue(1)"));
  EXPECT_THAT(OfJob("SomethingNew"), HasSubstr("'scontrol show job 42'"));
}

TEST(SlurmLimit, IsReadFromItsName) {
  const auto cpu = ParseSlurmLimit("QOSMaxCpuPerUserLimit");
  ASSERT_TRUE(cpu);
  EXPECT_TRUE(cpu->qos);
  EXPECT_EQ(cpu->of, Of::kUser);
  EXPECT_EQ(cpu->counted, "cores");
  EXPECT_EQ(ParseSlurmLimit("MaxJobsPerAccount")->of, Of::kAccount);
  EXPECT_EQ(ParseSlurmLimit("MaxJobsPerAccount")->counted, "jobs that run");
  EXPECT_TRUE(ParseSlurmLimit("MaxJobsPerAccount")->qos);
  EXPECT_EQ(ParseSlurmLimit("AssocGrpNodeLimit")->of, Of::kAll);
  EXPECT_FALSE(ParseSlurmLimit("AssocGrpNodeLimit")->qos);
  EXPECT_EQ(ParseSlurmLimit("AssocMaxMemPerNode")->of, Of::kJob);
  EXPECT_EQ(ParseSlurmLimit("AssocMaxMemPerNode")->counted, "memory");
  EXPECT_TRUE(ParseSlurmLimit("QOSGrpWallLimit")->used_up);
  EXPECT_FALSE(ParseSlurmLimit("QOSGrpCPURunMinutesLimit")->used_up);
  EXPECT_TRUE(ParseSlurmLimit("QOSMinGRES")->least);
  for (const char* other : {"", "Resources", "QOSNotAllowed", "QOSUsageThreshold", "MaxMemPerLimit",
                            "PartitionNodeLimit", "Association", "QOS", "Assoc"})
    EXPECT_FALSE(ParseSlurmLimit(other)) << other;
}

}  // namespace
}  // namespace msa
