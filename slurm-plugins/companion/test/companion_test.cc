#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "companion_fixture.h"

namespace msa::companion {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST_F(CompanionMachine, HowOftenItsParentWasRequeuedIsSlurmsToSay) {
  Begin(AskFor(2));
  Called<AskParent>();
  ParentFacts parent = Parent();
  parent.restarts = 2;
  ReplyWith(parent);
  EXPECT_EQ(Called<Submit>().mark.restarts, 2U);
}

TEST_F(CompanionMachine, SubmitsWithTheParentsAccountAndGrantsWhatComes) {
  Begin(AskFor(10));
  EXPECT_EQ(Called<AskParent>().job, JobId(7));
  ReplyWith(Parent());
  const Submit submit = Called<Submit>();
  EXPECT_EQ(submit.account, "physics");
  EXPECT_EQ(submit.qos, "fast");
  EXPECT_EQ(submit.partition, "booster");
  EXPECT_EQ(submit.size.tasks, 10U);
  EXPECT_EQ(submit.time_limit_min, 0U);
  ReplyWith(JobFacts{.job = JobId(20)});
  EXPECT_EQ(Called<Look>().job, JobId(20));
  ReplyWith(Running(20, {Node("bn0", 8), Node("bn1", 2)}));
  const auto granted = Sent<CompanionGranted>();
  EXPECT_EQ(granted.job, JobId(20));
  EXPECT_EQ(granted.slots, 10U);
  EXPECT_EQ(granted.nodes.size(), 2U);
  EXPECT_FALSE(finished_);
}

TEST_F(CompanionMachine, TakesTheParentsPartitionWhereNoneIsAsked) {
  auto ask = AskFor(1);
  ask.partition.clear();
  Begin(ask);
  Called<AskParent>();
  ReplyWith(Parent());
  EXPECT_EQ(Called<Submit>().partition, "cluster");
}

TEST_F(CompanionMachine, IsAskedForNoLongerThanTheParentHas) {
  Begin(AskFor(1));
  Called<AskParent>();
  ReplyWith(Parent(kUnix + 121));
  EXPECT_EQ(Called<Submit>().time_limit_min, 3U);
}

TEST_F(CompanionMachine, IsAskedForTheTimeThatIsAskedIfTheParentHasIt) {
  auto ask = AskFor(1);
  ask.time_ms = 60'001;
  Begin(ask);
  Called<AskParent>();
  ReplyWith(Parent(kUnix + 3600));
  EXPECT_EQ(Called<Submit>().time_limit_min, 2U);
}

TEST_F(CompanionMachine, ThatWaitedGetsTheParentsEnd) {
  Begin(AskFor(1));
  Submitted(20, kUnix + 100);
  Called<Look>();
  ReplyWith(Running(20, {Node("bn0", 1)}));  // until 600
  EXPECT_EQ(Called<SetEnd>().end, kUnix + 100);
  ReplyWith({});
  Called<Look>();
  auto facts = Running(20, {Node("bn0", 1)});
  facts.end = kUnix + 100;
  ReplyWith(facts);
  EXPECT_EQ(Sent<CompanionGranted>().end, kUnix + 100);
}

TEST_F(CompanionMachine, ThatWaitedGetsTheEndThatItsParentHasByThen) {
  Begin(AskFor(1));
  Submitted(20, kUnix + 6000);
  Called<Look>();
  ReplyWith(Pending(20, "Resources"));
  Sent<CompanionPending>();
  Called<Look>();
  ReplyWith(Running(20, {Node("bn0", 1)}));  // until 600
  EXPECT_EQ(Called<AskParent>().job, JobId(7));
  Away();
  EXPECT_THAT(Sent<CompanionPending>().message, HasSubstr("slurmctld does not answer"));
  Called<Look>();
  ReplyWith(Running(20, {Node("bn0", 1)}));
  Called<AskParent>();
  ReplyWith(Parent(kUnix + 100));
  EXPECT_EQ(Called<SetEnd>().end, kUnix + 100);
  ReplyWith({});
  Called<Look>();
  auto facts = Running(20, {Node("bn0", 1)});
  facts.end = kUnix + 100;
  ReplyWith(facts);
  EXPECT_EQ(Sent<CompanionGranted>().end, kUnix + 100);
}

TEST_F(CompanionMachine, WhoseParentEndedWhileItWaitedIsCancelled) {
  Begin(AskFor(1));
  Submitted(20);
  Called<Look>();
  ReplyWith(Pending(20, "Resources"));
  Sent<CompanionPending>();
  Called<Look>();
  ReplyWith(Running(20, {Node("bn0", 1)}));
  Called<AskParent>();
  auto parent = Parent();
  parent.running = false;
  parent.state = "COMPLETING";
  ReplyWith(parent);
  Cancelled(20);
  EXPECT_THAT(Sent<CompanionRefused>().message, HasSubstr("job 7 is COMPLETING"));
  EXPECT_TRUE(finished_);
}

TEST_F(CompanionMachine, TellsWhatItWaitsForOnceAReason) {
  Begin(AskFor(1));
  Submitted(20);
  for (const char* reason : {"Resources", "Resources", "Priority", "Priority"}) {
    Called<Look>();
    ReplyWith(Pending(20, reason));
  }
  EXPECT_EQ(Sent<CompanionPending>().reason, "Resources");
  EXPECT_EQ(Sent<CompanionPending>().reason, "Priority");
  EXPECT_TRUE(sent_.empty());
}

TEST_F(CompanionMachine, AtTheDeadlineCancelsBeforeItRefuses) {
  Begin(AskFor(4, 1000));
  Submitted(20);
  Called<Look>();
  ReplyWith(Pending(20, "Resources"));
  Sent<CompanionPending>();
  Pass(Millis(1000));
  Called<Cancel>();
  EXPECT_TRUE(sent_.empty());
  Cancelled(20);
  const auto refused = Sent<CompanionRefused>();
  EXPECT_EQ(refused.code, Code::kDeadlineExceeded);
  EXPECT_EQ(refused.reason, "Resources");
  EXPECT_THAT(refused.message, HasSubstr("no 4 slots in partition 'booster' within 1 s: Slurm's job 20"));
  EXPECT_THAT(refused.message, HasSubstr("; wait longer (msa_wait) or ask for less"));
  EXPECT_TRUE(finished_);
}

TEST_F(CompanionMachine, WithoutAWaitRefusesWhatIsBusyUnlessNodesAreAboutToBeFree) {
  Begin(AskFor(4, 0));
  Submitted(20);
  Called<Look>();
  ReplyWith(Pending(20, "Resources"));
  Called<AskPartition>();
  ReplyWith(PartitionFacts{{{.name = "bn0", .cores = 8, .completing = true}}});
  EXPECT_FALSE(call_);
  Called<Look>();
  ReplyWith(Running(20, {Node("bn0", 8)}));
  Called<AskParent>();
  ReplyWith(Parent());
  Sent<CompanionPending>();
  EXPECT_EQ(Sent<CompanionGranted>().slots, 4U);
}

TEST_F(CompanionMachine, WithoutAWaitAndWithBusyNodesIsRefusedAtOnce) {
  Begin(AskFor(4, 0));
  Submitted(20);
  Called<Look>();
  ReplyWith(Pending(20, "Resources"));
  Called<AskPartition>();
  ReplyWith(PartitionFacts{{{.name = "bn0", .cores = 8}}});
  Cancelled(20);
  Sent<CompanionPending>();
  EXPECT_THAT(Sent<CompanionRefused>().message, HasSubstr("now"));
}

TEST_F(CompanionMachine, WithoutAWaitALimitThatIsReachedIsARefusal) {
  Begin(AskFor(4, 0));
  Submitted(20);
  Called<Look>();
  ReplyWith(Pending(20, "QOSMaxJobsPerUserLimit"));
  Cancelled(20);
  Sent<CompanionPending>();
  EXPECT_EQ(Sent<CompanionRefused>().code, Code::kDeadlineExceeded);
}

TEST_F(CompanionMachine, WhatCanNeverStartIsRefusedAtOnceWithWhatHelps) {
  Begin(AskFor(4, 600'000));
  Submitted(20);
  Called<Look>();
  ReplyWith(Pending(20, "PartitionTimeLimit"));
  Cancelled(20);
  Sent<CompanionPending>();
  const auto refused = Sent<CompanionRefused>();
  EXPECT_EQ(refused.code, Code::kOutOfRange);
  EXPECT_THAT(refused.message, HasSubstr("; ask for a shorter time (msa_time); 'sinfo -p booster'"));
  EXPECT_THAT(refused.message, Not(HasSubstr("msa_wait")));
}

TEST_F(CompanionMachine, WhatThePartitionDoesNotHaveIsRefusedWhenThatIsCertain) {
  Begin(AskFor(400, 600'000));
  Submitted(20);
  const SteadyTime begin = now_.steady;
  while (!finished_) {
    if (!call_) PassUntilDue();
    if (std::holds_alternative<Cancel>(*call_)) break;
    Called<Look>();
    ReplyWith(Pending(20, "PartitionConfig"));
  }
  EXPECT_LT(now_.steady - begin, Millis(5000));
  Cancelled(20);
  Sent<CompanionPending>();
  EXPECT_EQ(Sent<CompanionRefused>().code, Code::kOutOfRange);
}

TEST_F(CompanionMachine, WhoMayNotUseThePartitionReadsSlurmsText) {
  Begin(AskFor(4, 600'000));
  Called<AskParent>();
  ReplyWith(Parent());
  Called<Submit>();
  Reply(Error(Code::kPermissionDenied, "User's group not permitted to use this partition"));
  const auto refused = Sent<CompanionRefused>();
  EXPECT_EQ(refused.code, Code::kPermissionDenied);
  EXPECT_EQ(refused.message,
            "Slurm refuses 4 slots in partition 'booster': User's group not permitted to use this partition");
  EXPECT_TRUE(finished_);
}

TEST_F(CompanionMachine, WhatSlurmctldWroteBesideAReasonIsPassedOn) {
  Begin(AskFor(4));
  Submitted(20);
  Called<Look>();
  ReplyWith(Pending(20, "AccountNotAllowed", "billed allows payers"));
  Cancelled(20);
  EXPECT_THAT(Sent<CompanionPending>().message, HasSubstr("billed allows payers"));
  const auto refused = Sent<CompanionRefused>();
  EXPECT_EQ(refused.code, Code::kPermissionDenied);
  EXPECT_THAT(refused.message, HasSubstr("billed allows payers"));
}

TEST_F(CompanionMachine, AsksForTheSetWhenTheLargestDidNotCome) {
  auto ask = AskFor(4, 1000, {2});
  ask.slots_per_node = 2;
  Begin(ask);
  Submitted(20);
  Called<Look>();
  ReplyWith(Pending(20, "Resources"));
  Pass(Millis(1000));
  Cancelled(20);
  const Submit submit = Called<Submit>();
  EXPECT_EQ(submit.size.min_nodes, 1U);
  EXPECT_EQ(submit.size.max_nodes, 2U);
  ReplyWith(JobFacts{.job = JobId(21)});
  Called<Look>();
  ReplyWith(Running(21, {Node("bn0", 2)}));
  Called<AskParent>();
  ReplyWith(Parent());
  Sent<CompanionPending>();
  EXPECT_EQ(Sent<CompanionGranted>().slots, 2U);
}

TEST_F(CompanionMachine, GoesOnWithSmallerMembersWhereTheLargestCanNeverStart) {
  auto ask = AskFor(64, 600'000, {32, 16, 8, 4, 0});
  Begin(ask);
  Submitted(20);
  Called<Look>();
  ReplyWith(Pending(20, "QOSMaxCpuPerJobLimit"));
  Cancelled(20);
  EXPECT_EQ(Called<Submit>().size.tasks, 16U) << "half of the set is left";
  ReplyWith(JobFacts{.job = JobId(21)});
  Called<Look>();
  ReplyWith(Pending(21, "QOSMaxCpuPerJobLimit"));
  Cancelled(21);
  EXPECT_EQ(Called<Submit>().size.tasks, 8U);
  ReplyWith(JobFacts{.job = JobId(22)});
  Called<Look>();
  ReplyWith(Pending(22, "QOSMaxCpuPerJobLimit"));
  Cancelled(22);
  EXPECT_EQ(Called<Submit>().size.tasks, 4U);
  ReplyWith(JobFacts{.job = JobId(23)});
  Called<Look>();
  ReplyWith(Pending(23, "QOSMaxCpuPerJobLimit"));
  Cancelled(23);
  sent_.erase(sent_.begin(), sent_.begin() + 4);
  EXPECT_EQ(Sent<CompanionRefused>().code, Code::kOutOfRange);
  EXPECT_TRUE(finished_);
}

TEST_F(CompanionMachine, WithoutAWaitAsksForTheSetAtOnceAndGivesBackWhatIsTooMuch) {
  Begin(AskFor(20, 0, {7}));
  Called<AskParent>();
  ReplyWith(Parent());
  Called<AskPartition>();
  ReplyWith(PartitionFacts{{{.name = "bn0", .cores = 8}, {.name = "bn1", .cores = 8}}});
  const Submit submit = Called<Submit>();
  EXPECT_EQ(submit.size.max_nodes, 3U);
  EXPECT_FALSE(submit.size.whole_nodes) << "which could not be given back";
  ReplyWith(JobFacts{.job = JobId(21)});
  Called<Look>();
  ReplyWith(Running(21, {Node("bn0", 8), Node("bn1", 8)}));
  EXPECT_THAT(Called<Keep>().nodes, ElementsAre("bn0"));
  ReplyWith({});
  Called<Look>();
  ReplyWith(Running(21, {Node("bn0", 8)}));
  const auto granted = Sent<CompanionGranted>();
  EXPECT_EQ(granted.slots, 7U);
  EXPECT_EQ(granted.nodes.size(), 1U);
}

TEST_F(CompanionMachine, KeepsExclusiveNodesThatAreTooMany) {
  auto ask = AskFor(20, 0, {7});
  ask.exclusive = true;
  Begin(ask);
  Called<AskParent>();
  ReplyWith(Parent());
  Called<AskPartition>();
  ReplyWith(PartitionFacts{{{.name = "bn0", .cores = 8}, {.name = "bn1", .cores = 8}}});
  EXPECT_TRUE(Called<Submit>().size.whole_nodes);
  ReplyWith(JobFacts{.job = JobId(21)});
  Called<Look>();
  ReplyWith(Running(21, {Node("bn0", 8), Node("bn1", 8)}));
  const auto granted = Sent<CompanionGranted>();
  EXPECT_EQ(granted.slots, 7U);
  EXPECT_EQ(granted.nodes.size(), 2U);
  companion_.OnShrink({.keep = {"bn0"}}, now_);
  EXPECT_THAT(Sent<CompanionKept>().message, HasSubstr("for itself"));
}

TEST_F(CompanionMachine, GrantsAllWhereSlurmTakesNothingBack) {
  Begin(AskFor(20, 0, {7}));
  Called<AskParent>();
  ReplyWith(Parent());
  Called<AskPartition>();
  ReplyWith(PartitionFacts{});
  Called<Submit>();
  ReplyWith(JobFacts{.job = JobId(21)});
  Called<Look>();
  ReplyWith(Running(21, {Node("bn0", 8), Node("bn1", 8)}));
  Called<Keep>();
  Reply(Error(Code::kInternal, "not now"));
  Called<Look>();
  ReplyWith(Running(21, {Node("bn0", 8), Node("bn1", 8)}));
  const auto granted = Sent<CompanionGranted>();
  EXPECT_EQ(granted.slots, 7U);
  EXPECT_EQ(granted.nodes.size(), 2U);
}

TEST_F(CompanionMachine, LeavesOutNodesThatWereNotNamed) {
  auto ask = AskFor(1);
  ask.nodes = {"bn1"};
  Begin(ask);
  Called<AskParent>();
  ReplyWith(Parent());
  Called<AskPartition>();
  ReplyWith(PartitionFacts{{{.name = "bn0", .cores = 8}, {.name = "bn1", .cores = 8}}});
  EXPECT_THAT(Called<Submit>().exclude, ElementsAre("bn0"));
}

TEST_F(CompanionMachine, GoesOnWaitingWhileSlurmctldIsAway) {
  Begin(AskFor(1, 60'000));
  Called<AskParent>();
  Away();
  Called<AskParent>();
  Away();
  Submitted(20);
  Called<Look>();
  Away();
  Called<Look>();
  ReplyWith(Running(20, {Node("bn0", 1)}));
  Called<AskParent>();
  ReplyWith(Parent());
  EXPECT_THAT(Sent<CompanionPending>().message, HasSubstr("slurmctld does not answer: nobody listens"));
  EXPECT_THAT(Sent<CompanionPending>().message, HasSubstr("slurmctld does not answer")) << "once each time";
  Sent<CompanionGranted>();
}

TEST_F(CompanionMachine, LooksForItsJobWhereTheAnswerWasLost) {
  Begin(AskFor(1, 60'000));
  Called<AskParent>();
  ReplyWith(Parent());
  Called<Submit>();
  Away();
  const Mark mark = Called<AskMine>().mark;
  EXPECT_EQ(mark, (Mark{.parent = JobId(7), .restarts = 0, .request = 3, .incarnation = {}}));
  ReplyWith(JobFacts{.job = JobId(20)});
  EXPECT_EQ(Called<Look>().job, JobId(20)) << "and does not ask for another";
}

TEST_F(CompanionMachine, AsksAgainWhereSlurmctldNeverGotIt) {
  Begin(AskFor(1, 60'000));
  Called<AskParent>();
  ReplyWith(Parent());
  Called<Submit>();
  Away();
  Called<AskMine>();
  ReplyWith(JobFacts{});
  Called<AskMine>();
  ReplyWith(JobFacts{});
  Called<Submit>();
}

TEST_F(CompanionMachine, AsksAgainWhereSlurmctldLostItsState) {
  Begin(AskFor(1, 60'000));
  Submitted(20);
  Called<Look>();
  Reply(Error(Code::kNotFound, "job 20"));
  Called<Submit>();
}

TEST_F(CompanionMachine, AtTheDeadlineWithoutSlurmctldAnswersFirstAndCancelsLater) {
  Begin(AskFor(1, 1000));
  Submitted(20);
  Called<Look>();
  ReplyWith(Pending(20, "Resources"));
  Called<Look>();
  Away();
  Pass(Millis(1000));
  Called<Cancel>();
  Away();
  Sent<CompanionPending>();
  Sent<CompanionPending>();
  const auto refused = Sent<CompanionRefused>();
  EXPECT_EQ(refused.code, Code::kUnavailable);
  EXPECT_FALSE(finished_);
  Called<Cancel>();
  Away();
  Cancelled(20);
  EXPECT_TRUE(sent_.empty());
  EXPECT_TRUE(finished_);
}

TEST_F(CompanionMachine, ACallThatHangsDoesNotKeepItFromAnswering) {
  Begin(AskFor(1, 1000));
  Called<AskParent>();
  ReplyWith(Parent());
  Called<Submit>();
  Pass(Millis(1000));
  EXPECT_TRUE(sent_.empty()) << "mostly the answer is about to come";
  Pass(Millis(1000));
  EXPECT_EQ(Sent<CompanionRefused>().code, Code::kUnavailable);
  EXPECT_FALSE(finished_);
  ReplyWith(JobFacts{.job = JobId(20)});
  Cancelled(20);
  EXPECT_TRUE(finished_);
}

TEST_F(CompanionMachine, TakesOverTheJobOfAProgramThatDied) {
  auto ask = AskFor(1);
  ask.again = true;
  Begin(ask);
  Called<AskParent>();
  ReplyWith(Parent());
  Called<AskMine>();
  ReplyWith(JobFacts{.job = JobId(20)});
  EXPECT_EQ(Called<Look>().job, JobId(20));
}

TEST_F(CompanionMachine, IsCancelledWhenItIsReleased) {
  Begin(AskFor(16));
  Granted();
  companion_.OnRelease(now_);
  Cancelled(20);
  const auto ended = Sent<CompanionEnded>();
  EXPECT_EQ(ended.job, JobId(20));
  EXPECT_EQ(ended.state, "CANCELLED");
  EXPECT_TRUE(finished_);
}

TEST_F(CompanionMachine, IsCancelledWhenNobodyListensAnyMore) {
  Begin(AskFor(16));
  Submitted(20);
  companion_.OnClosed(now_);
  Called<Look>();  // that is under way
  ReplyWith(Pending(20, "Resources"));
  Called<Cancel>();
  Reply(Error(Code::kNotFound, "over already"));
  EXPECT_TRUE(sent_.empty());
  EXPECT_TRUE(finished_);
}

TEST_F(CompanionMachine, ReleasedBeforeAnythingWasAskedEndsAtOnce) {
  Begin(AskFor(16));
  Called<AskParent>();
  companion_.OnRelease(now_);
  ReplyWith(Parent());
  EXPECT_EQ(Sent<CompanionEnded>().job, JobId());
  EXPECT_TRUE(finished_);
}

TEST_F(CompanionMachine, TellsWhenItsJobEndsOfItself) {
  Begin(AskFor(16));
  Granted();
  companion_.OnNotice(now_);
  Called<Look>();
  ReplyWith(Over(20, "TIMEOUT"));
  const auto ended = Sent<CompanionEnded>();
  EXPECT_EQ(ended.state, "TIMEOUT");
  EXPECT_THAT(ended.message, HasSubstr("time limit"));
  EXPECT_TRUE(finished_);
  EXPECT_TRUE(sent_.empty());
}

TEST_F(CompanionMachine, ANoticeWithoutAnEndChangesNothing) {
  Begin(AskFor(16));
  Granted();
  companion_.OnNotice(now_);
  Called<Look>();
  ReplyWith(Running(20, {Node("bn0", 8)}));
  EXPECT_TRUE(sent_.empty());
  EXPECT_FALSE(finished_);
}

TEST_F(CompanionMachine, GivesNodesBackWhenAsked) {
  Begin(AskFor(16));
  Granted();
  companion_.OnShrink({.keep = {"bn1"}}, now_);
  EXPECT_THAT(Called<Keep>().nodes, ElementsAre("bn1"));
  ReplyWith({});
  Called<Look>();
  ReplyWith(Running(20, {Node("bn1", 8)}));
  const auto granted = Sent<CompanionGranted>();
  EXPECT_EQ(granted.nodes.size(), 1U);
  EXPECT_EQ(granted.slots, 8U);
}

TEST_F(CompanionMachine, KeepsItsNodesWhereThatCannotBe) {
  Begin(AskFor(16));
  companion_.OnShrink({.keep = {"bn1"}}, now_);
  Sent<CompanionKept>();
  Granted();
  companion_.OnShrink({.keep = {}}, now_);
  EXPECT_THAT(Sent<CompanionKept>().message, HasSubstr("release it"));
  companion_.OnShrink({.keep = {"cn0"}}, now_);
  EXPECT_THAT(Sent<CompanionKept>().message, HasSubstr("some of job 20's"));
  companion_.OnShrink({.keep = {"bn0"}}, now_);
  Called<Keep>();
  Reply(Error(Code::kInternal, "Slurm says no"));
  EXPECT_EQ(Sent<CompanionKept>().message, "Slurm says no");
}

TEST_F(CompanionMachine, AParentThatIsOverOrAtItsEndGetsNothing) {
  Begin(AskFor(16));
  Called<AskParent>();
  ReplyWith(Parent(kUnix));
  const auto refused = Sent<CompanionRefused>();
  EXPECT_EQ(refused.code, Code::kFailedPrecondition);
  EXPECT_THAT(refused.message, HasSubstr("job 7 is at the end of its time limit"));
  EXPECT_TRUE(finished_);
}

TEST_F(CompanionMachine, AnAskThatMakesNoSenseReachesNoSlurm) {
  Begin(AskFor(0));
  EXPECT_EQ(Sent<CompanionRefused>().code, Code::kInvalidArgument);
  EXPECT_TRUE(finished_);
  EXPECT_FALSE(call_);
}

TEST_F(CompanionMachine, AJobThatIsCancelledWhileItWaitsIsARefusal) {
  Begin(AskFor(1));
  Submitted(20);
  Called<Look>();
  ReplyWith(Over(20, "CANCELLED"));
  const auto refused = Sent<CompanionRefused>();
  EXPECT_EQ(refused.code, Code::kAborted);
  EXPECT_THAT(refused.message, HasSubstr("job 20 for 1 slot in partition 'booster' ended before it started"));
  EXPECT_TRUE(finished_);
}

TEST_F(CompanionMachine, NodesThatAreStillPreparedAreNotGranted) {
  Begin(AskFor(1));
  Submitted(20);
  Called<Look>();
  auto facts = Running(20, {Node("bn0", 1)});
  facts.preparing = true;
  ReplyWith(facts);
  EXPECT_EQ(Sent<CompanionPending>().reason, "Prolog");
  Called<Look>();
  ReplyWith(Running(20, {Node("bn0", 1)}));
  Called<AskParent>();
  ReplyWith(Parent());
  Sent<CompanionGranted>();
}

}  // namespace
}  // namespace msa::companion
