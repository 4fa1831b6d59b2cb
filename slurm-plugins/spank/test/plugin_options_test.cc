#include "plugin_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace msa::spank {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(SpankOptions, ASizeIsTakenForAllComponentsOrByComponent) {
  for (const char* value : {"4G", "512", "512M", "0:1G,1:2G", "1:64K"}) {
    Options options;
    const Status set = SetOption(options, Option::kNam, value);
    EXPECT_TRUE(set.ok()) << value << ": " << set.message();
    EXPECT_EQ(options.step.nam, value);
  }
}

TEST(SpankOptions, WhatIsNoSizeIsRefusedWithTheValueAndARemedy) {
  for (const char* value : {"", "much", "4X", "-1", "0:1G,2G", "x:1G", "0:", "1G,2G", "99999999999T"}) {
    Options options;
    const Status set = SetOption(options, Option::kNam, value);
    ASSERT_FALSE(set.ok()) << value;
    EXPECT_THAT(set.message(), AllOf(HasSubstr("--nam"), HasSubstr(value)));
    EXPECT_EQ(options.step.nam, "");
  }
}

TEST(SpankOptions, RegionsGatewaysAndChildFailureAreJudgedBeforeAnythingStarts) {
  Options options;
  EXPECT_TRUE(SetOption(options, Option::kNamRegion, "data:ro,msa-nam:out").ok() ==
              false);  // no such mode: "out"
  EXPECT_TRUE(SetOption(options, Option::kNamRegion, "data:ro,out:rw,more").ok());
  EXPECT_FALSE(SetOption(options, Option::kNamRegion, "data:rx").ok());
  EXPECT_FALSE(SetOption(options, Option::kNamRegion, ",data").ok());
  EXPECT_TRUE(SetOption(options, Option::kGateways, "2").ok());
  EXPECT_TRUE(SetOption(options, Option::kGateways, "0:1,1:0").ok());
  EXPECT_THAT(SetOption(options, Option::kGateways, "two").message(), HasSubstr("--gateways=two"));
  EXPECT_TRUE(SetOption(options, Option::kOnChildFailure, "event").ok());
  EXPECT_THAT(SetOption(options, Option::kOnChildFailure, "ignore").message(),
              AllOf(HasSubstr("kill"), HasSubstr("event")));
  EXPECT_TRUE(SetOption(options, Option::kMsa, "no").ok());
  EXPECT_EQ(options.use, Use::kNo);
  EXPECT_THAT(SetOption(options, Option::kMsa, "maybe").message(), HasSubstr("--msa=maybe"));
}

TEST(SpankOptions, ComponentsThatDifferAreRefusedWithTheWayToWriteThem) {
  Options first, second;
  ASSERT_TRUE(SetOption(first, Option::kNam, "1G").ok());
  ASSERT_TRUE(SetOption(second, Option::kNam, "2G").ok());
  ComponentCheck check;
  EXPECT_TRUE(check.Add(first).ok());
  EXPECT_TRUE(check.Add(first).ok());
  EXPECT_THAT(check.Add(second).message(), HasSubstr("--nam=0:1G,1:2G"));
}

Options Given(std::initializer_list<std::pair<Option, const char*>> values) {
  Options options;
  for (const auto& [option, value] : values) EXPECT_TRUE(SetOption(options, option, value).ok()) << value;
  return options;
}

TEST(SpankOptions, WhetherAStepIsMsasSaysSrunElseItsJobElsePlugstackConf) {
  using From = StepChoice::From;
  const Options none, yes = Given({{Option::kMsa, "yes"}});
  EXPECT_EQ(ChooseUse(yes, "no", Use::kNo).use, Use::kYes);
  EXPECT_EQ(ChooseUse(yes, "no", Use::kNo).from, From::kOption);
  EXPECT_EQ(ChooseUse(none, "no", Use::kAuto).use, Use::kNo);
  EXPECT_EQ(ChooseUse(none, "no", Use::kAuto).from, From::kJob);
  EXPECT_EQ(ChooseUse(none, std::nullopt, Use::kNo).from, From::kDefault);
  EXPECT_EQ(ChooseUse(none, "maybe", Use::kYes).use, Use::kYes);
}

