// Tasks that Slurm starts, with processes and a pipe in the place of Slurm's.
#include "slurm_tasks.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/base/leave_order.h"
#include "msa/support/run_until.h"

namespace msa::jobd {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class SlurmTasksTest : public ::testing::Test {
 protected:
  struct Answer {
    std::uint64_t client = 0;
    wire::SlurmTaskReady ready;
    bool with_descriptor = false;
  };
  SlurmTasksTest() {
    loop_ = std::move(*EventLoop::Create());
    SlurmTasks::Handlers handlers;
    handlers.answer = [this](std::uint64_t client, const wire::SlurmTaskReady& ready, UniqueFd channel) {
      answers_.push_back({client, ready, static_cast<bool>(channel)});
    };
    handlers.joined = [this](const SlurmJoined& joined) { joined_.push_back(joined); };
    handlers.lost = [this](const SlurmLost& lost) { lost_.push_back(lost); };
    handlers.on_exit = [this](const launch::TaskExit& exit) { exits_.push_back(exit); };
    handlers.log = [this](const std::string& text) { log_ += text + "\n"; };
    handlers.on_heard = [this](const std::string& nspace) { heard_.push_back(nspace); };
    SlurmTasksOptions options{JobId(7), Incarnation(1), "cn0"};
    options.end_wait = options.voice_wait = Millis(50);
    tasks_ = std::make_unique<SlurmTasks>(*loop_, options, std::move(handlers));
  }
  ~SlurmTasksTest() override {
    tasks_.reset();
    for (const pid_t pid : processes_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
  bool Until(const std::function<bool()>& done) { return support::RunUntil(*loop_, Millis(5'000), done); }
  // A process that sleeps until it is killed; zombies stay until the test ends, as with slurmstepd.
  pid_t Process() {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::signal(SIGTERM, SIG_DFL);
      for (;;) ::pause();
    }
    processes_.push_back(pid);
    return pid;
  }
  // One that leaves with the code that a SIGTERM orders, as libmsampi has it; else with 99.
  pid_t Obedient() {
    int ready[2];
    EXPECT_EQ(::pipe2(ready, O_CLOEXEC), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      struct sigaction action {};
      action.sa_flags = SA_SIGINFO;
      action.sa_sigaction = [](int, siginfo_t* info, void*) {
        int code = 0;
        const bool ordered = info->si_code == SI_QUEUE && info->si_uid == ::getuid() &&
                             MsaReadLeaveOrder(info->si_value.sival_int, &code);
        ::_exit(ordered ? code : 99);
      };
      ::sigaction(SIGTERM, &action, nullptr);
      ::close(ready[1]);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char none = 0;
    EXPECT_EQ(::read(ready[0], &none, 1), 0);
    ::close(ready[0]);
    processes_.push_back(pid);
    return pid;
  }
  // How a process of these has ended, as wait(2) tells.
  int StatusOf(pid_t pid) {
    int status = -1;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    std::erase(processes_, pid);
    return status;
  }
  SlurmJoin Join(std::uint32_t rank, pid_t pid, std::uint32_t ntasks = 2) {
    SlurmJoin join;
    join.join.job = JobId(7);
    join.join.step = StepId(3);
    join.join.rank = rank;
    join.join.ntasks = ntasks;
    join.join.argv = {"./prog"};
    join.join.cwd = "/home/ada";
    join.join.component_job = JobId(7);
    join.pid = pid;
    return join;
  }
  static launch::TaskSpec Spec(std::uint32_t rank) {
    launch::TaskSpec spec;
    spec.nspace = "msa.7.1.3";
    spec.rank = Rank(rank);
    spec.env = {"MSA_RANK=" + std::to_string(rank), "LD_PRELOAD=/lib/libmsampi.so"};
    return spec;
  }
  // A running rank 0 whose standard error is the pipe that is returned.
  UniqueFd RunWithVoice(pid_t pid) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    Run(pid, UniqueFd(ends[1]));
    return UniqueFd(ends[0]);
  }
  // One whose standard error is this.
  void Run(pid_t pid, UniqueFd err) {
    SlurmJoin join = Join(0, pid);
    join.descriptors.emplace_back(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    join.descriptors.push_back(std::move(err));
    tasks_->OnJoin(1, std::move(join));
    std::vector<launch::TaskSpec> specs;
    specs.push_back(Spec(0));
    tasks_->Start(std::move(specs), [this](const auto& pids, const auto&) { started_ = pids; });
    EXPECT_TRUE(Until([&] { return !started_.empty(); }));
  }

  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<SlurmTasks> tasks_;
  std::vector<Answer> answers_;
  std::vector<SlurmJoined> joined_;
  std::vector<SlurmLost> lost_;
  std::vector<launch::TaskExit> exits_;
  std::vector<pid_t> started_, processes_;
  std::vector<std::string> heard_;
  std::string log_;
};

TEST_F(SlurmTasksTest, JoinsOfOneMomentReachTheHeadTogether) {
  tasks_->OnJoin(1, Join(0, Process()));
  tasks_->OnJoin(2, Join(1, Process()));
  EXPECT_THAT(joined_, IsEmpty());
  ASSERT_TRUE(Until([&] { return !joined_.empty(); }));
  ASSERT_THAT(joined_, SizeIs(1));
  EXPECT_THAT(joined_[0].tasks, SizeIs(2));
  EXPECT_THAT(joined_[0].commands, SizeIs(1)) << "they run the same";
  EXPECT_EQ(joined_[0].ntasks, 2u);
  EXPECT_EQ(joined_[0].tasks[1].pid, processes_[1]);
  EXPECT_EQ(tasks_->waiting(), 2u);
}

TEST_F(SlurmTasksTest, TheHeadHearsWhatTheStepDoesWhenAChildFails) {
  SlurmJoin join = Join(0, Process());
  join.join.on_child_failure = "event";
  tasks_->OnJoin(1, std::move(join));
  ASSERT_TRUE(Until([&] { return !joined_.empty(); }));
  EXPECT_EQ(joined_[0].on_child_failure, "event");
}

TEST_F(SlurmTasksTest, AStartAnswersWithTheEnvironmentAndTheDescriptor) {
  SlurmJoin join = Join(0, Process());
  join.join.environment = {"LD_PRELOAD=libtrace.so"};
  tasks_->OnJoin(5, std::move(join));
  std::vector<launch::TaskSpec> specs;
  specs.push_back(Spec(0));
  specs.back().channel = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  specs.push_back(Spec(1));  // it never came
  std::vector<launch::StartFailure> failed;
  tasks_->Start(std::move(specs), [&](const auto& pids, const auto& failures) {
    started_ = pids;
    failed = failures;
  });
  ASSERT_TRUE(Until([&] { return !started_.empty(); }));
  ASSERT_THAT(answers_, SizeIs(1));
  EXPECT_EQ(answers_[0].client, 5u);
  EXPECT_EQ(answers_[0].ready.refusal, "");
  EXPECT_THAT(answers_[0].ready.set, ElementsAre("MSA_RANK=0", "LD_PRELOAD=/lib/libmsampi.so:libtrace.so"));
  EXPECT_THAT(answers_[0].ready.unset, Contains("PMI_PORT"));
  EXPECT_THAT(answers_[0].ready.unset, Not(Contains("MSA_RANK")));
  EXPECT_EQ(answers_[0].ready.fd, launch::kChannelFd);
  EXPECT_TRUE(answers_[0].with_descriptor);
  EXPECT_THAT(started_, ElementsAre(processes_[0]));
  ASSERT_THAT(failed, SizeIs(1));
  EXPECT_EQ(failed[0].rank, Rank(1));
  // Its connection has served.
  tasks_->OnClientGone(5);
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(SlurmTasksTest, WhoIsNotOfThisJobIsRefusedAtOnce) {
  const pid_t pid = Process();
  SlurmJoin other = Join(0, pid);
  other.join.job = JobId(8);
  tasks_->OnJoin(1, std::move(other));
  SlurmJoin old = Join(0, pid);
  old.join.version = 99;
  tasks_->OnJoin(2, std::move(old));
  tasks_->OnJoin(3, Join(2, pid));
  tasks_->OnJoin(4, Join(0, pid));
  tasks_->OnJoin(5, Join(0, Process()));
  ASSERT_THAT(answers_, SizeIs(4));
  EXPECT_THAT(answers_[0].ready.refusal, HasSubstr("of job 8, this job daemon serves job 7"));
  EXPECT_THAT(answers_[1].ready.refusal, HasSubstr("version 99"));
  EXPECT_THAT(answers_[2].ready.refusal, HasSubstr("2 tasks, and no task 2"));
  EXPECT_THAT(answers_[3].ready.refusal, HasSubstr("has a task 0 already"));
  EXPECT_EQ(tasks_->waiting(), 1u);
}

TEST_F(SlurmTasksTest, AnEndIsTakenOnceAndFromTheRightStepAlone) {
  const pid_t pid = Process();
  const UniqueFd reader = RunWithVoice(pid);
  tasks_->OnTaskEnd({JobId(7), StepId(4), pid, 0});
  tasks_->OnTaskEnd({JobId(8), StepId(3), pid, 0});
  tasks_->OnTaskEnd({JobId(7), StepId(3), pid + 1, 0});
  EXPECT_THAT(exits_, IsEmpty());
  tasks_->OnTaskEnd({JobId(7), StepId(3), pid, 5 << 8});
  tasks_->OnTaskEnd({JobId(7), StepId(3), pid, SIGSEGV | 0x80});
  ASSERT_THAT(exits_, SizeIs(1));
  EXPECT_EQ(exits_[0].nspace, "msa.7.1.3");
  EXPECT_EQ(exits_[0].end.exit_code, 5);
  EXPECT_EQ(exits_[0].end.signal, 0);
  EXPECT_EQ(exits_[0].end.node, "cn0");
}

TEST_F(SlurmTasksTest, AProcessThatGoesWithoutAWordHasEnded) {
  const pid_t pid = Process();
  const UniqueFd reader = RunWithVoice(pid);
  EXPECT_EQ(tasks_->Signal("msa.7.1.3", 0), 1);
  EXPECT_EQ(tasks_->Signal("other", SIGTERM), 0);
  EXPECT_EQ(tasks_->Signal({}, SIGTERM), 1);
  ASSERT_TRUE(Until([&] { return !exits_.empty(); }));
  EXPECT_THAT(log_, HasSubstr("nobody told how"));
  // Its number may be another's by now.
  EXPECT_EQ(tasks_->Signal({}, SIGTERM), 0);
  tasks_->OnTaskEnd({JobId(7), StepId(3), pid, SIGTERM});
  EXPECT_THAT(exits_, SizeIs(1));
}

TEST_F(SlurmTasksTest, ATaskThatIsAskedToLeaveIsToldTheCode) {
  const pid_t pid = Obedient();
  const UniqueFd reader = RunWithVoice(pid);
  EXPECT_EQ(tasks_->AskToLeave("other", 17), 0);
  EXPECT_EQ(tasks_->AskToLeave("msa.7.1.3", 17), 1);
  const int status = StatusOf(pid);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 17);
}

TEST_F(SlurmTasksTest, ATaskThatKnowsNoOrderToLeaveGetsSigterm) {
  const pid_t pid = Process();
  const UniqueFd reader = RunWithVoice(pid);
  EXPECT_EQ(tasks_->AskToLeave("msa.7.1.3", 17), 1);
  const int status = StatusOf(pid);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST_F(SlurmTasksTest, ATaskThatWaitsForItsWorldIsNotAskedToLeave) {
  tasks_->OnJoin(1, Join(0, Process()));
  EXPECT_EQ(tasks_->AskToLeave({}, 17), 0);
}

TEST_F(SlurmTasksTest, TheEndOfTheStepKillsItsTasksOfThatComponentAndTellsTheHead) {
  const pid_t pid = Process();
  const UniqueFd reader = RunWithVoice(pid);
  SlurmJoin waiting = Join(1, Process());
  waiting.join.component_job = JobId(8);
  tasks_->OnJoin(2, std::move(waiting));
  tasks_->OnStepEnd({JobId(7), JobId(9), StepId(3)});
  EXPECT_THAT(exits_, IsEmpty());
  EXPECT_EQ(tasks_->waiting(), 1u);
  tasks_->OnStepEnd({JobId(7), JobId(8), StepId(3)});
  EXPECT_EQ(tasks_->waiting(), 0u);
  EXPECT_THAT(answers_.back().ready.refusal, HasSubstr("slurmstepd of step 3 is gone"));
  tasks_->OnStepEnd({JobId(7), JobId(7), StepId(3)});
  ASSERT_THAT(exits_, SizeIs(1));
  EXPECT_EQ(exits_[0].end.signal, SIGKILL);
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  processes_.erase(processes_.begin());
  ASSERT_FALSE(lost_.empty());
  EXPECT_EQ(lost_[0].step, StepId(3));
}

TEST_F(SlurmTasksTest, RankZeroReadsWhatIsSaidAndItsPipeIsClosedSoonAfterItsEnd) {
  const pid_t pid = Process();
  const UniqueFd reader = RunWithVoice(pid);
  tasks_->Say({"msa.7.1.3", "the other is gone"});
  tasks_->OnTaskEnd({JobId(7), StepId(3), pid, 0});
  tasks_->Say({"msa.7.1.3", "last words"});
  std::string heard;
  ASSERT_EQ(::fcntl(reader.get(), F_SETFL, O_NONBLOCK), 0);
  // Until the end of file: nobody holds the pipe any more.
  ASSERT_TRUE(Until([&] {
    char buffer[512];
    const ssize_t n = ::read(reader.get(), buffer, sizeof buffer);
    if (n > 0) heard.append(buffer, static_cast<std::size_t>(n));
    return n == 0;
  }));
  EXPECT_EQ(heard, "msa: the other is gone\nmsa: last words\n");
  tasks_->Say({"msa.7.1.3", "too late"});
  EXPECT_THAT(log_, HasSubstr("too late"));
}

TEST_F(SlurmTasksTest, TheStreamsOfARankZeroThatEndsWellAreGivenBackAtOnceIfNobodyUsedThem) {
  const pid_t pid = Process();
  const UniqueFd reader = RunWithVoice(pid);
  ASSERT_EQ(::fcntl(reader.get(), F_SETFL, O_NONBLOCK), 0);
  char byte = 0;
  EXPECT_EQ(::read(reader.get(), &byte, 1), -1) << "held while it runs";
  tasks_->OnTaskEnd({JobId(7), StepId(3), pid, 0});
  EXPECT_EQ(::read(reader.get(), &byte, 1), 0);
}

TEST_F(SlurmTasksTest, TheStreamsOfARankZeroThatFailsAreHeldAMomentLonger) {
  const pid_t failed = Process();
  const UniqueFd reader = RunWithVoice(failed);
  ASSERT_EQ(::fcntl(reader.get(), F_SETFL, O_NONBLOCK), 0);
  char byte = 0;
  tasks_->OnTaskEnd({JobId(7), StepId(3), failed, 1 << 8});
  EXPECT_EQ(::read(reader.get(), &byte, 1), -1);
  EXPECT_TRUE(Until([&] { return ::read(reader.get(), &byte, 1) == 0; }));
}

TEST_F(SlurmTasksTest, TheStreamsOfARankZeroWhoseChildrenWriteThereOutliveIt) {
  const pid_t pid = Process();
  const UniqueFd reader = RunWithVoice(pid);
  ASSERT_EQ(::fcntl(reader.get(), F_SETFL, O_NONBLOCK), 0);
  char byte = 0;
  EXPECT_TRUE(tasks_->OutputOf("msa.7.1.3"));
  tasks_->OnTaskEnd({JobId(7), StepId(3), pid, 0});
  EXPECT_EQ(::read(reader.get(), &byte, 1), -1);
}

TEST_F(SlurmTasksTest, APipeThatNobodyReadsHoldsNothingUp) {
  const UniqueFd reader = RunWithVoice(Process());
  const std::string line(1000, 'x');
  for (int i = 0; i < 200; ++i) tasks_->Say({"msa.7.1.3", line});
  EXPECT_THAT(log_, HasSubstr("not told to the user"));
  std::size_t heard = 0;
  ASSERT_EQ(::fcntl(reader.get(), F_SETFL, O_NONBLOCK), 0);
  // A pipe's 64 KiB and what was kept: the first lines are whole.
  ASSERT_TRUE(Until([&] {
    char buffer[65536];
    const ssize_t n = ::read(reader.get(), buffer, sizeof buffer);
    if (n > 0) heard += static_cast<std::size_t>(n);
    return heard > 100'000;
  }));
  EXPECT_TRUE(Until([&] { return !heard_.empty(); })) << "who waits to go on is told";
}

TEST_F(SlurmTasksTest, ATerminalThatNobodyReadsHoldsNothingUp) {
  const UniqueFd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(master && ::grantpt(master.get()) == 0 && ::unlockpt(master.get()) == 0);
  UniqueFd slave(::open(::ptsname(master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(slave);
  const UniqueFd programs(::dup(slave.get()));
  Run(Process(), std::move(slave));
  ::alarm(20);  // a write that waits would wait for ever
  const std::string line(1000, 'x');
  for (int i = 0; i < 200; ++i) tasks_->Say({"msa.7.1.3", line});
  EXPECT_EQ(::fcntl(programs.get(), F_GETFL) & O_NONBLOCK, 0) << "the program's own is as it was";
  std::size_t heard = 0;
  ASSERT_EQ(::fcntl(master.get(), F_SETFL, O_NONBLOCK), 0);
  ASSERT_TRUE(Until([&] {
    char buffer[65536];
    const ssize_t n = ::read(master.get(), buffer, sizeof buffer);
    if (n > 0) heard += static_cast<std::size_t>(n);
    return heard > 60'000;
  }));
  ::alarm(0);
  EXPECT_TRUE(Until([&] { return !heard_.empty(); })) << "who waits to go on is told";
}

TEST_F(SlurmTasksTest, AConnectionThatEndsBeforeTheAnswerLosesItsStep) {
  tasks_->OnJoin(1, Join(0, Process()));
  tasks_->OnClientGone(1);
  ASSERT_THAT(lost_, SizeIs(1));
  EXPECT_EQ(lost_[0].reason, "cn0: task 0 of step 3 ended before its world was complete");
  EXPECT_EQ(tasks_->waiting(), 0u);
}

TEST_F(SlurmTasksTest, AStepThatTheControllerWithdrawsIsLostToItsHeadForThatReason) {
  wire::SlurmStepVerdict verdict;
  verdict.job = JobId(7);
  verdict.step = StepId(3);
  verdict.message = "step 7.3: node cn1 has no node daemon";
  tasks_->OnWithdrawn(verdict);
  ASSERT_THAT(lost_, SizeIs(1));
  EXPECT_EQ(lost_[0].step, StepId(3));
  EXPECT_EQ(lost_[0].reason, "node cn1 has no node daemon");
}

TEST_F(SlurmTasksTest, ARefusalReachesTheNamedOnesOrAll) {
  tasks_->OnJoin(1, Join(0, Process(), 4));
  tasks_->OnJoin(2, Join(1, Process(), 4));
  tasks_->OnJoin(3, Join(2, Process(), 4));
  tasks_->Refuse({StepId(9), {}, "another step"});
  EXPECT_THAT(answers_, IsEmpty());
  tasks_->Refuse({StepId(3), {Rank(1)}, "not you"});
  ASSERT_THAT(answers_, SizeIs(1));
  EXPECT_EQ(answers_[0].client, 2u);
  EXPECT_EQ(answers_[0].ready.refusal, "not you");
  tasks_->KillAll({}, [](int) {});
  EXPECT_THAT(answers_, SizeIs(3));
  EXPECT_EQ(tasks_->waiting(), 0u);
}

}  // namespace
}  // namespace msa::jobd
