// Slurm's plugin at the real msa-noded.
#include <algorithm>

#include "msa/base/slurm_messages.h"

#include "frame_peer.h"
#include "noded_fixture.h"

namespace msa::node::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A slurmstepd.
class Stepd : public FramePeer {
 public:
  using FramePeer::FramePeer;
  void Begin(std::uint64_t job) {
    wire::SlurmStepBegin begin;
    begin.job = JobId(job);
    begin.component_job = JobId(job);
    begin.nodes = {{"cn0", 1}};
    Say(begin);
  }
  // The next message, of this type.
  template <class M>
  std::optional<M> Hear() {
    (void)Until([this] { return !frames_.empty() || closed_; });
    if (frames_.empty() || frames_.front().type != M::kType) return std::nullopt;
    auto message = wire::Decode<M>(frames_.front().payload);
    frames_.erase(frames_.begin());
    return message.ok() ? std::optional<M>(std::move(*message)) : std::nullopt;
  }
};

class NodedSlurmTest : public NodedTest {
 protected:
  std::string Path() const { return dir_ + "/plugin.sock"; }
  void StartWithPlugin() { StartNoded({"--plugin-socket", Path()}); }
  template <class M>
  std::vector<M> Told() const {
    std::vector<M> out;
    for (const wire::Frame& frame : controller_->from_slurm())
      if (frame.type == M::kType) out.push_back(*wire::Decode<M>(frame.payload));
    return out;
  }
  template <class M>
  bool ToldReaches(std::size_t count) const {
    return Eventually(kLimit, [&] { return Told<M>().size() >= count; });
  }
  void Accept(std::uint64_t job) {
    wire::SlurmStepVerdict verdict;
    verdict.job = JobId(job);
    verdict.accepted = true;
    verdict.incarnation = Incarnation(1);
    controller_->Send(node_control::ToProto(
        node_control::ToSlurm{{wire::SlurmStepVerdict::kType, 0, 0, wire::Encode(verdict)}}));
  }
};

TEST_F(NodedSlurmTest, AStepBeginsWithTheSocketOfItsJobDaemonAndItsEndIsTold) {
  StartWithPlugin();
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  auto stepd = std::make_unique<Stepd>(Path());
  stepd->Begin(7);
  ASSERT_TRUE(ToldReaches<wire::SlurmStepBegin>(1)) << Log();
  StartJob(7);
  Accept(7);
  const auto verdict = stepd->Hear<wire::SlurmStepVerdict>();
  ASSERT_TRUE(verdict) << Log();
  EXPECT_TRUE(verdict->accepted);
  EXPECT_THAT(verdict->job_socket, AllOf(HasSubstr(dir_ + "/n/cn0/w"), ::testing::EndsWith("/job.sock")));
  stepd.reset();
  ASSERT_TRUE(ToldReaches<wire::SlurmStepEnd>(1)) << Log();
  EXPECT_EQ(Told<wire::SlurmStepEnd>()[0].job, JobId(7));
  QuitJob(7);
  EXPECT_TRUE(GoneReaches(1));
}

TEST_F(NodedSlurmTest, AJobDaemonThatDiesEndsTheStepWithAText) {
  StartWithPlugin();
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  SpawnSpec spec;
  spec.argv = {"/bin/sleep", "1000"};
  const auto task = Spawn(spec);
  ASSERT_TRUE(task.ok()) << task.status().message();
  Stepd stepd(Path());
  stepd.Begin(7);
  ASSERT_TRUE(ToldReaches<wire::SlurmStepBegin>(1)) << Log();
  StartJob(7);
  Accept(7);
  ASSERT_TRUE(stepd.Hear<wire::SlurmStepVerdict>()) << Log();
  wire::SlurmTaskBegin begin;
  begin.job = JobId(7);
  begin.pid = task->pid;
  stepd.Say(begin);
  wire::SlurmJobEnd marker;  // arrives behind the other
  marker.component_job = JobId(99);
  stepd.Say(marker);
  ASSERT_TRUE(ToldReaches<wire::SlurmJobEnd>(1)) << Log();
  ToJobd(7, wire::SignalJob{SIGUSR2});
  const auto abort = stepd.Hear<wire::SlurmStepAbort>();
  ASSERT_TRUE(abort) << Log();
  EXPECT_THAT(abort->message, AllOf(HasSubstr("cn0"), HasSubstr("signal 9")));
  int status = 0;
  ASSERT_EQ(::waitpid(task->pid, &status, 0), task->pid);
  EXPECT_TRUE(WIFSIGNALED(status));
}

TEST_F(NodedSlurmTest, AControllerThatComesBackHearsOfTheStepsAgain) {
  StartWithPlugin();
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  Stepd stepd(Path());
  stepd.Begin(7);
  ASSERT_TRUE(ToldReaches<wire::SlurmStepBegin>(1)) << Log();
  controller_->Stop();
  wire::SlurmJobEnd end;
  end.component_job = JobId(5);
  Stepd(Path()).Say(end);
  controller_->Clear();
  controller_->Start();
  ASSERT_TRUE(ToldReaches<wire::SlurmStepBegin>(1)) << Log();
  ASSERT_TRUE(ToldReaches<wire::SlurmJobEnd>(1)) << Log();
  EXPECT_EQ(Told<wire::SlurmJobEnd>()[0].component_job, JobId(5));
}

TEST_F(NodedSlurmTest, AJobDaemonThatCannotStartRefusesTheStep) {
  StartNoded({"--plugin-socket", Path(), "--pool", "0"}, {"TEST_JOBD=fail"});
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  Stepd stepd(Path());
  stepd.Begin(7);
  ASSERT_TRUE(ToldReaches<wire::SlurmStepBegin>(1)) << Log();
  StartJob(7);
  Accept(7);
  const auto verdict = stepd.Hear<wire::SlurmStepVerdict>();
  ASSERT_TRUE(verdict) << Log();
  EXPECT_FALSE(verdict->accepted);
  EXPECT_THAT(verdict->message, AllOf(HasSubstr("cn0"), HasSubstr("libpmix is not there")));
}

TEST_F(NodedSlurmTest, WithoutTheOptionAndWithoutSlurmThereIsNoSocket) {
  StartNoded();
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  ASSERT_TRUE(Eventually(kLimit, [this] { return controller_->heartbeats() > 0; }));
  EXPECT_FALSE(Exists(Path()));
  EXPECT_THAT(Log(), ::testing::Not(HasSubstr("Slurm")));
}

TEST_F(NodedSlurmTest, TheSocketGoesWithTheDaemon) {
  StartWithPlugin();
  ASSERT_TRUE(Eventually(kLimit, [this] { return Exists(Path()); })) << Log();
  StopNoded(SIGTERM);
  EXPECT_FALSE(Exists(Path()));
}

}  // namespace
}  // namespace msa::node::test
