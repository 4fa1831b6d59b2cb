// Scripts and allocations: what is checked, what is launched, how they end.
#include <gmock/gmock.h>

#include "harness.h"

namespace msa {
namespace {

using namespace job_test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

JobSpec Script(const std::string& text = "#!/bin/sh\nmsactl run ./a\n") {
  JobSpec spec = Harness::Spec("cluster", 2, 2);
  spec.components[0].argv.clear();
  spec.components.push_back(Harness::Spec("booster", 4).components[0]);
  spec.components[1].argv.clear();
  spec.components[1].resources.cpus_per_task = 2;
  spec.components[1].resources.ntasks_per_node = 2;
  spec.mode = wire::JobMode::kBatch;
  spec.name = "coupled.sh";
  spec.script = text;
  spec.script_args = {"-v", "input"};
  return spec;
}
JobSpec Alloc() {
  JobSpec spec = Script("");
  spec.script_args.clear();
  spec.name.clear();
  spec.mode = wire::JobMode::kAlloc;
  return spec;
}

class Batch : public testing::Test {
 protected:
  void SetUp() override { h.RegisterAll(); }
  std::shared_ptr<const wire::LaunchJob> LaunchOf(JobId id) {
    for (const auto& start : h.Sent<effect::SendStartJob>())
      if (start.job == id) return start.launch;
    ADD_FAILURE() << "job " << id.value << " was not launched";
    return std::make_shared<wire::LaunchJob>();
  }
  std::string ErrorOf(JobSpec spec) {
    const auto id = h.Submit(Harness::Request(std::move(spec)));
    EXPECT_EQ(id.status().code(), Code::kInvalidArgument);
    return id.status().message();
  }
  Harness h;
};

TEST_F(Batch, AScriptIsLaunchedAsOneTaskOnTheHeadWithItsComponents) {
  JobSpec spec = Script();
  spec.limits = {{7, 1024, 4096}};
  const JobId id = h.MustSubmit(spec);
  const auto launch = LaunchOf(id);
  EXPECT_EQ(launch->mode, wire::JobMode::kBatch);
  EXPECT_EQ(launch->script, spec.script);
  EXPECT_EQ(launch->step.step, wire::kBatchStep);
  EXPECT_EQ(launch->step.nspace, "msa.1.1.batch");
  ASSERT_EQ(launch->step.apps.size(), 1u);
  EXPECT_EQ(launch->step.apps[0].ntasks, 1u);
  EXPECT_THAT(launch->step.apps[0].argv, ElementsAre("coupled.sh", "-v", "input"));
  EXPECT_THAT(launch->step.rank_member, ElementsAre(launch->head_index));
  EXPECT_EQ(launch->step.stdio.out, "msa-%j.out");
  EXPECT_EQ(launch->step.stdio.in, "none");
  ASSERT_EQ(launch->step.limits.size(), 1u);
  EXPECT_EQ(launch->step.limits[0].soft, 1024u);
  EXPECT_EQ(h.Record(id).stdout_path, "/home/ada/msa-1.out");
}

TEST_F(Batch, TheComponentsAreToldAsTheyWerePlaced) {
  const auto launch = LaunchOf(h.MustSubmit(Script()));
  ASSERT_EQ(launch->components.size(), 2u);
  const wire::PlacedComponent& cluster = launch->components[0];
  EXPECT_EQ(cluster.module, "cluster");
  EXPECT_EQ(cluster.ntasks, 2u);
  ASSERT_EQ(cluster.shares.size(), 2u);
  EXPECT_EQ(cluster.shares[0].tasks, 1u);
  const wire::PlacedComponent& booster = launch->components[1];
  EXPECT_EQ(booster.module, "booster");
  EXPECT_EQ(booster.ntasks, 4u);
  EXPECT_EQ(booster.ntasks_per_node, 2u);
  EXPECT_EQ(booster.cpus_per_task, 2u);
  std::size_t cores = 0;
  for (const wire::ComponentShare& share : booster.shares) {
    cores += share.cores.size();
    EXPECT_EQ(launch->members.at(share.member).module_name, "booster");
  }
  EXPECT_EQ(cores, 8u);
}

TEST_F(Batch, AStepIsLaunchedAsEver) {
  const auto launch = LaunchOf(h.MustSubmit(Harness::Spec("cluster", 2)));
  EXPECT_EQ(launch->mode, wire::JobMode::kStep);
  EXPECT_TRUE(launch->components.empty());
  EXPECT_EQ(launch->step.nspace, "msa.1.1.0");
  EXPECT_THAT(launch->step.apps.at(0).argv, ElementsAre("./a.out", "x"));
}

TEST_F(Batch, AnAllocationIsLaunchedWithoutAProgram) {
  const JobId id = h.MustSubmit(Alloc(), true);
  const auto launch = LaunchOf(id);
  EXPECT_EQ(launch->mode, wire::JobMode::kAlloc);
  EXPECT_TRUE(launch->step.apps.empty());
  EXPECT_EQ(launch->components.size(), 2u);
  EXPECT_EQ(h.Record(id).spec.name, "alloc");
  EXPECT_EQ(h.Record(id).stdout_path, "");
}

TEST_F(Batch, TheOwnerOfAnAllocationEndsItWithItsCode) {
  const JobId good = h.MustRun(Alloc(), true);
  h.Clear();
  h.On(event::Cancel{.caller = kAda, .job = good, .done = true, .reply = 1});
  EXPECT_TRUE(h.TakeReply().status.ok());
  ASSERT_EQ(h.ToJobd<wire::CancelJob>().size(), 1u);
  EXPECT_EQ(h.ToJobd<wire::CancelJob>()[0].final_state, JobState::kCompleted);
  h.End(good);
  EXPECT_EQ(h.State(good), JobState::kCompleted);
  EXPECT_EQ(h.Reason(good), "");
  const JobId bad = h.MustRun(Alloc(), true);
  h.Clear();
  h.On(event::Cancel{.caller = kAda, .job = bad, .done = true, .exit_code = 3, .reply = 1});
  EXPECT_EQ(h.ToJobd<wire::CancelJob>().at(0).final_state, JobState::kFailed);
  EXPECT_EQ(h.ToJobd<wire::CancelJob>().at(0).exit_code, 3);
  // Its job daemon does not answer: the owner's word stands.
  h.Live(Millis(30'000));
  EXPECT_EQ(h.State(bad), JobState::kFailed);
  EXPECT_EQ(h.Record(bad).exit_code, 3);
}

TEST_F(Batch, OnlyAnAllocationIsGivenUp) {
  const JobId step = h.MustRun(Harness::Spec("cluster", 1));
  h.Clear();
  h.On(event::Cancel{.caller = kAda, .job = step, .done = true, .reply = 1});
  EXPECT_EQ(h.TakeReply().status.code(), Code::kFailedPrecondition);
  const JobId alloc = h.MustRun(Alloc(), true);
  h.Clear();
  h.On(event::Cancel{.caller = kBob, .job = alloc, .done = true, .reply = 1});
  EXPECT_EQ(h.TakeReply().status.code(), Code::kPermissionDenied);
  h.On(event::Cancel{.caller = kAda, .job = alloc, .done = true, .exit_code = 256, .reply = 1});
  EXPECT_EQ(h.TakeReply().status.code(), Code::kInvalidArgument);
  EXPECT_EQ(h.State(alloc), JobState::kRunning);
}

TEST_F(Batch, AnAllocationGivenUpInTheQueueIsCancelled) {
  h.MustRun(Harness::Spec("cluster", 8, 2));
  const JobId waiting = h.MustSubmit(Alloc(), true);
  ASSERT_EQ(h.State(waiting), JobState::kPending);
  h.Clear();
  h.On(event::Cancel{.caller = kAda, .job = waiting, .done = true, .reply = 1});
  EXPECT_TRUE(h.TakeReply().status.ok());
  EXPECT_EQ(h.State(waiting), JobState::kCancelled);
}

TEST_F(Batch, TheTimeLimitEndsAScriptAsTimeout) {
  JobSpec spec = Script();
  spec.time_limit_s = 60;
  h.MustRun(spec);
  h.Clear();
  h.Live(Millis(61'000));
  EXPECT_EQ(h.ToJobd<wire::CancelJob>().at(0).final_state, JobState::kTimeout);
}

TEST_F(Batch, TheTextOfAScriptIsDroppedWithItsEnd) {
  const JobId id = h.MustRun(Script("#!/bin/sh\n" + std::string(100'000, '#')));
  h.Restart();
  EXPECT_EQ(h.Record(id).spec.script.size(), 100'010u) << "it may have to be sent again";
  h.RegisterAll();
  h.End(id);
  EXPECT_EQ(h.Record(id).spec.script.capacity(), std::string().capacity());
  for (const JobRecord& record : h.store().Load().jobs) EXPECT_EQ(record.spec.script, "");
}

TEST_F(Batch, ALostNodeEndsNoJobWhoseStepsItsHeadLooksAfter) {
  const JobId id = h.MustRun(Alloc());
  const JobRecord record = h.Record(id);
  const auto other = std::find_if(record.members.begin(), record.members.end(),
                                  [&](const wire::Member& member) { return member.index != record.head; });
  ASSERT_NE(other, record.members.end());
  h.On(event::JobdGone{other->node, id, Incarnation(1), "killed by signal 9 (Killed)", false});
  EXPECT_EQ(h.State(id), JobState::kRunning);
  const std::string head = record.FindMember(record.head)->node;
  h.On(event::JobdGone{head, id, Incarnation(1), "killed by signal 9 (Killed)", false});
  EXPECT_TRUE(IsFinal(h.State(id)));
}

TEST_F(Batch, AScriptWithoutItsFirstLineOrBeyondItsLimitIsRefused) {
  EXPECT_THAT(ErrorOf(Script("echo hello\n")), HasSubstr("'#!'"));
  EXPECT_THAT(ErrorOf(Script("")), HasSubstr("'#!'"));
  EXPECT_THAT(ErrorOf(Script("#!/bin/sh\n" + std::string(1, '\0'))), HasSubstr("zero byte"));
  EXPECT_THAT(ErrorOf(Script("#!/bin/sh\n" + std::string(kMaxScriptBytes, 'x'))), HasSubstr("4194304"));
}

TEST_F(Batch, ProgramsAndScriptsAreNotMixed) {
  JobSpec both = Script();
  both.components[1].argv = {"./a.out"};
  EXPECT_THAT(ErrorOf(both), HasSubstr("./a.out"));
  JobSpec step = Harness::Spec("cluster", 1);
  step.script = "#!/bin/sh\n";
  EXPECT_THAT(ErrorOf(step), HasSubstr("script"));
  JobSpec none = Harness::Spec("cluster", 1);
  none.components[0].argv.clear();
  EXPECT_THAT(ErrorOf(none), HasSubstr("no program"));
  JobSpec mode = Harness::Spec("cluster", 1);
  mode.mode = static_cast<wire::JobMode>(7);
  EXPECT_THAT(ErrorOf(mode), HasSubstr("mode 7"));
}

}  // namespace
}  // namespace msa
