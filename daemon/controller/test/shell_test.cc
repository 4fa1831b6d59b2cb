#include "shell.h"

#include <map>
#include <memory>

#include <gtest/gtest.h>

#include "msa/support/run_until.h"

#include "secret.h"
#include "shell_support.h"
#include "user_names.h"

namespace msa {
namespace {

// Keeps nothing, fails when told to.
class FakeStore : public JobStore {
 public:
  Result<StoredState> LoadAll() override { return StoredState{}; }
  Status Commit(const std::vector<StoreChange>& changes) override {
    if (full) return Status(Code::kResourceExhausted, "disk is full");
    commits += 1;
    last = changes.size();
    for (const StoreChange& change : changes)
      if (const auto* put = std::get_if<effect::PutJob>(&change)) written = put->record;
    return Status::Ok();
  }
  std::int64_t SizeBytes() const override { return 0; }

  bool full = false;
  int commits = 0;
  std::size_t last = 0;
  JobRecord written;  // the newest
};

struct Sent {
  std::vector<JobId> started;
  std::vector<JobId> to_jobd;
  int registered = 0;
  std::vector<Status> closed;
};

class FakeLink : public NodeLink {
 public:
  explicit FakeLink(Sent& sent) : sent_(sent) {}
  void Send(const node_control::Registered&) override { sent_.registered += 1; }
  void Send(node_control::StartJob command) override { sent_.started.push_back(command.job); }
  void Send(node_control::ToJobd command) override { sent_.to_jobd.push_back(command.job); }
  void Send(const node_control::QuitJob&) override {}
  void Send(node_control::ToNamd) override {}
  void Send(node_control::ToSlurm) override {}
  void Close(Status why) override { sent_.closed.push_back(std::move(why)); }

 private:
  Sent& sent_;
};

class ShellTest : public ::testing::Test {
 protected:
  ShellTest()
      : loop_(std::move(*EventLoop::Create())),
        controller_(OneNode("cluster", {.name = "cn0", .cores = 4}), {}),
        shell_(*loop_, controller_, store_, {.system_name = "test", .commit_retry = Millis(5)}) {
    EXPECT_TRUE(shell_.Start().ok());
  }

  void Register() {
    shell_.AddLink("cn0", 1, std::make_shared<FakeLink>(sent_));
    shell_.Handle(
        event::NodeRegistered{.node = "cn0", .session = 1, .facts = {.cores = 4, .machine_cores = 4}});
    Settle();
  }

  static event::Submit Submission(const std::string& token) {
    event::Submit submit{.token = token, .user_name = "me"};
    submit.spec.cwd = "/";
    submit.spec.components.resize(1);
    submit.spec.components[0].resources.ntasks = 1;
    submit.spec.components[0].argv = {"true"};
    submit.secret = *MakeSecret();
    return submit;
  }
  void Submit(const std::string& token, Shell::ReplyCallback reply) {
    shell_.Request(Submission(token), std::move(reply));
  }
  struct Told {
    Status status;
    JobId job;
    int commits = 0;  // when it was told
  };
  // By token; the module "boster" is none.
  std::map<std::string, Told> SubmitAll(const std::vector<event::Submit>& submits) {
    std::vector<Shell::Submission> all;
    auto told = std::make_shared<std::map<std::string, Told>>();
    for (const event::Submit& submit : submits)
      all.push_back({submit, [this, told, token = submit.token](const Status& status, JobId job) {
                       (*told)[token] = {status, job, store_.commits};
                     }});
    shell_.RequestAll(std::move(all));
    return *told;
  }

