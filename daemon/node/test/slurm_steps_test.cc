#include "slurm_steps.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loop_fixture.h"

namespace msa::node {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A real socket below; the controller and the job daemons are this test's.
class SlurmStepsTest : public test::LoopTest {
 protected:
  // One slurmstepd.
  struct Stepd {
    std::unique_ptr<FrameChannel> channel;
    std::vector<wire::SlurmStepVerdict> verdicts;
    std::vector<wire::SlurmStepAbort> aborts;
  };
  explicit SlurmStepsTest(Millis ends_later = SlurmSteps::kEndsLater) {
    PluginSocket::Options options;
    options.node = "cn0";
    options.path = dir_ / "plugin.sock";
    SlurmSteps::Outlets outlets;
    outlets.to_controller = [this](wire::Frame frame) {
      if (connected_) told_.push_back(std::move(frame));
      return connected_;
    };
    outlets.to_jobd = [this](const JobKey& key, wire::Frame frame) {
      EXPECT_EQ(key, kJob);
      to_jobd_.push_back(frame.type);
    };
    outlets.job_socket = [this](const JobKey& key) -> std::optional<std::string> {
      if (key == kJob && up_) return "/n/cn0/w1/job.sock";
      return std::nullopt;
    };
    outlets.expect = [this](JobId job, const UserIdentity& user) { expected_.emplace_back(job, user); };
    steps_ = std::make_unique<SlurmSteps>(*loop_, options, std::move(outlets), ends_later);
    EXPECT_TRUE(steps_->Listen().ok());
  }
  Stepd& Connect() {
    Stepd& stepd = *stepds_.emplace_back(std::make_unique<Stepd>());
    FrameChannel::Handlers handlers;
    handlers.on_frame = [&stepd](const wire::Frame& frame) {
      if (frame.type == wire::SlurmStepVerdict::kType)
        stepd.verdicts.push_back(*wire::Decode<wire::SlurmStepVerdict>(frame.payload));
      if (frame.type == wire::SlurmStepAbort::kType)
        stepd.aborts.push_back(*wire::Decode<wire::SlurmStepAbort>(frame.payload));
    };
    handlers.on_closed = [](const Status&) {};
    stepd.channel = ConnectTo("plugin.sock", std::move(handlers));
    return stepd;
  }
  static wire::SlurmStepBegin Like(std::uint32_t step, std::uint64_t component = 7) {
    wire::SlurmStepBegin begin;
    begin.job = kJob.job;
    begin.component_job = JobId(component);
    begin.step = StepId(step);
    begin.nodes = {{"cn0", 1}};
    begin.user = {4321, 100};
    return begin;
  }
  Stepd& BeginQuietly(std::uint32_t step) {
    Stepd& stepd = Connect();
    stepd.channel->SendMessage(Like(step));
    return stepd;
  }
  Stepd& BeginStep(std::uint32_t step, std::uint64_t component = 7) {
    Stepd& stepd = Connect();
    stepd.channel->SendMessage(Like(step, component));
    const std::size_t before = told_.size();
    EXPECT_TRUE(Until([&] { return !connected_ || told_.size() > before; }));
    return stepd;
  }
  void Judge(std::uint32_t step, bool accepted, bool withdrawn = false) {
    wire::SlurmStepVerdict verdict;
    verdict.job = kJob.job;
    verdict.step = StepId(step);
    verdict.accepted = accepted;
    verdict.incarnation = kJob.incarnation;
    verdict.withdrawn = withdrawn;
    if (!accepted) verdict.message = "node cn1 has no node daemon";
    EXPECT_TRUE(steps_->OnController({wire::SlurmStepVerdict::kType, 0, 0, wire::Encode(verdict)}).ok());
  }
  Stepd& AcceptedStep(std::uint32_t step) {
    up_ = true;
    Stepd& stepd = BeginStep(step);
    Judge(step, true);
    EXPECT_TRUE(Until([&] { return stepd.verdicts.size() == 1; }));
    return stepd;
  }
  void BeginTask(Stepd& stepd, std::uint32_t step, pid_t pid) {
    wire::SlurmTaskBegin begin;
    begin.job = kJob.job;
    begin.step = StepId(step);
    begin.pid = pid;
    stepd.channel->SendMessage(begin);
  }
  static wire::SlurmTaskEnd EndOf(std::uint32_t step, pid_t pid, int status = 0, bool first = false) {
    return {kJob.job, StepId(step), pid, status, first};
  }
  void EndTask(Stepd& stepd, std::uint32_t step, pid_t pid) {
    stepd.channel->SendMessage(EndOf(step, pid));
    const std::size_t before = to_jobd_.size();
    EXPECT_TRUE(Until([&] { return to_jobd_.size() > before; }));
  }
  template <class M>
  std::vector<M> Told() const {
    std::vector<M> out;
    for (const wire::Frame& frame : told_)
      if (frame.type == M::kType) out.push_back(*wire::Decode<M>(frame.payload));
    return out;
  }
  // What is under way arrives.
  void Turn() {
    for (int round = 0; round < 20; ++round) EXPECT_TRUE(loop_->RunOnce(Millis(2)).ok());
  }

