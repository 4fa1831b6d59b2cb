// msactl's Attach streams through the real msa-noded.
#include <grpcpp/create_channel.h>

#include "noded_fixture.h"

namespace msa::node::test {
namespace {

class AttachTest : public NodedTest {
 protected:
  using Stream = grpc::ClientReaderWriter<v1::AttachFrame, v1::AttachFrame>;
  // Incarnation 0: any.
  void Open(std::uint64_t job, std::uint32_t incarnation = 0) {
    if (!stub_) {
      auto channel =
          grpc::CreateChannel("unix:" + dir_ + "/n/cn0/noded.sock", grpc::InsecureChannelCredentials());
      stub_ = v1::NodeService::NewStub(channel);
    }
    context_ = std::make_unique<grpc::ClientContext>();
    context_->set_deadline(std::chrono::system_clock::now() + kLimit);
    stream_ = stub_->Attach(context_.get());
    v1::AttachFrame first = Frame(wire::AttachOpen{});
    first.set_job_id(job);
    first.set_incarnation(incarnation);
    stream_->Write(first);
  }
  template <class M>
  static v1::AttachFrame Frame(const M& message) {
    v1::AttachFrame out;
    out.mutable_frame()->set_type(M::kType);
    out.mutable_frame()->set_payload(wire::Encode(message));
    return out;
  }
  // The text of the next Output, or what came instead.
  std::string Next() {
    v1::AttachFrame in;
    if (!stream_->Read(&in)) return "end";
    if (in.frame().type() != wire::Output::kType) return "type " + std::to_string(in.frame().type());
    return wire::Decode<wire::Output>(in.frame().payload())->data;
  }

  // A node daemon with job 7, whose head keeps output and writes its pid to the file "jobd".
  void StartKeeper() {
    StartNoded({"--pool", "0"});
    ASSERT_TRUE(RegistrationsReach(1)) << Log();
    StartJob(7, {"keep-output", "--", "echo $PPID > jobd"});
    ASSERT_TRUE(Started()) << Log();
  }
  void EndJob() {
    ToJobd(7, wire::SignalJob{SIGUSR1});
    ASSERT_TRUE(Eventually(kLimit, [this] { return controller_->Got(wire::JobExit::kType); })) << Log();
  }
  // The next node daemon registers while the job daemon cannot connect to it.
  void ReplaceNodedBefore(pid_t jobd) {
    ::kill(jobd, SIGSTOP);
    StopNoded(SIGKILL);
    StartNoded({"--pool", "0"});
    ASSERT_TRUE(RegistrationsReach(2)) << Log();
    ASSERT_EQ(controller_->registration().jobds.size(), 1U);
    EXPECT_FALSE(controller_->registration().jobds[0].ended) << "nobody knows it yet";
    controller_->Clear();
    ASSERT_TRUE(Eventually(kLimit, [this] { return controller_->heartbeats() > 0; }))
        << "the answer to the registration has been handled";
  }
  // It stays for its output, once it knows that nothing else of it is needed, and leaves when that is read.
  void ExpectOutputOf(pid_t jobd) {
    ASSERT_TRUE(Eventually(kLimit, [this] { return Exists(dir_ + "/acked"); })) << Log();
    Open(7, 1);
    EXPECT_EQ(Next(), "attached");
    stream_->Write(Frame(wire::ClientSignal{SIGINT}));
    EXPECT_EQ(Next(), "type " + std::to_string(wire::SessionEnd::kType));
    EXPECT_EQ(Next(), "end");
    EXPECT_TRUE(Eventually(kLimit, [&] { return Dead(jobd); })) << Log();
  }

