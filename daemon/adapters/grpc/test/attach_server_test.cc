#include "msa/adapters/grpc/attach_server.h"

#include <unistd.h>

#include <map>
#include <mutex>

#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include "msa/v1/node.grpc.pb.h"

#include "socket_test_support.h"

namespace msa {
namespace {

using test::Eventually;

constexpr int kBulkFrames = 512;
constexpr std::size_t kBulkFrame = 64 << 10;

class AttachServerTest : public ::testing::Test {
 protected:
  AttachServerTest() {
    AttachServer::Handlers handlers;
    handlers.on_open = [this](AttachServer::Opened opened) { OnOpen(std::move(opened)); };
    handlers.on_frame = [this](AttachServer::SessionId id, wire::Frame frame) {
      if (frame.payload == "pause") server_->PauseReading(id);
      server_->Send(id, std::move(frame));  // an echo
    };
    handlers.on_closed = [this](AttachServer::SessionId, Status) { closed_ += 1; };
    handlers.on_drained = [this](AttachServer::SessionId) { drained_ += 1; };
    thread_.Call([&] {
      auto server = AttachServer::Create(thread_.loop(), {.path = (dir_ / "s"), .max_sessions = 2},
                                         std::move(handlers));
      ASSERT_TRUE(server.ok()) << server.status().ToString();
      server_ = *std::move(server);
    });
    stub_ = v1::NodeService::NewStub(
        grpc::CreateChannel("unix:" + (dir_ / "s"), grpc::InsecureChannelCredentials()));
  }
  ~AttachServerTest() override { StopServer(); }

  void StopServer() {
    thread_.Call([&] { server_.reset(); });
  }

  void OnOpen(AttachServer::Opened opened) {
    last_ = opened;
    if (opened.job == JobId(404))
      server_->End(opened.session, Status(Code::kNotFound, "job 404: its head does not run here"));
    if (opened.job == JobId(5)) {
      // More than a client that does not read lets in.
      for (int i = 0; i < kBulkFrames; ++i) {
        server_->Send(opened.session, {.type = 0x0402, .payload = std::string(kBulkFrame, 'x')});
      }
    }
    opened_ += 1;
  }

  static v1::AttachFrame Frame(std::uint64_t job, const std::string& payload) {
    v1::AttachFrame frame;
    frame.set_job_id(job);
    frame.mutable_frame()->set_type(0x0401);
    frame.mutable_frame()->set_payload(payload);
    return frame;
  }

  support::ScratchDirectory dir_;
  test::LoopThread thread_;
  std::unique_ptr<AttachServer> server_;
  std::unique_ptr<v1::NodeService::Stub> stub_;
  AttachServer::Opened last_;  // loop thread
  std::atomic<int> opened_ = 0;
  std::atomic<int> closed_ = 0;
  std::atomic<int> drained_ = 0;
};

TEST_F(AttachServerTest, TellsWhoOpensWhichJobAndCarriesFramesBothWays) {
  grpc::ClientContext context;
  auto stream = stub_->Attach(&context);
  ASSERT_TRUE(stream->Write(Frame(7, "open")));
  ASSERT_TRUE(Eventually(Millis(30'000), [&] { return opened_ == 1; }));
  const auto opened = thread_.Call([&] { return last_; });
  EXPECT_EQ(opened.user.uid, ::geteuid());
  EXPECT_EQ(opened.job, JobId(7));
  EXPECT_EQ(opened.first.payload, "open");
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(stream->Write(Frame(0, "n" + std::to_string(i))));
    v1::AttachFrame answer;
    ASSERT_TRUE(stream->Read(&answer));
    EXPECT_EQ(answer.frame().payload(), "n" + std::to_string(i));
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(Eventually(Millis(30'000), [&] { return closed_ == 1; }));
}

TEST_F(AttachServerTest, CarriesTheStatusOfEndToTheClient) {
  grpc::ClientContext context;
  auto stream = stub_->Attach(&context);
  stream->Write(Frame(404, ""));
  v1::AttachFrame answer;
  EXPECT_FALSE(stream->Read(&answer));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "job 404: its head does not run here");
  EXPECT_EQ(closed_, 0);
}

TEST_F(AttachServerTest, RefusesASessionWithoutAJob) {
  grpc::ClientContext context;
  auto stream = stub_->Attach(&context);
  stream->Write(Frame(0, ""));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(opened_, 0);
}

TEST_F(AttachServerTest, TellsWhenAClientVanishes) {
  grpc::ClientContext context;
  auto stream = stub_->Attach(&context);
  stream->Write(Frame(7, ""));
  ASSERT_TRUE(Eventually(Millis(30'000), [&] { return opened_ == 1; }));
  context.TryCancel();
  (void)stream->Finish();
  EXPECT_TRUE(Eventually(Millis(30'000), [&] { return closed_ == 1; }));
}

TEST_F(AttachServerTest, TellsWhenASlowClientHasDrainedTheQueue) {
  grpc::ClientContext context;
  auto stream = stub_->Attach(&context);
  stream->Write(Frame(5, ""));
  ASSERT_TRUE(Eventually(Millis(30'000), [&] { return opened_ == 1; }));
  EXPECT_GE(thread_.Call([&] { return server_->queued(1); }), AttachServer::kHighWater);
  v1::AttachFrame in;
  for (int i = 0; i < kBulkFrames; ++i) ASSERT_TRUE(stream->Read(&in));
  EXPECT_TRUE(Eventually(Millis(30'000), [&] { return drained_ >= 1; }));
  context.TryCancel();
  (void)stream->Finish();
}

TEST_F(AttachServerTest, ReadsNoFurtherFrameWhilePaused) {
  grpc::ClientContext context;
  auto stream = stub_->Attach(&context);
  stream->Write(Frame(7, ""));
  stream->Write(Frame(0, "pause"));
  v1::AttachFrame in;
  ASSERT_TRUE(stream->Read(&in));
  stream->Write(Frame(0, "later"));
  // A second session goes on and proves that the server is at work; the first one's frame waits.
  grpc::ClientContext other_context;
  auto other = stub_->Attach(&other_context);
  other->Write(Frame(8, ""));
  other->Write(Frame(0, "now"));
  ASSERT_TRUE(other->Read(&in));
  EXPECT_EQ(in.frame().payload(), "now");
  thread_.Call([&] { server_->ResumeReading(1); });
  ASSERT_TRUE(stream->Read(&in));
  EXPECT_EQ(in.frame().payload(), "later");
}

TEST_F(AttachServerTest, RefusesMoreSessionsThanItsLimit) {
  grpc::ClientContext contexts[3];
  auto first = stub_->Attach(&contexts[0]);
  auto second = stub_->Attach(&contexts[1]);
  first->Write(Frame(1, ""));
  second->Write(Frame(2, ""));
  ASSERT_TRUE(Eventually(Millis(30'000), [&] { return opened_ == 2; }));
  auto third = stub_->Attach(&contexts[2]);
  EXPECT_EQ(third->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  contexts[0].TryCancel();
  contexts[1].TryCancel();
}

TEST_F(AttachServerTest, EndsSessionsAsUnavailableWhenItStops) {
  grpc::ClientContext context;
  auto stream = stub_->Attach(&context);
  stream->Write(Frame(7, ""));
  ASSERT_TRUE(Eventually(Millis(30'000), [&] { return opened_ == 1; }));
  StopServer();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace msa
