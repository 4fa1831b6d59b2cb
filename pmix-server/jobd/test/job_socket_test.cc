#include "job_socket.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "msa/adapters/process/unix_socket.h"
#include "msa/base/nam_messages.h"

namespace msa::jobd {
namespace {

class JobSocketTest : public ::testing::Test {
 protected:
  JobSocketTest() {
    char path[] = "/tmp/msasockXXXXXX";
    directory_ = ::mkdtemp(path);
    loop_ = std::move(*EventLoop::Create());
    socket_ = std::move(
        *JobSocket::Create(*loop_, directory_ + "/job.sock",
                           {[this](const wire::TaskHello& hello) -> Result<wire::TaskWelcome> {
                              if (!has_job_) return Error(Code::kFailedPrecondition, "no job");
                              return wire::TaskWelcome{wire::kProtocolVersion, JobId(7), StepId(0), "cn0",
                                                       hello.nspace.empty() ? 1u : 4u};
                            },
                            [this](std::uint64_t, const wire::TaskHello& task, const wire::Frame& frame) {
                              log_ += fmt::format("{} sent {:#x}; ", task.nspace, frame.type);
                            },
                            [this](std::uint64_t) { log_ += "gone; "; }},
                           [this](const std::string& text) { log_ += text; }));
  }
  ~JobSocketTest() override {
    client_.reset();
    socket_.reset();
    std::filesystem::remove_all(directory_);
  }
  void Connect() {
    FrameChannel::Handlers handlers;
    handlers.on_frame = [this](wire::Frame frame) { answer_ = std::move(frame); };
    handlers.on_closed = [this](const Status&) { closed_ = true; };
    client_ = std::move(*FrameChannel::Create(
        *loop_, MakePlainStream(std::move(*ConnectUnix(socket_->path()))), std::move(handlers)));
  }
  bool Until(const std::function<bool()>& done) {
    const auto deadline = SteadyNow() + Millis(5'000);
    while (!done() && SteadyNow() < deadline) EXPECT_TRUE(loop_->RunOnce(Millis(5)).ok());
    return done();
  }
  std::string directory_, log_;
  bool has_job_ = true;
  bool closed_ = false;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<JobSocket> socket_;
  std::unique_ptr<FrameChannel> client_;
  std::optional<wire::Frame> answer_;
};

TEST_F(JobSocketTest, AnswersAHelloWithJobAndWorldSize) {
  Connect();
  client_->SendMessage(wire::TaskHello{wire::kProtocolVersion, "msa.7.1.0", Rank(1)}, 5);
  ASSERT_TRUE(Until([&] { return answer_.has_value(); }));
  EXPECT_EQ(answer_->id, 5u);
  const auto welcome = wire::Decode<wire::TaskWelcome>(answer_->payload);
  ASSERT_TRUE(welcome.ok());
  EXPECT_EQ(welcome->world_size, 4u);
  EXPECT_EQ(welcome->node, "cn0");
}

TEST_F(JobSocketTest, RefusesWithoutAJobOrWithAnotherVersionOrMessage) {
  has_job_ = false;
  Connect();
  client_->SendMessage(wire::TaskHello{});
  EXPECT_TRUE(Until([&] { return closed_; }));
  has_job_ = true;
  for (const std::string& packed :
       {wire::Pack(wire::TaskHello{99, {}, {}}), wire::Pack(0x0677, 0, ""), wire::Pack(0x0601, 0, "x")}) {
    closed_ = false;
    Connect();
    client_->Send(packed);
    EXPECT_TRUE(Until([&] { return closed_; }));
  }
  EXPECT_TRUE(Until([&] { return socket_->connections() == 0; }));
}

TEST_F(JobSocketTest, TakesRequestsForMemoryThatAreLongerThanOtherMessages) {
  Connect();
  client_->SendMessage(wire::TaskHello{wire::kProtocolVersion, "msa.7.1.0", Rank(1)});
  client_->Send(wire::Pack(0x0701, 0, std::string(wire::kMaxNamPayload, 'x')));
  ASSERT_TRUE(Until([&] { return log_ == "msa.7.1.0 sent 0x701; "; })) << log_;
  client_->Send(wire::Pack(wire::SpawnAsk::kType, 0, std::string(64 * 1024 + 1, 'x')));
  EXPECT_TRUE(Until([&] { return closed_; }));
  EXPECT_NE(log_.find("has 65537 bytes, the limit is 65536"), std::string::npos) << log_;
  EXPECT_TRUE(log_.ends_with("gone; ")) << log_;
}

TEST_F(JobSocketTest, AClientThatDoesNotReadItsAnswersIsDropped) {
  Connect();
  client_->SendMessage(wire::TaskHello{wire::kProtocolVersion, "msa.7.1.0", Rank(1)});
  ASSERT_TRUE(Until([&] { return answer_.has_value(); }));
  client_->PauseReading();
  const wire::Frame answer{wire::NamListing::kType, 0, 1, std::string(4 << 20, 'x')};
  for (int i = 0; i < 16; ++i) socket_->SendFrame(1, answer);
  EXPECT_EQ(socket_->connections(), 0u);
  EXPECT_TRUE(log_.ends_with("gone; ")) << log_;
  socket_->SendFrame(1, answer);
}

TEST_F(JobSocketTest, IsForItsUserAlone) {
  struct stat info {};
  ASSERT_EQ(::stat(socket_->path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

}  // namespace
}  // namespace msa::jobd
