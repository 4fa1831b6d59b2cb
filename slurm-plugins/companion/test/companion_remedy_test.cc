// What a companion's refusals say can be done.
#include "companion_fixture.h"

namespace msa::companion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(CompanionMachine, AtTheDeadlineALimitIsNamedWithWhatHelpsAgainstIt) {
  Begin(AskFor(4, 1000));
  Submitted(20);
  Called<Look>();
  ReplyWith(Pending(20, "QOSMaxCpuPerUserLimit"));
  Sent<CompanionPending>();
  Pass(Millis(1000));
  Cancelled(20);
  EXPECT_THAT(Sent<CompanionRefused>().message,
              AllOf(HasSubstr("wait longer (msa_wait) for the end of other jobs"),
                    HasSubstr("'sacctmgr show qos where name=fast' tells the limit")));
}

TEST_F(CompanionMachine, HowAHoldIsReleasedIsToldWhileItWaits) {
  Begin(AskFor(4));
  Submitted(20);
  Called<Look>();
  ReplyWith(Pending(20, "JobHeldUser"));
  EXPECT_EQ(Sent<CompanionPending>().message,
            "its user holds it; release it while it waits: 'scontrol release 20'");
}

TEST_F(CompanionMachine, ASubmissionThatALimitRefusesNamesWhereTheLimitsStand) {
  Begin(AskFor(4, 600'000));
  Called<AskParent>();
  ReplyWith(Parent());
  Called<Submit>();
  Reply(Error(Code::kResourceExhausted, "Job violates accounting/QOS policy"));
  EXPECT_THAT(Sent<CompanionRefused>().message,
              AllOf(HasSubstr("Job violates accounting/QOS policy; ask for less"),
                    HasSubstr("'sacctmgr show assoc where account=physics'"), Not(HasSubstr("msa_wait"))));
}

}  // namespace
}  // namespace msa::companion
