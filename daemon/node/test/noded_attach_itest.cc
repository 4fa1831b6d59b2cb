// msactl's Attach streams through the real msa-noded.
#include <grpcpp/create_channel.h>

#include "noded_fixture.h"

namespace msa::node::test {
namespace {

class AttachTest : public NodedTest {
 protected:
  using Stream = grpc::ClientReaderWriter<v1::AttachFrame, v1::AttachFrame>;
  void Open(std::uint64_t job) {
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

}  // namespace
}  // namespace msa::node::test