TEST(SpankOptions, WhatAStepThatIsNotMsasWouldLoseIsRefusedWithTheReasonAndARemedy) {
  using From = StepChoice::From;
  const StepChoice said_no{Use::kNo, From::kOption}, job_said_no{Use::kNo, From::kJob};
  const StepChoice by_default{Use::kNo, From::kDefault}, pmix{Use::kAuto, From::kDefault, "pmix"};
  for (const auto& [option, value] :
       {std::pair(Option::kNam, "1G"), std::pair(Option::kNamRegion, "data:ro"),
        std::pair(Option::kGateways, "1"), std::pair(Option::kOnChildFailure, "event")}) {
    for (const StepChoice& choice : {said_no, job_said_no, by_default, pmix}) {
      const Status lost = CheckNothingLost(Given({{option, value}}), choice);
      EXPECT_EQ(lost.code(), Code::kFailedPrecondition);
      EXPECT_THAT(lost.message(), HasSubstr(std::string("=") + value + " would be lost: "));
    }
    EXPECT_TRUE(CheckNothingLost(Given({{option, value}}), {}).ok());
    EXPECT_TRUE(CheckNothingLost(Given({{option, value}}), {Use::kYes, From::kOption, "openmpi"}).ok());
  }
  const Options nam = Given({{Option::kNam, "1G"}, {Option::kGateways, "1"}});
  EXPECT_EQ(CheckNothingLost(nam, said_no).message(),
            "--nam=1G, --gateways=1 would be lost: --msa=no leaves the step to Slurm; leave out --msa=no, or "
            "leave out --nam, --gateways");
  EXPECT_THAT(CheckNothingLost(nam, job_said_no).message(),
              AllOf(HasSubstr("the job's --msa=no"), HasSubstr("give srun --msa=yes")));
  EXPECT_THAT(CheckNothingLost(nam, by_default).message(),
              AllOf(HasSubstr("default=no in plugstack.conf"), HasSubstr("give srun --msa=yes")));
  EXPECT_THAT(CheckNothingLost(nam, pmix).message(),
              AllOf(HasSubstr("--mpi=pmix leaves the step to Slurm"), HasSubstr("give srun --mpi=none")));
}

TEST(SpankOptions, AModuleIsForTheSubmissionAndNotLost) {
  const Options module = Given({{Option::kModule, "booster"}, {Option::kMsa, "no"}});
  EXPECT_FALSE(AsksForMsa(module));
  EXPECT_TRUE(CheckNothingLost(module, {Use::kNo, StepChoice::From::kOption}).ok());
}

TEST(SpankOptions, ANodeWithoutNodeDaemonIsNamedWithWhatWouldBeLostThere) {
  const std::string plain = NoNodeDaemonText({}, "cn1", "no such file");
  EXPECT_THAT(plain, AllOf(HasSubstr("node cn1 has no node daemon of msa (no such file)"),
                           HasSubstr("or give --msa=no")));
  const std::string lost = NoNodeDaemonText(Given({{Option::kNam, "1G"}}), "cn1", "no such file");
  EXPECT_THAT(lost, AllOf(HasSubstr("--nam=1G would be lost: node cn1 has no node daemon of msa"),
                          HasSubstr("start msa-noded there"), HasSubstr("or leave out --nam")));
  EXPECT_EQ(lost.find("--msa=no"), std::string::npos);
}

TEST(SpankOptions, TheLineInPlugstackConfNamesSocketAndDefault) {
  const auto arguments = ParseArguments({"socket=/run/x/p.sock", "default=no"});
  ASSERT_TRUE(arguments.ok());
  EXPECT_EQ(arguments->socket, "/run/x/p.sock");
  EXPECT_EQ(arguments->use, Use::kNo);
  EXPECT_EQ(ParseArguments({})->use, Use::kAuto);
  EXPECT_THAT(ParseArguments({"sockt=/x"}).status().message(),
              AllOf(HasSubstr("sockt=/x"), HasSubstr("socket=")));
  EXPECT_FALSE(ParseArguments({"socket=relative"}).ok());
}

}  // namespace
}  // namespace msa::spank
