#include "reason_text.h"

#include <gtest/gtest.h>

#include "companion_text.h"
#include "core_list.h"
#include "said_on_stderr.h"

namespace msa::companion {
namespace {

TEST(ReasonText, TellsApartWhatMayStartFromWhatNeverWill) {
  EXPECT_EQ(ProspectOf("Resources"), Prospect::kBusy);
  EXPECT_EQ(ProspectOf("ReqNodeNotAvail, UnavailableNodes:bn1"), Prospect::kBusy);
  EXPECT_EQ(ProspectOf("Priority"), Prospect::kQueued);
  EXPECT_EQ(ProspectOf("None"), Prospect::kUnknown);
  EXPECT_EQ(ProspectOf("PartitionConfig"), Prospect::kUnknown);
  for (const char* never :
       {"PartitionNodeLimit", "PartitionTimeLimit", "BadConstraints", "QOSMaxCpuPerJobLimit",
        "AssocMaxNodePerJobLimit", "QOSMaxWallDurationPerJobLimit", "QOSMinCpuNotSatisfied",
        "QOSMaxCpuMinutesPerJobLimit", "AssocMaxGRESPerJob", "AssocMaxCpuPerNode", "QOSMinGRES",
        "MaxMemPerLimit"})
    EXPECT_EQ(ProspectOf(never), Prospect::kNever) << never;
  for (const char* limited :
       {"QOSMaxJobsPerUserLimit", "AssocMaxJobsLimit", "QOSGrpCpuLimit", "AssocGrpNodeLimit",
        "QOSMaxCpuPerUserLimit", "AssocGrpCpuMinutesLimit", "QOSMaxNodePerUserLimit", "MaxCpuPerAccount",
        "QOSMaxGRESPerUser", "AssocGrpMemRunMinutes", "AssociationJobLimit"})
    EXPECT_EQ(ProspectOf(limited), Prospect::kLimited) << limited;
  EXPECT_EQ(ProspectOf("AccountNotAllowed"), Prospect::kDenied);
}

TEST(ReasonText, IsWordsForPeople) {
  EXPECT_EQ(ReasonText("Resources"), "what is free does not suffice");
  EXPECT_NE(ReasonText("QOSMaxJobsPerUserLimit").find("a limit of the QOS is reached"), std::string::npos);
  EXPECT_NE(ReasonText("AssocMaxCpuPerJobLimit").find("the user's association allows one job"),
            std::string::npos);
  EXPECT_EQ(ReasonText("AssocGrpCPUMinutesLimit"), "what the user's association may use is used up");
}

TEST(ReasonText, IsSlurmsWordWhereNothingElseIsKnown) {
  EXPECT_EQ(ReasonText("SomethingOfANewerSlurm"), "SomethingOfANewerSlurm");
  EXPECT_EQ(ProspectOf("SomethingOfANewerSlurm"), Prospect::kUnknown);
  EXPECT_EQ(PendingText("Odd", "said by slurmctld"), "Odd (said by slurmctld)");
}

TEST(CompanionText, NamesAnExpectedStartThatIsOfUse) {
  EXPECT_EQ(ExpectedText(1'700'000'000, 1'699'999'000),
            "; Slurm expects to start it at 2023-11-14T22:13:20Z");
  EXPECT_EQ(ExpectedText(0, 1'700'000'000), "");
  EXPECT_EQ(ExpectedText(1'600'000'000, 1'700'000'000), "");
  EXPECT_EQ(ExpectedText(1'731'536'000, 1'700'000'000), "") << "a year: Slurm's idea of a job without an end";
  EXPECT_EQ(ExpectedText(UINT64_MAX, 1'700'000'000), "");
}

TEST(CompanionText, SaysWhoseDoingAnEndWas) {
  EXPECT_NE(EndText("CANCELLED").find("scancel"), std::string::npos);
  EXPECT_NE(EndText("TIMEOUT").find("time limit"), std::string::npos);
  EXPECT_NE(EndText("").find("does not know"), std::string::npos);
  EXPECT_EQ(SpanText(Millis(1500)), "1500 ms");
  EXPECT_EQ(SpanText(Millis(90'000)), "90 s");
}

TEST(CoreList, IsReadAsRanges) {
  using Cores = std::vector<std::uint16_t>;
  EXPECT_EQ(*ParseCores(""), Cores{});
  EXPECT_EQ(*ParseCores("0-3,8"), (Cores{0, 1, 2, 3, 8}));
  EXPECT_EQ(*ParseCores("65535,5,5"), (Cores{5, 65535}));
}

TEST(CoreList, OtherTextsAreRefused) {
  for (const char* text :
       {"x", "1-", "-1", "3-1", "1,", ",1", "1,,2", "1 2", "65536", "0-4294967295", "4294967296"})
    EXPECT_FALSE(ParseCores(text).ok()) << text;
}

TEST(SaidOnStderr, IsWhatLibslurmLogsWithoutItsPrefixes) {
  EXPECT_EQ(LibslurmText("msa-companion: error: no such thing\nerror: ask for less  \n\nplain\n"),
            "no such thing; ask for less; plain");
  EXPECT_EQ(LibslurmText(""), "");
}

TEST(SaidOnStderr, IsCaughtAndStillWritten) {
  testing::internal::CaptureStderr();
  std::string text;
  {
    SaidOnStderr said;
    fprintf(stderr, "error: refused by the site\n");
    fflush(stderr);
    text = said.Text();
  }
  EXPECT_EQ(text, "refused by the site");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "error: refused by the site\n");
}

}  // namespace
}  // namespace msa::companion