  // Runs what is posted and due.
  void Settle() {
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(loop_->RunOnce(Millis(0)).ok());
  }
  bool SettleUntil(const std::function<bool()>& condition) {
    return support::RunUntil(*loop_, Millis(5'000), condition);
  }

  // So many jobs are started. After a pass that took long the next one waits a little.
  bool Starts(std::size_t jobs) {
    return SettleUntil([&] { return sent_.started.size() >= jobs; });
  }

  std::unique_ptr<EventLoop> loop_;
  FakeStore store_;
  Controller controller_;
  Shell shell_;
  Sent sent_;
};

TEST_F(ShellTest, RepliesAfterTheCommitAndThenStartsTheJob) {
  Register();
  const int before = store_.commits;
  int commits_at_reply = 0;
  Submit("t", [&](const Status& status, JobId job) {
    EXPECT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(job, JobId(1));
    commits_at_reply = store_.commits;
  });
  EXPECT_EQ(commits_at_reply, before + 1);
  EXPECT_TRUE(sent_.started.empty());
  ASSERT_TRUE(Starts(1));
  EXPECT_EQ(sent_.started, std::vector<JobId>{JobId(1)});
  EXPECT_EQ(store_.commits, before + 2);
}

TEST_F(ShellTest, AnswersACallAboutMemoryOnce) {
  int answers = 0;
  shell_.CallNam({.request = wire::NamOpen{.region = "none"}},
                 [&](const Status& status, const NamReplyBody&) {
                   EXPECT_FALSE(status.ok());
                   answers += 1;
                 });
  EXPECT_EQ(answers, 1);
  shell_.Stop();
  EXPECT_EQ(answers, 1);
  Status after;
  shell_.CallNam({.request = wire::NamUsageAsk{}},
                 [&](const Status& status, const NamReplyBody&) { after = status; });
  EXPECT_EQ(after.code(), Code::kUnavailable);
}

TEST_F(ShellTest, UndoesASubmitThatCannotBeCommitted) {
  store_.full = true;
  Status told;
  Submit("t", [&](const Status& status, JobId) { told = status; });
  EXPECT_EQ(told.code(), Code::kResourceExhausted);
  EXPECT_NE(told.message().find("disk is full"), std::string::npos);
  EXPECT_TRUE(controller_.ListJobs({.ended = true}).empty());
  EXPECT_TRUE(controller_.CheckInvariants().ok());
  store_.full = false;
  JobId job;
  Submit("t", [&](const Status& status, JobId id) {
    EXPECT_TRUE(status.ok());
    job = id;
  });
  EXPECT_NE(job, JobId(0));
}

TEST_F(ShellTest, SubmissionsThatCameTogetherShareACommit) {
  const int before = store_.commits;
  std::vector<event::Submit> submits = {Submission("a"), Submission("b"), Submission("c"), Submission("a")};
  submits[1].spec.components[0].resources.module = "boster";
  auto told = SubmitAll(submits);
  EXPECT_EQ(store_.commits, before + 1);
  EXPECT_EQ(store_.last, 2u);
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told["a"].job, JobId(1)) << "the second one with its token is the first";
  EXPECT_EQ(told["c"].job, JobId(2));
  EXPECT_EQ(told["a"].commits, before + 1) << "answered before it was on disk";
  EXPECT_EQ(told["b"].status.code(), Code::kNotFound) << "one that is refused takes others with it";
}

TEST_F(ShellTest, AFailedCommitRefusesTheSubmissionsThatSharedItAndNoOther) {
  JobId on_disk;
  Submit("early", [&](const Status&, JobId id) { on_disk = id; });
  store_.full = true;
  std::vector<event::Submit> submits = {Submission("a"), Submission("early"), Submission("b"),
                                        Submission("bad"), Submission("a")};
  submits[3].spec.components[0].resources.module = "boster";
  auto told = SubmitAll(submits);
  ASSERT_EQ(told.size(), 4u);
  for (const char* token : {"a", "b"}) {
    EXPECT_EQ(told[token].status.code(), Code::kResourceExhausted) << token;
    EXPECT_NE(told[token].status.message().find("disk is full"), std::string::npos);
    EXPECT_EQ(told[token].job, JobId(0));
  }
  EXPECT_TRUE(told["early"].status.ok());
  EXPECT_EQ(told["early"].job, on_disk);
  EXPECT_EQ(told["bad"].status.code(), Code::kNotFound);
  EXPECT_TRUE(controller_.CheckInvariants().ok());
  EXPECT_EQ(controller_.ListJobs({.ended = true}).size(), 1u);
  store_.full = false;
  told = SubmitAll(submits);
  EXPECT_TRUE(told["a"].status.ok() && told["b"].status.ok()) << "the tokens of refused jobs are still taken";
  EXPECT_EQ(controller_.ListJobs({.ended = true}).size(), 3u);
  Register();
  ASSERT_TRUE(Starts(3));
  EXPECT_EQ(sent_.started.size(), 3u) << "a job that was refused is started, or one that was taken is not";
}

TEST_F(ShellTest, AGroupOfSubmissionsHasALimit) {
  std::vector<event::Submit> submits;
  for (int i = 0; i < 1500; ++i) submits.push_back(Submission(std::to_string(i)));
  const int before = store_.commits;
  EXPECT_EQ(SubmitAll(submits).size(), submits.size());
  EXPECT_EQ(store_.commits, before + 2);
  EXPECT_EQ(controller_.System().jobs_pending, 1500u);
}

TEST_F(ShellTest, ReportsThatCameTogetherShareACommitWithOneRecordOfEachJob) {
  Register();
  std::vector<JobId> jobs;
  for (const char* token : {"a", "b"}) Submit(token, [&](const Status&, JobId id) { jobs.push_back(id); });
  ASSERT_TRUE(Starts(2));
  EXPECT_EQ(sent_.started.size(), 2u);
  const int before = store_.commits;
  for (const JobId job : jobs) {
    shell_.Handle(event::FromJobd{"cn0", job, Incarnation(1), wire::JobStarted{}});
    shell_.Handle(event::FromJobd{
        "cn0", job, Incarnation(1),
        wire::JobExit{.job = job, .incarnation = Incarnation(1), .state = JobState::kCompleted}});
  }
  EXPECT_EQ(store_.commits, before);
  EXPECT_TRUE(sent_.to_jobd.empty()) << "an end was acknowledged before it was on disk";
  ASSERT_TRUE(SettleUntil([&] { return sent_.to_jobd.size() == 2; }));
  EXPECT_EQ(store_.commits, before + 1);
  EXPECT_EQ(store_.last, 2u);
  for (const JobId job : jobs) EXPECT_EQ(controller_.GetJob(job)->record->state, JobState::kCompleted);
}

TEST_F(ShellTest, AnEndThatCouldNotBeWrittenKeepsTheTimeWhenItCame) {
  Register();
  JobId job;
  Submit("t", [&](const Status&, JobId id) { job = id; });
  Settle();
  store_.full = true;
  shell_.Handle(event::FromJobd{"cn0", job, Incarnation(1), wire::JobStarted{}});  // finds the disk full
  shell_.Handle(event::JobdGone{"cn0", job, Incarnation(1), "killed", false});
  const Instant came = Now();
  while (Now() < came + Millis(50)) EXPECT_TRUE(loop_->RunOnce(Millis(5)).ok());
  const Instant full_until = Now();
  store_.full = false;
  ASSERT_TRUE(SettleUntil([&] { return IsFinal(controller_.GetJob(job)->record->state); }));
  EXPECT_LE(store_.written.ended_at, came);
  EXPECT_LT(store_.written.ended_at, full_until);
}

TEST_F(ShellTest, HoldsAPlacementUntilTheDiskHasRoom) {
  Register();
  Submit("t", [](const Status&, JobId) {});
  store_.full = true;  // before the pass that places it
  Settle();
  EXPECT_TRUE(sent_.started.empty());
  // Requests are refused at once, what nodes report waits.
  Status told;
  Submit("u", [&](const Status& status, JobId) { told = status; });
  EXPECT_EQ(told.code(), Code::kResourceExhausted);
  shell_.Handle(event::NodeHeartbeat{.node = "cn0", .session = 1, .load = 2.5});
  store_.full = false;
  ASSERT_TRUE(SettleUntil([&] { return !sent_.started.empty(); }));
  EXPECT_EQ(sent_.started, std::vector<JobId>{JobId(1)});
  EXPECT_EQ((*controller_.ListNodes("", {}))[0].load, 2.5);
  EXPECT_TRUE(controller_.CheckInvariants().ok());
}

TEST_F(ShellTest, AFullDiskKeepsNobodyFromEndingAJob) {
  Register();
  JobId job;
  Submit("t", [&](const Status&, JobId id) { job = id; });
  ASSERT_TRUE(Starts(1));
  EXPECT_EQ(sent_.started.size(), 1u);
  store_.full = true;
  Status told;
  const auto cancel = [&](bool now) {
    sent_.to_jobd.clear();
    told = Status::Ok();
    shell_.Request(event::Cancel{.job = job, .now = now},
                   [&](const Status& status, JobId) { told = status; });
  };
  for (const bool again : {false, true}) {  // the one that finds the disk full, and one that comes later
    cancel(again);
    EXPECT_EQ(sent_.to_jobd, std::vector<JobId>{job});
    EXPECT_EQ(told.code(), Code::kResourceExhausted);
    EXPECT_NE(told.message().find("disk is full"), std::string::npos) << told.message();
  }
  shell_.Request(event::Cancel{.job = JobId(77)}, [&](const Status& status, JobId) { told = status; });
  EXPECT_EQ(told.code(), Code::kNotFound);
  const int before = store_.commits;
  store_.full = false;
  ASSERT_TRUE(SettleUntil([&] { return store_.commits > before; }));
  EXPECT_EQ(controller_.GetJob(job)->record->state, JobState::kEnding);
  EXPECT_TRUE(controller_.CheckInvariants().ok());
}

TEST_F(ShellTest, SendsNothingToANodeBeforeItIsRegistered) {
  Submit("t", [](const Status&, JobId) {});
  shell_.AddLink("cn0", 1, std::make_shared<FakeLink>(sent_));
  Settle();
  EXPECT_TRUE(sent_.started.empty());
  EXPECT_EQ(sent_.registered, 0);
}

TEST_F(ShellTest, ANewerSessionReplacesTheOlderWhoseEndThenMeansNothing) {
  Register();
  shell_.AddLink("cn0", 2, std::make_shared<FakeLink>(sent_));
  shell_.Handle(
      event::NodeRegistered{.node = "cn0", .session = 2, .facts = {.cores = 4, .machine_cores = 4}});
  ASSERT_EQ(sent_.closed.size(), 1u);
  EXPECT_EQ(sent_.closed[0].code(), Code::kAborted);
  shell_.DropLink("cn0", 1);
  Submit("t", [](const Status&, JobId) {});
  ASSERT_TRUE(Starts(1));
  EXPECT_EQ(sent_.started.size(), 1u);
}

TEST_F(ShellTest, TellsWatchersTheStateAtOnceAndEachChange) {
  Register();
  JobId job;
  std::vector<JobState> seen;
  Submit("t", [&](const Status&, JobId id) { job = id; });
  const auto watch = shell_.Watch(job, [&](const JobView& view) { seen.push_back(view.record->state); });
  ASSERT_TRUE(watch.ok());
  EXPECT_EQ(seen, std::vector<JobState>{JobState::kPending});
  Settle();
  EXPECT_EQ(seen.back(), JobState::kStarting);
  shell_.Unwatch(*watch);
  const std::size_t count = seen.size();
  shell_.Request(event::Cancel{.job = job, .now = true}, [](const Status&, JobId) {});
  EXPECT_EQ(seen.size(), count);
  EXPECT_EQ(shell_.Watch(JobId(77), [](const JobView&) {}).status().code(), Code::kNotFound);
}

TEST_F(ShellTest, AnswersRequestsAsUnavailableOnceItStops) {
  Register();
  shell_.Stop();
  Status told;
  Submit("t", [&](const Status& status, JobId) { told = status; });
  EXPECT_EQ(told.code(), Code::kUnavailable);
  EXPECT_EQ(sent_.closed.size(), 1u);
}

TEST(Secret, IsDifferentEachTime) {
  const auto first = MakeSecret();
  const auto second = MakeSecret();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->size(), 64u);
  EXPECT_NE(*first, *second);
}

TEST(UserNames, GivesTheNumberOfAUserWithoutAName) {
  UserNames names;
  EXPECT_EQ(names.Of(0), "root");
  EXPECT_EQ(names.Of(4000000001u), "4000000001");
  EXPECT_EQ(names.Of(0), "root");
}

}  // namespace
}  // namespace msa