  static constexpr JobKey kJob{JobId(7), Incarnation(2)};
  std::vector<wire::Frame> told_;  // to the controller
  std::vector<std::uint16_t> to_jobd_;
  std::vector<std::pair<JobId, UserIdentity>> expected_;
  bool connected_ = true;
  bool up_ = false;  // the job daemon
  std::unique_ptr<SlurmSteps> steps_;
  std::vector<std::unique_ptr<Stepd>> stepds_;
};

TEST_F(SlurmStepsTest, AnAcceptedStepBeginsWhenItsJobDaemonIsUp) {
  Stepd& stepd = BeginStep(0);
  Judge(0, true);
  Turn();
  EXPECT_TRUE(stepd.verdicts.empty());
  up_ = true;
  steps_->OnHere(kJob);
  ASSERT_TRUE(Until([&] { return stepd.verdicts.size() == 1; }));
  EXPECT_TRUE(stepd.verdicts[0].accepted);
  EXPECT_EQ(stepd.verdicts[0].job_socket, "/n/cn0/w1/job.sock");
}

TEST_F(SlurmStepsTest, AStepThatBeginsHasItsJobDaemonMadeReadyBeforeItIsJudged) {
  BeginStep(0);
  EXPECT_EQ(expected_, (std::vector{std::pair(kJob.job, UserIdentity{4321, 100})}));
}

TEST_F(SlurmStepsTest, AStepInACompanionIsOfItsParentsJobDaemon) {
  Stepd& stepd = Connect();
  wire::SlurmStepBegin begin;
  begin.job = begin.component_job = JobId(31);
  begin.nodes = {{"cn0", 1}};
  stepd.channel->SendMessage(begin);
  ASSERT_TRUE(Until([&] { return !told_.empty(); }));
  wire::SlurmStepVerdict verdict;
  verdict.job = JobId(31);
  verdict.accepted = true;
  verdict.incarnation = kJob.incarnation;
  verdict.parent = kJob.job;
  EXPECT_TRUE(steps_->OnController({wire::SlurmStepVerdict::kType, 0, 0, wire::Encode(verdict)}).ok());
  Turn();
  EXPECT_TRUE(stepd.verdicts.empty());
  up_ = true;
  steps_->OnHere(kJob);
  ASSERT_TRUE(Until([&] { return stepd.verdicts.size() == 1; }));
  EXPECT_EQ(stepd.verdicts[0].job_socket, "/n/cn0/w1/job.sock");
  stepd.channel->Close();
  ASSERT_TRUE(Until([&] { return !to_jobd_.empty(); }));
  EXPECT_THAT(to_jobd_, ::testing::ElementsAre(wire::SlurmStepEnd::kType));
  EXPECT_EQ(Told<wire::SlurmStepEnd>()[0].job, JobId(31));
}

TEST_F(SlurmStepsTest, ARefusalGoesToThePluginAsItIs) {
  Stepd& stepd = BeginStep(0);
  Judge(0, false);
  ASSERT_TRUE(Until([&] { return stepd.verdicts.size() == 1; }));
  EXPECT_FALSE(stepd.verdicts[0].accepted);
  EXPECT_EQ(stepd.verdicts[0].message, "node cn1 has no node daemon");
}

TEST_F(SlurmStepsTest, AJobDaemonThatCannotStartRefusesTheStepThatWaitsForIt) {
  Stepd& stepd = BeginStep(0);
  Judge(0, true);
  steps_->OnGone({kJob.job, Incarnation(1)}, "of an earlier run");
  steps_->OnGone(kJob, "no job daemon could be started in 3 attempts");
  ASSERT_TRUE(Until([&] { return stepd.verdicts.size() == 1; }));
  EXPECT_FALSE(stepd.verdicts[0].accepted);
  EXPECT_THAT(stepd.verdicts[0].message, AllOf(HasSubstr("cn0"), HasSubstr("in 3 attempts")));
}

TEST_F(SlurmStepsTest, ADeadJobDaemonTakesTheTasksOfItsStepsAlongAndSaysWhy) {
  const pid_t task = ::fork();
  if (task == 0) {
    for (;;) ::pause();
  }
  const pid_t ended = ::fork();
  if (ended == 0) ::_exit(0);
  Stepd& stepd = AcceptedStep(0);
  BeginTask(stepd, 0, task);
  BeginTask(stepd, 0, ended);
  EndTask(stepd, 0, ended);
  steps_->OnGone(kJob, "job daemon of job 7 on cn0 was killed by signal 9 (Killed)");
  int status = 0;
  ASSERT_EQ(::waitpid(task, &status, 0), task);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  ASSERT_TRUE(Until([&] { return stepd.aborts.size() == 1; }));
  EXPECT_THAT(stepd.aborts[0].message, AllOf(HasSubstr("cn0"), HasSubstr("signal 9")));
  steps_->OnGone(kJob, "again");
  ASSERT_EQ(::waitpid(ended, &status, 0), ended);
  EXPECT_TRUE(WIFEXITED(status)) << "not killed: its end was told";
  EXPECT_EQ(stepd.aborts.size(), 1u);
}

TEST_F(SlurmStepsTest, ThatTheJobHasEndedIsTheReasonWhereTheControllerEndedIt) {
  Stepd& stepd = AcceptedStep(0);
  steps_->OnQuit(kJob, "node bn0 is down");
  steps_->OnGone(kJob, "job daemon of job 7 on cn0 exited with code 0");
  ASSERT_TRUE(Until([&] { return stepd.aborts.size() == 1; }));
  EXPECT_THAT(stepd.aborts[0].message, HasSubstr("node bn0 is down"));
}

TEST_F(SlurmStepsTest, EndsGoToTheJobDaemonAndToTheController) {
  Stepd& stepd = AcceptedStep(0);
  EndTask(stepd, 0, 4711);
  stepd.channel->Close();
  ASSERT_TRUE(Until([&] { return !Told<wire::SlurmStepEnd>().empty() && to_jobd_.size() == 2; }));
  EXPECT_THAT(to_jobd_, ::testing::ElementsAre(wire::SlurmTaskEnd::kType, wire::SlurmStepEnd::kType));
  EXPECT_EQ(Told<wire::SlurmStepEnd>()[0].step, StepId(0));
  told_.clear();
  steps_->OnRegistered();
  EXPECT_TRUE(told_.empty());
}

// Where ends wait for the next word, however long that takes.
class SlurmEndsTest : public SlurmStepsTest {
 protected:
  SlurmEndsTest() : SlurmStepsTest(std::chrono::hours(1)) {}
  void EndWell(Stepd& stepd, pid_t pid) {
    const std::size_t before = to_jobd_.size();
    stepd.channel->SendMessage(EndOf(0, pid));
    Turn();
    EXPECT_EQ(to_jobd_.size(), before) << "it waits";
  }
  static constexpr std::uint16_t kEnd = wire::SlurmTaskEnd::kType;
};

TEST_F(SlurmEndsTest, AGoodEndWaitsForThatOfRankZeroOrForAFailure) {
  Stepd& stepd = AcceptedStep(0);
  EndWell(stepd, 4711);
  stepd.channel->SendMessage(EndOf(0, 4712, 0, true));
  ASSERT_TRUE(Until([&] { return to_jobd_.size() == 2; }));
  EndWell(stepd, 4713);
  stepd.channel->SendMessage(EndOf(0, 4714, SIGSEGV));
  ASSERT_TRUE(Until([&] { return to_jobd_.size() == 4; }));
  EXPECT_THAT(to_jobd_, ::testing::Each(kEnd));
}

TEST_F(SlurmEndsTest, TheEndOfAStepWaitsWithThemAndTheNextStepBringsAll) {
  Stepd& stepd = AcceptedStep(0);
  EndWell(stepd, 4711);
  stepd.channel->Close();
  Turn();
  EXPECT_THAT(to_jobd_, ::testing::IsEmpty());
  BeginQuietly(1);
  ASSERT_TRUE(Until([&] { return to_jobd_.size() == 2; }));
  EXPECT_THAT(to_jobd_, ::testing::ElementsAre(kEnd, wire::SlurmStepEnd::kType));
}

TEST_F(SlurmEndsTest, TheEndOfAStepWhoseTaskNobodyToldOfIsToldAtOnce) {
  Stepd& stepd = AcceptedStep(0);
  BeginTask(stepd, 0, ::getpid());
  stepd.channel->Close();
  ASSERT_TRUE(Until([&] { return !to_jobd_.empty(); }));
  EXPECT_THAT(to_jobd_, ::testing::ElementsAre(wire::SlurmStepEnd::kType));
}

TEST_F(SlurmEndsTest, EndsThatWaitAreToldBeforeAJobEndsOrTheControllerHasAWord) {
  Stepd& stepd = AcceptedStep(0);
  EndWell(stepd, 4711);
  Connect().channel->SendMessage(wire::SlurmJobEnd{kJob.job});
  ASSERT_TRUE(Until([&] { return !Told<wire::SlurmJobEnd>().empty(); }));
  EXPECT_EQ(to_jobd_.size(), 1u);
  EndWell(stepd, 4712);
  steps_->OnCommand(kJob);
  EXPECT_EQ(to_jobd_.size(), 2u);
  EndWell(stepd, 4713);
  steps_->OnQuit(kJob, "over");
  EXPECT_EQ(to_jobd_.size(), 3u);
}

TEST_F(SlurmStepsTest, AControllerThatComesBackIsToldOfStepsAndOfEndsThatItMayHaveMissed) {
  AcceptedStep(0);
  BeginStep(1, 8);
  connected_ = false;
  wire::SlurmJobEnd end;
  end.component_job = JobId(5);
  Connect().channel->SendMessage(end);
  end.component_job = JobId(6);
  Connect().channel->SendMessage(end);
  Turn();
  connected_ = true;
  told_.clear();
  steps_->OnRegistered();
  ASSERT_EQ(Told<wire::SlurmJobEnd>().size(), 2u);
  ASSERT_EQ(Told<wire::SlurmStepBegin>().size(), 2u);
  EXPECT_EQ(Told<wire::SlurmStepBegin>()[0].incarnation, kJob.incarnation) << "accepted by this run";
  EXPECT_EQ(Told<wire::SlurmStepBegin>()[1].incarnation, Incarnation(0)) << "still to be judged";
  // Job 6 begins here again: its end of before is over.
  BeginStep(2, 6);
  told_.clear();
  steps_->OnRegistered();
  ASSERT_EQ(Told<wire::SlurmJobEnd>().size(), 1u);
  EXPECT_EQ(Told<wire::SlurmJobEnd>()[0].component_job, JobId(5));
}

TEST_F(SlurmStepsTest, TheEndOfARunIsNotToldOfTheNextOneThatHoldsTheNodeWithoutAStep) {
  for (const std::uint64_t component : {6, 7, 8, 200}) {
    wire::SlurmJobEnd end;
    end.component_job = JobId(component);
    Connect().channel->SendMessage(end);
  }
  ASSERT_TRUE(Until([&] { return Told<wire::SlurmJobEnd>().size() == 4; }));
  steps_->OnLaunch(kJob.job);
  told_.clear();
  steps_->OnRegistered();
  const auto told = Told<wire::SlurmJobEnd>();
  ASSERT_EQ(told.size(), 2u) << "7, and 8, which may be a component of it, have begun again";
  EXPECT_EQ(told[0].component_job, JobId(6));
  EXPECT_EQ(told[1].component_job, JobId(200));
}

// ---- steps that are accepted here

TEST_F(SlurmStepsTest, AStepLikeOneThatWasAcceptedBeginsWithoutTheController) {
  AcceptedStep(0);
  told_.clear();
  connected_ = false;
  Stepd& stepd = BeginStep(1);
  ASSERT_TRUE(Until([&] { return stepd.verdicts.size() == 1; }));
  EXPECT_TRUE(stepd.verdicts[0].accepted);
  EXPECT_EQ(stepd.verdicts[0].job_socket, "/n/cn0/w1/job.sock");
  EXPECT_EQ(stepd.verdicts[0].incarnation, kJob.incarnation);
}

TEST_F(SlurmStepsTest, TheControllerIsToldOfAStepThatWasAcceptedHereAndMayWithdrawIt) {
  AcceptedStep(0);
  told_.clear();
  Stepd& stepd = BeginStep(1);  // which waits until the controller is told
  ASSERT_EQ(Told<wire::SlurmStepBegin>().size(), 1u);
  EXPECT_TRUE(Told<wire::SlurmStepBegin>()[0].accepted_here);
  EXPECT_EQ(Told<wire::SlurmStepBegin>()[0].incarnation, kJob.incarnation);
  ASSERT_TRUE(Until([&] { return stepd.verdicts.size() == 1; }));
  Judge(1, false);
  EXPECT_TRUE(to_jobd_.empty()) << "a word for those that still wait";
  Judge(1, false, true);
  EXPECT_THAT(to_jobd_, ::testing::ElementsAre(wire::SlurmStepVerdict::kType)) << "who knows whether it runs";
  Turn();
  EXPECT_TRUE(stepd.aborts.empty());
  // It has been wrong, and asks again.
  Stepd& next = BeginStep(2);
  Turn();
  EXPECT_TRUE(next.verdicts.empty());
  EXPECT_EQ(Told<wire::SlurmStepBegin>().back().incarnation, Incarnation(0));
}

TEST_F(SlurmStepsTest, OfAStepThatIsOverAtOnceTheControllerHearsNothing) {
  AcceptedStep(0);
  told_.clear();
  Stepd& stepd = BeginQuietly(1);
  ASSERT_TRUE(Until([&] { return stepd.verdicts.size() == 1; }));
  stepd.channel->Close();
  ASSERT_TRUE(Until([&] { return !to_jobd_.empty(); })) << "its job daemon hears of the end";
  EXPECT_TRUE(told_.empty());
  steps_->OnRegistered();
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(Told<wire::SlurmStepBegin>()[0].step, StepId(0));
}

TEST_F(SlurmStepsTest, TheEndOfAPartThatTheControllerWasAskedForIsToldThoughAnotherWasAcceptedHere) {
  AcceptedStep(0);
  told_.clear();
  BeginQuietly(1);
  Stepd& asked = BeginStep(1, 8);
  asked.channel->Close();
  ASSERT_TRUE(Until([&] { return !Told<wire::SlurmStepEnd>().empty(); }));
  EXPECT_EQ(Told<wire::SlurmStepEnd>()[0].component_job, JobId(8));
}

TEST_F(SlurmStepsTest, AStepThatIsAnotherInAnythingIsTheControllersToJudge) {
  AcceptedStep(0);
  const wire::SlurmStepBegin like = Like(1);
  std::vector<std::pair<const char*, wire::SlurmStepBegin>> others;
  const auto other = [&](const char* what) -> wire::SlurmStepBegin& {
    return others.emplace_back(what, like).second;
  };
  other("another component").component_job = JobId(8);
  other("another leader").job = JobId(6);
  other("another user").user.uid = 1;
  other("a node more").nodes.push_back({"cn1", 1});
  other("no nodes").nodes.clear();
  other("other cores").cores = {3};
  other("other options").options.nam = "1G";
  other("a run after a requeue").restart_count = 1;
  other("another start").start_time = 17;
  std::uint32_t number = 10;
  for (auto& [what, begin] : others) {
    begin.step = StepId(++number);
    told_.clear();
    Stepd& stepd = Connect();
    stepd.channel->SendMessage(begin);
    ASSERT_TRUE(Until([&] { return !told_.empty(); })) << what;
    EXPECT_EQ(Told<wire::SlurmStepBegin>()[0].incarnation, Incarnation(0)) << what;
    EXPECT_TRUE(stepd.verdicts.empty()) << what;
  }
}

TEST_F(SlurmStepsTest, NothingIsAcceptedHereAfterTheJobHasEndedOrItsDaemonIsGone) {
  const std::vector<std::pair<const char*, std::function<void()>>> ends = {
      {"its epilog",
       [&] {
         wire::SlurmJobEnd end;
         end.component_job = kJob.job;
         Connect().channel->SendMessage(end);
         EXPECT_TRUE(Until([&] { return !Told<wire::SlurmJobEnd>().empty(); }));
       }},
      {"quit", [&] { steps_->OnQuit(kJob, "it is over"); }},
      {"over", [&] { steps_->OnOver(kJob); }},
      {"gone", [&] { steps_->OnGone(kJob, "killed"); }},
      {"begun again", [&] { steps_->OnLaunch(kJob.job); }},
      {"no job daemon", [&] { up_ = false; }}};
  std::uint32_t number = 0;
  for (const auto& [what, end] : ends) {
    AcceptedStep(number++);
    end();
    told_.clear();
    BeginStep(number++);
    EXPECT_EQ(Told<wire::SlurmStepBegin>()[0].incarnation, Incarnation(0)) << what;
  }
}

TEST_F(SlurmStepsTest, AnotherComponentOfAStepThatRunsGetsItsAnswerToo) {
  AcceptedStep(0);
  Stepd& second = BeginStep(0, 8);
  Judge(0, true);
  ASSERT_TRUE(Until([&] { return second.verdicts.size() == 1; }));
  EXPECT_TRUE(second.verdicts[0].accepted);
  EXPECT_EQ(stepds_.front()->verdicts.size(), 1u);
}

}  // namespace
}  // namespace msa::node