  std::unique_ptr<v1::NodeService::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<Stream> stream_;
};

TEST_F(AttachTest, CarriesFramesBothWaysInOrderUntilTheJobDaemonEndsTheSession) {
  StartNoded();
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  StartJob(7);
  ASSERT_TRUE(Started()) << Log();
  Open(7);
  EXPECT_EQ(Next(), "attached");
  for (int i = 0; i < 200; ++i) stream_->Write(Frame(wire::Input{0, std::to_string(i), false}));
  for (int i = 0; i < 200; ++i) ASSERT_EQ(Next(), std::to_string(i));
  stream_->Write(Frame(wire::ClientSignal{SIGINT}));
  EXPECT_EQ(Next(), "type " + std::to_string(wire::SessionEnd::kType));
  EXPECT_EQ(Next(), "end");
  EXPECT_TRUE(stream_->Finish().ok());
}

TEST_F(AttachTest, HoldsAClientUntilItsJobIsHere) {
  StartNoded();
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  Open(7);
  StartJob(7);
  EXPECT_EQ(Next(), "attached");
}

TEST_F(AttachTest, TellsAClientThatWaitedInVain) {
  StartNoded({"--attach-hold-ms", "50"});
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  Open(99);
  EXPECT_EQ(Next(), "end");
  const grpc::Status status = stream_->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "job 99 does not run on node cn0; see 'msactl job show 99'");
}

TEST_F(AttachTest, TellsTheJobDaemonThatTheClientHasGone) {
  StartNoded();
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  StartJob(7);
  Open(7);
  EXPECT_EQ(Next(), "attached");
  context_->TryCancel();
  EXPECT_TRUE(Eventually(kLimit, [&] { return Exists(dir_ + "/session-ended"); })) << Log();
}

TEST_F(AttachTest, EndsSessionsOfAJobDaemonThatDied) {
  StartNoded();
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  StartJob(7);
  Open(7);
  EXPECT_EQ(Next(), "attached");
  ToJobd(7, wire::SignalJob{SIGUSR2});
  EXPECT_EQ(Next(), "end");
  EXPECT_EQ(stream_->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(AttachTest, TellsAClientAtOnceThatAJobWhoseHeadHasLeftIsOver) {
  StartNoded({"--attach-hold-ms", "600000"});
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  StartJob(7);
  ASSERT_TRUE(Started()) << Log();
  ToJobd(7, wire::SignalJob{SIGUSR2});
  ASSERT_TRUE(GoneReaches(1)) << Log();
  Open(7, 1);
  EXPECT_EQ(Next(), "end");
  const grpc::Status status = stream_->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(),
            "job 7 is over on node cn0: job daemon of job 7 on cn0 was killed by signal 9 (Killed)");
}

TEST_F(AttachTest, AHeadThatComesAfterTheRegistrationKeepsTheOutputOfItsEndedJob) {
  ASSERT_NO_FATAL_FAILURE(StartKeeper());
  const pid_t jobd = PidIn("jobd");
  ASSERT_NO_FATAL_FAILURE(EndJob());
  controller_->KeepNothing();
  ASSERT_NO_FATAL_FAILURE(ReplaceNodedBefore(jobd));
  ::kill(jobd, SIGCONT);
  ExpectOutputOf(jobd);
}

TEST_F(AttachTest, AHeadThatComesAfterTheOrderToQuitKeepsTheOutputOfItsEndedJob) {
  ASSERT_NO_FATAL_FAILURE(StartKeeper());
  const pid_t jobd = PidIn("jobd");
  ASSERT_NO_FATAL_FAILURE(EndJob());
  ASSERT_NO_FATAL_FAILURE(ReplaceNodedBefore(jobd));
  QuitJob(7);
  ::kill(jobd, SIGCONT);
  ExpectOutputOf(jobd);
}

TEST_F(AttachTest, AHeadThatIsToldToQuitAfterItsEndKeepsTheOutput) {
  ASSERT_NO_FATAL_FAILURE(StartKeeper());
  const pid_t jobd = PidIn("jobd");
  ASSERT_NO_FATAL_FAILURE(EndJob());
  QuitJob(7);
  ExpectOutputOf(jobd);
}

TEST_F(AttachTest, AHeadThatComesAfterTheRegistrationAndHasNotEndedQuits) {
  ASSERT_NO_FATAL_FAILURE(StartKeeper());
  const pid_t jobd = PidIn("jobd");
  controller_->KeepNothing();
  ASSERT_NO_FATAL_FAILURE(ReplaceNodedBefore(jobd));
  ::kill(jobd, SIGCONT);
  EXPECT_TRUE(Eventually(kLimit, [&] { return Dead(jobd); })) << Log();
  EXPECT_FALSE(Exists(dir_ + "/acked"));
}

}  // namespace
}  // namespace msa::node::test
