#include "plugin_socket.h"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loop_fixture.h"

namespace msa::node {
namespace {

using ::testing::HasSubstr;

class PluginSocketTest : public test::LoopTest {
 protected:
  // What one slurmstepd hears.
  struct Stepd {
    std::unique_ptr<FrameChannel> channel;
    std::vector<wire::SlurmStepVerdict> verdicts;
    bool closed = false;
  };
  void Listen(PluginSocket::Options options = {}) {
    options.node = "cn0";
    options.path = dir_ / "plugin.sock";
    PluginSocket::Handlers handlers;
    handlers.on_begin = [this](const wire::SlurmStepBegin& begin) { begun_.push_back(begin); };
    handlers.on_task_begin = [this](const wire::SlurmTaskBegin& begin) { task_begins_.push_back(begin); };
    handlers.on_task_end = [this](const wire::SlurmTaskEnd& end) { task_ends_.push_back(end); };
    handlers.on_step_end = [this](const wire::SlurmStepEnd& end) { step_ends_.push_back(end); };
    handlers.on_job_end = [this](const wire::SlurmJobEnd& end) { job_ends_.push_back(end); };
    socket_ = std::make_unique<PluginSocket>(*loop_, options, std::move(handlers));
    ASSERT_TRUE(socket_->Listen().ok());
  }
  Stepd& Connect() {
    Stepd& stepd = *stepds_.emplace_back(std::make_unique<Stepd>());
    FrameChannel::Handlers handlers;
    handlers.on_frame = [&stepd](const wire::Frame& frame) {
      stepd.verdicts.push_back(*wire::Decode<wire::SlurmStepVerdict>(frame.payload));
    };
    handlers.on_closed = [&stepd](const Status&) { stepd.closed = true; };
    stepd.channel = ConnectTo("plugin.sock", std::move(handlers));
    return stepd;
  }
  static wire::SlurmStepBegin Step(std::uint64_t job, std::uint32_t step) {
    wire::SlurmStepBegin begin;
    begin.job = JobId(job);
    begin.component_job = JobId(job + 1);
    begin.step = StepId(step);
    begin.ntasks = 2;
    begin.nodes = {{"cn0", 2}};
    return begin;
  }
  static wire::SlurmStepVerdict Verdict(std::uint64_t job, std::uint32_t step, bool accepted) {
    wire::SlurmStepVerdict verdict;
    verdict.job = JobId(job);
    verdict.step = StepId(step);
    verdict.accepted = accepted;
    return verdict;
  }

  std::vector<wire::SlurmStepBegin> begun_;
  std::vector<wire::SlurmTaskBegin> task_begins_;
  std::vector<wire::SlurmTaskEnd> task_ends_;
  std::vector<wire::SlurmStepEnd> step_ends_;
  std::vector<wire::SlurmJobEnd> job_ends_;
  std::unique_ptr<PluginSocket> socket_;
  std::vector<std::unique_ptr<Stepd>> stepds_;
};

TEST_F(PluginSocketTest, AStepIsPassedOnAndEachOfItsComponentsHearsTheVerdictOnce) {
  Listen();
  Stepd& first = Connect();
  Stepd& second = Connect();
  Stepd& other = Connect();
  first.channel->SendMessage(Step(7, 0));
  second.channel->SendMessage(Step(7, 0));
  other.channel->SendMessage(Step(7, 1));
  ASSERT_TRUE(Until([&] { return begun_.size() == 3; }));
  EXPECT_EQ(socket_->Steps().size(), 3u);
  socket_->Answer(Verdict(7, 0, true));
  socket_->Answer(Verdict(7, 0, false));
  ASSERT_TRUE(Until([&] { return !first.verdicts.empty() && !second.verdicts.empty(); }));
  socket_->Answer(Verdict(7, 1, false));
  ASSERT_TRUE(Until([&] { return !other.verdicts.empty(); }));
  EXPECT_EQ(first.verdicts.size(), 1u);
  EXPECT_TRUE(first.verdicts[0].accepted);
  EXPECT_FALSE(other.verdicts[0].accepted);
}

TEST_F(PluginSocketTest, TheEndOfASlurmstepdIsTheEndOfItsStepHere) {
  Listen();
  Stepd& stepd = Connect();
  stepd.channel->SendMessage(Step(7, 3));
  wire::SlurmTaskBegin task;
  task.job = JobId(7);
  task.step = StepId(3);
  task.local_id = 1;
  task.pid = 4711;
  stepd.channel->SendMessage(task);
  wire::SlurmTaskEnd end;
  end.job = JobId(7);
  end.step = StepId(3);
  end.pid = 4711;
  end.status = 0x100;
  stepd.channel->SendMessage(end);
  ASSERT_TRUE(Until([&] { return task_ends_.size() == 1; }));
  EXPECT_EQ(task_ends_[0].pid, 4711);
  ASSERT_EQ(task_begins_.size(), 1u);
  EXPECT_EQ(task_begins_[0].local_id, 1u);
  stepd.channel->Close();
  ASSERT_TRUE(Until([&] { return step_ends_.size() == 1; }));
  EXPECT_EQ(step_ends_[0].job, JobId(7));
  EXPECT_EQ(step_ends_[0].component_job, JobId(8));
  EXPECT_EQ(step_ends_[0].step, StepId(3));
  EXPECT_TRUE(socket_->Steps().empty());
}

TEST_F(PluginSocketTest, AnEpilogIsHeard) {
  Listen();
  wire::SlurmJobEnd end;
  end.component_job = JobId(12);
  Connect().channel->SendMessage(end);
  ASSERT_TRUE(Until([&] { return job_ends_.size() == 1; }));
  EXPECT_EQ(job_ends_[0].component_job, JobId(12));
  EXPECT_TRUE(step_ends_.empty());
}

TEST_F(PluginSocketTest, WhoSaysNothingAndWhoTalksNonsenseIsLetGo) {
  Listen({.begin_timeout = Millis(20)});
  Stepd& silent = Connect();
  EXPECT_TRUE(Until([&] { return silent.closed; }));
  Stepd& strange = Connect();
  strange.channel->Send(wire::Pack(0x0101, 0, "hello"));
  EXPECT_TRUE(Until([&] { return strange.closed; }));
  Stepd& twice = Connect();
  twice.channel->SendMessage(Step(1, 0));
  twice.channel->SendMessage(Step(1, 1));
  EXPECT_TRUE(Until([&] { return twice.closed; }));
  Stepd& foreign = Connect();
  foreign.channel->SendMessage(Step(2, 0));
  wire::SlurmTaskEnd end;
  end.job = JobId(1);
  foreign.channel->SendMessage(end);
  EXPECT_TRUE(Until([&] { return foreign.closed; }));
  EXPECT_TRUE(task_ends_.empty());
}

TEST_F(PluginSocketTest, APluginOfAnotherReleaseIsToldSo) {
  Listen();
  auto step = Step(7, 0);
  step.version = 99;
  Stepd& stepd = Connect();
  stepd.channel->SendMessage(step);
  ASSERT_TRUE(Until([&] { return stepd.verdicts.size() == 1; }));
  EXPECT_THAT(stepd.verdicts[0].message, HasSubstr("version 99"));
  EXPECT_TRUE(begun_.empty());
}

TEST_F(PluginSocketTest, EverybodyMayConnectForTheKernelSaysWhoItIs) {
  Listen();
  struct stat info {};
  ASSERT_EQ(::stat((dir_ / "plugin.sock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0666u);
}

}  // namespace
}  // namespace msa::node
